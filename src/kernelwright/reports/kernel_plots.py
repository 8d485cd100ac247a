"""Plots of kernels: relevance of features, spectrum, kernel matrices, and learned against true similarities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from kernelwright.kernels.relevance import Relevance
from kernelwright.numerics.linalg import spectrum
from kernelwright.reports.drawing import ACCENT, GREY, WARM, legend, new_axes, plain
from kernelwright.similarity.indefinite import Signature, signature

__all__ = [
    "KernelMatrixDisplay",
    "PairScatterDisplay",
    "RelevanceDisplay",
    "SpectrumDisplay",
    "with_names",
]


class RelevanceDisplay:
    """The share of each feature in a learned kernel, as horizontal bars, the largest on top.

    Bars in the second colour belong to length scales at a bound of their allowed range.

    Parameters
    ----------
    relevance : Relevance

    Attributes
    ----------
    ax_, figure_
    bars_ : matplotlib.container.BarContainer

    Examples
    --------
    >>> from kernelwright.kernels.relevance import FeatureRelevance, Relevance
    >>> from kernelwright.reports import RelevanceDisplay
    >>> found = Relevance([FeatureRelevance("length", 0.5, 0.8), FeatureRelevance("width", 2.0, 0.2)])
    >>> [float(bar.get_width()) for bar in RelevanceDisplay(found).plot().bars_]
    [0.8, 0.2]
    """

    def __init__(self, relevance: Relevance) -> None:
        self.relevance = relevance

    @classmethod
    def from_estimator(cls, estimator: Any, *, names: Sequence[str] | None = None, **options: Any) -> RelevanceDisplay:
        """Draw the relevance of a fitted estimator; ``names`` are the names of all its features, in order."""
        estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        if not hasattr(estimator, "relevance"):
            raise ValueError(f"Relevance needs an estimator with a kernel. Got {type(estimator).__name__}.")
        found = estimator.relevance()
        return cls(found if names is None else with_names(found, names)).plot(**options)

    def plot(self, *, ax: Any = None, most: int = 20, title: str = "") -> RelevanceDisplay:
        """Draw into ``ax`` (a new one if None); with more than ``most`` features, the last ones share a bar."""
        rows = self.relevance.rows
        shown = rows if len(rows) <= most else rows[: most - 1]
        names, shares = [plain(row.name) for row in shown], [row.share for row in shown]
        colours = [WARM if row.at_bound else ACCENT for row in shown]
        if len(shown) < len(rows):
            names.append(f"{len(rows) - len(shown)} others")
            shares.append(sum(row.share for row in rows[len(shown) :]))
            colours.append(GREY)
        ax = new_axes(ax, (5.0, 1.0 + 0.27 * max(len(names), 3)))
        places = np.arange(len(names))
        self.bars_ = ax.barh(places, shares, color=colours, height=0.7)
        for place, share in zip(places, shares, strict=True):
            ax.annotate(
                f"{share:.1%}", (share, place), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8
            )
        ax.set_yticks(places, names, fontsize=9)
        ax.set(xlabel="share in the kernel", xlim=(0, 1.18 * max([*shares, 1e-12])))
        ax.invert_yaxis()
        ax.set_title(plain(title, 80) if title else "")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def with_names(relevance: Relevance, names: Sequence[str]) -> Relevance:
    """Replace the names x0, x1, ..., which an estimator gives to the columns of an array."""
    known = {f"x{number}": str(name) for number, name in enumerate(names)}
    return Relevance([replace(row, name=known.get(row.name, row.name)) for row in relevance.rows])


class SpectrumDisplay:
    """Eigenvalues of a symmetric matrix, largest first, the negative ones in another colour.

    Parameters
    ----------
    eigenvalues : ndarray
    signature : Signature

    Attributes
    ----------
    ax_, figure_
    points_ : list of matplotlib.collections.PathCollection
        Points of the non-negative and of the negative eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.reports import SpectrumDisplay
    >>> SpectrumDisplay.from_matrix(np.array([[0.0, 1.0], [1.0, 0.0]])).signature.negative
    1
    """

    def __init__(self, eigenvalues: np.ndarray, signature: Signature) -> None:
        self.eigenvalues, self.signature = np.sort(np.asarray(eigenvalues))[::-1], signature

    @classmethod
    def from_matrix(cls, K: Any, *, ax: Any = None, title: str = "") -> SpectrumDisplay:
        """Draw the eigenvalues of a kernel matrix."""
        matrix = torch.from_numpy(np.array(K, dtype=np.float64))
        return cls(spectrum(matrix).numpy(), signature(matrix)).plot(ax=ax, title=title)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> SpectrumDisplay:
        """Draw the eigenvalues of a learned kernel at given rows."""
        return cls.from_matrix(_learned_matrix(estimator, X), **options)

    def plot(self, *, ax: Any = None, title: str = "") -> SpectrumDisplay:
        """Draw into ``ax`` (a new one if None), on a scale that is linear near zero and logarithmic elsewhere."""
        ax = new_axes(ax)
        numbers = np.arange(1, len(self.eigenvalues) + 1)
        largest = float(np.abs(self.eigenvalues).max(initial=0.0)) or 1.0
        below = self.eigenvalues < 0
        self.points_ = [
            ax.scatter(numbers[chosen], self.eigenvalues[chosen], s=14, color=colour)
            for chosen, colour in ((~below, ACCENT), (below, WARM))
        ]
        signs = self.signature
        legend(
            ax,
            self.points_,
            [f"positive: {signs.positive}", f"negative: {signs.negative} ({signs.negative_share:.1%})"],
            loc="upper right",
        )
        ax.axhline(0.0, color=GREY, linewidth=0.8)
        ax.set_yscale("symlog", linthresh=1e-4 * largest)
        low, high = float(self.eigenvalues.min(initial=0.0)), float(self.eigenvalues.max(initial=0.0))
        ax.set_ylim(3.0 * low if low < 0 else -1e-5 * largest, 3.0 * high if high > 0 else 1e-5 * largest)
        ax.set(xlabel="number of the eigenvalue", ylabel="eigenvalue")
        ax.set_title(plain(title, 80) if title else "")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class KernelMatrixDisplay:
    """A learned kernel matrix, next to the given one if there is one, in the same colours.

    Parameters
    ----------
    learned : ndarray of shape (m, n)
    given : ndarray of the same shape or None, default=None
        NaN for unknown similarities, which are left blank.

    Attributes
    ----------
    ax_ : Axes, or ndarray of two if a matrix was given
    figure_
    images_ : list of matplotlib.image.AxesImage

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.reports import KernelMatrixDisplay
    >>> display = KernelMatrixDisplay(np.eye(3), given=np.full((3, 3), np.nan)).plot()
    >>> [ax.get_title() for ax in display.ax_]
    ['given', 'learned']
    """

    def __init__(self, learned: np.ndarray, given: np.ndarray | None = None) -> None:
        self.learned, self.given = np.asarray(learned), None if given is None else np.asarray(given)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, target: Any = None, **options: Any) -> KernelMatrixDisplay:
        """Draw a learned kernel at given rows, next to their similarities."""
        return cls(_learned_matrix(estimator, X), target).plot(**options)

    def plot(self, *, order: Any = None, ax: Any = None, title: str = "") -> KernelMatrixDisplay:
        """Draw into ``ax`` (two axes for two matrices); ``order`` sorts both rows and columns."""
        shown = {"learned": self.learned} if self.given is None else {"given": self.given, "learned": self.learned}
        axes = np.atleast_1d(self._axes(len(shown)) if ax is None else ax)
        if len(axes) != len(shown):
            raise ValueError(f"{len(shown)} matrices need as many axes. Got {len(axes)}.")
        values = np.concatenate([matrix[np.isfinite(matrix)] for matrix in shown.values()])
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        self.images_ = []
        for each, (word, matrix) in zip(axes, shown.items(), strict=True):
            sorted_matrix = matrix if order is None else matrix[np.ix_(order, order)]
            self.images_.append(
                each.imshow(sorted_matrix, cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
            )
            each.set(xticks=[], yticks=[])
            each.set_title(plain(title, 80) if title and len(shown) == 1 else word)
        self.figure_ = axes[0].figure
        self.figure_.colorbar(self.images_[-1], ax=list(axes), shrink=0.9)
        if title and len(shown) > 1:
            self.figure_.suptitle(plain(title, 80))
        self.ax_ = axes[0] if len(axes) == 1 else axes
        return self

    def _axes(self, count: int) -> Any:
        from matplotlib.figure import Figure

        return Figure(figsize=(3.8 * count + 0.8, 3.8), layout="constrained").subplots(1, count)


class PairScatterDisplay:
    """Learned against true similarity of pairs: a perfect kernel lies on the diagonal.

    Parameters
    ----------
    truth, learned : ndarray of shape (n_pairs,)

    Attributes
    ----------
    ax_, figure_
    points_ : matplotlib.collections.PathCollection

    Examples
    --------
    >>> from kernelwright.reports import PairScatterDisplay
    >>> PairScatterDisplay.from_predictions([0.0, 1.0, 2.0], [0.0, 1.0, 3.0]).ax_.get_title()
    'root mean squared error 0.577'
    """

    def __init__(self, truth: np.ndarray, learned: np.ndarray) -> None:
        self.truth, self.learned = truth, learned

    @classmethod
    def from_predictions(cls, truth: Any, learned: Any, **options: Any) -> PairScatterDisplay:
        """Draw similarities of pairs, or matrices of them; pairs with NaN are left out."""
        truth, learned = (np.asarray(values, dtype=np.float64) for values in (truth, learned))
        known = np.isfinite(truth) & np.isfinite(learned)
        return cls(truth[known], learned[known]).plot(**options)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, target: Any, **options: Any) -> PairScatterDisplay:
        """Draw each pair of rows whose similarity is known in ``target`` (m x m) once."""
        upper = np.triu_indices(len(X))
        return cls.from_predictions(np.asarray(target)[upper], estimator.predict(X)[upper], **options)

    @property
    def error(self) -> float:
        """Root mean squared error over the drawn pairs."""
        return float(np.sqrt(np.mean((self.learned - self.truth) ** 2))) if len(self.truth) else float("nan")

    def plot(self, *, ax: Any = None, title: str | None = None) -> PairScatterDisplay:
        """Draw into ``ax`` (a new one if None)."""
        ax = new_axes(ax)
        self.points_ = ax.scatter(self.truth, self.learned, s=8, alpha=0.35, color=ACCENT, linewidth=0)
        if len(self.truth):
            both = np.concatenate([self.truth, self.learned])
            ax.plot([both.min(), both.max()], [both.min(), both.max()], color=GREY, linestyle=":")
        ax.set(xlabel="true similarity", ylabel="learned similarity")
        ax.set_title(f"root mean squared error {self.error:.3g}" if title is None else plain(title, 80))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _learned_matrix(estimator: Any, X: Any) -> np.ndarray:
    """Return the kernel matrix that an estimator has learned, at some rows."""
    if is_classifier(estimator) or not hasattr(estimator, "kernel_"):
        raise ValueError(
            "This plot needs an estimator that learns a kernel (HyperKernelRidge, HyperKernelSVR). Got "
            f"{type(estimator).__name__}; from_matrix takes any kernel matrix."
        )
    return estimator.predict(X)
