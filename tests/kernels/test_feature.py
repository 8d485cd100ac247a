"""All feature maps: their preparation, and objectives in primal against dual form."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kernelwright import kernels
from kernelwright.features import Network, Nystroem, Polynomial, RandomFourier
from kernelwright.kernels import FeatureKernel, Gaussian, Laplace
from kernelwright.objectives import value_and_gradient
from kernelwright.objectives.evaluate import OBJECTIVES

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
    return make().prepared(torch.from_numpy(X))


@every_map
@pytest.mark.parametrize("name", OBJECTIVES)
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
@pytest.mark.parametrize("name", OBJECTIVES)
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


# Prepared, or refused ----------------------------------------------------------------------------------------

dependent = pytest.mark.parametrize("make", [MAPS[key] for key in MAPS if key != "network"])


def state(features):
    return {name: value.clone() for name, value in features.state_dict().items()}


@dependent
def test_a_map_that_has_seen_no_points_says_so_and_stays_as_it_is(make):
    features = make()
    before = state(features)
    for use in (features, FeatureKernel(features)):
        with pytest.raises(
            NotFittedError, match=r"has not seen any points yet\. Call fit\(X\) with training points first"
        ):
            use(X)
    assert state(features).keys() == before.keys()
    assert all(torch.equal(value, before[name]) for name, value in state(features).items())


@dependent
def test_points_of_another_width_are_refused_and_change_nothing(make):
    features = prepared(make)
    expected, before = features(X), state(features)
    for other in (X[:, :3], np.hstack([X, X])):
        with pytest.raises(ValueError, match=f"prepared on points with 4 features, but these have {other.shape[1]}"):
            features(other)
    assert all(torch.equal(value, before[name]) for name, value in state(features).items())
    np.testing.assert_array_equal(features(X), expected)


@every_map
def test_using_a_map_changes_nothing(make):
    features = prepared(make)
    before, n_features = state(features), features.n_features
    features(X[:7] + 1.0)
    assert features.n_features == n_features
    assert all(torch.equal(value, before[name]) for name, value in state(features).items())


@every_map
def test_a_prepared_copy_leaves_the_map_as_it_was(make):
    features = make()
    before = pickle.dumps(features)
    other = features.prepared(torch.from_numpy(X))
    assert pickle.dumps(features) == before
    np.testing.assert_array_equal(other(X), make().fit(X)(X))


@every_map
def test_fit_returns_the_map_itself_and_sees_the_newest_points(make):
    features = make()
    assert features.fit(X[:20]) is features
    np.testing.assert_array_equal(features.fit(X)(X), make().fit(X)(X))


# The kernel of a map -----------------------------------------------------------------------------------------


@every_map
def test_the_kernel_of_a_map_is_its_inner_product(make):
    features = prepared(make)
    kernel, Z, new = FeatureKernel(features), features(X), features(X[:5] + 0.3)
    np.testing.assert_allclose(kernel(X), Z @ Z.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X[:5] + 0.3, X), new @ Z.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), (Z**2).sum(1), rtol=1e-12)
    assert kernel.bounded == (features.bound is not None)
    largest = (Z**2).sum(1).max()
    assert float(kernel.sup_diag(X).detach()) >= largest - 1e-9
    if not kernel.bounded:
        assert float(kernel.sup_diag(X).detach()) == pytest.approx(largest)
