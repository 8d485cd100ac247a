import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from kernelwright import EmbeddingClassifier
from kernelwright.reports import DecisionProbabilityDisplay, LearningCurveDisplay


@pytest.fixture(scope="module")
def fitted():
    X, y = make_moons(60, noise=0.2, random_state=0)
    return EmbeddingClassifier(max_iter=4).fit(X, y), X, y


def test_the_map_shows_the_probabilities_of_the_model(fitted):
    model, X, y = fitted
    display = DecisionProbabilityDisplay.from_estimator(model, X, y, resolution=7, names=("a", "b"), title="moons")
    across, up = display.grid
    np.testing.assert_allclose(display.probabilities[2, 5], model.predict_proba([[across[5], up[2]]])[0], atol=1e-12)
    assert across[0] < X[:, 0].min()
    assert up[-1] > X[:, 1].max()
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel(), display.ax_.get_title()) == ("a", "b", "moons")


def test_the_map_needs_two_features(fitted):
    with pytest.raises(ValueError, match="exactly two features"):
        DecisionProbabilityDisplay.from_estimator(fitted[0], np.zeros((3, 5)))


def test_learning_curves_show_the_history(fitted):
    model, _, _ = fitted
    backend = matplotlib.get_backend()
    ax = Figure().subplots()
    display = LearningCurveDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    stages = len({step.stage for step in model.history_})
    assert len(ax.lines) == 2 * stages
    np.testing.assert_array_equal(
        np.concatenate([line.get_ydata() for line in ax.lines[::2]]), [step.objective for step in model.history_]
    )
    np.testing.assert_array_equal(
        np.concatenate([line.get_xdata() for line in ax.lines[::2]]), np.arange(len(model.history_))
    )
    drawn = np.concatenate([line.get_ydata() for line in display.complexity_ax_.lines])
    np.testing.assert_array_equal(drawn, [step.complexity for step in model.history_])
    assert matplotlib.get_backend() == backend
