import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_moons
from sklearn.metrics import confusion_matrix

from kernelwright import EmbeddingClassifier, learning
from kernelwright.learning import Step
from kernelwright.reports import ConfusionDisplay, LearningCurveDisplay, RejectionCurveDisplay, ReliabilityDisplay


@pytest.fixture(scope="module")
def fitted():
    X, y = make_moons(60, noise=0.3, random_state=0)
    words = np.where(y == 1, "up", "down")
    return (
        EmbeddingClassifier(learn=learning.Auto(max_iter=4), random_state=0).fit(X[::2], words[::2]),
        X[1::2],
        words[1::2],
    )


@pytest.fixture
def predicted(rng):
    p = rng.dirichlet([1.0, 1.0, 0.5], size=200)
    return np.array([rng.choice(3, p=row) for row in p]), p


def test_reliability_is_that_of_scikit_learn(predicted):
    y, p = predicted
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=10)
    right, confidence = calibration_curve(p.argmax(1) == y, p.max(1), n_bins=10)
    np.testing.assert_allclose(display.line_.get_xdata(), confidence)
    np.testing.assert_allclose(display.line_.get_ydata(), right)
    bins = np.minimum((p.max(1) * 10).astype(int), 9)
    counts = [int((bins == number).sum()) for number in np.unique(bins)]
    assert [text.get_text() for text in display.ax_.texts] == [str(count) for count in counts]
    error = np.average(np.abs(right - confidence), weights=counts)
    assert display.ax_.get_title() == f"calibration error {error:.3f}"
    diagonal = display.ax_.lines[0]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())


def test_several_models_share_axes_and_one_diagonal(predicted):
    y, p = predicted
    first = ReliabilityDisplay.from_predictions(y, p, name="_ours")
    second = ReliabilityDisplay.from_predictions(y, p[:, ::-1], name="$theirs$", ax=first.ax_)
    assert second.ax_ is first.ax_
    assert len(first.ax_.lines) == 3
    shown = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert shown == [f"_ours: {first.curve.error:.3f}", rf"\$theirs\$: {second.curve.error:.3f}"]
    assert len(first.ax_.texts) == len(first.curve.counts)  # counts of the first only


def test_an_estimator_is_asked_with_its_own_labels(fitted):
    model, X, y = fitted
    numbers = (y == "up").astype(int)
    drawn = ReliabilityDisplay.from_estimator(model, X, y, n_bins=5)
    by_hand = ReliabilityDisplay.from_predictions(numbers, model.predict_proba(X), n_bins=5)
    np.testing.assert_array_equal(drawn.line_.get_ydata(), by_hand.line_.get_ydata())


def test_the_rejection_curve_ends_at_the_accuracy(fitted):
    model, X, y = fitted
    display = RejectionCurveDisplay.from_estimator(model, X, y)
    assert display.line_.get_xdata()[-1] == 1.0
    assert display.line_.get_ydata()[-1] == pytest.approx(model.score(X, y))
    half = display.answered <= 0.5
    surest = np.argsort(-model.predict_proba(X).max(1), kind="stable")[: round(display.answered[half][-1] * len(X))]
    assert display.accuracy[half][-1] == pytest.approx(np.mean(model.predict(X[surest]) == y[surest]))


def test_rejection_by_entropy_refuses_rows_of_large_entropy(fitted):
    model, X, y = fitted
    display = RejectionCurveDisplay.from_estimator(model, X, y, uncertainty="entropy")
    kept = round(display.answered[4] * len(X))
    surest = np.argsort(model.entropy(X), kind="stable")[:kept]
    assert display.accuracy[4] == pytest.approx(np.mean(model.predict(X[surest]) == y[surest]))
    with pytest.raises(ValueError, match="'probability' or 'entropy'"):
        RejectionCurveDisplay.from_estimator(model, X, y, uncertainty="feeling")


def test_confusions_are_those_of_scikit_learn(predicted):
    y, p = predicted
    display = ConfusionDisplay.from_predictions(y, p, names=["a", "$b$", "<c>"])
    expected = confusion_matrix(y, p.argmax(1))
    np.testing.assert_array_equal(display.matrix, expected)
    assert [text.get_text() for text in display.ax_.texts] == [str(count) for count in expected.ravel()]
    np.testing.assert_allclose(display.image_.get_array(), expected / expected.sum(1, keepdims=True))
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["a", r"\$b\$", "<c>"]


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
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["objective", "loss", "complexity"]
    assert matplotlib.get_backend() == backend


@pytest.mark.parametrize("length", [0, 1])
def test_a_history_of_no_steps_or_one_is_drawn_too(length):
    display = LearningCurveDisplay([Step(1.0, 0.5, 2.0, {})] * length).plot()
    assert len(display.ax_.lines) == 2 * length
    display.figure_.canvas.draw()


@pytest.mark.parametrize("labels", [[0.5, 1.0], [0, 3], ["no", "yes"], [-1, 0]])
def test_labels_that_number_nothing_are_refused(labels):
    with pytest.raises(ValueError, match="integers from 0 to 1"):
        ReliabilityDisplay.from_predictions(labels, np.full((2, 2), 0.5))


def test_a_label_that_is_no_class_is_refused():
    with pytest.raises(ValueError, match="'perhaps' is not among the classes"):
        ReliabilityDisplay.from_predictions(["no", "perhaps"], np.full((2, 2), 0.5), classes=["no", "yes"])
