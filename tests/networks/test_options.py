"""Options of networks: nested settings, and the plans made from them."""

import numpy as np
import pytest
import scipy.stats
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.utils._param_validation import InvalidParameterError

from kernelwright import EmbeddingNetworkClassifier
from kernelwright.networks import MLP, HeadOptions, Training
from kernelwright.networks.training import seeded


def test_nested_settings_are_reached_and_copied():
    model = EmbeddingNetworkClassifier(MLP((4,)), head=HeadOptions(), training=Training())
    model.set_params(module__dropout=0.2, head__ridge=0.1, training__learning_rate=0.5)
    copied = clone(model).set_params(training__learning_rate=0.1)
    assert (model.module.dropout, model.head.ridge, model.training.learning_rate) == (0.2, 0.1, 0.5)
    assert (copied.module.dropout, copied.head.ridge, copied.training.learning_rate) == (0.2, 0.1, 0.1)
    assert len(EmbeddingNetworkClassifier().get_params(deep=False)) == 15


@pytest.mark.parametrize(
    ("n", "width", "batch_size", "max_epochs"),
    [
        (1000, 33, 1000, 300),
        (1001, 33, 500, 150),
        (60_000, 33, 500, 20),
        (60_000, 1025, 4100, 20),
        (3000, 1025, 3000, 300),
    ],
)
def test_batches_and_epochs_follow_the_number_of_rows(n, width, batch_size, max_epochs):
    plan = Training().plan(n, width)
    assert (plan.batch_size, plan.max_epochs) == (batch_size, max_epochs)


def test_given_batches_and_epochs_are_taken():
    plan = Training(batch_size=40, max_epochs=7, learning_rate=0.3, schedule=None, max_grad_norm=2.0, patience=3).plan(
        90, 5
    )
    assert (plan.batch_size, plan.max_epochs, plan.learning_rate) == (40, 7, 0.3)
    assert (plan.schedule, plan.max_grad_norm, plan.patience) == (None, 2.0, 3)
    assert Training(batch_size=100).plan(90, 5).batch_size == 90


@pytest.mark.parametrize(
    ("early_stopping", "n", "held"),
    [
        ("auto", 1999, 0),
        ("auto", 2000, 200),
        ("auto", 50_000, 1000),
        (None, 5000, 0),
        (0.25, 160, 40),
        (0.01, 10, 1),
        (0.99, 10, 9),
    ],
)
def test_rows_that_are_held_out(early_stopping, n, held):
    assert Training(early_stopping=early_stopping).n_held_out(n) == held


def test_a_network_is_built_for_its_inputs():
    layers = MLP((7, 3), activation="tanh", dropout=0.5).build(5)
    assert [type(layer).__name__ for layer in layers] == ["Linear", "Tanh", "Linear", "Tanh", "Dropout"]
    assert (layers[0].in_features, layers[2].out_features, layers[4].p) == (5, 3, 0.5)


def test_the_published_start_is_a_normal_distribution_cut_off_at_two_deviations():
    """Against the moments and the distribution of SciPy's truncated normal."""
    with seeded(0):
        layers = MLP((400, 300), activation="sigmoid", start="truncated-normal").build(50)
    assert [type(layer).__name__ for layer in layers] == ["Linear", "Sigmoid", "Linear", "Sigmoid"]
    expected = scipy.stats.truncnorm(-2.0, 2.0, scale=0.1)
    for layer in layers[::2]:
        weights = layer.weight.detach().double().numpy().ravel()
        assert np.abs(weights).max() <= 0.2
        assert weights.std() == pytest.approx(expected.std(), rel=0.02)
        assert scipy.stats.kstest(weights, expected.cdf).pvalue > 0.001
        assert (layer.bias == 0.1).all()


def test_another_deviation_is_taken_and_a_bad_one_refused():
    layers = MLP((40,), start=0.3).build(50)
    assert float(layers[0].weight.abs().max()) <= 0.6
    assert float(layers[0].weight.std()) == pytest.approx(0.88 * 0.3, rel=0.1)
    for bad in (0.0, -1.0, "zeros"):
        with pytest.raises(InvalidParameterError, match="'start' parameter of MLP"):
            MLP((40,), start=bad).checked()


def sigmoids(*hidden, start="truncated-normal", **options):
    module = MLP(hidden, activation="sigmoid", start=start)
    training = Training(max_epochs=200, learning_rate=0.05)
    return EmbeddingNetworkClassifier(module, training=training, random_state=0, **options)


def test_a_layer_of_sigmoids_learns_and_has_a_bound():
    X, y = load_wine(return_X_y=True)
    model = sigmoids(32, head=HeadOptions(sup="bound")).fit(X[::2], y[::2])
    assert model.risk_bound().guaranteed  # k(x, x) is at most the number of features
    assert model.score(X[1::2], y[1::2]) > 0.9


def test_two_layers_of_sigmoids_learn_from_the_wider_start():
    X, y = load_wine(return_X_y=True)
    assert sigmoids(16, 8, start="he").fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
