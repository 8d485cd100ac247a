"""What users of scikit-learn and torch pass out of habit: accepted, or answered with advice."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import PolynomialFeatures
from torch import nn

import kernelwright as kw
from kernelwright.networks import MLP, Training
from kernelwright.research.baselines import DataAdaptiveKernel

X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("rbf", "Gaussian"),
        ("gaussian", "Gaussian"),
        ("Laplace", "Laplace"),
        ("linear", "Linear"),
        ("matern", "Matern"),
        ("poly", "Polynomial"),
        ("rational_quadratic", "RationalQuadratic"),
        (kw.kernels.Gaussian, "Gaussian"),
        (RBF(2.0), "Gaussian"),
    ],
)
def test_the_name_of_a_kernel_is_answered_by_its_object(given, advice):
    getattr(kw.kernels, advice)()  # what is advised works
    with pytest.raises(ValueError, match=rf"use kernels\.{advice}\(\)"):
        kw.EmbeddingClassifier(given).fit(X, Y)


@pytest.mark.parametrize(
    ("given", "advice"),
    [("fourier", "RandomFourier"), (kw.features.Nystroem, "Nystroem"), (PolynomialFeatures(), "Polynomial")],
)
def test_the_name_of_a_feature_map_is_answered_by_its_object(given, advice):
    getattr(kw.features, advice)()
    with pytest.raises(ValueError, match=rf"use features\.{advice}\(\)"):
        kw.EmbeddingRegressor(features=given).fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        kw.EmbeddingRegressor("rbf"),
        kw.ConditionalMeanEmbedding("rbf"),
        kw.ConditionalMeanEmbedding(target_kernel="rbf"),
        kw.EmbeddingNetworkClassifier(kernel="rbf"),
        kw.KreinSVC("rbf"),
        DataAdaptiveKernel("rbf"),
        kw.HyperKernelRidge("gaussian"),
        kw.HyperKernelSVR("gaussian"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_estimator_with_a_kernel_gives_the_advice(model):
    with pytest.raises(ValueError, match=r"use (hyper)?kernels\.Gaussian\(\)"):
        model.fit(X, Y)


@pytest.mark.parametrize(("name", "options"), [("partial_fit", {"solver": "nystroem"}), ("fit_batches", {})])
@pytest.mark.parametrize("cls", [kw.EmbeddingClassifier, kw.EmbeddingRegressor])
def test_batches_without_features_are_answered_by_what_to_do(cls, name, options):
    assert not hasattr(cls(**options), name)
    assert callable(getattr(cls, name))
    with pytest.raises(AttributeError, match=rf"{name}.*{cls.__name__}\(features=features\.RandomFourier\(1000\)\)"):
        getattr(cls(**options), name)
    assert hasattr(cls(features=kw.features.RandomFourier(10)), name)


@pytest.mark.parametrize(
    ("given", "n", "expected"),
    [(True, 100, 10), (True, 50_000, 1000), (False, 50_000, 0), (np.True_, 100, 10), ("auto", 100, 0), (0.25, 100, 25)],
)
def test_early_stopping_may_be_true_or_false(given, n, expected):
    assert Training(early_stopping=given).checked().n_held_out(n) == expected


def test_early_stopping_and_a_torch_device_train_and_are_saved(tmp_path):
    training = Training(early_stopping=True, device=torch.device("cpu"), max_epochs=5)
    model = kw.EmbeddingNetworkClassifier(hidden=(4,), training=training, random_state=0).fit(X, Y)
    kw.save(model, tmp_path / "model.kw")
    loaded = kw.load(tmp_path / "model.kw")
    assert loaded.training.device == "cpu"
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


class Sized(nn.Sequential):
    def __init__(self, n_inputs, width=5):
        super().__init__(nn.Linear(n_inputs, width), nn.Tanh())


class Fixed(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 3), nn.Tanh())


@pytest.mark.parametrize(("module", "width"), [(Sized, 5), (Fixed, 3), (MLP, 32)])
def test_a_class_of_networks_is_built_for_the_inputs(module, width):
    training, before = Training(max_epochs=5), torch.get_rng_state()
    model = kw.EmbeddingNetworkClassifier(module, training=training, random_state=0).fit(X, Y)
    again = kw.EmbeddingNetworkClassifier(module, training=training, random_state=0).fit(X, Y)
    assert model.transform(X).shape == (150, width)
    assert model.get_feature_names_out()[0] == "embeddingnetworkclassifier0"
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))  # random weights are from random_state
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("module", "error", "words"), [(nn.Linear, ValueError, "Pass an instance"), (dict, TypeError, "torch module")]
)
def test_a_class_that_cannot_be_built_is_refused(module, error, words):
    with pytest.raises(error, match=words):
        kw.EmbeddingNetworkClassifier(module).fit(X, Y)
