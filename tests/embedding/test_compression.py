"""Fewer points for the same outputs: against brute force."""

import numpy as np
import pytest
import torch

from kernelwright.embedding.compression import Fold, compressed, fold_without, greedy_points, mean_loss, refitted
from kernelwright.kernels import Laplace

rng = np.random.default_rng(0)
N, NOISE = 60, 0.1
X = torch.from_numpy(rng.normal(size=(N, 2)))
K = Laplace(2.0).matrix(X)
Y = torch.stack([X.prod(1).sin(), X[:, 0]], 1) + 0.1 * torch.from_numpy(rng.normal(size=(N, 2)))
INVERSE = torch.linalg.inv(K + NOISE * torch.eye(N, dtype=torch.float64))
V = INVERSE @ Y
OUTPUTS = K @ V


def squared(fold: Fold, outputs: torch.Tensor) -> float:
    return float((outputs - Y[fold.left_out]).square().mean())


def folds() -> list[Fold]:
    return [fold_without(K, INVERSE, V, torch.arange(start, N, 4)) for start in range(4)]


def test_a_fold_is_the_embedding_of_the_other_points():
    part = torch.tensor([3, 17, 40])
    fold = fold_without(K, INVERSE, V, part)
    rest = np.setdiff1d(np.arange(N), part)
    alone = np.linalg.solve(K.numpy()[np.ix_(rest, rest)] + NOISE * np.eye(len(rest)), Y.numpy()[rest])
    np.testing.assert_array_equal(fold.rest, rest)
    np.testing.assert_allclose(fold.at_rest, K.numpy()[np.ix_(rest, rest)] @ alone, atol=1e-10)
    np.testing.assert_allclose(fold.at_left_out, K.numpy()[np.ix_(part, rest)] @ alone, atol=1e-10)


def test_each_point_is_where_the_interpolant_through_the_points_before_errs_most():
    chosen = greedy_points(K, OUTPUTS, 12).tolist()
    assert len(set(chosen)) == 12
    for t, new in enumerate(chosen):
        before = chosen[:t]
        interpolant = K[:, before] @ torch.linalg.solve(K[before][:, before], OUTPUTS[before])
        assert int((OUTPUTS - interpolant).square().sum(1).argmax()) == new


def test_coefficients_are_those_of_regularised_least_squares():
    chosen = greedy_points(K, OUTPUTS, 10)
    found = refitted(K[:, chosen], K[chosen][:, chosen], OUTPUTS)
    root = torch.linalg.cholesky(1e-6 * N**0.5 * K[chosen][:, chosen]).T
    stacked = np.vstack([K[:, chosen], root])
    expected = np.linalg.lstsq(stacked, np.vstack([OUTPUTS, np.zeros((10, 2))]), rcond=None)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("tolerance", [0.001, 0.05])
def test_the_number_of_points_is_the_least_within_the_tolerance(tolerance):
    found = compressed(K, OUTPUTS, folds(), squared, tolerance)
    assert found.loss_before == pytest.approx(mean_loss(folds(), squared))
    assert found.loss <= found.loss_before + tolerance
    assert len(found.chosen) < N
    np.testing.assert_array_equal(found.chosen, greedy_points(K, OUTPUTS, len(found.chosen)))
    smaller = compressed(K, OUTPUTS, folds(), squared, 1e9)
    assert len(smaller.chosen) == 32 <= len(found.chosen)


def test_all_points_stay_if_no_fewer_will_do():
    def strict(fold: Fold, outputs: torch.Tensor) -> float:
        return float(outputs is not fold.at_left_out)

    found = compressed(K, OUTPUTS, folds(), strict, 0.5)
    assert len(found.chosen) == N
    np.testing.assert_allclose(K @ found.coefficients, OUTPUTS, atol=1e-4)
    assert found.loss == found.loss_before
