"""Judges of claims, on results that were made up."""

import pytest

from kernelwright.research.experiments import (
    hsu_figure1,
    hsu_figure2,
    hsu_network,
    hsu_table1,
    hsu_table1_order,
    hsu_theory,
    learning_rate,
    liu_figure2,
    liu_figure3,
    liu_table1,
    liu_table2,
    liu_table3,
)
from kernelwright.research.experiments.claims import (
    NOT_RUN,
    Verdict,
    claims_sentence,
    mean_of,
    means_together,
    not_tested,
)
from kernelwright.research.experiments.registry import EXPERIMENTS
from kernelwright.research.experiments.runner import Result


def cells(**values):
    """Return results of one trial, from values by "row, column"."""
    return [Result(*key.split(", "), 0, "accuracy", value) for key, value in values.items()]


def test_verdicts_are_counted():
    said = claims_sentence([Verdict(True, ""), Verdict(False, ""), Verdict(None, ""), Verdict(True, "")])
    assert said == "of 4 claims in words, 2 hold, 1 are contradicted and 1 not tested"
    assert not_tested("too long")([]) == Verdict(None, "too long")
    assert mean_of(cells(**{"a, b": 1.0}), "a", "b") == 1.0
    assert mean_of([], "a", "b") is None


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_judges_of_results_that_are_not_there(name):
    for claim in EXPERIMENTS[name].claims:
        if "not separable" not in claim.sentence:
            verdict = claim.judge([Result("another", "cell", 0, "value", 1.0)])
            assert verdict.holds is None, claim.sentence


def by_method(name, own, rival):
    columns = {method: own for method in hsu_table1.OWN} | {method: rival for method in hsu_table1.RIVALS}
    return cells(**{f"{name}, {column}": value for column, value in columns.items()})


def test_a_rival_ahead_on_one_set_contradicts():
    judge = hsu_table1.CLAIMS[0].judge
    assert judge(by_method("wine", 97.0, 96.0)).holds
    assert judge(by_method("wine", 97.0, 97.05)).holds  # a tie
    verdict = judge(by_method("wine", 97.0, 96.0) + by_method("yeast", 50.0, 58.0))
    assert verdict == Verdict(False, "behind on 1 of 2 sets; yeast: 50.0, ERM 58.0 (in print: on none)")


@pytest.mark.parametrize(("batches", "holds"), [(95.5, True), (99.5, False), (94.5, False)])
def test_mini_batches_like_full_steps(batches, holds):
    found = cells(**{"wine, GMCE": 97.0, "wine, GMCE-SGD": batches})
    assert hsu_table1.batches_like_whole(found).holds is holds


def test_ahead_at_all_sizes_of_a_range():
    found = cells(**{"n = 50, with the bound": 50.0, "n = 50, SVC": 60.0, "n = 1000, with the bound": 93.0})
    found += cells(**{"n = 1000, SVC": 92.0})
    judge = hsu_figure2.ahead
    assert judge("with the bound", "SVC", hsu_figure2.ANY, found) == Verdict(False, "-10.0 at 50, +1.0 at 1000")
    assert judge("with the bound", "SVC", hsu_figure2.LARGE, found) == Verdict(True, "+1.0 at 1000")
    assert hsu_figure2.overtakes("with the bound", "SVC", found).holds
    assert judge("with the bound", "GPC", hsu_figure2.ANY, found) is NOT_RUN


def test_moves_of_figure_1():
    def start(measure, before, after):
        return [
            Result("overfitting", column, 0, measure, value)
            for column, value in (("start", before), ("step 500", after))
        ]

    signs = {"complexity": -1, "training accuracy": -1}
    falls = start("complexity", 12.0, 2.0)
    assert hsu_figure1.moved("overfitting", signs, falls) is NOT_RUN
    assert hsu_figure1.moved("overfitting", signs, falls + start("training accuracy", 88.0, 82.0)).holds
    assert not hsu_figure1.moved("overfitting", signs, falls + start("training accuracy", 88.0, 89.0)).holds


