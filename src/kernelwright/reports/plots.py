"""Pictures, as display objects in scikit-learn's manner: ``from_estimator`` draws, attributes hold the axes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelwright.training import Step

__all__ = ["DecisionProbabilityDisplay", "LearningCurveDisplay"]


class DecisionProbabilityDisplay:
    """Class probabilities over two features, one colour channel a class, with the training rows on top.

    Parameters
    ----------
    grid : tuple of two ndarrays
        Coordinates of the picture's columns and rows.
    probabilities : ndarray of shape (rows, columns, n_classes)
    """

    def __init__(self, grid: tuple[np.ndarray, np.ndarray], probabilities: np.ndarray) -> None:
        self.grid, self.probabilities = grid, probabilities

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        resolution: int = 150,
        names: Sequence[str] | None = None,
        ax: Any = None,
        title: str = "",
    ) -> DecisionProbabilityDisplay:
        """Draw a fitted classifier of two features over the range of X, a little beyond it on each side."""
        X = np.asarray(X, dtype=np.float64)
        if X.shape[1] != 2:
            raise ValueError(f"A map of probabilities needs exactly two features. Got {X.shape[1]}.")
        low, high = X.min(0), X.max(0)
        margin = 0.25 * (high - low)
        across, up = np.linspace(low - margin, high + margin, resolution).T
        columns, rows = np.meshgrid(across, up)
        p = estimator.predict_proba(np.column_stack([columns.ravel(), rows.ravel()]))
        display = cls((across, up), p.reshape(resolution, resolution, -1))
        if names is None:
            names = getattr(estimator, "feature_names_in_", ["feature 1", "feature 2"])
        return display.plot(X, y, names=names, ax=ax, title=title)

    def plot(
        self, X: np.ndarray, y: Any = None, *, names: Sequence[str] = ("", ""), ax: Any = None, title: str = ""
    ) -> DecisionProbabilityDisplay:
        """Draw into ``ax`` (a new one if None)."""
        from matplotlib import colormaps

        ax = _axes(ax)
        colours = colormaps["tab10"](np.arange(self.probabilities.shape[2]) % 10)[:, :3]
        columns, rows = self.grid
        picture = np.clip(self.probabilities @ colours, 0, 1)
        extent = (columns[0], columns[-1], rows[0], rows[-1])
        ax.imshow(picture, origin="lower", extent=extent, aspect="auto", interpolation="bilinear", alpha=0.85)
        if y is not None:
            for number, label in enumerate(np.unique(y)):
                rows_of = np.asarray(y) == label
                colour = colours[number % len(colours)]
                ax.scatter(*X[rows_of].T, s=14, color=colour, edgecolor="white", linewidth=0.5, label=str(label))
            ax.legend(loc="upper right", fontsize="small")
        ax.set(xlabel=names[0], ylabel=names[1], title=title)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class LearningCurveDisplay:
    """Objective, loss and complexity by step, with a gap wherever the objective itself changes.

    Parameters
    ----------
    history : list of Step
    """

    def __init__(self, history: Sequence[Step]) -> None:
        self.history = history

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, title: str = "") -> LearningCurveDisplay:
        """Draw the history of a fitted estimator."""
        return cls(estimator.history_).plot(ax=ax, title=title)

    def plot(self, *, ax: Any = None, title: str = "") -> LearningCurveDisplay:
        """Draw into ``ax``; the complexity has an axis of its own on the right."""
        ax = _axes(ax)
        right = ax.twinx()
        first = 0
        for _, group in itertools.groupby(self.history, key=lambda step: step.stage):  # a gap between stages
            stage = list(group)
            steps = np.arange(first, first + len(stage))
            label = "" if first == 0 else "_"  # an underscore keeps a line out of the legend
            ax.plot(steps, [s.objective for s in stage], label=f"{label}objective", color="tab:blue")
            ax.plot(steps, [s.loss for s in stage], label=f"{label}loss", color="tab:orange", linestyle="--")
            right.plot(steps, [s.complexity for s in stage], label="complexity", color="tab:green", linestyle=":")
            first += len(stage)
        right.set_ylabel("complexity", color="tab:green")
        ax.set(xlabel="step", ylabel="objective, loss", title=title)
        ax.legend(loc="upper right", fontsize="small")
        self.ax_, self.complexity_ax_, self.figure_ = ax, right, ax.figure
        return self


def _axes(ax: Any) -> Any:
    """The given axes, or new ones on a figure that no global state knows of."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 4.5), layout="constrained").subplots()
