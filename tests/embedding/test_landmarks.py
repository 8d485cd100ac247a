"""Embeddings by landmarks: the exact solution where all rows are landmarks, the normal equations elsewhere."""

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet, embed
from kernelwright.embedding.landmarks import KernelRows, embed_by_landmarks
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Gaussian, KroneckerDelta, Laplace, Matern, Spectrum, Tabular

N, M = 150, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
LABELS = RNG.integers(0, M, N)
WEIGHTS = RNG.uniform(0.3, 3.0, N)
RIDGE = 1e-3
kernels = pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplace(3.0), Tabular(2.0)], ids=lambda k: type(k).__name__)


def data(weighted: bool = False, centred: bool = True) -> TrainingSet:
    Y, w = one_hot(LABELS, M), torch.from_numpy(WEIGHTS if weighted else np.ones(N))
    return TrainingSet.of(torch.from_numpy(X), Y, weights=w, prior=ClassTargets(M).prior(Y, w) if centred else None)


@kernels
@pytest.mark.parametrize("weighted", [False, True], ids=["ones", "weights"])
@pytest.mark.parametrize("centred", [False, True], ids=["raw", "centred"])
def test_all_rows_as_landmarks_give_the_exact_embedding(kernel, weighted, centred):
    rows = data(weighted, centred)
    new = torch.from_numpy(RNG.normal(size=(40, 4)))
    found = embed_by_landmarks(kernel, rows, RIDGE, rows.points)
    expected = embed(kernel.matrix(rows.points), rows, RIDGE)
    K = kernel.forward(new, rows.points).detach()
    np.testing.assert_allclose(K @ found.coefficients, K @ expected.coefficients, atol=1e-5)
    assert found.squared_norm == pytest.approx(expected.squared_norm, rel=1e-4)


@kernels
@pytest.mark.parametrize("weighted", [False, True], ids=["ones", "weights"])
def test_the_normal_equations_hold(kernel, weighted):
    rows, few = data(weighted), torch.from_numpy(X[::5])
    K, K_MM = kernel.forward(torch.from_numpy(X), few).detach().numpy(), kernel.matrix(few).numpy()
    w, noise = np.diag(rows.weights), RIDGE * rows.total_weight
    expected = np.linalg.solve(K.T @ w @ K + noise * K_MM, K.T @ w @ rows.centred.numpy())
    found = embed_by_landmarks(kernel, rows, RIDGE, few)
    np.testing.assert_allclose(K @ found.coefficients.numpy(), K @ expected, atol=1e-5)
    assert found.residual <= 1e-6
    assert found.squared_norm == pytest.approx(np.trace(expected.T @ K_MM @ expected), rel=1e-4)


def test_single_precision_is_close(monkeypatch):
    rows, few = data(), torch.from_numpy(X[::5])
    double = embed_by_landmarks(Gaussian(1.5), rows, RIDGE, few)
    monkeypatch.setattr("kernelwright.embedding.landmarks.DOUBLE_UP_TO", 0)
    single = embed_by_landmarks(Gaussian(1.5), rows, RIDGE, few)
    assert single.residual <= 1e-3
    K = Gaussian(1.5)(X, X[::5])
    np.testing.assert_allclose(K @ single.coefficients.numpy(), K @ double.coefficients.numpy(), atol=5e-3)


def test_rows_made_anew_equal_rows_that_are_kept(monkeypatch):
    monkeypatch.setattr("kernelwright.embedding.landmarks.LANDMARK_KERNEL_VALUES", 30 * 40)
    kernel, points = Laplace(2.0), torch.from_numpy(X)
    kept, anew = (KernelRows(kernel, points, points[:40], share) for share in (0.5, 0.0))
    assert (kept.kept is None, anew.kept is None) == (False, True)
    for _ in range(2):
        for (at, block), (same, other) in zip(kept, anew, strict=True):
            assert at == same
            torch.testing.assert_close(block, other)
            np.testing.assert_allclose(block, kernel.forward(points[at], points[:40]).detach(), atol=1e-5)


@pytest.mark.parametrize("kernel", [KroneckerDelta(), KroneckerDelta() + Gaussian()], ids=["delta", "sum"])
def test_kernel_values_are_of_the_precision_that_is_asked_for(kernel):
    points = torch.tensor([[0.0], [1.0], [1.0]], dtype=torch.float64)
    for _, block in KernelRows(kernel, points, points[:2], dtype=torch.float32):
        assert block.dtype == torch.float32


def test_strings_may_be_compared_in_single_precision():
    kernel = Spectrum(2)
    points = kernel.encode(["abab", "abba", "", "\U0010ffff\U0010fffe"])
    single, double = (
        torch.cat([block for _, block in KernelRows(kernel, points, points, dtype=dtype)])
        for dtype in (torch.float32, torch.float64)
    )
    np.testing.assert_allclose(single, double, rtol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplace(3.0)], ids=lambda k: type(k).__name__)
def test_the_preconditioner_makes_few_steps_suffice(kernel):
    random = np.random.default_rng(1)
    Y = one_hot(random.integers(0, 2, 2000), 2)
    rows = TrainingSet.of(torch.from_numpy(random.normal(size=(2000, 4))), Y)
    found = embed_by_landmarks(kernel, rows, 5e-5, rows.points[:300])
    assert found.residual <= 1e-6
    assert found.n_iter < 80  # without a preconditioner the 200 that are allowed do not do


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kernel", [Gaussian(0.7), Gaussian(2.0), Matern(2.0, nu=2.5)], ids=str)
def test_landmarks_of_a_smooth_kernel_that_are_nearly_dependent_take_few_steps(kernel, dtype):
    random = np.random.default_rng(2)
    points = torch.from_numpy(random.normal(size=(2000, 2)))
    rows = TrainingSet.of(points, one_hot(random.integers(0, 2, 2000), 2))
    assert int(torch.linalg.matrix_rank(kernel.matrix(points[:300]), rtol=1e-6)) < 250
    found = embed_by_landmarks(
        kernel, rows, 1e-3, points[:300], rows=KernelRows(kernel, points, points[:300], dtype=dtype)
    )
    assert found.n_iter < 40
