"""Targets in the form that an embedding needs."""

import numpy as np
import pytest
import torch

from kernelwright.inputs.targets import ClassTargets


def test_classes_are_one_hot_rows():
    np.testing.assert_array_equal(ClassTargets(3).encode(np.array([2, 0])), [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0, 1.0], [0.5, 2.0, 1.0, 0.25]])
def test_the_prior_counts_one_row_more_that_all_classes_share(weights):
    targets, w = ClassTargets(3), torch.tensor(weights, dtype=torch.float64)
    y = np.array([1, 1, 0, 1])
    expected = [
        (sum(v for v, c in zip(weights, y, strict=True) if c == k) + 1 / 3) / (sum(weights) + 1) for k in range(3)
    ]
    prior = targets.prior(targets.encode(y), w)
    np.testing.assert_allclose(prior, expected, rtol=1e-14)
    assert float(prior.min()) > 0  # of a class without rows, too
    assert float(prior.sum()) == pytest.approx(1.0)
