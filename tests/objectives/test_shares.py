"""Rows that are trained on, and rows that are scored."""

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.kernels import Gaussian
from kernelwright.learning import HeldOut
from kernelwright.objectives import ClippedLogLoss, FoldsObjective, HeldOutObjective, Hyperparameters
from kernelwright.objectives.splits import ShareOfRows

N = 60
random = np.random.default_rng(0)
X, Y, GROUPS = random.normal(size=(N, 2)), random.integers(0, 2, N), random.integers(0, 12, N)


def rows(groups=None):
    named = None if groups is None else torch.from_numpy(groups)
    return TrainingSet.of(torch.from_numpy(X), torch.eye(2, dtype=torch.float64)[torch.from_numpy(Y)], groups=named)


def value(objective, data):
    return objective(Hyperparameters(Gaussian(1.0), 0.1), data).value


@pytest.mark.parametrize("kind", [HeldOutObjective, FoldsObjective])
def test_groups_that_are_not_in_order_are_scored_as_a_whole(kind):
    data = rows(GROUPS)
    by_name = value(kind(folds=tuple(data.folds(2).tolist())), data)
    assert value(kind(folds=2), data) == pytest.approx(by_name, rel=1e-12)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
def test_a_share_of_the_rows_is_scored(groups):
    data = rows(groups)
    by_name = HeldOutObjective(0.1, folds=tuple(data.part(0.3).tolist()))
    assert value(HeldOutObjective(0.1, folds=ShareOfRows(0.3)), data) == pytest.approx(value(by_name, data), rel=1e-12)


def test_held_out_learning_scores_half_of_the_rows_unless_another_share_is_given():
    data, loss = rows(), ClippedLogLoss(1e-15)
    half = HeldOut(0.1).objective(data, None, "double")
    assert value(half, data) == value(HeldOutObjective(0.1, loss, folds=2), data)
    third = HeldOut(0.1, share=1 / 3).objective(data, None, "double")
    assert value(third, data) == value(HeldOutObjective(0.1, loss, folds=ShareOfRows(1 / 3)), data)
