"""Arithmetic and bookkeeping of the suite, without the peers, which are not installed here."""

import importlib.util
import math
import sys

import numpy as np
import pytest

from benchmarks import figures, history, ranks, suite, worker
from kernelwright.uncertainty.scores import expected_calibration_error
from tools import tables


def row(data, method, value, note="", fold=0, measure="log loss"):
    return {"data": data, "method": method, "fold": str(fold), measure: str(value), "note": note}


def table(**columns):
    """Make rows from a list of log losses for each method; None did not finish."""
    return [
        row(f"set {i}", method, "" if value is None else value, "not finished in 60 s" if value is None else "")
        for method, values in columns.items()
        for i, value in enumerate(values)
    ]


class TestRanks:
    def test_a_small_example_by_hand(self):
        # set 0: a 1, b 2, c 3;  set 1: b 1, a and c share 2 and 3
        found = ranks.scores(table(a=[0.1, 0.5], b=[0.2, 0.4], c=[0.3, 0.5]), "log loss")
        assert found.methods == ["a", "b", "c"]
        np.testing.assert_array_equal(found.ranks, [[1, 2, 3], [2.5, 1, 2.5]])
        np.testing.assert_array_equal(found.mean_ranks, [1.75, 1.5, 2.75])

    def test_more_accuracy_is_better(self):
        rows = [row("s", "a", 90, measure="accuracy %"), row("s", "b", 95, measure="accuracy %")]
        np.testing.assert_array_equal(ranks.scores(rows, "accuracy %").ranks, [[2, 1]])

    def test_what_did_not_finish_is_last_and_shares_the_last_places(self):
        found = ranks.scores(table(a=[0.1, None], b=[9.0, 9.0], c=[None, None], d=[None, 0.1]), "log loss")
        assert found.methods == ["a", "b", "d"]  # c finished nothing: it takes no part
        np.testing.assert_array_equal(found.ranks, [[1, 2, 3], [3, 2, 1]])
        several = ranks.Scores(["s"], ["a", "b", "c"], np.array([[math.nan, 1.0, math.nan]]), False)
        np.testing.assert_array_equal(several.ranks, [[2.5, 1, 2.5]])

    def test_one_fold_that_did_not_finish_is_enough(self):
        rows = [row("s", "a", 0.1), row("s", "a", "", "not finished in 60 s", fold=1), row("t", "a", 1.0)]
        assert math.isnan(ranks.mean(rows, "s", "a", "log loss"))

    def test_folds_are_averaged(self):
        rows = [row("s", "a", 0.1), row("s", "a", 0.3, fold=1)]
        assert ranks.mean(rows, "s", "a", "log loss") == pytest.approx(0.2)

    def test_only_data_sets_that_all_were_given(self):
        found = ranks.scores([*table(a=[1.0, 2.0], b=[2.0, 1.0]), row("alone", "a", 1.0)], "log loss")
        assert found.data == ["set 0", "set 1"]

    def test_only_data_sets_of_which_all_had_the_same_folds(self):
        rows = [*table(a=[1.0, 2.0], b=[2.0, 1.0]), row("set 0", "a", 1.0, fold=1)]
        assert ranks.scores(rows, "log loss").data == ["set 1"]

    def test_friedman_of_equals_and_of_a_clear_order(self):
        clear = table(a=[1.0] * 9, b=[2.0] * 9, c=[3.0] * 9)
        assert ranks.scores(clear, "log loss").friedman < 0.001
        assert math.isnan(ranks.scores(table(a=[1.0], b=[2.0]), "log loss").friedman)


