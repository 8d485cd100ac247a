"""Kernels on vectors against scikit-learn, and their initial values."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel

from kernelwright.kernels import (
    Constant,
    Gaussian,
    Kernel,
    KroneckerDelta,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
)
from tests import reference as naive

X = np.random.default_rng(1).normal(size=(9, 3))
Z = np.random.default_rng(2).normal(size=(5, 3))
SCALES = [0.5, 1.0, 3.0]
STATIONARY = [Gaussian, Laplace, Matern, RationalQuadratic]
each_stationary = pytest.mark.parametrize("make", STATIONARY, ids=lambda make: make.__name__)


@pytest.mark.parametrize(
    ("kernel", "other"),
    [
        (Gaussian(0.7), sk.RBF(0.7)),
        (Gaussian(SCALES), sk.RBF(SCALES)),
        (Matern(0.7, nu=0.5), sk.Matern(0.7, nu=0.5)),
        (Matern(SCALES, nu=0.5), sk.Matern(SCALES, nu=0.5)),
        (Matern(SCALES, nu=1.5), sk.Matern(SCALES, nu=1.5)),
        (Matern(0.7, nu=2.5), sk.Matern(0.7, nu=2.5)),
        (Matern(SCALES, nu=2.5), sk.Matern(SCALES, nu=2.5)),
        (RationalQuadratic(0.7, mixture=1.3), sk.RationalQuadratic(length_scale=0.7, alpha=1.3)),
        (Constant(2.5), sk.ConstantKernel(2.5)),
        (Linear(), sk.DotProduct(sigma_0=0.0)),
        (Linear() + 4.0, sk.DotProduct(sigma_0=2.0)),
        (Polynomial(degree=2, offset=1.0), sk.DotProduct(sigma_0=1.0) ** 2),
        (2.0 * Gaussian(0.7) + Matern(1.1), 2.0 * sk.RBF(0.7) + sk.Matern(1.1, nu=1.5)),
        (Gaussian(0.7) * (Linear() + 1.0), sk.RBF(0.7) * sk.DotProduct(sigma_0=1.0)),
        (Laplace(0.8), lambda A, B=None: laplacian_kernel(A, B, gamma=1 / 0.8)),
        (Linear(), linear_kernel),
        (
            Polynomial(degree=3, lengthscale=2.0, offset=0.5),
            lambda A, B=None: polynomial_kernel(A, B, degree=3, gamma=0.25, coef0=0.5),
        ),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_values_equal_scikit_learns(kernel, other):
    np.testing.assert_allclose(kernel(X), other(X), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel(X, Z), other(X, Z), rtol=1e-12, atol=1e-13)


def test_laplace_with_length_scales_is_a_product_over_features():
    parts = [Laplace(s)(X[:, d : d + 1]) for d, s in enumerate(SCALES)]
    np.testing.assert_allclose(Laplace(SCALES)(X), np.prod(parts, axis=0), rtol=1e-12)


@each_stationary
def test_a_vector_of_equal_length_scales_is_one_length_scale(make):
    np.testing.assert_allclose(make([0.7, 0.7, 0.7])(X), make(0.7)(X), rtol=1e-12)


@each_stationary
def test_length_scales_and_inputs_have_the_same_units(make):
    np.testing.assert_allclose(make(1000.0)(1000.0 * X), make(1.0)(X), rtol=1e-11)


@each_stationary
def test_values_do_not_depend_on_the_origin(make):
    np.testing.assert_allclose(make(1.0)(X + 1e4, Z + 1e4), make(1.0)(X, Z), rtol=1e-6, atol=1e-9)


@each_stationary
def test_a_point_is_at_distance_zero_of_an_equal_point(make):
    # Differences of rounded squares are about 1e-16; under a square root they would be 1e-8.
    kernel = make(1.2, nu=0.5) if make is Matern else make(1.2)
    points = np.random.default_rng(0).normal(size=(30, 3))
    np.testing.assert_allclose(np.diagonal(kernel(points, points)), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.diagonal(kernel(np.vstack([points, points])), 30), 1.0, rtol=0, atol=1e-12)


# What is settled before learning -----------------------------------------------------------------------------


@each_stationary
def test_prepare_gives_every_feature_its_length_scale(make):
    kernel = make(0.7, ard=True)
    before = kernel(X)
    kernel.prepare_(torch.from_numpy(X))
    assert kernel.lengthscale.tolist() == pytest.approx([0.7, 0.7, 0.7])
    np.testing.assert_allclose(kernel(X), before, rtol=1e-12)


@each_stationary
def test_prepare_leaves_a_single_length_scale_alone(make):
    kernel = make(0.7)
    kernel.prepare_(torch.from_numpy(X))
    assert kernel.lengthscale.ndim == 0


@each_stationary
def test_a_prepared_copy_is_what_prepare_makes_of_the_kernel(make):
    kernel, in_place = make("median", ard=True), make("median", ard=True)
    before = repr(kernel)
    made = kernel.prepared(torch.from_numpy(X))
    in_place.prepare_(torch.from_numpy(X))
    assert repr(kernel) == before
    assert repr(made) == repr(in_place) != before


@each_stationary
def test_prepare_twice_is_prepare_once(make):
    kernel = make("median", ard=True)
    kernel.prepare_(torch.from_numpy(X))
    first = kernel.lengthscale.detach().clone()
    kernel.prepare_(torch.from_numpy(10 * X))
    torch.testing.assert_close(kernel.lengthscale.detach(), first)


@each_stationary
@pytest.mark.parametrize("scales", [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]], ids=str)
def test_prepare_refuses_a_wrong_number_of_length_scales(make, scales):
    with pytest.raises(ValueError, match=f"has {len(scales)} length scales, but the points have 3 features"):
        make(scales).prepare_(torch.from_numpy(X))


@each_stationary
def test_a_wrong_number_of_length_scales_is_refused_without_prepare_too(make):
    with pytest.raises(ValueError, match="2 length scales"):
        make([1.0, 2.0])(X[:, :1])  # one feature would broadcast


@each_stationary
def test_the_median_start_is_the_median_distance(make):
    kernel = make("median")
    kernel.prepare_(torch.from_numpy(X))
    order = 1 if make is Laplace else 2
    assert float(kernel.lengthscale.detach()) == pytest.approx(naive.lower_median_of_distances(X, order))


@each_stationary
def test_the_median_start_counts_a_row_of_weight_two_twice(make):
    weights = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1])
    kernel = make("median")
    kernel.prepare_(torch.from_numpy(X), torch.from_numpy(weights.astype(float)))
    order = 1 if make is Laplace else 2
    expected = naive.lower_median_of_distances(np.repeat(X, weights, axis=0), order)
    assert float(kernel.lengthscale.detach()) == pytest.approx(expected)


@each_stationary
def test_the_median_start_of_many_rows_does_not_depend_on_their_order(make):
    rows = np.random.default_rng(0).uniform(size=(3000, 2))
    starts = []
    for points in (rows, rows[np.lexsort(rows.T)]):
        kernel = make("median")
        kernel.prepare_(torch.from_numpy(points))
        starts.append(float(kernel.lengthscale.detach()))
    assert starts[1] == pytest.approx(starts[0], rel=0.1)


@each_stationary
def test_median_is_shown_until_it_is_settled(make):
    kernel = make("median")
    assert kernel.get_params()["lengthscale"] == "median"
    assert "lengthscale='median'" in repr(kernel)
    kernel.prepare_(torch.from_numpy(X))
    assert isinstance(kernel.get_params()["lengthscale"], float)


@each_stationary
def test_use_median_asks_for_a_new_median(make):
    kernel = make(123.0)
    kernel.use_median_()
    kernel.prepare_(torch.from_numpy(X))
    order = 1 if make is Laplace else 2
    assert float(kernel.lengthscale.detach()) == pytest.approx(naive.lower_median_of_distances(X, order))


def test_median_of_points_that_all_coincide_is_one():
    kernel = Gaussian("median")
    kernel.prepare_(torch.zeros(4, 2, dtype=torch.float64))
    assert float(kernel.lengthscale.detach()) == 1.0


@each_stationary
def test_tie_sets_the_geometric_mean_and_prepare_frees_again(make):
    kernel = make([1.0, 2.0, 4.0])
    kernel.tie_()
    assert float(kernel.lengthscale.detach()) == pytest.approx(2.0)
    kernel.prepare_(torch.from_numpy(X))
    assert kernel.lengthscale.tolist() == pytest.approx([2.0, 2.0, 2.0])


@each_stationary
def test_length_scales_that_are_set_later_are_freed_again_too(make):
    kernel = make()
    kernel.lengthscale = [1.0, 2.0, 4.0]
    kernel.tie_()
    kernel.prepare_(torch.from_numpy(X))
    assert kernel.lengthscale.tolist() == pytest.approx([2.0, 2.0, 2.0])


@each_stationary
def test_penalty_is_half_the_squared_spread_of_the_logarithms(make):
    logs = np.log(SCALES)
    assert float(make(SCALES).penalty().detach()) == pytest.approx(0.5 * ((logs - logs.mean()) ** 2).sum())
    assert float(make(0.7).penalty().detach()) == 0.0


# Errors ------------------------------------------------------------------------------------------------------


@each_stationary
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, [1.0, -1.0], [], [[1.0]]], ids=str)
def test_a_length_scale_that_is_not_positive_is_refused(make, value):
    with pytest.raises(
        ValueError, match=f"The 'lengthscale' parameter of {make.__name__} must be a positive number or a vector"
    ):
        make(value)


@each_stationary
def test_a_word_other_than_median_is_refused(make):
    with pytest.raises(ValueError, match=r"a vector of them or 'median'. Got 'mean' instead"):
        make("mean")


@each_stationary
@pytest.mark.parametrize("value", ["mean", -1.0], ids=str)
def test_a_refused_value_changes_nothing(make, value):
    kernel = make(0.7)
    before = repr(kernel)
    with pytest.raises(ValueError, match="lengthscale"):
        kernel.lengthscale = value
    assert repr(kernel) == before


@pytest.mark.parametrize("nu", [0.0, 1.0, 3.5, np.inf, "1.5"])
def test_matern_has_three_smoothnesses(nu):
    with pytest.raises(ValueError, match=r"The 'nu' parameter of Matern must be 0\.5, 1\.5 or 2\.5"):
        Matern(nu=nu)


@pytest.mark.parametrize("degree", [0, -1, 1.5])
def test_a_degree_that_is_not_a_positive_whole_number_is_refused(degree):
    with pytest.raises(ValueError, match="The 'degree' parameter of Polynomial must be a whole number of at least 1"):
        Polynomial(degree=degree)


@pytest.mark.parametrize(
    ("kernel", "params"), [(Matern(), {"nu": 3.0}), (Polynomial(), {"degree": 1.5})], ids=["nu", "degree"]
)
def test_set_params_checks_what_the_constructor_checks(kernel, params):
    (name,) = params
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {type(kernel).__name__} must be"):
        kernel.set_params(**params)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda v: RationalQuadratic(mixture=v), "mixture"),
        (lambda v: Polynomial(lengthscale=v), "lengthscale"),
        (lambda v: Polynomial(offset=v), "offset"),
        (lambda v: Constant(v), "value"),
        (lambda v: Linear() * v, "factor"),
    ],
    ids=["mixture", "polynomial-lengthscale", "offset", "value", "factor"],
)
@pytest.mark.parametrize("value", [-1.0, [1.0, 2.0]], ids=str)
def test_a_parameter_that_is_one_number_takes_one_positive_number(make, name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of .* must be"):
        make(value)


@pytest.mark.parametrize("make", [*STATIONARY, Linear, Polynomial], ids=lambda make: make.__name__)
def test_points_of_different_numbers_of_features_are_refused(make):
    with pytest.raises((ValueError, RuntimeError)):
        make()(X, Z[:, :1])  # one feature would broadcast
    with pytest.raises((ValueError, RuntimeError)):
        make()(X[:, :1], Z)


@pytest.mark.parametrize("points", [[1.0, 2.0], [[[1.0]]], 3.0], ids=str)
def test_points_are_rows_of_a_matrix(points):
    with pytest.raises(ValueError, match="Expected a 2-D array of numbers"):
        Gaussian()(points)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(torch.int64, torch.float64), (torch.float32, torch.float32), (torch.float64, torch.float64)],
)
def test_the_delta_of_whole_numbers_is_a_number_too(given, expected):
    points = torch.tensor([[1], [2]]).to(given)
    assert KroneckerDelta().forward(points).dtype == expected
