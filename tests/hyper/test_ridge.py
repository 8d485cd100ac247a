"""Ridge regression over pairs against all m^2 pairs written out, other solvers and brute force."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from kernelwright.hyper.bases import MidpointBasis, whitening
from kernelwright.hyper.kernels import PointPairs
from kernelwright.hyper.moments import fold_moments, point_splits
from kernelwright.hyper.pairs import unique_pairs
from kernelwright.hyper.ridge import (
    CONSTANT,
    DualPath,
    PrimalPath,
    exact_ridge,
    leave_points_out,
    leave_points_out_dual,
    nonnegative,
)
from kernelwright.hyper.targets import MatrixTarget
from tests.hyper.problems import GAUSSIAN, SEVERAL, WISHART, all_m2, data, pair_basis, whole_moments


@pytest.mark.parametrize("hyper", [GAUSSIAN, SEVERAL, WISHART])
def test_unique_pairs_equal_all_pairs(hyper):
    X, target = data()
    m, ridge = len(X), 1e-3
    pairs = unique_pairs(target)
    found = DualPath(pair_basis(hyper, X).gram(), pairs, bias=False).at(ridge)
    beta = np.linalg.solve(all_m2(hyper, X) + ridge * m * m * np.eye(m * m), target.values.reshape(-1).numpy())
    new = PointPairs(
        *(torch.randn(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(k)) for k in (1, 2))
    )
    i, j = np.divmod(np.arange(m * m), m)
    expected = hyper(new, PointPairs(X[i], X[j])).numpy() @ beta
    ours = pair_basis(hyper, X).at(new) @ found.weights
    assert np.allclose(ours.numpy(), expected, rtol=1e-10, atol=1e-10)


def test_bias_minimises_the_objective_with_its_own_penalty():
    X, target = data(m=5)
    pairs, ridge = unique_pairs(target), 1e-2
    K = pair_basis(GAUSSIAN, X).gram().numpy()
    w, y = pairs.weights.numpy(), pairs.targets.numpy() + 2.0
    pairs = replace(pairs, targets=torch.from_numpy(y))

    def objective(v):
        alpha, b = v[:-1], v[-1]
        gap = K @ alpha + b - y
        value = (w * gap**2).sum() / w.sum() + ridge * alpha @ K @ alpha + CONSTANT * b**2
        slope = 2 * K @ (w * gap) / w.sum() + 2 * ridge * K @ alpha
        return value, np.append(slope, 2 * (w * gap).sum() / w.sum() + 2 * CONSTANT * b)

    basis = pair_basis(GAUSSIAN, X)
    primal = PrimalPath(whole_moments(basis, X, pairs), whitening(basis.gram()), bias=True).at(ridge)
    for found in (DualPath(torch.from_numpy(K), pairs, bias=True).at(ridge), primal):
        assert np.abs(objective(np.append(found.weights.numpy(), found.bias))[1]).max() < 1e-7
        assert found.bias > 1.0


@pytest.mark.parametrize("bias", [True, False])
def test_one_ridge_by_a_cholesky_factor_equals_the_path(bias):
    X, target = data()
    pairs, K = unique_pairs(target), pair_basis(WISHART, X).gram()
    one, path = exact_ridge(K, pairs, 1e-3, bias=bias), DualPath(K, pairs, bias=bias).at(1e-3)
    assert torch.allclose(one.weights, path.weights, rtol=1e-8, atol=1e-8)
    assert one.bias == pytest.approx(path.bias, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("hyper", [GAUSSIAN, SEVERAL, WISHART])
def test_nystroem_with_all_points_equals_exact(hyper):
    X, target = data()
    pairs, ridge = unique_pairs(target), 1e-3
    basis = pair_basis(hyper, X)
    exact = DualPath(basis.gram(), pairs, bias=False).at(ridge)
    path = PrimalPath(whole_moments(basis, X, pairs), whitening(basis.gram()), bias=False)
    nystroem = path.at(ridge)
    new = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    one = basis.combine(exact.weights, new, X) + exact.bias
    other = basis.combine(nystroem.weights, new, X) + nystroem.bias
    assert torch.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("hyper", [GAUSSIAN, SEVERAL])
def test_midpoint_form_in_the_same_space_equals_exact(hyper):
    X, target = data()
    pairs, ridge = unique_pairs(target), 1e-3
    exact = DualPath(pair_basis(hyper, X).gram(), pairs, bias=False).at(ridge)
    i, j = torch.triu_indices(len(X), len(X))
    basis = MidpointBasis(hyper, 0.5 * (X[i] + X[j]))
    found = PrimalPath(whole_moments(basis, X, pairs), whitening(basis.gram()), bias=False).at(ridge)
    new = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    ours = basis.combine(found.weights, new, X) + found.bias
    assert torch.allclose(ours, pair_basis(hyper, X).combine(exact.weights, new, X) + exact.bias, atol=1e-6)


def test_leaving_out_points_equals_brute_force():
    X, target = data(m=9)
    pairs, ridges = unique_pairs(target), (1e-4, 1e-1)
    folds = torch.arange(9) % 3
    basis = pair_basis(GAUSSIAN, X)
    total, size = np.zeros(2), 0.0
    for fold in range(3):
        inside = (folds != fold).nonzero()[:, 0]
        some = unique_pairs(target.subset(inside))
        part = pair_basis(GAUSSIAN, X[inside])
        K = part.gram().numpy()
        for number, ridge in enumerate(ridges):
            w, y = some.weights.numpy(), some.targets.numpy()
            A = K + np.diag(ridge * w.sum() / w)
            alpha = torch.from_numpy(np.linalg.solve(A, y))
            for i in range(9):
                for j in range(9):
                    if folds[i] == fold or folds[j] == fold:
                        k = part.combine(alpha, X[i : i + 1], X[j : j + 1])[0, 0]
                        total[number] += float((k - target.values[i, j]) ** 2)
                        size += float(target.values[i, j] ** 2) / len(ridges)
    dual = leave_points_out_dual(basis.gram(), pairs, folds, bias=False, ridges=ridges)
    assert np.allclose(dual, total / size, rtol=1e-8)
    # Nystroem with all points as landmarks keeps the left-out points' functions, so the spans differ: compare
    # midpoints of a basis that does not depend on the fold with a refit.
    fixed = MidpointBasis(GAUSSIAN, X[:4])
    T = whitening(fixed.gram())
    splits = point_splits(fold_moments(fixed, X, pairs, folds))
    fast = leave_points_out(splits, lambda M: PrimalPath(M, T, bias=False), ridges)
    slow, size = np.zeros(2), 0.0
    for fold in range(3):
        inside = (folds != fold).nonzero()[:, 0]
        M = whole_moments(fixed, X[inside], unique_pairs(target.subset(inside)))
        for number, ridge in enumerate(ridges):
            found = PrimalPath(M, T, bias=False).at(ridge)
            K = fixed.combine(found.weights, X, X) + found.bias
            out = (folds == fold)[:, None] | (folds == fold)
            slow[number] += float(((K - target.values) ** 2)[out].sum())
        size += float((target.values**2)[out].sum())
    assert np.allclose(fast, slow / size, rtol=1e-8)


@pytest.mark.parametrize("bias", [True, False])
def test_nonnegative_least_squares_against_a_bounded_optimiser(bias):
    X, _ = data(m=12)
    K = torch.exp(-(torch.cdist(X, X) ** 2) / 3)
    pairs = unique_pairs(MatrixTarget(K))
    basis = MidpointBasis(SEVERAL, X[:5])
    M, G, ridge = whole_moments(basis, X, pairs), basis.gram(), 1e-3
    found = nonnegative(M, G, ridge, bias=bias)
    assert bool((found.weights >= 0).all())
    assert found.bias >= 0
    N = float(M[-1, -1])

    def objective(v):
        w, b = v[: len(basis)], v[len(basis)] if bias else 0.0
        full = np.concatenate([w, [-1.0, b]])  # of the functions, the target and the constant
        value = full @ M.numpy() @ full / N + ridge * w @ G.numpy() @ w
        slope = 2 * M.numpy() @ full / N
        return value, np.append(slope[: len(basis)] + 2 * ridge * G.numpy() @ w, [slope[-1]] if bias else [])

    size = len(basis) + bias
    best = minimize(
        objective, np.full(size, 0.1), jac=True, bounds=[(0, None)] * size, method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )  # fmt: skip
    ours = objective(np.append(found.weights.numpy(), [found.bias] if bias else []))[0]
    assert ours <= best.fun * (1 + 1e-6) + 1e-12
    new = basis.combine(found.weights, X, X) + found.bias
    assert float(torch.linalg.eigvalsh(new).min()) > -1e-10