@pytest.mark.parametrize(("exponent", "holds"), [(-0.3, True), (-0.2, False)])
def test_a_rate_is_the_slope_of_the_logarithms(exponent, holds):
    found = [Result(f"n = {n}", "MCE", 0, "error", 2.0 * n**exponent) for n in (100, 400, 1600)]
    verdict = hsu_theory.falls("error", -0.25, found)
    assert verdict.holds is holds
    assert verdict.found.endswith(f"as n^{exponent:.2f}")


def test_a_network_that_falls_behind_is_named():
    curves = {"embedding": (90.0, 91.0), "softmax": (80.0, 92.0)}
    found = [
        Result("MNIST", "CNN", 0, f"{head}, epoch {n}", value)
        for head, values in curves.items()
        for n, value in enumerate(values, start=1)
    ]
    verdict = hsu_network.ahead_judged("CNN", found)
    assert not verdict.holds
    assert verdict.found == "behind after epochs 2; first epoch 90.0 against 80.0 %, last 91.0 against 92.0 %"


def test_agreement_to_the_digit():
    found = [Result("wine", hsu_table1_order.EACH, t, "accuracy", 93.3 + d) for t, d in enumerate((-7.8, 7.8))]
    said = hsu_table1_order.agreements(found)
    assert said[0] == "MED of each attribute in file order: 1 the same to the digit, 0 close, 0 not the same"
    assert said[1].endswith("published 93.3 ± 7.8, in file order 93.3 ± 7.8, 2 folds: the same to the digit")


def judged(module, start):
    """Return the judge of the first claim whose sentence starts so."""
    return next(claim.judge for claim in module.CLAIMS if claim.sentence.startswith(start))


def of_table_1(kind, name, measure, **values):
    names = {"known": "known", "pan": "nonnegative", "krr": "hyper-KRR", "svr": "hyper-SVR"}
    return [Result(f"{kind}: {name}", names[key], 0, measure, value) for key, value in values.items()]


def test_sentences_about_known_kernels():
    small = of_table_1("Gaussian", "wine", "error", krr=0.1, svr=0.05)
    assert judged(liu_table1, "The regressions accurately")(small).holds
    large = small + of_table_1("log", "wine", "error", krr=0.7, svr=0.1)
    verdict = judged(liu_table1, "The regressions accurately")(large)
    assert verdict == Verdict(False, "0.2 or more in 1 of 4 cells; most 0.70 (log, wine, hyper-KRR)")
    assert judged(liu_table1, "Log kernel: hyper-SVR performs best")(large).holds
    assert not judged(liu_table1, "Log kernel: hyper-SVR performs best")(
        of_table_1("log", "wine", "error", krr=0.05, svr=0.1)
    ).holds
    accuracies = of_table_1("Gaussian", "wine", "accuracy, test", pan=90.0, krr=91.0, svr=92.0)
    assert judged(liu_table1, "Gaussian kernel")(accuracies).holds
    assert judged(liu_table1, "Accuracy and approximation")(small + accuracies).holds is False  # better in both
    log = of_table_1("log", "wine", "accuracy, test", known=90.0, krr=80.0, svr=91.0)
    assert judged(liu_table1, "Log kernel: the regressions improve")(log).holds
    assert judged(liu_table1, "The method of Pan")(of_table_1("log", "wine", "error", pan=1.0)).holds


@pytest.mark.parametrize(("own", "holds"), [(90.0, True), (82.0, False)])
def test_sentences_about_ideal_kernels(own, holds):
    sets = ("wine", "heart", "sonar")
    found = cells(**{f"{name}, {rival}": 85.0 for name in sets for rival in liu_table2.RIVALS})
    found += cells(**{f"{name}, {method}": own + ("SVR" in method) for name in sets for method in liu_table2.OWN})
    assert judged(liu_table2, "The hyper methods are above")(found).holds is holds
    assert judged(liu_table2, "hyper-SVR is superior")(found).holds
    assert judged(liu_table2, "The squared loss")(found).holds
    several = judged(liu_table2, "hyper-SVR does well")(found)
    assert several == Verdict(
        holds, f"level or ahead on {3 * holds} of 3 sets ({'wine, sonar, heart' if holds else ''})"
    )
    assert judged(liu_table2, "hyper-SVR is superior")([r for r in found if r.row != "wine"]).holds is None


