"""The statistical goals with few repetitions: ``python -m robustness.goals NAME --thin`` prints what a test saw."""

import math

import numpy as np
import pytest
from scipy.special import log_softmax

from robustness import goals, weights
from robustness.goals import CentroidSoftmax
from robustness.trials import Verdict, standard_error
from tools import tables


def missed(verdicts):
    return [verdict for verdict in verdicts if verdict.passed is False]


REFITS = {"left-out", "sets", "noisy-numbers", "intervals"}  # hundreds of fits


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in REFITS else name for name in goals.GOALS]
)
def test_goal(name):
    verdicts = goals.GOALS[name](thin=True)
    assert missed(verdicts) == []
    assert any(verdict.passed for verdict in verdicts)  # something was judged


# The goals themselves ------------------------------------------------------------------------------------------


def test_the_rival_of_many_classes_leaves_rows_out_of_their_own_centre():
    rng = np.random.default_rng(0)
    y = np.arange(12) % 4
    X = rng.normal(size=(4, 3))[y] + 0.5 * rng.normal(size=(12, 3))
    rival = CentroidSoftmax().fit(X, y)

    def loss(temperature):
        total = 0.0
        for row in range(12):
            rest = np.delete(np.arange(12), row)
            centres = np.array([X[rest][y[rest] == label].mean(0) for label in range(4)])
            squares = ((X[row] - centres) ** 2).sum(1)
            total -= log_softmax(-squares / (2 * temperature))[y[row]]
        return total

    best = loss(rival.temperature_)
    assert best < loss(1.02 * rival.temperature_)
    assert best < loss(0.98 * rival.temperature_)
    np.testing.assert_allclose(rival.predict_proba(X).sum(1), 1)


def test_an_error_that_is_too_low_is_noticed_and_a_limit_that_fails_too_often():
    rng = np.random.default_rng(1)
    new = np.full(200, 0.3)
    honest, low = new + 0.05 * rng.normal(size=200), new - 0.02 + 0.05 * rng.normal(size=200)
    for found, passed in ((honest, True), (low, False)):
        mean = np.array([found.mean(), 0.3])
        assert weights._agreement("any", mean, standard_error(found - new), 2.0).passed is passed
    for rate, passed in ((0.95, True), (0.90, False)):
        upper = np.where(np.arange(200) < rate * 200, 0.4, 0.2)
        assert weights._limit("any", np.column_stack([new, new, upper])).passed is passed
    assert weights._limit("any", np.column_stack([new, new, np.full(200, math.nan)])).passed is False


def test_coverage_that_is_too_low_is_noticed():
    covered = 0.9 + 0.04 * np.random.default_rng(2).normal(size=200)
    assert goals._coverage("coverage", "any", covered, "").passed
    assert not goals._coverage("coverage", "any", covered - 0.02, "").passed


def test_a_goal_that_ends_in_an_error_is_missed(monkeypatch):
    def fail(**options):
        raise RuntimeError("on purpose")

    monkeypatch.setattr(goals, "GOALS", {"copies": fail})
    (row,) = goals.figures(quick=True)
    assert (row["failures"], row["note"]) == (1, "RuntimeError: on purpose")


def test_what_is_only_shown_is_not_counted(monkeypatch):
    shown = [Verdict("any", "a", 1.0, 2.0, None), Verdict("any", "b", 1.0, 2.0, True)]
    monkeypatch.setattr(goals, "GOALS", {"any": lambda **options: shown})
    assert [(row["tried"], row["failures"]) for row in goals.figures(quick=True)] == [(0, 0), (1, 0)]


def test_a_goal_is_recorded_in_the_place_of_what_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(goals, "RESULTS", tmp_path)
    first, second = Verdict("upper limit", "a", 1.0, 2.0, True), Verdict("upper limit", "a", 3.0, 2.0, False)
    goals.record([goals._row("sets", first, "")])
    goals.record([goals._row("left-out", first, ""), goals._row("left-out", first, "")])
    goals.record([goals._row("left-out", second, "")])
    found = [(row["goal"], row["value"], row["failures"]) for row in tables.read(tmp_path / "goals.csv")]
    assert found == [("left-out", "3", "1"), ("sets", "1", "0")]


def test_a_subset_has_all_classes():
    y = np.repeat([0, 1, 2], [50, 3, 1])
    rows = weights._with_all_classes(np.random.default_rng(5), y, 10)
    assert len(np.unique(rows)) == len(rows) == 10
    assert set(y[rows]) == {0, 1, 2}
