"""Divide and conquer: disjoint parts, and the mean of their kernels."""

import pytest
import torch

from kernelwright.hyper.bases import PairBasis
from kernelwright.hyper.kernels import Gaussian, PointPairs
from kernelwright.hyper.partition import average_of_parts, random_parts
from kernelwright.hyper.regression import Coefficients


@pytest.mark.parametrize(("n_points", "n_parts"), [(60, 3), (10, 4), (5, 5)])
def test_parts_are_disjoint_and_of_one_size(n_points, n_parts):
    parts = random_parts(n_points, n_parts, torch.Generator().manual_seed(0))
    assert sorted(torch.cat(parts).tolist()) == list(range(n_points))
    sizes = [len(part) for part in parts]
    assert len(sizes) == n_parts
    assert max(sizes) - min(sizes) <= 1
    assert all(part.tolist() == sorted(part.tolist()) for part in parts)


def test_one_part_is_all_points_in_their_order():
    assert random_parts(7, 1, torch.Generator())[0].tolist() == list(range(7))


def test_parts_are_decided_by_the_generator():
    first, second, third = (random_parts(50, 2, torch.Generator().manual_seed(seed))[0] for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_the_mean_of_kernels_has_the_ridge_of_the_first():
    hyper = Gaussian(1.0)
    points = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pairs = [PointPairs(points[k : k + 3], points[k : k + 3].flip(0)) for k in (0, 3, 6)]
    weights = [torch.randn(3, dtype=torch.float64, generator=torch.Generator().manual_seed(k)) for k in range(3)]

    def solve(k):
        return PairBasis(hyper, pairs[k]), Coefficients(weights[k], bias=float(k), ridge=10.0**-k)

    basis, found = average_of_parts(solve, range(3))
    expected = sum(PairBasis(hyper, pairs[k]).at(pairs[0]) @ weights[k] for k in range(3)) / 3
    torch.testing.assert_close(basis.at(pairs[0]) @ found.weights, expected)
    assert found.bias == pytest.approx(1.0)
    assert found.ridge == 1.0
