"""The kernel with a linear trend."""

import numpy as np
import pytest
import torch

from kernelwright.inputs.scaling import TableViews
from kernelwright.kernels import Tabular, WithTrend

RNG = np.random.default_rng(0)
X = RNG.standard_t(2, size=(60, 3))
VIEWS = TableViews().fit(X)
POINTS = torch.from_numpy(VIEWS.transform(X))


def made(amplitude: float = 0.7, points: torch.Tensor = POINTS, **how) -> WithTrend:
    kernel = WithTrend(Tabular(), amplitude)
    kernel.prepare_(points, **how)
    return kernel.requires_grad_(False)


def test_it_is_the_kernel_plus_products_of_the_raw_columns():
    kernel = made()
    new = RNG.standard_t(2, size=(7, 3))
    values = kernel.forward(torch.from_numpy(VIEWS.transform(new)), POINTS)
    low, middle, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0, method="inverted_cdf")
    B, B_new = ((each - middle) / ((high - low) / 1.349) for each in (X, new))
    local = kernel.local.forward(torch.from_numpy(VIEWS.transform(new)), POINTS)
    np.testing.assert_allclose(values - local, 0.7 * B_new @ B.T / 3, rtol=1e-8, atol=1e-10)


def test_diagonal_matrix_and_completion_agree():
    kernel = made()
    K = kernel.forward(POINTS)
    np.testing.assert_allclose(kernel.diag(POINTS), K.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(kernel.completed_(kernel.local.matrix(POINTS), POINTS), K, rtol=1e-10, atol=1e-12)
    new = kernel.completed_(kernel.local.forward(POINTS[:5], POINTS), POINTS[:5], POINTS)
    np.testing.assert_allclose(new, K[:5], rtol=1e-10, atol=1e-12)
    assert not kernel.bounded
    assert float(kernel.sup_diag(POINTS)) == pytest.approx(float(K.diagonal().max()))


def test_gradients_are_those_of_autograd():
    kernel = made().requires_grad_(True)
    dK = torch.from_numpy(RNG.normal(size=(60, 60)))
    _, back = kernel.vjp(POINTS)
    found = back(dK.clone())
    names, parameters = zip(*kernel.named_parameters(), strict=True)
    expected = torch.autograd.grad((dK * kernel.forward(POINTS)).sum(), parameters)
    for name, gradient in zip(names, expected, strict=True):
        np.testing.assert_allclose(found[name], gradient, rtol=1e-8, atol=1e-10)


def test_a_weight_of_two_is_two_rows():
    weights = torch.from_numpy(RNG.integers(1, 4, 60).astype(float))
    copies = POINTS.repeat_interleave(weights.long(), 0)
    weighted, repeated = made(weights=weights), made(points=copies)
    np.testing.assert_allclose(weighted.centre, repeated.centre)
    np.testing.assert_allclose(weighted.width, repeated.width)


def test_one_huge_value_does_not_set_the_scale():
    spoiled = X.copy()
    spoiled[0, 0] = 1e9
    views = TableViews().fit(spoiled)
    lines = made(points=torch.from_numpy(views.transform(spoiled))).lines(torch.from_numpy(views.transform(spoiled)))
    np.testing.assert_allclose(lines[1:], made().lines(POINTS)[1:], rtol=0.1, atol=0.1)


def test_values_stay_finite_however_far_a_row_is():
    far = torch.from_numpy(VIEWS.transform(np.full((1, 3), 1e300)))
    assert bool(torch.isfinite(made().forward(far, POINTS)).all())
    assert bool(torch.isfinite(made().float().forward(far.float(), POINTS.float())).all())
