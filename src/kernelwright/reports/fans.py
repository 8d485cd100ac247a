"""A fan of quantiles along one feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelwright.reports.drawing import ACCENT, WARM, new_axes, plain
from kernelwright.reports.number_plots import last_step, of_one_target

__all__ = ["FanDisplay", "typical_row"]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
FEW = 12  # different values, up to which each gets its own bar
TRIMMED = 0.01  # of the rows at each end, which would stretch the axis


class FanDisplay:
    """Quantiles of the predicted distribution along one feature, while the others keep the values of one row.

    Bands lie between the first and the last quantile, the second and the second to last, and so on. A feature of few
    values, or of words, has a bar for each value. A line in the second colour at the bottom marks values at which the
    model has no support: it predicts the distribution of all targets there, or nearly so.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Values of the feature: increasing numbers, or any if ``bars``.
    quantiles : ndarray of shape (m, len(levels))
    levels : sequence of float
        Increasing.
    support : ndarray of shape (m,) or None, default=None
    name : str, default=""
        Name of the feature.
    bars : bool, default=False
        Whether each value is drawn on its own.

    Attributes
    ----------
    ax_, figure_
    bands_ : list of matplotlib artists
        The widest band first.
    line_ : matplotlib.lines.Line2D or None
        The median, if it is among the levels.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import EmbeddingRegressor
    >>> from kernelwright.reports import FanDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 2))
    >>> model = EmbeddingRegressor(random_state=0).fit(X, X[:, 0] + (0.2 + 0.1 * X[:, 0]) * rng.normal(size=100))
    >>> display = FanDisplay.from_estimator(model, X, 0, resolution=20)
    >>> display.quantiles.shape, display.ax_.get_xlabel()
    ((20, 5), 'x0')
    """

    def __init__(
        self,
        values: np.ndarray,
        quantiles: np.ndarray,
        levels: Sequence[float],
        *,
        support: np.ndarray | None = None,
        name: str = "",
        bars: bool = False,
    ) -> None:
        self.values, self.quantiles, self.levels = values, quantiles, tuple(levels)
        self.support, self.name, self.bars = support, name, bars

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        feature: int | str,
        *,
        at: Any = None,
        levels: Sequence[float] = LEVELS,
        resolution: int = 80,
        target: int = 0,
        name: str | None = None,
        **options: Any,
    ) -> FanDisplay:
        """Draw a fitted regressor with a method ``quantile(X, q)``.

        Parameters
        ----------
        estimator : EmbeddingRegressor or similar
        X : array or data frame
            Rows that give the range of the feature; one in a hundred at each end is left out.
        feature : int or str
            Number or name of the column.
        at : row of X, optional
            The values of the other features. ``None``: the most typical row, which is near the median of most columns.
        levels : sequence of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        resolution : int, default=80
            Number of values at which quantiles are computed.
        target : int, default=0
            Number of the target if there are several.
        name : str, optional
            Name of the feature in the plot.
        **options
            Passed on to :meth:`plot`.
        """
        levels = tuple(sorted(levels))
        place, shown = _column(X, feature)
        values, bars = _values(_columns_of(X)[place], resolution)
        rows = _varied(X, typical_row(X) if at is None else at, place, values)
        estimator, rows = last_step(estimator, rows)
        quantiles = of_one_target(estimator.quantile(rows, list(levels)), target, 2)
        support = np.asarray(estimator.support(rows)) if hasattr(estimator, "support") else None
        made = cls(values, quantiles, levels, support=support, name=shown if name is None else name, bars=bars)
        return made.plot(**options)

    @classmethod
    def from_predictions(cls, values: Any, quantiles: Any, levels: Sequence[float], **options: Any) -> FanDisplay:
        """Draw quantiles of shape (m, len(levels)) at m values, sorted by value; ``levels`` must increase."""
        values, quantiles = np.asarray(values), np.asarray(quantiles, dtype=np.float64)
        if quantiles.shape != (len(values), len(levels)) or list(levels) != sorted(levels):
            raise ValueError(
                f"A fan of {len(values)} values and {len(levels)} increasing levels needs quantiles of shape "
                f"({len(values)}, {len(levels)}). Got shape {quantiles.shape} at levels {tuple(levels)}."
            )
        own = {key: options.pop(key) for key in ("support", "name", "bars") if key in options}
        order = np.arange(len(values)) if own.get("bars") else np.argsort(values, kind="stable")
        if own.get("support") is not None:
            own["support"] = np.asarray(own["support"])[order]
        return cls(values[order], quantiles[order], levels, **own).plot(**options)

    def plot(self, *, ax: Any = None, target_name: str = "", title: str = "") -> FanDisplay:
        """Draw into ``ax`` (a new one if None)."""
        ax = new_axes(ax)
        x = np.arange(len(self.values)) if self.bars else self.values.astype(np.float64)
        self.bands_, m = [], len(self.levels)
        for i in range(m // 2):
            low, high = self.quantiles[:, i], self.quantiles[:, m - 1 - i]
            share = 0.25 + 0.3 * i / max(m // 2 - 1, 1)
            self.bands_.append(
                ax.bar(x, high - low, 0.5, low, color=ACCENT, alpha=share)
                if self.bars
                else ax.fill_between(x, low, high, color=ACCENT, alpha=share, linewidth=0)
            )
        self.line_ = None
        if m % 2:
            style = {"marker": "_", "linestyle": "", "markersize": 14, "markeredgewidth": 2} if self.bars else {}
            (self.line_,) = ax.plot(x, self.quantiles[:, m // 2], color=ACCENT, **style)
        if self.bars:
            ax.set_xticks(x, [plain(value, 16) for value in _shown(self.values)], rotation=30 if len(x) > 4 else 0)
        self._mark_support(ax, x)
        ax.set(xlabel=plain(self.name) if self.name else "", ylabel=plain(target_name) if target_name else "target")
        ax.set_title(plain(title, 80) if title else "")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _mark_support(self, ax: Any, x: np.ndarray) -> None:
        """Mark the values at which predictions are more than half the distribution of all targets."""
        if self.support is None or not (self.support < 0.5).any():
            return
        bottom = np.where(self.support < 0.5, 0.012, np.nan)
        marker = "s" if self.bars else None
        ax.plot(x, bottom, color=WARM, linewidth=4, marker=marker, transform=ax.get_xaxis_transform())


def typical_row(X: Any) -> Any:
    """Return the row of X that is near the median, or equal to the most frequent value, of most columns.

    An actual row, and not the medians themselves: they may be a combination that does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.reports.fans import typical_row
    >>> typical_row(np.array([[0.0, 9.0], [1.0, 5.0], [2.0, 1.0], [1.0, 4.0]]))
    array([1., 5.])
    """
    away = np.zeros(X.shape[0])
    for column in _columns_of(X):
        away += _distance(np.asarray(column))
    place = int(away.argmin())
    return X.iloc[place] if hasattr(X, "iloc") else np.asarray(X)[place]


def _distance(column: np.ndarray) -> np.ndarray:
    """Return the distance of each value from the median, at most one; of words, whether they are the usual one."""
    if column.dtype.kind not in "iufb":
        words = np.array([str(value) for value in column])
        _, place, counts = np.unique(words, return_inverse=True, return_counts=True)
        return (place != counts.argmax()).astype(np.float64)
    numbers = column.astype(np.float64)
    low, median, high = np.nanquantile(numbers, [0.1, 0.5, 0.9]) if np.isfinite(numbers).any() else (0.0, 0.0, 0.0)
    unit = high - low if high > low else 1.0
    return np.nan_to_num(np.minimum(np.abs(numbers - median) / unit, 1.0), nan=1.0)


def _columns_of(X: Any) -> list[Any]:
    return [X.iloc[:, j] for j in range(X.shape[1])] if hasattr(X, "iloc") else list(np.asarray(X).T)


def _column(X: Any, feature: int | str) -> tuple[int, str]:
    """Return the number of a column, and its name."""
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else [f"x{j}" for j in range(X.shape[1])]
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"There is no column {feature!r}. Columns are {', '.join(names[:20])}.")
        return names.index(feature), feature
    if not 0 <= feature < len(names):
        raise ValueError(f"There is no column {feature}: columns are numbered from 0 to {len(names) - 1}.")
    return int(feature), names[feature]


def _values(column: Any, resolution: int) -> tuple[np.ndarray, bool]:
    """Return the values to draw, and whether each is drawn on its own."""
    seen = np.asarray(column)
    if seen.dtype.kind not in "iufb":
        names, counts = np.unique([str(value) for value in seen[~_missing(column)]], return_counts=True)
        return names[np.argsort(-counts, kind="stable")[:FEW]].astype(object), True
    numbers = seen[np.isfinite(seen.astype(np.float64))]
    distinct = np.unique(numbers)
    if not len(distinct):
        raise ValueError("This column has no values to draw a fan along.")
    if len(distinct) <= FEW:
        return distinct, True
    low, high = np.quantile(numbers.astype(np.float64), [TRIMMED, 1.0 - TRIMMED])
    return np.linspace(low, high if high > low else float(distinct[-1]), resolution), False


def _missing(column: Any) -> np.ndarray:
    return np.array([value is None or value != value for value in np.asarray(column)], dtype=bool)


def _varied(X: Any, at: Any, place: int, values: np.ndarray) -> Any:
    """Return copies of one row with these values in one column."""
    if hasattr(X, "iloc"):
        import pandas as pd

        row = pd.DataFrame([list(at)] * len(values), columns=X.columns)
        row = row.astype({name: kind for j, (name, kind) in enumerate(X.dtypes.items()) if j != place})
        column = pd.Series(values, index=row.index)
        kind = X.dtypes.iloc[place]
        row.isetitem(place, column if kind.kind in "iufb" else column.astype(kind))
        return row
    rows = np.tile(np.asarray(at, dtype=np.float64).reshape(1, -1), (len(values), 1))
    rows[:, place] = values
    return rows


def _shown(values: np.ndarray) -> list[str]:
    return [
        f"{value:g}" if isinstance(value, (float, np.floating, int, np.integer)) else str(value) for value in values
    ]
