"""The complexity as a prior: draws against moments by numerical integration, and against naive formulas."""

import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from sklearn.datasets import load_iris

from kernelwright.kernels import Gaussian, Linear
from kernelwright.learning import ComplexityPrior
from kernelwright.learning.prior import slice_samples
from tests import reference as naive

RNG = np.random.default_rng(0)
X, LABELS = RNG.normal(size=(12, 2)), np.arange(12) % 3
Y = np.eye(3)[LABELS]
CLASSES = 3.0 * np.eye(3)[LABELS] + RNG.normal(size=(12, 3))  # points that say something about the labels


def log_prior(K, ridge, tau, sup):
    norm = naive.squared_norm(K, Y, np.full(12, 12 * ridge))
    return -12 * tau * math.sqrt(sup * max(norm, 0.0))  # rounding errors at the smallest ridges


def log_posterior(K, ridge, tau, sup, epsilon):
    F = naive.outputs(K, K, Y, np.full(12, 12 * ridge))
    return log_prior(K, ridge, tau, sup) - 12 * naive.log_loss(F, Y, np.ones(12), epsilon)


# Hyperparameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", [False, True])
def test_the_density_is_the_naive_one(posterior):
    prior, K = ComplexityPrior(0.3, epsilon=0.05), naive.gram(naive.gaussian(1.5), X)
    found = prior.log_density(Gaussian(1.5), X, LABELS, ridge=0.02, posterior=posterior)
    expected = log_posterior(K, 0.02, 0.3, 1.0, 0.05) if posterior else log_prior(K, 0.02, 0.3, 1.0)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("posterior", [False, True])
def test_draws_of_the_ridge_have_the_moments_of_numerical_integration(posterior):
    """The linear kernel has no parameters, so the only one is log lambda."""
    points, tau = CLASSES, 0.05
    K = points @ points.T
    sup = K.diagonal().max()
    grid = np.linspace(math.log(1e-6), math.log(1e2), 2001)
    logs = np.array(
        [
            log_posterior(K, math.exp(g), tau, sup, 0.05) if posterior else log_prior(K, math.exp(g), tau, sup)
            for g in grid
        ]
    )
    density = np.exp(logs - logs.max())
    density /= scipy.integrate.trapezoid(density, grid)
    mean = scipy.integrate.trapezoid(grid * density, grid)
    deviation = math.sqrt(scipy.integrate.trapezoid((grid - mean) ** 2 * density, grid))
    draws = ComplexityPrior(tau, epsilon=0.05).hyperparameters(
        Linear(), points, LABELS, size=500, thin=2, posterior=posterior, random_state=0
    )
    logs = np.log(draws["ridge"])
    assert logs.mean() == pytest.approx(mean, abs=4 * deviation / math.sqrt(250))
    assert logs.std() == pytest.approx(deviation, rel=0.12)
    cdf = scipy.integrate.cumulative_trapezoid(density, grid, initial=0.0)
    assert scipy.stats.kstest(logs[::4], lambda x: np.interp(x, grid, cdf)).pvalue > 0.001


def test_draws_come_with_their_complexity_and_loss():
    draws = ComplexityPrior(0.1).hyperparameters(Gaussian(1.0), X, LABELS, size=5, random_state=0)
    for lengthscale, ridge, r, loss in zip(
        draws["kernel.lengthscale"], draws["ridge"], draws["complexity"], draws["loss"], strict=True
    ):
        K, noise = naive.gram(naive.gaussian(lengthscale), X), np.full(12, 12 * ridge)
        assert r == pytest.approx(math.sqrt(naive.squared_norm(K, Y, noise)), rel=1e-6, abs=1e-9)
        assert loss == pytest.approx(naive.log_loss(naive.outputs(K, K, Y, noise), Y, np.ones(12), 1e-15), rel=1e-6)


def test_a_larger_weight_draws_simpler_embeddings():
    mean = [
        ComplexityPrior(tau)
        .hyperparameters(Gaussian(1.0), X, LABELS, size=20, thin=2, random_state=0)["complexity"]
        .mean()
        for tau in (0.01, 0.1, 1.0)
    ]
    assert mean == sorted(mean, reverse=True)


def test_posterior_draws_predict_about_as_well_as_the_minimum():
    """On iris the posterior is where the objective is low, and the draws' mean outputs classify new rows."""
    X, y = load_iris(return_X_y=True)
    prior = ComplexityPrior("4e/n", epsilon=0.1)
    draws = prior.hyperparameters(Gaussian(1.0), X[::3], y[::3], size=10, thin=2, posterior=True, random_state=0)
    outputs = 0.0
    for lengthscale, ridge in zip(draws["kernel.lengthscale"], draws["ridge"], strict=True):
        kernel = Gaussian(lengthscale)
        V = np.linalg.solve(kernel(X[::3]) + 50 * ridge * np.eye(50), np.eye(3)[y[::3]])
        outputs = outputs + kernel(X, X[::3]) @ V
    assert np.mean(outputs.argmax(1) == y) > 0.9


