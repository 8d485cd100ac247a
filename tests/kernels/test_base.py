"""Combinations of kernels, and what the base class provides for a user-defined kernel."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from kernelwright import EmbeddingClassifier
from kernelwright.kernels import (
    Constant,
    ConvexSum,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Product,
    Scaled,
    Spectrum,
    Sum,
)
from kernelwright.learning import LBFGS, Rademacher
from kernelwright.objectives import value_and_gradient
from tests import reference as naive
from tests.cases import Cosine

X = np.random.default_rng(0).normal(size=(6, 2))
A, B, C = naive.gram(naive.gaussian(1.5), X), naive.gram(naive.laplace(2.0), X), naive.gram(naive.matern(1.2, 1.5), X)


def a() -> Gaussian:
    return Gaussian(1.5)


def b() -> Laplace:
    return Laplace(2.0)


def c() -> Matern:
    return Matern(1.2)


# Arithmetic --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (a() + b(), A + B),
        (a() * b(), A * B),
        (2.0 * a(), 2 * A),
        (a() * 2, 2 * A),
        (a() + 3.0, A + 3),
        (3 + a(), 3 + A),
        ((2.0 * a()) + 5.0, 2 * A + 5),
        ((Constant(2.0) * Constant(3.0)) + 5.0, 0 * A + 11),
        (2.0 * (a() + 5.0), 2 * (A + 5)),
        ((2.0 * a() + 3.0) * b() + c(), (2 * A + 3) * B + C),
        (2.0 * a() + 3.0 * b() * c(), 2 * A + 3 * B * C),
        ((a() + b()) * (b() + c()), (A + B) * (B + C)),
        (a() * b() + b() * c(), A * B + B * C),
        (a() * (b() + c() * (2.0 + a())), A * (B + C * (2 + A))),
        (sum([a(), b(), c()]), A + B + C),
        (sum([a()]), A),
        (np.float64(2.0) * a(), 2 * A),
        (a() * np.float64(2.0), 2 * A),
        (np.float64(2.0) + a(), 2 + A),
        (ConvexSum([a(), b()]), (A + B) / 2),
        (ConvexSum([a()]), A),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_arithmetic_of_kernels_is_that_of_their_matrices(kernel, expected):
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)


def test_adding_zero_changes_nothing_on_either_side():
    np.testing.assert_allclose((0 + a())(X), A, rtol=1e-12)
    np.testing.assert_allclose((a() + 0)(X), A, rtol=1e-12)


@pytest.mark.parametrize("make", [lambda: a() + -1.0, lambda: -1.0 + a()])
def test_a_negative_constant_is_refused(make):
    with pytest.raises(ValueError, match=r"The 'value' parameter of Constant must be a positive number.* Got -1\.0"):
        make()


@pytest.mark.parametrize("factor", [0.0, -2.0, np.nan, np.inf])
def test_a_factor_that_is_not_positive_is_refused(factor):
    with pytest.raises(ValueError, match="The 'factor' parameter of Scaled must be a positive number"):
        factor * a()


def test_operators_make_two_operand_classes():
    kernel = 2.0 * a() + b() * 1.0
    assert isinstance(kernel, Sum)
    assert isinstance(kernel.left, Scaled)
    assert isinstance(a() * b(), Product)


def test_a_tensor_among_the_points_gives_a_tensor():
    for K in (a()(torch.from_numpy(X), X[:2]), a()(X, torch.from_numpy(X[:2]))):
        assert torch.is_tensor(K)
        np.testing.assert_allclose(K.detach(), A[:, :2], rtol=1e-12)


def test_a_kernel_may_appear_twice():
    once = a()
    np.testing.assert_allclose((once * once + once)(X), A * A + A, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Constant(2.0) + a(), 3.0),
        (2.0 * a() * b(), 2.0),
        (ConvexSum([3.0 * a(), b()], [0.25, 0.75]), 1.5),
        ((2.0 * a() + 3.0) * (b() + 0.5), 7.5),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_sup_diag_of_a_bounded_composite_follows_the_arithmetic(kernel, expected):
    assert kernel.bounded
    assert float(kernel.sup_diag().detach()) == pytest.approx(expected, rel=1e-12)


def test_sup_diag_of_an_unbounded_product_is_the_largest_product_not_the_product_of_the_largest():
    kernel = Linear() * Cosine(1.0)  # (x.x) * 1
    other = Linear() * (Linear() + 1.0)
    norms = (X * X).sum(1)
    assert float(kernel.sup_diag(X).detach()) == pytest.approx(norms.max())
    assert float(other.sup_diag(X).detach()) == pytest.approx((norms * (norms + 1)).max())


@pytest.mark.parametrize(
    "kernel",
    [Linear() + 1.0, 1.0 + Linear(), Linear() * a(), 2.0 * Linear(), ConvexSum([a(), Linear()])],
    ids=str,
)
def test_sup_diag_of_an_unbounded_composite_asks_for_points(kernel):
    assert not kernel.bounded
    with pytest.raises(ValueError, match="no known upper bound"):
        kernel.sup_diag()


# Points of composites ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        0.5 + Spectrum(2),
        Spectrum(2) + 0.5,
        2.0 * Spectrum(2),
        Spectrum(1) * Spectrum(2) + 0.5,
        ConvexSum([Spectrum(1), Constant(1.0)]),
        ConvexSum([Constant(1.0), Spectrum(1)]),
        2.0 * Constant(0.5) + Spectrum(2),
    ],
    ids=str,
)
def test_composites_take_the_points_of_their_parts(kernel):
    strings = ["ABAB", "BBAA", "AAAA"]
    K = kernel(strings)
    assert K.shape == (3, 3)
    assert not kernel.takes_vectors
    np.testing.assert_allclose(kernel.diag(strings), np.diagonal(K))


def test_takes_vectors_is_decided_by_all_parts():
    assert ((2.0 * a() + b()) * c()).takes_vectors
    assert ConvexSum([a(), b()]).takes_vectors
    assert not ConvexSum([a(), Spectrum(2)]).takes_vectors


# ConvexSum ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights", [[0.5, 0.6], [1.0, 0.0], [-0.5, 1.5], [[0.5, 0.5]], [np.nan, np.nan], [0.5, np.nan]], ids=str
)
def test_weights_that_are_not_a_mixture_are_refused(weights):
    with pytest.raises(ValueError, match="The 'weights' parameter of ConvexSum must be positive weights with sum 1"):
        ConvexSum([a(), b()], weights)


@pytest.mark.parametrize("weights", [[1.0], [0.2, 0.3, 0.5]], ids=str)
def test_the_number_of_weights_is_checked_when_the_kernel_is_made(weights):
    with pytest.raises(ValueError, match="weights"):
        ConvexSum([a(), b()], weights)


def test_a_convex_sum_of_nothing_is_refused():
    with pytest.raises(ValueError, match="kernels"):
        ConvexSum([])


def test_weights_are_read_as_they_were_set():
    np.testing.assert_allclose(ConvexSum([a(), b(), c()], [0.2, 0.3, 0.5]).get_params()["weights"], [0.2, 0.3, 0.5])


def test_parts_of_a_convex_sum_are_prepared_tied_and_penalised():
    kernel = ConvexSum([Gaussian("median", ard=True), Laplace([1.0, np.e])])
    kernel.prepare_(torch.from_numpy(X))
    assert kernel.kernels[0].lengthscale.shape == (2,)
    assert float(kernel.penalty().detach()) == pytest.approx(0.5 * (0.5**2 + 0.5**2))
    kernel.tie_()
    assert float(kernel.kernels[1].lengthscale.detach()) == pytest.approx(np.exp(0.5))


# Parameters of nested kernels --------------------------------------------------------------------------------


def test_nested_parameters_have_dunder_names():
    kernel = 2.0 * a() + b()
    params = kernel.get_params()
    assert params["left__kernel__lengthscale"] == pytest.approx(1.5)
    assert params["left__factor"] == pytest.approx(2.0)
    assert "left__kernel__lengthscale" not in kernel.get_params(deep=False)


def test_nested_parameters_are_set_by_dunder_names():
    kernel = (2.0 * a() + b()).set_params(left__kernel__lengthscale=3.0, left__factor=4.0, right=c())
    expected = 4.0 * naive.gram(naive.gaussian(3.0), X) + C
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)


def test_an_unknown_nested_parameter_is_refused():
    with pytest.raises(ValueError, match="Invalid parameter 'colour' for Gaussian"):
        (2.0 * a()).set_params(kernel__colour=1)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (a(), "Gaussian(lengthscale=1.5, ard=False)"),
        (Gaussian("median", ard=True), "Gaussian(lengthscale='median', ard=True)"),
        (Gaussian([1.0, 2.0]), "Gaussian(lengthscale=[1, 2], ard=True)"),
        (Gaussian(np.arange(1.0, 7.0)), "Gaussian(lengthscale=[1, 2, 3, 4, ...], ard=True)"),
        (Matern(1 / 3), "Matern(lengthscale=0.3333, ard=False, nu=1.5)"),
        (2.0 * Linear() + 0.5, "Sum(left=Scaled(kernel=Linear(), factor=2), right=Constant(value=0.5))"),
        (ConvexSum([Linear(), Constant()]), "ConvexSum(kernels=[Linear(), Constant(value=1)], weights=[0.5, 0.5])"),
        (Spectrum(4), "Spectrum(k=4, normalize=True)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_repr_reads_like_the_call_that_made_it(kernel, text):
    assert repr(kernel) == text


# A kernel of one's own ---------------------------------------------------------------------------------------


class Periodic(Kernel):
    """``k(x, z) = exp(-2 sum_d sin^2((x_d - z_d) / period) / width^2)``, with an additional torch weight."""

    def __init__(self, slope: float = 0.3) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(slope, dtype=torch.float64))

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        differences = X[:, None] - (X if Z is None else Z)
        return torch.exp(-2 * torch.sin(self.slope * differences).square().sum(-1))


def test_a_kernel_of_ones_own_has_diag_and_empirical_sup():
    kernel = Cosine(2.0)
    np.testing.assert_allclose(kernel.diag(X), np.ones(6))
    assert float(kernel.sup_diag(X).detach()) == pytest.approx(1.0)
    assert not kernel.bounded


@pytest.mark.parametrize("name", ["rademacher", "leave-one-out"])
def test_a_kernel_of_ones_own_has_gradients(name):
    y = np.array([0, 1, 0, 1, 1, 0])

    def value(period: float) -> float:
        return value_and_gradient(name, Cosine(period) + 0.5, X, y, ridge=0.1)[0]

    _, gradient = value_and_gradient(name, Cosine(2.0) + 0.5, X, y, ridge=0.1)
    slope = (value(2.0 + 1e-5) - value(2.0 - 1e-5)) / 2e-5
    assert float(gradient["kernel.left.period"]) == pytest.approx(slope, rel=1e-6)


def test_a_parameter_without_constraint_keeps_its_own_name_and_gradient():
    y = np.array([0, 1, 0, 1, 1, 0])

    def value(slope: float) -> float:
        return value_and_gradient("leave-one-out", Periodic(slope), X, y, ridge=0.1)[0]

    _, gradient = value_and_gradient("leave-one-out", Periodic(0.3), X, y, ridge=0.1)
    assert float(gradient["kernel.slope"]) == pytest.approx((value(0.3 + 1e-5) - value(0.3 - 1e-5)) / 2e-5, rel=1e-6)


def test_the_base_class_has_no_formula():
    with pytest.raises(NotImplementedError):
        Kernel()(X)


def test_a_formula_of_ones_own_is_what_is_learned_by():
    class Periodic(Gaussian):
        def forward(self, X, Z=None):
            def round_the_circle(A):
                return torch.cat([A.sin(), A.cos()], 1)

            return super().forward(round_the_circle(X), None if Z is None else round_the_circle(Z))

    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    found, gradient = value_and_gradient("rademacher", Periodic(), X, y, ridge=0.1)
    expected, expected_gradient = value_and_gradient(
        "rademacher", Gaussian(), np.hstack([np.sin(X), np.cos(X)]), y, ridge=0.1
    )
    assert found == pytest.approx(expected, rel=1e-10)
    assert gradient["kernel.lengthscale"] == pytest.approx(expected_gradient["kernel.lengthscale"], rel=1e-8)


def test_a_closed_form_of_ones_own_is_used():
    calls = []

    class Mine(Gaussian):
        def vjp(self, X):
            calls.append(len(X))
            return super().vjp(X)

    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    value_and_gradient("rademacher", Mine(), X, y, ridge=0.1)
    EmbeddingClassifier(Mine(), learn=Rademacher(optimizer=LBFGS(2))).fit(X, y)
    assert len(calls) > 2