def test_sentences_about_parts():
    def of_figure(error, seconds, pairs=lambda M: M * (M + 1) / 2):
        return [
            Result(f"M = {M}", f"v = {v}{how}", 0, measure, value)
            for M in liu_figure2.LANDMARKS
            for v in liu_figure2.PARTS
            for how in ("", liu_figure2.OWN_PAIRS)
            for measure, value in (("error", error(M, v)), ("seconds", seconds(M, v)), ("pairs", pairs(M)))
        ]

    found = of_figure(lambda M, v: 1.0 / M, lambda M, v: M / v)
    assert all(claim.judge(found).holds for claim in liu_figure2.CLAIMS)
    wrong = of_figure(lambda M, v: 1.0 + v, lambda M, v: M * v, lambda M: M**2)
    assert all(claim.judge(wrong).holds is False for claim in liu_figure2.CLAIMS)


def test_sentences_about_many_rows():
    def of_table(accuracy, seconds):
        return [
            Result(f"ijcnn1, v = {v}", method, 0, measure, value(v, method))
            for v in (5, 20)
            for method in liu_table3.METHODS
            for measure, value in (("accuracy", accuracy), ("seconds", seconds))
        ]

    found = of_table(lambda v, method: 90.0 + v / 20, lambda v, method: 100.0 / v)
    assert [claim.judge(found).holds for claim in liu_table3.CLAIMS] == [True, True, True, None]
    wrong = of_table(lambda v, method: 90.0 + v * len(method) / 5, lambda v, method: v * len(method) ** 3)
    assert [claim.judge(wrong).holds for claim in liu_table3.CLAIMS] == [False, False, False, None]


def test_means_are_over_the_trials_that_all_columns_have():
    values = {("a", 0): 1.0, ("a", 1): 5.0, ("b", 1): 2.0, ("b", 2): 9.0}
    found = [Result("wine", column, trial, "accuracy", value) for (column, trial), value in values.items()]
    assert means_together(found, "wine", ("a", "b")) == {"a": 5.0, "b": 2.0}
    assert means_together(found, "wine", ("a", "b", "c")) == {}


def test_a_margin_is_of_the_same_trials():
    found = [Result("1 vs 9, n = 10", "reciprocal neighbours", t, "accuracy", 80.0 + 10 * t) for t in (0, 1)]
    found.append(Result("1 vs 9, n = 10", "hyper-KRR", 0, "accuracy", 82.0))
    assert judged(liu_figure3, "hyper-KRR is two")(found) == Verdict(True, "+2.0 points over 1 trials")
    found.append(Result("1 vs 9, n = 50", "reciprocal neighbours", 0, "accuracy", 90.0))
    found.append(Result("1 vs 9, n = 50", "hyper-KRR", 0, "accuracy", 95.0))
    assert judged(liu_figure3, "The improvement is largest")(found).holds is False


def test_each_rate_has_its_own_promise():
    assert [learning_rate.promised("hyper-KRR", alpha) for alpha in (0.5, 0.75, 1.0)] == [-0.5, -0.5, -0.5]
    assert [learning_rate.promised("hyper-SVR", alpha) for alpha in (0.5, 0.75, 1.0)] == [-0.25, -0.375, -0.5]
    name = learning_rate.column("hyper-SVR", 0.5)
    found = [Result(f"m = {m}", name, 0, "error", m**-0.3) for m in (10, 100)]
    verdicts = {claim.sentence: claim.judge(found).holds for claim in learning_rate.CLAIMS}
    assert verdicts.pop("hyper-SVR: at alpha = 0.5 the error falls at least as fast as m^-0.25")
    assert set(verdicts.values()) == {None}
