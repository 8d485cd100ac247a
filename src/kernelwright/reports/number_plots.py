"""Plots of predicted numbers: predicted against actual, PIT histogram, and coverage of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from kernelwright.evaluation.scores import NORMAL
from kernelwright.reports.drawing import ACCENT, GREY, WARM, legend, new_axes, plain
from kernelwright.reports.formatting import number

__all__ = ["CoverageDisplay", "PITDisplay", "PredictedActualDisplay", "last_step", "of_one_target", "pit_limits"]

MOST_POINTS = 1500  # drawn; of more rows, evenly spaced ones in the order of their predictions
BLOCK = 64  # rows whose distribution functions are evaluated at each other's targets
KINDS = ("actual", "residual")
POINT = 1e-9  # an increase of the distribution function that is no step


class PredictedActualDisplay:
    """Actual targets, or residuals, against predicted means, with prediction intervals.

    Points outside of their interval are drawn in the second colour. The dotted line is where points of a perfect model
    lie.

    Parameters
    ----------
    y, mean : ndarray of shape (n,)
    interval : ndarray of shape (n, 2) or None, default=None

    Attributes
    ----------
    ax_, figure_
    points_ : list of matplotlib.collections.PathCollection
        Points inside and outside of their intervals.
    lines_ : matplotlib.collections.LineCollection or None
        The intervals.

    Examples
    --------
    >>> from kernelwright.reports import PredictedActualDisplay
    >>> display = PredictedActualDisplay.from_predictions([1.0, 2.0, 6.0], [1.1, 2.1, 3.0], [[0, 2], [1, 3], [2, 4]])
    >>> display.outside.tolist()
    [False, False, True]
    """

    def __init__(self, y: np.ndarray, mean: np.ndarray, interval: np.ndarray | None = None) -> None:
        self.y, self.mean, self.interval = y, mean, interval

    @property
    def outside(self) -> np.ndarray:
        """Whether each target lies outside of its interval."""
        if self.interval is None:
            return np.zeros(len(self.y), dtype=bool)
        return (self.y < self.interval[:, 0]) | (self.y > self.interval[:, 1])

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, coverage: float = 0.9, target: int = 0, **options: Any
    ) -> PredictedActualDisplay:
        """Draw the predictions of a fitted regressor for held-out rows, with intervals if it has any.

        ``target`` is the number of the target if there are several.
        """
        estimator, X = last_step(estimator, X)
        y, mean = of_one_target(y, target), of_one_target(estimator.predict(X), target)
        interval = None
        if hasattr(estimator, "interval"):
            interval = of_one_target(_interval(estimator, X, coverage), target, 2)
        return cls.from_predictions(y, mean, interval, **options)

    @classmethod
    def from_predictions(cls, y: Any, mean: Any, interval: Any = None, **options: Any) -> PredictedActualDisplay:
        """Draw targets, predicted means and, if given, intervals of shape (n, 2)."""
        y, mean = _same_length(y, mean)
        return cls(y, mean, None if interval is None else _intervals(interval, len(y))).plot(**options)

    def plot(self, *, kind: str = "actual", ax: Any = None, name: str = "", title: str = "") -> PredictedActualDisplay:
        """Draw into ``ax`` (a new one if None).

        Parameters
        ----------
        kind : {"actual", "residual"}, default="actual"
            What is drawn upwards: the targets, or the targets minus the predicted means.
        ax : matplotlib Axes, optional
        name : str, default=""
            Name of the target, for the axes.
        title : str, default=""
        """
        if kind not in KINDS:
            raise ValueError(f"The 'kind' must be 'actual' or 'residual'. Got {kind!r} instead.")
        ax = new_axes(ax)
        some = _spread_out(self.mean)
        x, base = self.mean[some], self.mean[some] if kind == "residual" else np.zeros(len(some))
        up, outside = self.y[some] - base, self.outside[some]
        self.lines_ = None
        if self.interval is not None:
            low, high = (self.interval[some] - base[:, None]).T
            self.lines_ = ax.vlines(x, low, high, color=GREY, alpha=0.3, linewidth=0.8)
        ends = np.array([x.min(), x.max()])
        ax.plot(ends, ends if kind == "actual" else np.zeros(2), color=GREY, linestyle=":")
        inside, beyond = (
            ax.scatter(x[chosen], up[chosen], s=9, color=colour, alpha=0.7, linewidth=0, zorder=3)
            for chosen, colour in ((~outside, ACCENT), (outside, WARM))
        )
        self.points_ = [inside, beyond]
        if self.interval is not None:
            legend(ax, self.points_, ["inside the interval", "outside"], loc="best")
        what = f" {plain(name)}" if name else ""
        ax.set(xlabel=f"predicted{what}", ylabel=f"actual{what}" if kind == "actual" else "actual minus predicted")
        ax.set_title(plain(title, 80) if title else "")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class PITDisplay:
    """Histogram of ``F(y)``, the predicted distribution function at the target (probability integral transform).

    It is flat if the distributions are calibrated, high at both ends if they are too narrow, high in the middle if they
    are too wide, and sloped if they are shifted. A step of F, as of a discrete target, is spread over the bins that it
    crosses [Czado2009]_. Bars of calibrated distributions lie in the grey band about 19 times in 20.

    Parameters
    ----------
    shares : ndarray of shape (n_bins,)
        The share of rows in each bin.
    n : float
        The number of rows.

    Attributes
    ----------
    ax_, figure_
    bars_ : matplotlib.container.BarContainer
        Heights are shares times the number of bins: one if flat.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.reports import PITDisplay
    >>> PITDisplay.from_predictions([0.1, 0.2, 0.9, 0.4], n_bins=2).shares
    array([0.75, 0.25])
    """

    def __init__(self, shares: np.ndarray, n: float) -> None:
        self.shares, self.n = shares, n

    @property
    def band(self) -> tuple[float, float]:
        """Heights between which a bar lies about 19 times in 20, if the distributions are calibrated."""
        m = len(self.shares)
        half = NORMAL * float(np.sqrt((m - 1.0) / max(self.n, 1e-300)))
        return max(1.0 - half, 0.0), 1.0 + half

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, target: int = 0, **options: Any) -> PITDisplay:
        """Draw the predictions of a fitted regressor with a method ``cdf(X, t)`` for held-out rows."""
        lower, upper = pit_limits(estimator, X, y, target=target)
        return cls.from_predictions(upper, lower, **options)

    @classmethod
    def from_predictions(
        cls, pit: Any, lower: Any = None, *, weights: Any = None, n_bins: int = 10, ax: Any = None, title: str = ""
    ) -> PITDisplay:
        """Draw values ``F(y)``; for distributions with steps, ``lower`` is F just below y."""
        upper = np.asarray(pit, dtype=np.float64)
        lower = upper if lower is None else np.asarray(lower, dtype=np.float64)
        if upper.ndim != 1 or not len(upper) or lower.shape != upper.shape or not _in_order(lower, upper):
            raise ValueError(
                "PIT values must be numbers from 0 to 1, one for each row, and 'lower' must not be larger. Pass values "
                "of the predicted distribution function at the targets."
            )
        weights = np.ones(len(upper)) if weights is None else np.asarray(weights, dtype=np.float64)
        n = float(weights.sum() ** 2 / np.square(weights).sum())
        return cls(bin_shares(lower, upper, weights, n_bins), n).plot(ax=ax, title=title)

    def plot(self, *, ax: Any = None, title: str = "") -> PITDisplay:
        """Draw into ``ax`` (a new one if None)."""
        ax = new_axes(ax)
        m = len(self.shares)
        ax.axhspan(*self.band, color=GREY, alpha=0.25, linewidth=0)
        ax.axhline(1.0, color=GREY, linestyle=":")
        self.bars_ = ax.bar((np.arange(m) + 0.5) / m, m * self.shares, width=0.92 / m, color=ACCENT)
        ax.set(xlabel="predicted probability of a smaller target", ylabel="rows, relative to a flat histogram")
        ax.set(xlim=(0, 1), ylim=(0, max(2.0, 1.1 * m * float(self.shares.max()))))
        ax.set_title(plain(title, 80) if title else "")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class CoverageDisplay:
    """Share of targets inside their prediction intervals, from the narrowest to the widest intervals.

    Intervals that are narrow where the model is sure deserve trust if they cover as often as the wide ones.

    Parameters
    ----------
    width, covered, n : ndarray of shape (n_bins,)
        Mean width, share of covered targets, and number of rows of each bin.
    coverage : float
        The stated coverage.

    Attributes
    ----------
    ax_, figure_
    line_ : matplotlib.lines.Line2D

    Examples
    --------
    >>> from kernelwright.reports import CoverageDisplay
    >>> interval = [[0, 1], [0, 1], [0, 5], [0, 5]]
    >>> CoverageDisplay.from_predictions([0.5, 2.0, 2.0, 3.0], interval, n_bins=2).covered
    array([0.5, 1. ])
    """

    def __init__(self, width: np.ndarray, covered: np.ndarray, n: np.ndarray, coverage: float) -> None:
        self.width, self.covered, self.n, self.coverage = width, covered, n, coverage

    @property
    def band(self) -> np.ndarray:
        """Wilson's 95 % interval of each share, of shape (2, n_bins)."""
        z2 = NORMAL**2
        middle = (self.covered + z2 / (2 * self.n)) / (1 + z2 / self.n)
        half = np.sqrt(z2 * (self.covered * (1 - self.covered) / self.n + z2 / (4 * self.n**2))) / (1 + z2 / self.n)
        return np.clip([middle - half, middle + half], 0.0, 1.0)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, coverage: float | None = None, target: int = 0, **options: Any
    ) -> CoverageDisplay:
        """Draw the intervals of a fitted estimator for held-out rows; ``None`` is its own coverage, or 0.9."""
        estimator, X = last_step(estimator, X)
        stated = getattr(estimator, "coverage", 0.9) if coverage is None else coverage
        interval = of_one_target(_interval(estimator, X, stated), target, 2)
        return cls.from_predictions(of_one_target(y, target), interval, coverage=stated, **options)

    @classmethod
    def from_predictions(
        cls, y: Any, interval: Any, *, coverage: float = 0.9, n_bins: int = 10, ax: Any = None, title: str = ""
    ) -> CoverageDisplay:
        """Draw intervals of shape (n, 2) with a stated coverage, in ``n_bins`` bins of equally many rows."""
        y, _ = _same_length(y, y)
        low, high = _intervals(interval, len(y)).T
        bins = [rows for rows in np.array_split(np.argsort(high - low, kind="stable"), n_bins) if len(rows)]
        inside = (low <= y) & (y <= high)
        width, covered, n = (
            np.array([float(of(rows)) for rows in bins])
            for of in (lambda rows: (high - low)[rows].mean(), lambda rows: inside[rows].mean(), len)
        )
        return cls(width, covered, n, coverage).plot(ax=ax, title=title)

    def plot(self, *, ax: Any = None, title: str = "") -> CoverageDisplay:
        """Draw into ``ax`` (a new one if None)."""
        ax = new_axes(ax)
        places = np.arange(1, len(self.n) + 1)
        ax.axhline(self.coverage, color=GREY, linestyle=":")
        ax.vlines(places, *self.band, color=ACCENT, alpha=0.5)
        (self.line_,) = ax.plot(places, self.covered, marker="o", color=ACCENT, linestyle="")
        lowest = min(float(self.band[0].min()), self.coverage)
        ax.set(xlabel="intervals, from the narrowest to the widest", ylabel="share of targets inside")
        ax.set_xticks(places, [number(width) for width in self.width], rotation=45, fontsize=8)
        ax.set_ylim(max(0.0, lowest - 0.05), 1.02)
        ax.set_title(plain(title, 80) if title else "")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def bin_shares(lower: np.ndarray, upper: np.ndarray, weights: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the share of rows in each of ``n_bins`` equal bins; a row lies evenly between its two limits."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    step = upper - lower
    point = step <= POINT
    spread = np.clip((edges - lower[:, None]) / np.where(point, 1.0, step)[:, None], 0.0, 1.0)
    below = np.where(point[:, None], upper[:, None] < edges, spread)
    below[:, 0], below[:, -1] = 0.0, 1.0
    return weights @ np.diff(below, axis=1) / weights.sum()


def pit_limits(estimator: Any, X: Any, y: Any, *, target: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted distribution function just below the target of each row, and at it.

    They are equal unless the predicted distribution has a step at the target.
    """
    estimator, X = last_step(estimator, X)
    y, found = of_one_target(y, target), np.empty((len(y), 2))
    for start in range(0, len(y), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(y)))
        at = np.concatenate([np.nextafter(y[rows], -np.inf), y[rows]])
        below = of_one_target(estimator.cdf(_safe_indexing(X, rows), at), target, 2).reshape(len(rows), 2, len(rows))
        found[rows] = np.diagonal(below, axis1=0, axis2=2).T
    return found[:, 0], found[:, 1]


def of_one_target(values: Any, target: int, ndim: int = 1) -> np.ndarray:
    """Return the values of one target: all of them, or those of column ``target`` if there is a dimension more."""
    values = np.asarray(values, dtype=np.float64)
    return values[:, target] if values.ndim > ndim else values


def last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline and the rows as it sees them: a pipeline has no ``interval`` or ``cdf``."""
    if isinstance(estimator, Pipeline):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X


def _interval(estimator: Any, X: Any, coverage: float) -> Any:
    """Ask for intervals of this coverage; an estimator that is itself calibrated for one coverage takes no other."""
    return estimator.interval(X) if hasattr(estimator, "coverage") else estimator.interval(X, coverage)


def _same_length(y: Any, mean: Any) -> tuple[np.ndarray, np.ndarray]:
    y, mean = (np.asarray(each, dtype=np.float64) for each in (y, mean))
    if y.ndim != 1 or y.shape != mean.shape or not len(y):
        raise ValueError(f"Targets and predictions must be of the same shape (n,). Got {y.shape} and {mean.shape}.")
    return y, mean


def _intervals(interval: Any, n: int) -> np.ndarray:
    found = np.asarray(interval, dtype=np.float64)
    if found.shape != (n, 2) or (found[:, 0] > found[:, 1]).any():
        raise ValueError(f"Intervals must be of shape ({n}, 2), the lower end first. Got shape {found.shape}.")
    return found


def _in_order(lower: np.ndarray, upper: np.ndarray) -> bool:
    return bool(((lower >= 0) & (lower <= upper) & (upper <= 1)).all())


def _spread_out(values: np.ndarray) -> np.ndarray:
    order = np.argsort(values, kind="stable")
    return order[np.unique(np.linspace(0, len(order) - 1, min(len(order), MOST_POINTS)).astype(int))]
