import numpy as np
import pytest
import torch

from kernelwright.hyper.pairs import sample_pairs, unique_pairs
from kernelwright.hyper.targets import LabelTarget, MatrixTarget
from tests.hyper.problems import symmetric


def generator():
    return torch.Generator().manual_seed(0)


def test_unique_pairs_are_the_upper_triangle_with_mirror_weights():
    Y = symmetric(5)
    pairs = unique_pairs(MatrixTarget.checked(Y, None, 5))
    assert len(pairs) == 15
    assert float(pairs.weights.sum()) == 25.0
    assert torch.equal(pairs.targets, torch.from_numpy(Y)[pairs.first, pairs.second])
    assert bool((pairs.first <= pairs.second).all())


def test_unknown_pairs_are_left_out():
    Y = symmetric(5)
    Y[1, 3] = Y[3, 1] = Y[0, 0] = np.nan
    pairs = unique_pairs(MatrixTarget.checked(Y, None, 5))
    assert len(pairs) == 13
    assert not bool(pairs.targets.isnan().any())


def test_pairs_of_weight_zero_are_left_out():
    weights = np.ones((4, 4))
    weights[0, 1] = weights[1, 0] = 0.0
    assert len(unique_pairs(MatrixTarget.checked(symmetric(4), weights, 4))) == 9


def test_two_classes_give_y_times_y():
    y = np.array([1, -1, -1, 1])
    pairs = unique_pairs(LabelTarget(torch.from_numpy((y > 0).astype(np.int64))))
    assert np.array_equal(pairs.targets.numpy(), y[pairs.first.numpy()] * y[pairs.second.numpy()])


def test_a_sample_keeps_the_diagonal_and_near_neighbours_and_is_unbiased():
    random = np.random.default_rng(0)
    X = torch.from_numpy(random.normal(size=(300, 2)))
    target = LabelTarget(torch.from_numpy(random.integers(0, 2, 300)))
    pairs = sample_pairs(target, X, 8000, generator=generator())
    codes = set((pairs.first * 300 + pairs.second).tolist())
    assert len(codes) == len(pairs)
    assert {i * 300 + i for i in range(300)} <= codes
    D = torch.cdist(X, X).fill_diagonal_(torch.inf)
    nearest = D.argmin(1)
    assert all(min(i, int(j)) * 300 + max(i, int(j)) in codes for i, j in enumerate(nearest))
    assert float(pairs.weights.sum()) == pytest.approx(300**2)
    everything = unique_pairs(target)
    whole = float((everything.weights * everything.targets).sum())
    assert float((pairs.weights * pairs.targets).sum()) == pytest.approx(whole, abs=0.05 * 300**2)


def test_a_sample_of_mostly_missing_pairs_is_still_large():
    random = np.random.default_rng(0)
    Y = symmetric(400)
    missing = np.triu(random.random((400, 400)) < 0.9, 1)
    Y[missing | missing.T] = np.nan
    X = torch.from_numpy(random.normal(size=(400, 3)))
    pairs = sample_pairs(MatrixTarget.checked(Y, None, 400), X, 4000, generator=generator())
    assert 2500 < len(pairs) < 6000
