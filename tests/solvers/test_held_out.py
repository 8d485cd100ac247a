"""Rows that are held out of an embedding."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.solvers import Landmarks
from kernelwright.solvers.held_out import hold_out
from tests.solvers.disc import RNG, N, data, random, solve


def test_small_classes_have_rows_to_calibrate_on_together():
    labels = np.repeat(np.arange(30), 10)
    rows = TrainingSet.of(torch.from_numpy(RNG.normal(size=(300, 2))), one_hot(labels, 30))
    rest, held = hold_out(rows, 15, random())
    assert (len(rest), len(held)) == (285, 15)
    alone = TrainingSet.of(torch.from_numpy(RNG.normal(size=(30, 2))), one_hot(np.arange(30), 30))
    rest, held = hold_out(alone, 5, random())
    assert (len(rest), len(held)) == (29, 1)  # a class is never held out whole, but for one


def test_calibration_rows_of_landmarks_were_not_fitted():
    found = solve(Landmarks(60))
    assert len(found.left_out.rows) == pytest.approx(N // 20, abs=2)
    rest, held = hold_out(data(), N // 20, random())
    assert len(rest) + len(held) == N
    assert not set(map(tuple, held.points.tolist())) & set(map(tuple, rest.points.tolist()))


def test_groups_go_or_stay_as_a_whole():
    rows = replace(data(), groups=torch.arange(N) // 5)
    rest, held = hold_out(rows, 40, random())
    assert len(rest) + len(held) == N
    assert 40 <= len(held) < 45
    assert not set(rest.groups.tolist()) & set(held.groups.tolist())


def test_of_merged_rows_some_may_go():
    counts = torch.full((N,), 3.0, dtype=torch.float64)
    rows = replace(data(), counts=counts, weights=1.5 * counts)
    rest, held = hold_out(rows, 60, random())
    assert float(rest.counts.sum()) + len(held) == 3 * N
    assert held.counts is None
    torch.testing.assert_close(held.weights, torch.full((len(held),), 1.5, dtype=torch.float64))
    torch.testing.assert_close(rest.weights, 1.5 * rest.counts)


def test_groups_that_cannot_go_are_told():
    rows = TrainingSet.of(
        torch.zeros(4, 1).double(), one_hot(np.array([0, 0, 1, 1]), 2), groups=torch.tensor([0, 0, 1, 1])
    )
    with pytest.raises(ValueError, match="No group can be held out for the calibration"):
        hold_out(rows, 1, random())
