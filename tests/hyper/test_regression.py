"""Regressions over pairs against all m^2 pairs written out, other solvers and brute force."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

from kernelwright.errors import NumericalError
from kernelwright.hyper import regression
from kernelwright.hyper.bases import MidpointBasis, PairBasis, joined
from kernelwright.hyper.pairs import LabelTarget, MatrixTarget, Pairs, unique_pairs
from kernelwright.hyper.regression import (
    CONSTANT,
    DualPath,
    PrimalPath,
    all_pair_moments,
    exact_ridge,
    fold_moments,
    leave_points_out,
    leave_points_out_dual,
    nonnegative,
    point_splits,
    support_vector,
    support_vector_primal,
    whitening,
)
from kernelwright.hyperkernels import Gaussian, PointPairs, Sum, Wishart

GAUSSIAN = Gaussian(sigma=1.0, sigma_h=0.7).requires_grad_(False)
SEVERAL = Sum([Gaussian(sigma=0.5, sigma_h=1.5), Gaussian(sigma=1.2, sigma_h=1.0)]).requires_grad_(False)
WISHART = Wishart(delta=2.0, nu=4).requires_grad_(False)


def data(m=8, d=2, seed=0):
    random = np.random.default_rng(seed)
    A = random.normal(size=(m, m))
    return torch.from_numpy(random.normal(size=(m, d))), MatrixTarget.checked(A + A.T, None, m)


def pair_basis(hyper, X):
    i, j = torch.triu_indices(len(X), len(X))
    return PairBasis(hyper, PointPairs(X[i], X[j]))


def no_folds(X):
    return torch.zeros(len(X), dtype=torch.int64)


def whole_moments(basis, X, pairs):
    return fold_moments(basis, X, pairs, no_folds(X))[0, 0]


def all_m2(hyper, X):
    """The m^2 x m^2 matrix of Eq. (6), written out."""
    m = len(X)
    i, j = np.divmod(np.arange(m * m), m)
    pairs = PointPairs(X[i], X[j])
    return hyper(pairs, pairs).numpy()


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


@pytest.mark.parametrize("hyper", [GAUSSIAN, SEVERAL])
def test_pairs_become_midpoints_without_loss(hyper):
    X, _ = data()
    basis = pair_basis(hyper, X)
    w = torch.randn(len(basis), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    midpoints, weights = basis.as_midpoints(w)
    new = torch.randn(7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(midpoints.combine(weights, new, X), basis.combine(w, new, X), rtol=1e-10)


def test_geometric_widths_by_powers_equal_exponentials():
    X, _ = data(m=30)
    for ratio, c in ((3.0, 3.0), (3.0, 4.0), (2.5, 3.0)):  # the last two have no shortcut
        parts = [Gaussian(sigma=(4.0 / ratio**s / 2) ** 0.5, sigma_h=(c - 4.0 / ratio**s / 2) ** 0.5) for s in range(5)]
        basis = MidpointBasis(Sum(parts).requires_grad_(False), X[:6])
        w = torch.randn(len(basis), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        i, j = torch.meshgrid(torch.arange(30), torch.arange(30), indexing="ij")
        expected = (basis.at(PointPairs(X[i.reshape(-1)], X[j.reshape(-1)])) @ w).reshape(30, 30)
        assert torch.allclose(basis.combine(w, X, X), expected, rtol=1e-9, atol=1e-12)


def test_joined_bases_add_up():
    X, _ = data(m=10)
    for make in (lambda Z: MidpointBasis(SEVERAL, Z), lambda Z: pair_basis(WISHART, Z)):
        parts = [(make(Z), torch.arange(1.0, len(make(Z)) + 1, dtype=torch.float64)) for Z in (X[:3], X[3:7])]
        basis, w = joined(parts)
        expected = sum(b.combine(v, X, X) for b, v in parts)
        assert torch.allclose(basis.combine(w, X, X), expected)


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


@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_all_pairs_in_linear_time_equal_all_pairs_visited(low):
    X, _ = data(m=60)
    labels = torch.from_numpy(np.random.default_rng(0).integers(0, 3, 60))
    target = LabelTarget(labels, low)
    wide = Sum([Gaussian(sigma=2.0, sigma_h=2.0), Gaussian(sigma=4.0, sigma_h=1.0)]).requires_grad_(False)
    basis = MidpointBasis(wide, X[:5])
    fast = all_pair_moments(basis, X, *target.low_rank(), rank=60)
    assert torch.allclose(fast, whole_moments(basis, X, unique_pairs(target)), rtol=1e-6, atol=1e-6)


def test_narrow_falloffs_are_refused_in_linear_time():
    X, _ = data(m=300, d=5)
    basis = MidpointBasis(Gaussian(sigma=0.05, sigma_h=1.0).requires_grad_(False), X[:5])
    with pytest.raises(NumericalError, match=r"not of low rank.*n_pairs"):
        all_pair_moments(basis, X, torch.ones(300, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64), rank=20)


def test_a_kernel_of_no_functions_is_zero():
    X, _ = data()
    none = torch.zeros(0, dtype=torch.float64)
    for basis in (MidpointBasis(SEVERAL, X[:0]), PairBasis(WISHART, PointPairs(X[:0], X[:0]))):
        assert torch.equal(basis.combine(none, X, X[:3]), torch.zeros(8, 3, dtype=torch.float64))


def test_midpoint_form_needs_gaussians():
    with pytest.raises(ValueError, match="solver='nystroem'"):
        MidpointBasis(WISHART, torch.zeros(2, 2, dtype=torch.float64))


def test_a_support_vector_solver_does_not_go_on_for_ever(monkeypatch):
    monkeypatch.setattr(regression, "MOST_STEPS", 3)
    rng = np.random.default_rng(0)
    B = torch.from_numpy(rng.normal(size=(30, 30)))
    first, second = torch.zeros(30, dtype=torch.int64), torch.arange(30)
    pairs = Pairs(first, second, torch.from_numpy(rng.normal(size=30)), torch.ones(30, dtype=torch.float64))
    with pytest.warns(ConvergenceWarning, match="terminated early"):
        found = regression.support_vector(B @ B.T, pairs, C=100.0, epsilon=0.01)
    assert bool(torch.isfinite(found.weights).all())
