"""Support vector regression over pairs against all m^2 pairs written out and another optimiser."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

from kernelwright import HyperKernelSVR
from kernelwright.hyper import svr
from kernelwright.hyper.bases import MidpointBasis, whitening
from kernelwright.hyper.kernels import PointPairs
from kernelwright.hyper.pairs import Pairs, unique_pairs
from kernelwright.hyper.svr import insensitive_primal, support_vector, support_vector_primal
from tests.hyper.problems import GAUSSIAN, all_m2, data, pair_basis


def test_weighted_svr_equals_svr_on_all_pairs():
    X, target = data(m=7)
    pairs = unique_pairs(target)
    found = support_vector(pair_basis(GAUSSIAN, X).gram(), pairs, C=0.3, epsilon=0.2)
    machine = SVR(kernel="precomputed", C=0.3, epsilon=0.2, tol=1e-8)
    machine.fit(all_m2(GAUSSIAN, X), target.values.reshape(-1).numpy())
    new = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    i, j = np.divmod(np.arange(25), 5)
    k, s = np.divmod(np.arange(49), 7)
    expected = machine.predict(GAUSSIAN(PointPairs(new[i], new[j]), PointPairs(X[k], X[s])).numpy()).reshape(5, 5)
    ours = pair_basis(GAUSSIAN, X).combine(found.weights, new, new) + found.bias
    assert np.allclose(ours.numpy(), expected, atol=5e-3)  # SVR stops at a tolerance of 1e-3


def test_primal_svr_minimises_its_objective():
    X, target = data(m=7)
    pairs = unique_pairs(target)
    basis = MidpointBasis(GAUSSIAN, X[:4])
    Z = basis.at(PointPairs(X[pairs.first], X[pairs.second])) @ whitening(basis.gram())
    found = support_vector_primal(Z, pairs, C=2.0, epsilon=0.1)

    def objective(v):
        gap = (Z.numpy() @ v[:-1] + v[-1] - pairs.targets.numpy()).__abs__() - 0.1
        return 0.5 * v[:-1] @ v[:-1] + 2.0 * (pairs.weights.numpy() * np.clip(gap, 0, None) ** 2).sum()

    best = minimize(objective, np.zeros(Z.shape[1] + 1), method="BFGS", options={"gtol": 1e-8})
    assert objective(np.append(found.weights.numpy(), found.bias)) <= best.fun * (1 + 1e-3)


@pytest.mark.parametrize("C", [0.05, 2.0, 100.0])
def test_the_linear_loss_on_features_is_that_of_a_quadratic_programme(C):
    X, target = data(m=9)
    pairs = unique_pairs(target)
    basis = MidpointBasis(GAUSSIAN, X[:5])
    Z = basis.at(PointPairs(X[pairs.first], X[pairs.second])) @ whitening(basis.gram())
    found = insensitive_primal(Z, pairs, C=C, epsilon=0.1)
    w, y, n = pairs.weights.numpy(), pairs.targets.numpy(), len(pairs)

    def objective(u, b):
        return 0.5 * u @ u + C * (w * np.clip(np.abs(Z.numpy() @ u + b - y) - 0.1, 0, None)).sum()

    def value_and_slope(s):  # the dual: s of all pairs with |s| <= C w and sum 0
        return 0.5 * (Z.numpy().T @ s) @ (Z.numpy().T @ s) - y @ s, Z.numpy() @ (Z.numpy().T @ s) - y

    def dual(parts):  # s = a - b with a, b >= 0, so that epsilon |s| is linear
        value, slope = value_and_slope(parts[:n] - parts[n:])
        return value + 0.1 * parts.sum(), np.concatenate([slope + 0.1, 0.1 - slope])

    best = minimize(
        dual,
        np.zeros(2 * n),
        jac=True,
        method="SLSQP",
        bounds=[(0, C * weight) for weight in np.tile(w, 2)],
        constraints={"type": "eq", "fun": lambda p: (p[:n] - p[n:]).sum(), "jac": lambda p: np.repeat([1.0, -1.0], n)},
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert objective(found.weights.numpy(), found.bias) == pytest.approx(-best.fun, rel=2e-3)  # no duality gap


def test_the_linear_loss_with_landmarks_ignores_outliers():
    X = np.random.default_rng(0).normal(size=(60, 2))
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    wrong = np.triu(np.random.default_rng(1).random(K.shape) < 0.05)
    given = K + 20.0 * (wrong | wrong.T)
    errors = {
        loss: np.abs(HyperKernelSVR(C=10.0, loss=loss, solver="midpoint", random_state=0).fit(X, given).predict(X) - K)
        for loss in ("auto", "linear")
    }
    assert errors["linear"].mean() < 0.5 * errors["auto"].mean()


def test_few_rounds_warn():
    X, target = data(m=7)
    pairs = unique_pairs(target)
    Z = pair_basis(GAUSSIAN, X).at(PointPairs(X[pairs.first], X[pairs.second]))
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        insensitive_primal(Z, pairs, C=10.0, epsilon=0.1, most_rounds=3)


def test_a_support_vector_solver_does_not_go_on_for_ever(monkeypatch):
    monkeypatch.setattr(svr, "MOST_STEPS", 3)
    rng = np.random.default_rng(0)
    B = torch.from_numpy(rng.normal(size=(30, 30)))
    first, second = torch.zeros(30, dtype=torch.int64), torch.arange(30)
    pairs = Pairs(first, second, torch.from_numpy(rng.normal(size=30)), torch.ones(30, dtype=torch.float64))
    with pytest.warns(ConvergenceWarning, match="terminated early"):
        found = svr.support_vector(B @ B.T, pairs, C=100.0, epsilon=0.01)
    assert bool(torch.isfinite(found.weights).all())
