"""Judges of claims, on results that were made up."""

import pytest

from kernelwright.research.experiments import (
    hsu_figure1,
    hsu_figure2,
    hsu_network,
    hsu_table1,
    hsu_table1_order,
    hsu_theory,
)
from kernelwright.research.experiments.claims import NOT_RUN, Verdict, claims_sentence, mean_of, not_tested
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


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith("hsu-")])
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
