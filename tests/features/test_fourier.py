"""Random Fourier features against the kernels that they approximate."""

import numpy as np
import pytest
import torch

from kernelwright import kernels
from kernelwright.features import RandomFourier, fourier_features
from kernelwright.kernels import Gaussian, Laplace, Matern, Tabular

X = np.random.default_rng(0).normal(size=(40, 4))


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("gaussian", Gaussian(2.0)), ("laplace", Laplace(5.0)), ("matern", Matern(2.0, nu=1.5))],
    ids=["gaussian", "laplace", "matern"],
)
def test_fourier_features_approach_the_kernel(name, kernel):
    scale = float(kernel.lengthscale.detach())
    errors = [
        np.abs((Z := RandomFourier(p, name, scale, seed=3).fit(X)(X)) @ Z.T - kernel(X)).mean() for p in (100, 10_000)
    ]
    assert errors[1] < 0.02
    assert errors[1] < errors[0] / 4  # of order 1/sqrt(p)


@pytest.mark.parametrize("nu", [0.5, 2.5])
def test_fourier_features_of_every_matern(nu):
    Z = RandomFourier(20_000, "matern", 2.0, nu=nu).fit(X)(X)
    np.testing.assert_allclose(Z @ Z.T, Matern(2.0, nu=nu)(X), atol=0.04)


@pytest.mark.parametrize(
    "kernel",
    [Gaussian([1.0, 2.0, 3.0, 4.0]), 2.0 * Laplace(6.0) + Matern(2.0), Tabular(4.0)],
    ids=["gaussian", "sum", "tabular"],
)
def test_fourier_features_of_a_learned_kernel(kernel):
    kernel.prepare_(torch.from_numpy(X))
    Z = fourier_features(kernel, 30_000, 4, seed=0)(X)
    np.testing.assert_allclose(Z @ Z.T, kernel(X), atol=0.12)


def test_a_kernel_without_a_known_spectrum_is_refused():
    with pytest.raises(ValueError, match=r"not Polynomial\. Use solver='nystroem'"):
        fourier_features(kernels.Polynomial(), 100, 4, seed=0)


def test_the_same_seed_gives_the_same_features():
    a, b, c = (RandomFourier(10, seed=seed).fit(X)(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)


def test_a_changed_argument_takes_effect_after_use():
    features = RandomFourier(2000, lengthscale=3.0).fit(X)
    Z = features.set_params(kernel="laplace", seed=5).fit(X)(X)
    np.testing.assert_array_equal(Z, RandomFourier(2000, "laplace", 3.0, seed=5).fit(X)(X))
    with pytest.raises(ValueError, match="must be one of"):
        features.set_params(kernel="rbf")


def test_frequencies_are_drawn_anew_for_points_of_another_width_and_only_when_asked():
    features = RandomFourier(10).fit(X)
    before = features.frequencies.clone()
    with pytest.raises(ValueError, match="prepared on points with 4 features, but these have 3"):
        features(X[:, :3])
    assert torch.equal(features.frequencies, before)
    np.testing.assert_array_equal(features.fit(X[:, :3])(X[:, :3]), RandomFourier(10).fit(X[:, :3])(X[:, :3]))


def test_preparing_again_keeps_the_frequencies():
    features = RandomFourier(10, seed=2).fit(X)
    before = features.frequencies
    features.prepare_(torch.from_numpy(2.0 * X))
    assert features.frequencies is before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomFourier(kernel="cubic"), "'kernel' parameter of RandomFourier must be one of"),
        (lambda: RandomFourier(0), "'n_features' parameter of RandomFourier must be a whole number"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
