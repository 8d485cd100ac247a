"""Smoothing of residuals over pairs, against the regression with the product kernel written out."""

import numpy as np
import pytest
import torch

from kernelwright import HyperKernelRidge
from kernelwright.hyper import refinement
from kernelwright.hyper.refinement import smooth_residual
from kernelwright.kernels import Gaussian


def residual(m=12, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(m, 2))
    A = np.sin(3 * X[:, :1]) @ np.cos(2 * X[:, 1:]).T
    return torch.from_numpy(X), torch.from_numpy(A + A.T)


def generator():
    return torch.Generator().manual_seed(0)


def product_ridge(K_new, K, R, noise):
    """Fit a ridge regression over all m^2 pairs with the Kronecker product of K with itself."""
    m = len(K)
    beta = np.linalg.solve(np.kron(K, K) + noise * np.eye(m * m), R.reshape(-1))
    return (np.kron(K_new, K_new) @ beta).reshape(len(K_new), len(K_new))


def test_smoother_equals_product_ridge_written_out(monkeypatch):
    monkeypatch.setattr(refinement, "WIDTHS", (0.8,))
    monkeypatch.setattr(refinement, "NOISES", (0.05,))
    X, R = residual()
    smoother, _ = smooth_residual(X, R, torch.ones_like(R), 1.0, generator())
    new = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 2)))

    def gaussian(A, B):
        return np.exp(-((A[:, None] - B) ** 2).sum(-1).numpy() / (2 * 0.8**2))

    expected = product_ridge(gaussian(new, X), gaussian(X, X), R.numpy(), 0.05)
    assert np.allclose(smoother(new).numpy(), expected, atol=1e-5)
    assert np.allclose(smoother.diag(new).numpy(), np.diag(expected), atol=1e-5)
    plus, minus = smoother.part(1.0), smoother.part(-1.0)
    assert plus.definite
    assert torch.allclose(plus(new) - minus(new), smoother(new))


def test_left_out_error_equals_a_refit(monkeypatch):
    monkeypatch.setattr(refinement, "NOISES", (0.05,))
    X, R = residual()
    folds = torch.arange(12) % 3
    (share,) = refinement._left_out_errors(Gaussian(0.8), X, R, torch.ones_like(R), folds)
    left, total = 0.0, 0.0
    for fold in range(3):
        inside = folds != fold
        K = np.exp(-((X[:, None] - X[inside]) ** 2).sum(-1).numpy() / (2 * 0.8**2))
        P = product_ridge(K, K[inside.numpy()], R[inside][:, inside].numpy(), 0.05)
        judged = ~np.outer(inside, inside)
        left += ((P - R.numpy())[judged] ** 2).sum()
        total += (R.numpy()[judged] ** 2).sum()
    assert share == pytest.approx(left / total, rel=1e-6)


def test_filling_in_leads_to_the_regression_on_known_pairs_only(monkeypatch):
    monkeypatch.setattr(refinement, "WIDTHS", (0.8,))
    monkeypatch.setattr(refinement, "NOISES", (0.5,))
    monkeypatch.setattr(refinement, "FILLINGS", 3000)
    X, R = residual()
    hidden = np.triu(np.random.default_rng(2).random((12, 12)) < 0.3)
    known = ~(hidden | hidden.T)
    smoother, _ = smooth_residual(X, R, torch.from_numpy(known).double(), 1.0, generator())
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1).numpy() / (2 * 0.8**2))
    pairs = np.flatnonzero(known)
    KK = np.kron(K, K)
    beta = np.linalg.solve(KK[np.ix_(pairs, pairs)] + 0.5 * np.eye(len(pairs)), R.numpy().ravel()[pairs])
    expected = (KK[:, pairs] @ beta).reshape(12, 12)
    assert np.allclose(smoother(X).numpy(), expected, atol=1e-4)


def test_what_lengths_and_midpoints_do_not_show_is_refined():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(200, 3))
    f = np.column_stack([np.sin(6 * X[:, 0]), np.cos(5 * X[:, 1]), np.sin(7 * X[:, 2])])
    Y = f @ f.T
    old, new = X[:150], X[150:]
    errors = {}
    for refine in ("auto", False):
        model = HyperKernelRidge(refine=refine, random_state=0).fit(old, Y[:150, :150])
        errors[refine] = np.linalg.norm(model.predict(new) - Y[150:, 150:]) / np.linalg.norm(Y[150:, 150:])
    assert errors["auto"] < 0.5 * errors[False]


def test_a_kernel_that_is_fitted_already_keeps_no_points():
    X = np.random.default_rng(0).normal(size=(100, 3))
    Y = np.exp(-(np.linalg.norm(X[:, None] - X, axis=-1) ** 2) / 4)
    assert HyperKernelRidge(random_state=0).fit(X, Y).kernel_.refinement is None


def test_noise_is_not_refined():
    random = np.random.default_rng(0)
    X, noise = random.normal(size=(100, 3)), random.normal(size=(100, 100))
    assert HyperKernelRidge(random_state=0).fit(X, noise + noise.T).kernel_.refinement is None