class TestCriticalDifference:
    @pytest.mark.parametrize(
        ("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (10, 3.164)]
    )
    def test_table_5a_of_demsar_2006(self, k, q):
        """Check the numbers of the table, which are the differences for n = k (k + 1) / 6 data sets."""
        assert ranks.critical_difference(k, k * (k + 1) / 6) == pytest.approx(q, abs=1e-3)

    def test_example_of_demsar_2006(self):
        """Check four classifiers on 14 data sets (section 3.2.2): 1.25 at 0.05, 1.12 at 0.10."""
        assert ranks.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
        assert ranks.critical_difference(4, 14, alpha=0.10) == pytest.approx(1.12, abs=0.005)

    def test_bars_over_what_is_not_told_apart(self):
        """Use the mean ranks of that example: one bar from 1.964 to 2.893, one from 2.000 to 3.143."""
        bars = ranks.cliques(np.array([3.143, 2.000, 2.893, 1.964]), 1.15)
        assert bars == [(1.964, 2.893), (2.0, 3.143)]
        assert ranks.cliques(np.array([1.0, 2.0, 3.0]), 0.5) == []
        assert ranks.cliques(np.array([1.0, 2.0, 3.0]), 5.0) == [(1.0, 3.0)]


def test_exponent():
    n = np.array([1000.0, 2000.0, 4000.0])
    assert ranks.exponent(n, 3e-9 * n**2.5) == pytest.approx(2.5)
    assert math.isnan(ranks.exponent(n[:2], n[:2]))


def data(name="toy", folds=2, seconds=1.0):
    def split(fold):
        random = np.random.default_rng(fold)
        X, y = random.normal(size=(40, 3)), np.arange(40) % 2
        return X[:30] + 3 * y[:30, None], y[:30], X[30:] + 3 * y[30:, None], y[30:]

    return suite.Data(name, split, folds, seconds)


class Toy:
    """Measure nothing, and remember the tasks."""

    def __init__(self, notes=None, stop_at=math.inf):
        self.asked, self.notes, self.stop_at = [], notes or {}, stop_at

    def __call__(self, task):
        if len(self.asked) >= self.stop_at:
            raise KeyboardInterrupt
        self.asked.append(task.key)
        found = dict.fromkeys(ranks.MEASURES, 1.0)
        return {"data": task.data.name, "fold": task.fold, "method": task.method, **found} | {
            "note": self.notes.get(task.key, "")
        }


def chain(method, *sets):
    return [suite.Task(each, fold, method) for each in sets for fold in range(each.folds)]


class TestRun:
    def test_what_is_done_is_not_done_again(self, tmp_path):
        path, todo = tmp_path / "suite.csv", [chain("a", data()), chain("b", data())]
        stopped = Toy(stop_at=3)
        with pytest.raises(KeyboardInterrupt):
            suite.run(todo, path, stopped, jobs=1)
        assert len(tables.read(path)) == 3
        rest = Toy()
        suite.run(todo, path, rest, jobs=1)
        assert rest.asked == [("toy", "1", "b")]
        assert len(tables.read(path)) == 4

    def test_a_line_that_was_cut_off_is_done_again(self, tmp_path):
        path = tmp_path / "suite.csv"
        suite.run([chain("a", data())], path, Toy())
        path.write_text(path.read_text()[:-5])
        again = Toy()
        suite.run([chain("a", data())], path, again)
        assert again.asked == [("toy", "1", "a")]
        assert [r["fold"] for r in tables.read(path)] == ["0", "1"]

    def test_again_forgets_one_method(self, tmp_path):
        path, todo = tmp_path / "suite.csv", [chain("a", data()), chain("b", data())]
        suite.run(todo, path, Toy())
        suite.forget(path, ["b"])
        again = Toy()
        suite.run(todo, path, again)
        assert {method for _, _, method in again.asked} == {"b"}
        assert len(tables.read(path)) == 4

    def test_with_more_time_what_was_not_finished_is_tried_again(self, tmp_path):
        path = tmp_path / "suite.csv"
        hasty, failed = [chain("a", data(seconds=60.0))], [chain("b", data(seconds=60.0))]
        suite.run(hasty, path, Toy({("toy", "0", "a"): "not finished in 60 s"}), jobs=1)
        suite.run(failed, path, Toy({("toy", "0", "b"): "failed: ValueError"}), jobs=1)
        suite.forget_hasty(path, hasty)
        assert len(tables.read(path)) == 4
        patient = [chain("a", data(seconds=90.0)), chain("b", data(seconds=90.0))]
        suite.forget_hasty(path, patient)
        again = Toy()
        suite.run(patient, path, again, jobs=1)
        assert again.asked == [("toy", "0", "a"), ("toy", "1", "a")]

    def test_after_too_much_time_the_rest_is_not_tried(self, tmp_path):
        path, sets = tmp_path / "suite.csv", (data("few", 1), data("many", 2))
        toy = Toy({("few", "0", "a"): "not finished in 60 s", ("few", "0", "b"): "failed: ValueError"})
        suite.run([chain("a", *sets), chain("b", *sets)], path, toy, jobs=1)
        assert [key for key in toy.asked if key[2] == "a"] == [("few", "0", "a")]
        assert len([key for key in toy.asked if key[2] == "b"]) == 3  # another fold may do what one could not
        notes = [r["note"] for r in tables.read(path) if r["method"] == "a"]
        assert len(notes) == 3
        assert all(note.startswith("not finished") for note in notes)
        resumed = Toy()
        suite.run([chain("a", *sets)], path, resumed, jobs=1)
        assert not resumed.asked


class TestWorker:
    """Use a real process, with a method that needs only scikit-learn."""

    def test_a_fit_is_measured(self, tmp_path):
        with suite.InProcesses(tmp_path, sys.executable) as measure:
            found, again = (measure(suite.Task(data(seconds=60.0), 0, "logistic regression")) for _ in range(2))
            (worker,) = measure.workers.values()
        assert found["note"] == ""
        assert again["log loss"] == found["log loss"]
        assert not worker.lives
        assert found["accuracy %"] == 100.0
        assert (found["training rows"], found["test rows"], found["features"], found["classes"]) == (30, 10, 3, 2)
        assert 0.0 < found["CPU seconds to fit"] < 10.0
        assert set(found) <= set(suite.COLUMNS)

    @pytest.mark.skipif(importlib.util.find_spec("lightgbm") is not None, reason="LightGBM is installed here")
    def test_what_cannot_be_loaded_says_so(self):
        assert worker.answer(worker.ASKED["classes"], "LightGBM", {}, 1.0, 1.0) == {
            "note": "does not load: ModuleNotFoundError: No module named 'lightgbm'"
        }


def test_calibration_error_in_fifteen_bins():
    """Expect (0.2 + 0) / 2: ten rows at 0.9, seven of them right, and ten at 0.6, six of them right."""
    p = np.repeat([[0.9, 0.1], [0.6, 0.4]], 10, axis=0)
    y = np.array([0] * 7 + [1] * 3 + [0] * 6 + [1] * 4)
    assert expected_calibration_error(p, y, suite.BINS) == pytest.approx(0.1)
    found = suite._measured(
        dict(probabilities=p, classes=np.array([0, 1]), fit=1.0, fit_clock=1.0, predict=1.0, gibibytes=0.0, note=""),
        {"y_test": y},
    )
    assert found["calibration error"] == pytest.approx(0.1)
    assert found["accuracy %"] == pytest.approx(65.0)


def test_sets_are_from_a_hundred_to_fifty_thousand_rows_and_marked():
    sets = [each for group in suite.groups(False) for each in group]
    assert len(sets) >= 12
    assert {each.name for each in sets if not each.seen} == {
        *("guide1", "ijcnn1", "covtype, 10,000 rows", "covtype, 50,000 rows")
    }
    assert all(each.folds in (1, 3) for each in sets)


class TestHistory:
    def test_a_slowdown_is_seen(self, tmp_path):
        path = tmp_path / "history.csv"
        for i, ratio in enumerate([1.0, 1.4, 1.1]):
            history.record({"slow": ratio, "same": 2.0}, path, date=f"day {i}", version="abc")
        assert history.slower(tables.read(path)) == {}  # 1.1 against the median 1.2
        history.record({"slow": 1.33, "same": 2.3}, path, date="day 3", version="abc")
        assert history.slower(tables.read(path)) == {"slow": (1.33, 1.1)}
        assert "slow: 1.33, was 1.1 (1.21 times)" in history.verdict(tables.read(path))

    def test_the_first_run_has_nothing_to_compare_with(self, tmp_path):
        path = tmp_path / "history.csv"
        history.record({"a": 1.0}, path, date="today", version="abc")
        assert "nothing to compare with" in history.verdict(tables.read(path))


def test_pictures_are_drawn_from_rows(tmp_path):
    rows = table(kernelwright=[0.1, 0.2, 0.3], b=[0.2, 0.1, None], c=[0.3, 0.3, 0.1])
    for each in rows:
        each |= dict.fromkeys(ranks.MEASURES, each["log loss"])
    assert figures.ranks_figure(rows) is not None
    assert figures.trade_figure(rows) is not None
    assert figures.ranks_figure(rows[:1]) is None
    assert figures.scaling_figure([]) is None
