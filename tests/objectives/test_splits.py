"""Objectives on splits: a held-out part, or cross-validation folds."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian
from kernelwright.learning import HeldOut
from kernelwright.objectives import (
    ClippedLogLoss,
    FoldsObjective,
    HeldOutObjective,
    Hyperparameters,
    objective_named,
    value_and_gradient,
)
from kernelwright.objectives.splits import LastRows, ShareOfRows
from tests import reference as naive
from tests.objectives.problem import GROUPS, LABELS, RIDGE, WEIGHTS, M, N, X, Y, rows, settings


@pytest.mark.parametrize("name", ["folds", "held-out"])
def test_no_group_is_cut_by_a_fold(name):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M), groups=torch.from_numpy(GROUPS))
    folds = data.folds(2)
    assert all(len(set(folds[g == GROUPS])) == 1 for g in set(GROUPS))
    by_number, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=2, groups=GROUPS)
    weights = np.full(N, 1.0)
    by_folds, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=folds, sample_weight=weights)
    assert by_number == pytest.approx(by_folds, rel=1e-12)


@pytest.mark.parametrize("n_copies", [2, 3])
def test_merged_rows_may_fall_into_different_folds(n_copies):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M), counts=torch.full((N,), float(n_copies)).double())
    merged = replace(data, weights=n_copies * data.weights)
    apart = data.subset(torch.arange(N).repeat_interleave(n_copies))
    apart = replace(apart, counts=None)
    how = objective_named("folds", loss="brier", folds=3)
    values = [how(Hyperparameters(Gaussian(1.5), RIDGE), rows).value for rows in (merged, apart)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("name", ["held-out", "folds"])
def test_folds_may_be_a_number_or_a_number_for_each_row(name):
    counted, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=3)
    given, _ = value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=naive.turns(LABELS, 3))
    assert counted == pytest.approx(given, rel=1e-12)


def test_one_fold_for_each_row_is_leave_one_out():
    by_folds, _ = value_and_gradient("folds", Gaussian(), X, LABELS, ridge=RIDGE, folds=np.arange(N))
    closed_form, _ = value_and_gradient("leave-one-out", Gaussian(), X, LABELS, ridge=RIDGE)
    assert by_folds == pytest.approx(closed_form, rel=1e-9)


@pytest.mark.parametrize("name", ["held-out", "folds"])
@pytest.mark.parametrize(
    "folds", [1, np.zeros(N, dtype=int), np.arange(N - 1) % 2], ids=["one", "all-in-one", "too-few-rows"]
)
def test_folds_that_leave_nothing_to_train_or_test_are_refused(name, folds):
    with pytest.raises(ValueError, match="'folds'"):
        value_and_gradient(name, Gaussian(), X, LABELS, ridge=RIDGE, folds=folds)


@pytest.mark.parametrize(("share", "n_scored"), [(0.25, 4), (0.5, 7), (0.001, 1), (0.999, N - 1)])
def test_the_last_rows_may_be_held_out(share, n_scored):
    folds = LastRows(share)(rows())
    assert folds.tolist() == [0] * (N - n_scored) + [1] * n_scored
    found = HeldOutObjective(0.07, folds=LastRows(share))(Hyperparameters(Gaussian(1.5), RIDGE), rows(weights=WEIGHTS))
    K = naive.gram(naive.gaussian(1.5), X)
    options = settings(folds=folds, sup=1.0, epsilon=1e-15)
    assert found.value == pytest.approx(naive.objective("held-out", K, Y, WEIGHTS, RIDGE, **options), rel=1e-9)


@pytest.mark.parametrize("name", ["held-out", "folds"])
def test_rows_are_arranged_by_their_folds(name):
    folds = tuple(np.random.default_rng(0).permutation(np.arange(N) % 3).tolist())
    arranged = objective_named(name, folds=folds).arranged(rows())
    expected = X[np.argsort(folds, kind="stable")]
    np.testing.assert_array_equal(arranged.points, expected)


# Many rows, and groups that are not in order -------------------------------------------------------------------

RANDOM = np.random.default_rng(0)
POINTS, CLASSES, MANY_GROUPS = RANDOM.normal(size=(60, 2)), RANDOM.integers(0, 2, 60), RANDOM.integers(0, 12, 60)


def many_rows(groups=None) -> TrainingSet:
    named = None if groups is None else torch.from_numpy(groups)
    return TrainingSet.of(torch.from_numpy(POINTS), one_hot(CLASSES, 2), groups=named)


def value(objective, data) -> float:
    return objective(Hyperparameters(Gaussian(1.0), 0.1), data).value


@pytest.mark.parametrize("kind", [HeldOutObjective, FoldsObjective])
def test_groups_that_are_not_in_order_are_scored_as_a_whole(kind):
    data = many_rows(MANY_GROUPS)
    by_name = value(kind(folds=tuple(data.folds(2).tolist())), data)
    assert value(kind(folds=2), data) == pytest.approx(by_name, rel=1e-12)


@pytest.mark.parametrize("groups", [None, MANY_GROUPS], ids=["rows", "groups"])
def test_a_share_of_the_rows_is_scored(groups):
    data = many_rows(groups)
    by_name = HeldOutObjective(0.1, folds=tuple(data.part(0.3).tolist()))
    assert value(HeldOutObjective(0.1, folds=ShareOfRows(0.3)), data) == pytest.approx(value(by_name, data), rel=1e-12)


def test_held_out_learning_scores_half_of_the_rows_unless_another_share_is_given():
    data, loss = many_rows(), ClippedLogLoss(1e-15)
    half = HeldOut(0.1).objective(data, None, "double")
    assert value(half, data) == value(HeldOutObjective(0.1, loss, folds=2), data)
    third = HeldOut(0.1, share=1 / 3).objective(data, None, "double")
    assert value(third, data) == value(HeldOutObjective(0.1, loss, folds=ShareOfRows(1 / 3)), data)
