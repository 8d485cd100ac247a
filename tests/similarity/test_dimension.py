"""Effective dimension and covering numbers against naive formulas, brute force and all pairs."""

import math

import numpy as np
import pytest

from kernelwright.hyperkernels import Gaussian as HyperGaussian
from kernelwright.kernels import Gaussian
from kernelwright.similarity import covering_numbers, effective_dimension

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))


@pytest.mark.parametrize("ridge", [1e-4, 0.1, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_effective_dimension_is_the_trace_of_the_smoother(ridge, weighted):
    K = Gaussian(0.7)(X)
    w = RNG.uniform(0.2, 3.0, 30) if weighted else np.ones(30)
    smoother = K @ np.linalg.inv(K + ridge * np.diag(w.sum() / w))  # rows of weight w have the noise sum(w) ridge / w
    found = effective_dimension(K, ridge, weights=w if weighted else None)
    assert found == pytest.approx(np.trace(smoother), rel=1e-9)


def test_the_effective_dimension_goes_from_the_rank_to_zero():
    found = effective_dimension(np.diag([4.0, 1.0, 0.0]), [1e-12, 1.0 / 3.0, 1e9])
    np.testing.assert_allclose(found, [2.0, 4 / 5 + 1 / 2, 0.0], atol=1e-8)


@pytest.mark.parametrize("measure", ["dimension", "covering"])
def test_unique_pairs_with_their_weights_are_all_pairs(measure):
    points, hyper = X[:7], HyperGaussian(sigma=1.0, sigma_h=1.0)

    def matrix(first, second):
        pairs = points[first], points[second]
        return hyper(pairs, pairs)

    every, some = np.indices((7, 7)).reshape(2, -1), np.triu_indices(7)
    weights = np.where(some[0] == some[1], 1.0, 2.0)
    if measure == "dimension":
        found = [effective_dimension(matrix(*every), 0.01), effective_dimension(matrix(*some), 0.01, weights=weights)]
    else:
        found = [
            covering_numbers(matrix(*every), 0.05).upper[0],
            covering_numbers(matrix(*some), 0.05, weights=weights).upper[0],
        ]
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def greedy(points: np.ndarray, size: float) -> int:
    """Count points of which any two are further apart than ``size``, and that cover all others up to it."""
    away, count = np.full(len(points), np.inf), 0
    while away.max() > size:
        away = np.minimum(away, np.linalg.norm(points - points[away.argmax()], axis=1))
        count += 1
    return count


@pytest.mark.parametrize("axes", [(1.0, 0.6), (1.0, 0.15), (1.0, 0.02), (0.8, 0.5, 0.3)], ids=str)
@pytest.mark.parametrize("size", [0.5, 0.2, 0.1])
def test_covering_numbers_lie_between_the_bounds(axes, size):
    """A greedy cover at eps has at least N(eps) points, a greedy packing at 2 eps at most as many."""
    ball = RNG.normal(size=(6000, len(axes)))
    ball *= RNG.random((6000, 1)) ** (1 / len(axes)) / np.linalg.norm(ball, axis=1, keepdims=True)
    points = np.array(axes) * ball
    K = np.diag(np.square(axes)) * len(axes)  # semi-axes are sqrt(mu / n)
    found = covering_numbers(K, size)
    assert found.lower[0] <= math.log(greedy(points, size)) + 1e-12
    assert found.upper[0] >= math.log(greedy(points, 2 * size)) - 1e-12
    assert 0.0 <= found.lower[0] <= found.upper[0]


def test_an_interval_is_covered_by_its_length():
    found = covering_numbers([[1.0]], [2.0, 1.0, 0.3, 0.01])
    np.testing.assert_allclose(found.upper, np.log([1, 1, 4, 100]), atol=1e-12)
    np.testing.assert_allclose(found.lower, np.log([1, 1, 1 / 0.3, 100]), atol=1e-12)


def test_a_larger_ball_is_as_a_smaller_distance():
    K = Gaussian(0.7)(X)
    large, close = covering_numbers(K, 0.5, radius=10.0), covering_numbers(K, 0.05)
    assert (large.lower[0], large.upper[0]) == pytest.approx((close.lower[0], close.upper[0]))


def test_the_exponent_is_that_of_polynomial_eigenvalues():
    """Semi-axes i^-b have covering numbers with log N ~ eps^(-1/b), as the entropy of a Sobolev ball."""
    n = 800
    axes = np.arange(1, n + 1) ** -2.0
    found = covering_numbers(np.diag(n * axes**2), np.logspace(-2, -4.5, 6))
    assert found.exponent == pytest.approx(0.5, abs=0.05)
    assert math.isnan(covering_numbers([[1.0]], 2.0).exponent)


def test_a_smooth_kernel_has_a_smaller_exponent_the_closer_one_looks():
    K = Gaussian(0.3)(np.linspace(-1, 1, 300)[:, None])
    coarse, fine = (covering_numbers(K, np.logspace(*span, 5)).exponent for span in ((-1, -2), (-3, -4)))
    assert fine < coarse < 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: effective_dimension(np.eye(2), 0.0), "'ridge'"),
        (lambda: effective_dimension(np.eye(2)[:1], 1.0), "square"),
        (lambda: effective_dimension(-np.eye(2), 1.0), "not positive semidefinite"),
        (lambda: effective_dimension(np.eye(2), 1.0, weights=[1.0]), "'weights'"),
        (lambda: covering_numbers(np.eye(2), 0.0), "must be positive"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
