"""The primal embedding: against a plain solve, and its closed-form gradients against finite differences."""

import numpy as np
import pytest
import torch

from kernelwright.embedding.primal import (
    Moments,
    left_out_residuals,
    ridge_weights,
    ridge_weights_and_influence,
    ridge_weights_and_leverages,
)
from kernelwright.embedding.training_set import TrainingSet
from tests import reference as naive

M = 3
WEIGHTS = np.random.default_rng(3).uniform(0.3, 3.0, 12)
shapes = pytest.mark.parametrize(("n", "p"), [(12, 5), (5, 12), (6, 6)], ids=["tall", "wide", "square"])
weightings = pytest.mark.parametrize("weighted", [False, True], ids=["ones", "weights"])


def problem(n: int, p: int, weighted: bool):
    rng = np.random.default_rng(0)
    Z, T = (torch.from_numpy(rng.normal(size=size)).requires_grad_() for size in ((n, p), (n, M)))
    noise = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    return Z, T, noise, torch.from_numpy(WEIGHTS[:n]) if weighted else None


def plain_solve(Z, T, noise, w):
    Z, T, w = Z.detach().numpy(), T.detach().numpy(), np.ones(len(Z)) if w is None else w.numpy()
    S = Z.T @ np.diag(w) @ Z + float(noise.detach()) * np.eye(Z.shape[1])
    return np.linalg.solve(S, Z.T @ np.diag(w) @ T), np.diag(Z @ np.linalg.inv(S) @ Z.T)


@shapes
@weightings
def test_weights_and_leverages_equal_a_plain_solve(n, p, weighted):
    given = problem(n, p, weighted)
    W, q = plain_solve(*given)
    np.testing.assert_allclose(ridge_weights(*given).detach(), W, rtol=1e-10, atol=1e-12)
    both = ridge_weights_and_leverages(*given)
    np.testing.assert_allclose(both[0].detach(), W, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(both[1].detach(), q, rtol=1e-10, atol=1e-12)


@shapes
@weightings
@pytest.mark.parametrize(
    "function",
    [ridge_weights, ridge_weights_and_leverages, ridge_weights_and_influence],
    ids=["weights", "leverages", "influence"],
)
def test_gradients_equal_finite_differences(n, p, weighted, function):
    *variables, w = problem(n, p, weighted)
    assert torch.autograd.gradcheck(lambda *given: function(*given, w), variables, atol=1e-7, rtol=1e-6)


@shapes
def test_leverages_give_the_outputs_of_the_other_rows(n, p):
    Z, T, noise, _ = problem(n, p, False)
    W, q = (value.detach() for value in ridge_weights_and_leverages(Z, T, noise))
    Z, T = Z.detach(), T.detach()
    left_out = T - (T - Z @ W) / (1 - q)[:, None]
    for i in range(n):
        others = torch.arange(n) != i
        alone, _ = plain_solve(Z[others], T[others], noise, None)
        np.testing.assert_allclose(left_out[i], alone.T @ Z[i].numpy(), rtol=1e-9, atol=1e-10)


def test_single_precision_features_are_solved_in_double():
    Z, T, noise, _ = problem(12, 5, False)
    single = Z.detach().float().requires_grad_()
    W = ridge_weights(single, T.detach().float(), noise.detach().float())
    assert W.dtype == torch.float32
    np.testing.assert_allclose(W.detach(), plain_solve(Z, T, noise, None)[0], rtol=1e-5, atol=1e-6)
    W.sum().backward()
    assert single.grad.dtype == torch.float32


@weightings
@pytest.mark.parametrize("noise", [1e-4, 5.0], ids=["below rounding", "above rounding"])
def test_single_precision_products_are_used_only_where_the_noise_covers_their_rounding(weighted, noise):
    """Nearly equal columns: at the small noise a float32 Gram matrix would lose what tells them apart."""
    rng = np.random.default_rng(0)
    Z = torch.from_numpy(rng.normal(size=(200, 1)) + 1e-3 * rng.normal(size=(200, 4))).float()
    T = torch.from_numpy(rng.normal(size=(200, M))).float()
    w = torch.from_numpy(rng.uniform(0.3, 3.0, 200)) if weighted else None
    level = torch.tensor(noise, dtype=torch.float64)
    W = ridge_weights(Z, T, level, w)
    expected, _ = plain_solve(Z.double(), T.double(), level, w)
    np.testing.assert_allclose(W, expected, atol=2e-4 * np.abs(expected).max())


@shapes
@weightings
def test_the_influence_is_that_of_a_plain_solve(n, p, weighted):
    given = problem(n, p, weighted)
    W, U = (value.detach() for value in ridge_weights_and_influence(*given))
    expected, leverages = plain_solve(*given)
    np.testing.assert_allclose(W, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose((given[0].detach() * U).sum(1), leverages, rtol=1e-10, atol=1e-12)


# Sums over the rows ------------------------------------------------------------------------------------------

N, P, RIDGE = 12, 4, 0.05
GROUPS = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 5, 6, 6])
PRIOR = np.array([0.5, 0.3, 0.2])


def rows(weighted: bool, grouped: bool) -> TrainingSet:
    rng = np.random.default_rng(1)
    return TrainingSet.of(
        torch.from_numpy(rng.normal(size=(N, P))),
        torch.eye(M, dtype=torch.float64)[torch.from_numpy(rng.integers(0, M, N))],
        weights=torch.from_numpy(WEIGHTS) if weighted else None,
        prior=torch.from_numpy(PRIOR),
        groups=torch.from_numpy(GROUPS) if grouped else None,
    )


@weightings
@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
def test_moments_solve_and_leave_out_as_refits_do(weighted, grouped):
    data = rows(weighted, grouped)
    Z, Y, w = data.points, data.targets.numpy(), data.weights.numpy()
    moments = Moments.of(Z, data.targets, data.weights)
    factor = moments.factor(RIDGE)
    K = (Z @ Z.T).numpy()
    expected = naive.outputs(K, K, Y, naive.noise(w, RIDGE), PRIOR)
    np.testing.assert_allclose(data.prior + Z @ moments.weights(factor, data.prior), expected, atol=1e-10)
    left_out = naive.leave_one_out(K, Y, w, RIDGE, PRIOR, GROUPS if grouped else None)
    np.testing.assert_allclose(moments.left_out(factor, Z, data), left_out, atol=1e-9)


@weightings
@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
def test_left_out_residuals_are_those_of_refits(weighted, grouped):
    data = rows(weighted, grouped)
    Z, w = data.points, data.weights
    noise = torch.tensor(RIDGE * data.total_weight, dtype=torch.float64)
    W, U = ridge_weights_and_influence(Z, data.centred, noise, w)
    found = left_out_residuals(Z, U, data.centred - Z @ W, data)
    K = (Z @ Z.T).numpy()
    refits = naive.leave_one_out(K, data.targets.numpy(), w.numpy(), RIDGE, PRIOR, GROUPS if grouped else None)
    np.testing.assert_allclose(found, data.targets.numpy() - refits, atol=1e-9)