# Functions ---------------------------------------------------------------------------------------------------


def test_one_output_at_one_point_is_the_density_in_one_dimension():
    """Its weight has the density exp(-c |w|), c = n tau alpha, here integrated numerically."""
    kernel, tau = 4.0 * Gaussian(1.0), 0.7
    c = 1 * tau * 2.0
    total, absolute, square = (
        2 * scipy.integrate.quad(lambda w, k=k: w**k * math.exp(-c * w), 0, 60)[0] for k in (0, 1, 2)
    )
    draws = ComplexityPrior(tau).functions(kernel, [[0.3]], size=40_000, random_state=0).ravel()
    assert np.abs(draws).mean() == pytest.approx(2.0 * absolute / total, rel=0.02)  # f = w sqrt(k(x, x))
    assert (draws**2).mean() == pytest.approx(4.0 * square / total, rel=0.04)
    assert scipy.stats.kstest(draws / 2.0, scipy.stats.laplace(scale=1 / c).cdf).pvalue > 0.001


def test_two_outputs_have_the_moments_of_a_two_dimensional_integral():
    """At two points f = L w with K = L L^T; E[f f^T] by integration of exp(-c |w|) over the plane."""
    points, kernel, tau = np.array([[0.0], [0.8]]), Gaussian(1.0), 0.5
    c, K = 2 * tau, kernel(points)
    grid = np.linspace(-30, 30, 1201)
    a, b = np.meshgrid(grid, grid)
    density = np.exp(-c * np.hypot(a, b))
    density /= density.sum()
    second = np.linalg.cholesky(K) @ np.diag([(a**2 * density).sum(), (b**2 * density).sum()]) @ np.linalg.cholesky(K).T
    draws = ComplexityPrior(tau).functions(kernel, points, size=60_000, random_state=0)[:, :, 0]
    np.testing.assert_allclose(draws.T @ draws / len(draws), second, rtol=0.04)
    np.testing.assert_allclose(second, 3 / c**2 * K, rtol=1e-3)  # (M + 1) / c^2 times the kernel


def test_the_complexity_of_functions_is_gamma_distributed():
    draws = ComplexityPrior("4e/n").functions(Gaussian(0.3), X, n_outputs=2, size=3000, random_state=0)
    K = Gaussian(0.3)(X)
    squares = np.einsum("sio,ij,sjo->s", draws, np.linalg.inv(K), draws)
    assert scipy.stats.kstest(np.sqrt(squares), scipy.stats.gamma(24, scale=1 / (4 * math.e)).cdf).pvalue > 0.001


def test_functions_are_gaussian_processes_with_a_random_amplitude():
    """Given amplitudes s with the density Gamma((M + 1) / 2, c^2 / 2), outputs are N(0, s K): the same distribution."""
    kernel, size, c = Gaussian(1.0), 20_000, 3 * 0.5
    points = X[:3]
    draws = ComplexityPrior(0.5).functions(kernel, points, n_outputs=2, size=size, random_state=0)
    random = np.random.default_rng(1)
    s = random.gamma((6 + 1) / 2, 2 / c**2, size)
    L = np.linalg.cholesky(kernel(points))
    mixed = np.sqrt(s)[:, None, None] * (L @ random.normal(size=(size, 3, 2)))
    for i, o in itertools.product(range(3), range(2)):
        assert scipy.stats.ks_2samp(draws[:, i, o], mixed[:, i, o]).pvalue > 0.001


# Slice sampling ----------------------------------------------------------------------------------------------


def test_slice_samples_have_the_distribution_of_their_density():
    cov = np.array([[1.0, 0.6], [0.6, 0.5]])
    precision = np.linalg.inv(cov)
    random = np.random.default_rng(0)
    chain = slice_samples(lambda x: -0.5 * x @ precision @ x, np.ones(2), np.array([[-9.0, 9.0]] * 2), random)
    draws = np.array([next(chain) for _ in range(6000)])
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.12)
    assert scipy.stats.kstest(draws[::15, 0], scipy.stats.norm(0, 1).cdf).pvalue > 0.001


def test_draws_are_repeatable_and_leave_the_kernel_alone():
    kernel = Gaussian(1.0)
    first, second, other = (
        ComplexityPrior().hyperparameters(kernel, X, LABELS, size=3, random_state=seed)["ridge"] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    assert kernel.get_params()["lengthscale"] == 1.0


def test_bad_settings_are_refused():
    for bad in (
        {"complexity_weight": "5e"},
        {"complexity_weight": -1.0},
        {"epsilon": 0.5},
        {"ridge_range": (1.0, 0.1)},
    ):
        with pytest.raises(ValueError, match=r"complexity_weight|epsilon|ridge_range"):
            ComplexityPrior(**bad)
