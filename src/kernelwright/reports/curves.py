"""Plots of a classifier: reliability diagram, rejection curve, confusion matrix and learning curve."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from kernelwright.learning.loop import Step
from kernelwright.reports.drawing import ACCENT, CLASS_COLOURS, GREEN, GREY, WARM, legend, new_axes, numbered, plain
from kernelwright.uncertainty.scores import Reliability, rejection_curve, reliability

__all__ = ["ConfusionDisplay", "LearningCurveDisplay", "RejectionCurveDisplay", "ReliabilityDisplay"]

DIAGONAL = "diagonal"  # marks axes that already have one
NUMBERED_UP_TO = 15  # classes: with more, cells are too small for a number


class ReliabilityDisplay:
    """Accuracy against confidence, in bins: a well-calibrated model lies on the diagonal.

    Below the diagonal a model is overconfident. Several models can be drawn into the same axes; the number of rows in
    each bin is shown for the first one.

    Parameters
    ----------
    curve : Reliability
    name : str, default=""
        Name of the model, for the legend.

    Attributes
    ----------
    ax_, figure_
    line_ : matplotlib.lines.Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.reports import ReliabilityDisplay
    >>> p = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]])
    >>> display = ReliabilityDisplay.from_predictions([0, 1, 1], p)
    >>> display.ax_.get_title()
    'calibration error 0.400'
    """

    def __init__(self, curve: Reliability, name: str = "") -> None:
        self.curve, self.name = curve, name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> ReliabilityDisplay:
        """Draw the predictions of a fitted classifier for held-out rows."""
        return cls.from_predictions(y, np.asarray(estimator.predict_proba(X)), classes=estimator.classes_, **options)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        probabilities: Any,
        *,
        classes: Any = None,
        n_bins: int = 10,
        name: str = "",
        ax: Any = None,
        title: str | None = None,
    ) -> ReliabilityDisplay:
        """Draw probabilities; ``classes`` are the classes of their columns, unless y holds column indices."""
        p = np.asarray(probabilities, dtype=np.float64)
        return cls(reliability(p, numbered(y, classes, p.shape[1]), n_bins), name).plot(ax=ax, title=title)

    def plot(self, *, ax: Any = None, title: str | None = None) -> ReliabilityDisplay:
        """Draw into ``ax`` (a new one if None)."""
        ax = new_axes(ax)
        first = not any(line.get_gid() == DIAGONAL for line in ax.lines)
        if first:
            ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", gid=DIAGONAL)
        curves = [line for line in ax.lines if line.get_gid() != DIAGONAL]
        colour = CLASS_COLOURS[len(curves) % len(CLASS_COLOURS)]
        (self.line_,) = ax.plot(self.curve.confidence, self.curve.accuracy, marker="o", color=colour)
        if first:
            for x, height, count in zip(self.curve.confidence, self.curve.accuracy, self.curve.counts, strict=True):
                ax.annotate(
                    str(count), (x, height), xytext=(0, -13), textcoords="offset points", fontsize=8, ha="center"
                )
            ax.set_title(f"calibration error {self.curve.error:.3f}")
        self.line_.set_label(f"{self.name or 'model'}: {self.curve.error:.3f}")
        if not first:
            drawn = [*curves, self.line_]
            legend(ax, drawn, [line.get_label() for line in drawn], loc="upper left")
            ax.set_title("calibration error")
        if title is not None:
            ax.set_title(plain(title, 80))
        ax.set(xlabel="confidence in the predicted class", ylabel="share of correct predictions", ylim=(-0.08, 1.06))
        self.ax_, self.figure_ = ax, ax.figure
        return self


class RejectionCurveDisplay:
    """Accuracy on the answered rows against their share, if the most uncertain rows are rejected first.

    Parameters
    ----------
    answered, accuracy : ndarray
        As returned by :func:`kernelwright.uncertainty.scores.rejection_curve`.
    name : str, default=""

    Attributes
    ----------
    ax_, figure_
    line_ : matplotlib.lines.Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.reports import RejectionCurveDisplay
    >>> p = np.array([[0.9, 0.1], [0.2, 0.8], [0.55, 0.45], [0.6, 0.4]])
    >>> RejectionCurveDisplay.from_predictions([0, 1, 1, 0], p).accuracy
    array([1.  , 1.  , 1.  , 0.75])
    """

    def __init__(self, answered: np.ndarray, accuracy: np.ndarray, name: str = "") -> None:
        self.answered, self.accuracy, self.name = answered, accuracy, name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, uncertainty: str = "probability", **options: Any
    ) -> RejectionCurveDisplay:
        """Draw the rejection curve of a fitted classifier on held-out rows.

        ``uncertainty`` is "probability" (one minus the confidence) or "entropy" (the estimator's own method).
        """
        if uncertainty not in ("probability", "entropy"):
            raise ValueError(f"The 'uncertainty' must be 'probability' or 'entropy'. Got {uncertainty!r} instead.")
        measured = np.asarray(estimator.entropy(X)) if uncertainty == "entropy" else None
        p = np.asarray(estimator.predict_proba(X))
        return cls.from_predictions(y, p, classes=estimator.classes_, uncertainty=measured, **options)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        probabilities: Any,
        *,
        classes: Any = None,
        uncertainty: Any = None,
        name: str = "",
        ax: Any = None,
        title: str = "",
    ) -> RejectionCurveDisplay:
        """Draw probabilities; ``uncertainty`` has a number for each row (default: one minus the confidence)."""
        p = np.asarray(probabilities, dtype=np.float64)
        curve = rejection_curve(p, numbered(y, classes, p.shape[1]), uncertainty)
        return cls(*curve, name).plot(ax=ax, title=title)

    def plot(self, *, ax: Any = None, title: str = "") -> RejectionCurveDisplay:
        """Draw into ``ax`` (a new one if None)."""
        ax = new_axes(ax)
        colour = CLASS_COLOURS[len(ax.lines) % len(CLASS_COLOURS)]
        (self.line_,) = ax.plot(self.answered, self.accuracy, color=colour, drawstyle="steps-post")
        self.line_.set_label(self.name or "model")
        if len(ax.lines) > 1:
            legend(ax, ax.lines, [line.get_label() for line in ax.lines], loc="lower left")
        ax.set(xlabel="share of rows answered", ylabel="accuracy on answered rows", xlim=(0, 1.02))
        ax.set_title(plain(title, 80) if title else "")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ConfusionDisplay:
    """Confusion matrix: rows by true class (down) and predicted class (across), coloured by share of the true class.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
    classes : sequence of str

    Attributes
    ----------
    ax_, figure_
    image_ : matplotlib.image.AxesImage

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.reports import ConfusionDisplay
    >>> ConfusionDisplay.from_predictions([0, 1, 1], np.eye(2)[[0, 1, 0]], names=["no", "yes"]).matrix.tolist()
    [[1, 0], [1, 1]]
    """

    def __init__(self, matrix: np.ndarray, classes: Sequence[str]) -> None:
        self.matrix, self.classes = np.asarray(matrix), [str(name) for name in classes]

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        probabilities: Any,
        *,
        classes: Any = None,
        names: Sequence[str] | None = None,
        ax: Any = None,
        title: str = "",
    ) -> ConfusionDisplay:
        """Draw probabilities or predicted labels; ``names`` are shown in place of the classes."""
        if np.ndim(probabilities) == 1:  # predicted labels have probability one
            classes = np.union1d(y, probabilities) if classes is None else classes
            probabilities = np.asarray(probabilities)[:, None] == np.asarray(classes)
        p = np.asarray(probabilities, dtype=np.float64)
        m = p.shape[1]
        matrix = confusion_matrix(numbered(y, classes, m), p.argmax(1), labels=range(m))
        shown = names if names is not None else range(m) if classes is None else classes
        return cls(matrix, [str(name) for name in shown]).plot(ax=ax, title=title)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> ConfusionDisplay:
        """Draw the confusion matrix of a fitted classifier."""
        return cls.from_predictions(y, np.asarray(estimator.predict_proba(X)), classes=estimator.classes_, **options)

    def plot(self, *, ax: Any = None, title: str = "") -> ConfusionDisplay:
        """Draw into ``ax`` (a new one if None)."""
        from matplotlib.colors import LinearSegmentedColormap

        m = len(self.classes)
        side = min(4.0 + 0.12 * max(0, m - 6), 7.0)
        ax = new_axes(ax, (side + 1.0, side))
        share = self.matrix / np.maximum(self.matrix.sum(1, keepdims=True), 1)
        shades = LinearSegmentedColormap.from_list("shades", ["#eef3f7", ACCENT, "#123a54"])
        self.image_ = ax.imshow(share, cmap=shades, vmin=0.0, vmax=1.0)
        if m <= NUMBERED_UP_TO:
            for (down, across), count in np.ndenumerate(self.matrix):
                colour = "white" if share[down, across] > 0.45 else "#1c2733"
                ax.text(across, down, str(count), ha="center", va="center", color=colour, fontsize=9 if m < 10 else 7)
        names = [plain(name, 18) for name in self.classes]
        small = 9 if m < 16 else 6
        ax.set_xticks(range(m), names, rotation=90 if m > 8 else 30, ha="center" if m > 8 else "right", fontsize=small)
        ax.set_yticks(range(m), names, fontsize=small)
        ax.set(xlabel="predicted class", ylabel="true class")
        ax.set_title(plain(title, 80) if title else "")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class LearningCurveDisplay:
    """Objective, loss and complexity by step, with a gap wherever the objective function changes.

    Parameters
    ----------
    history : list of Step

    Attributes
    ----------
    ax_, complexity_ax_, figure_

    Examples
    --------
    >>> from kernelwright.reports import LearningCurveDisplay
    >>> from kernelwright.learning.loop import Step
    >>> display = LearningCurveDisplay([Step(1.0, 0.9, 2.0, {}), Step(0.5, 0.4, 3.0, {})]).plot()
    >>> display.ax_.lines[0].get_ydata().tolist()
    [1.0, 0.5]
    """

    def __init__(self, history: Sequence[Step]) -> None:
        self.history = history

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, title: str = "") -> LearningCurveDisplay:
        """Draw the history of a fitted estimator."""
        return cls(estimator.history_).plot(ax=ax, title=title)

    def plot(self, *, ax: Any = None, title: str = "") -> LearningCurveDisplay:
        """Draw into ``ax``; the complexity has its own axis on the right."""
        ax = new_axes(ax)
        right = ax.twinx()
        first = 0
        marker = "o" if len(self.history) < 3 else None  # a line through one point is invisible
        for _, group in itertools.groupby(self.history, key=lambda step: step.stage):  # a gap between stages
            stage = list(group)
            steps = np.arange(first, first + len(stage))
            for axes, field, colour, style in (
                (ax, "objective", ACCENT, "-"),
                (ax, "loss", WARM, "--"),
                (right, "complexity", GREEN, ":"),
            ):
                values = [getattr(step, field) for step in stage]
                axes.plot(steps, values, color=colour, linestyle=style, marker=marker, label=field)
            first += len(stage)
        if self.history:
            drawn = [*ax.lines[:2], right.lines[0]]
            legend(ax, drawn, [line.get_label() for line in drawn], loc="best")
        right.set_ylabel("complexity")
        ax.set(xlabel="step", ylabel="objective, loss")
        ax.set_title(plain(title, 80) if title else "")
        self.ax_, self.complexity_ax_, self.figure_ = ax, right, ax.figure
        return self
