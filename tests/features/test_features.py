"""Feature maps: inner products against kernels, gradients against finite differences, explicit against dense."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from kernelwright import kernels
from kernelwright.features import Network, Nystroem, Polynomial, RandomFourier, fourier_features
from kernelwright.kernels import FeatureKernel, Gaussian, Laplace, Matern, Tabular
from kernelwright.objectives import value_and_gradient
from kernelwright.objectives.objective import NAMES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
LABELS = np.arange(40) % 3
WEIGHTS = RNG.uniform(0.3, 3.0, 40)


def network() -> Network:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Network(torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh()))


MAPS = {
    "fourier": lambda: RandomFourier(12, lengthscale=1.5, ard=True),
    "fourier-laplace": lambda: RandomFourier(12, "laplace", 4.0),
    "nystroem": lambda: Nystroem(Gaussian(1.5), 9),
    "nystroem-ard": lambda: Nystroem(Laplace(4.0, ard=True), 9),
    "polynomial": lambda: Polynomial(2, 2.0, 0.5),
    "network": network,
}
every_map = pytest.mark.parametrize("make", MAPS.values(), ids=MAPS.keys())


def prepared(make):
    features = make()
    features.prepare_(torch.from_numpy(X))
    return features


# Inner products ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("gaussian", Gaussian(2.0)), ("laplace", Laplace(5.0)), ("matern", Matern(2.0, nu=1.5))],
    ids=["gaussian", "laplace", "matern"],
)
def test_fourier_features_approach_the_kernel(name, kernel):
    scale = float(kernel.lengthscale.detach())
    errors = [np.abs((Z := RandomFourier(p, name, scale, seed=3)(X)) @ Z.T - kernel(X)).mean() for p in (100, 10_000)]
    assert errors[1] < 0.02
    assert errors[1] < errors[0] / 4  # of order 1/sqrt(p)


@pytest.mark.parametrize("nu", [0.5, 2.5])
def test_fourier_features_of_every_matern(nu):
    Z = RandomFourier(20_000, "matern", 2.0, nu=nu)(X)
    np.testing.assert_allclose(Z @ Z.T, Matern(2.0, nu=nu)(X), atol=0.04)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomial_features_are_the_polynomial_kernel(degree):
    Z = Polynomial(degree, 1.7, 0.6)(X)
    np.testing.assert_allclose(Z @ Z.T, kernels.Polynomial(degree, 1.7, 0.6)(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("landmarks", ["uniform", "leverage"])
def test_nystroem_is_exact_where_a_point_is_a_landmark(landmarks):
    kernel = Gaussian(2.0)
    features = Nystroem(kernel, 15, landmarks).fit(X)
    points = features.points.numpy()
    assert len(points) == 15
    np.testing.assert_allclose(features(X) @ features(points).T, kernel(X, points), atol=1e-6)


def test_nystroem_with_kmeans_puts_a_landmark_into_each_heap():
    heaps = np.repeat(10.0 * np.eye(4), 10, axis=0) + 0.01 * X
    points = Nystroem(Gaussian(), 4, "kmeans").fit(heaps).points.numpy()
    assert sorted(points.argmax(1)) == [0, 1, 2, 3]


def test_leverage_favours_points_that_others_do_not_explain():
    lonely = np.vstack([0.01 * RNG.normal(size=(300, 2)), [[30.0, 0.0], [0.0, 30.0], [-30.0, 0.0]]])
    found = {rule: Nystroem(Gaussian(), 20, rule, seed=1).fit(lonely).points.numpy() for rule in Nystroem.RULES[::2]}
    assert (np.abs(found["leverage"]).max(1) > 10).sum() == 3
    assert (np.abs(found["uniform"]).max(1) > 10).sum() < 3


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
    with pytest.raises(ValueError, match=r"not of Polynomial\. Use solver='nystroem'"):
        fourier_features(kernels.Polynomial(), 100, 4, seed=0)


# Objectives --------------------------------------------------------------------------------------------------


@every_map
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("loss", ["log", "brier", "calibrated"])
@pytest.mark.parametrize("w", [None, WEIGHTS], ids=["ones", "weights"])
def test_explicit_and_dense_forms_agree(make, name, loss, w):
    features = prepared(make)
    Z = features(torch.from_numpy(X)).detach().numpy()
    how = {"ridge": 0.05, "loss": loss, "sample_weight": w}
    tau = 0.0 if features.bound is not None else 0.1  # a known bound of k(x, x) differs from the largest value seen
    value, gradient = value_and_gradient(name, FeatureKernel(features), X, LABELS, complexity_weight=tau, **how)
    expected, dense = value_and_gradient(name, kernels.Linear(), Z, LABELS, complexity_weight=tau, **how)
    assert value == pytest.approx(expected, rel=1e-8)
    assert gradient["ridge"] == pytest.approx(dense["ridge"], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("make", [MAPS[key] for key in ("fourier", "nystroem", "nystroem-ard", "polynomial")])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_finite_differences(make, name):
    features = prepared(make)

    def value(moved):
        how = {"ridge": 0.05, "complexity_weight": 0.1, "loss": "brier", "sample_weight": WEIGHTS}
        return value_and_gradient(name, FeatureKernel(moved), X, LABELS, **how)

    _, gradient = value(features)
    for key in (key for key in gradient if key != "ridge"):
        *path, last = key.removeprefix("kernel.features.").split(".")
        values = []
        for step in (1e-5, -1e-5):
            moved = copy.deepcopy(features)
            owner = getattr(moved, path[0]) if path else moved
            plain = getattr(owner, last).detach().numpy().copy()
            plain.flat[0] += step
            setattr(owner, last, plain)
            values.append(value(moved)[0])
        slope = (values[0] - values[1]) / 2e-5
        assert np.ravel(gradient[key])[0] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_more_features_than_rows_use_the_dense_form_and_agree():
    few, wide = X[:10], prepared(lambda: Polynomial(3))
    Z = wide(few)
    assert Z.shape[1] > len(few)
    how = {"ridge": 0.1, "complexity_weight": 0.0}
    found, _ = value_and_gradient("leave-one-out", FeatureKernel(wide), few, LABELS[:10], **how)
    expected, _ = value_and_gradient("leave-one-out", kernels.Linear(), Z, LABELS[:10], **how)
    assert found == pytest.approx(expected, rel=1e-9)


# Objects -----------------------------------------------------------------------------------------------------


@every_map
def test_maps_can_be_copied_and_pickled(make):
    features = prepared(make)
    for other in (copy.deepcopy(features), pickle.loads(pickle.dumps(features)), clone(features, safe=False)):
        np.testing.assert_array_equal(other(X), features(X))


@pytest.mark.parametrize("make", [RandomFourier, Nystroem, Polynomial])
def test_numbers_can_be_set_by_name(make):
    features = make()
    name = "kernel__lengthscale" if make is Nystroem else "lengthscale"
    assert features.set_params(**{name: 2.5}).get_params()[name] == 2.5


def test_a_changed_argument_takes_effect_after_use():
    features = RandomFourier(2000, lengthscale=3.0)
    features(X)
    Z = features.set_params(kernel="laplace", seed=5)(X)
    np.testing.assert_array_equal(Z, RandomFourier(2000, "laplace", 3.0, seed=5)(X))
    assert Nystroem(Gaussian(), 10).fit(X).set_params(n_landmarks=20)(X).shape == (40, 20)
    with pytest.raises(ValueError, match="must be one of"):
        features.set_params(kernel="rbf")


def test_the_same_seed_gives_the_same_features():
    a, b, c = (RandomFourier(10, seed=seed)(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomFourier(kernel="cubic"), "'kernel' parameter of RandomFourier must be one of"),
        (lambda: Nystroem(landmarks="best"), "'landmarks' parameter of Nystroem must be one of"),
        (lambda: RandomFourier(0), "'n_features' parameter of RandomFourier must be a whole number"),
        (lambda: Polynomial(5)(np.zeros((2, 50))), "more than 20000. Use a lower degree"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_nystroem_of_an_indefinite_kernel_is_that_of_the_flipped_one():
    class Difference(Gaussian):
        """A wide Gaussian less a narrow one: symmetric and indefinite."""

        definite = False

        def forward(self, X, Z=None):
            return super().forward(X, Z) - 0.8 * Gaussian(0.3).forward(X, Z)

    X = torch.randn(15, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    features = Nystroem(Difference(2.0), n_landmarks=15).fit(X)
    K = Difference(2.0).forward(X).detach()
    values, vectors = torch.linalg.eigh(K)
    assert float(values.min()) < -0.1
    Z = features(X).detach()
    assert torch.allclose(Z @ Z.T, (vectors * values.abs()) @ vectors.T, atol=1e-8)
    assert features.n_features == Z.shape[1]
