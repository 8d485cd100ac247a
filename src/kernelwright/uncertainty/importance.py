"""What a model looks at: the loss that is added when a column is permuted among rows that were left out of the fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from kernelwright.inputs.permuting import with_columns_from
from kernelwright.storage.saved import saved

__all__ = ["ColumnImportance", "Importance", "effects_of_columns", "rank_columns"]

NORMAL = float(ndtri(0.975))
AT_ONCE = 20_000  # permuted rows that are predicted together


@saved("column-importance")
@dataclass(frozen=True)
class ColumnImportance:
    """One column: the loss that is added when it is permuted, with a 95 % interval."""

    name: str
    loss: float
    low: float
    high: float
    share: float = math.nan  # of the kernel; NaN if the kernel has no length scale for each column

    @property
    def clear(self) -> bool:
        """Whether the whole interval lies above zero: the model predicts better with this column than without."""
        return self.low > 0


@saved("importance")
@dataclass(frozen=True)
class Importance:
    """Columns by decreasing importance; prints as a table.

    Parameters
    ----------
    rows : list of ColumnImportance
        ``loss`` is the mean loss of rows in which this column is permuted, minus that of the rows as they are;
        ``low`` and ``high`` are its 95 % interval for new rows. ``share`` says how much the kernel depends on the
        column (:meth:`relevance`), whether or not this helps: a column of noise may have a large share.
    measure : str
        "log loss" or "CRPS".
    base : float
        Mean loss of the rows as they are.
    n_rows, n_repeats : int
        Number of rows, and of permutations.
    """

    rows: list[ColumnImportance]
    measure: str
    base: float
    n_rows: int
    n_repeats: int

    def with_shares(self, shares: Mapping[str, float]) -> Importance:
        """Return the record with the share of the kernel of each column."""
        return replace(self, rows=[replace(row, share=shares.get(row.name, row.share)) for row in self.rows])

    def __str__(self) -> str:
        width = max([len(row.name) for row in self.rows] + [len("column")])
        cells = self.cells()
        loss, interval = (max([len(row[k]) for row in cells] + [len(self.heads[k])]) for k in (1, 2))
        lines = [f"{'column':<{width}}  {self.heads[1]:>{loss}}  {self.heads[2]:>{interval}}  {self.heads[3]}"]
        for name, value, ends, share in cells:
            lines.append(f"{name:<{width}}  {value:>{loss}}  {ends:>{interval}}  {share:>{len(self.heads[3])}}")
        return "\n".join(lines)

    @property
    def heads(self) -> tuple[str, str, str, str]:
        """Headings of the columns of the table."""
        return "column", f"{self.measure} added", "95 % interval", "share of kernel"

    def cells(self, count: int | None = None) -> list[tuple[str, str, str, str]]:
        """Return the rows of the table as text, with four digits of the largest loss."""
        largest = max([abs(row.loss) for row in self.rows], default=0.0)
        decimals = 3 - math.floor(math.log10(largest)) if 0 < largest < math.inf else 3
        decimals = min(max(decimals, 0), 12)

        def text(value: float) -> str:
            return f"{round(value, decimals) + 0.0:.{decimals}f}"  # adding zero: no "-0.000"

        return [
            (
                row.name,
                text(row.loss),
                f"{text(row.low)} to {text(row.high)}",
                "" if math.isnan(row.share) else f"{row.share:.1%}",
            )
            for row in self.rows[:count]
        ]


def effects_of_columns(
    losses: Callable[[Any, np.ndarray], np.ndarray],
    X: Any,
    permutations: np.ndarray,
    *,
    columns: Sequence[int],
    base: np.ndarray,
) -> np.ndarray:
    """Return the effect of each row on the loss that is added by permuting each column.

    The mean of a column of effects is the loss added; their variance, divided by the number of rows, is the variance of
    that mean. With ``l_ij`` the loss of row i with the value of row j in the column, minus the loss of row i as it is,
    the added loss is the mean of ``l_ij`` over all pairs. Row i has a part in it as the row that is predicted, and as
    the row whose value others get; its effect is ``mean_j l_ij + mean_j l_ji - mean``, over the pairs of the
    permutations.

    Parameters
    ----------
    losses : callable
        From rows, and the places of their targets, to the loss of each row.
    X : table of n rows
        See :func:`kernelwright.inputs.permuting.tabular`.
    permutations : ndarray of int, shape (n_repeats, n)
        The same for all columns, so that they are compared on the same pairs.
    columns : sequence of int
    base : ndarray of shape (n,)
        Losses of the rows as they are.

    Returns
    -------
    ndarray of shape (n, len(columns))

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.uncertainty.importance import effects_of_columns
    >>> X, y = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]), np.array([1.0, 2.0, 3.0])
    >>> absolute = lambda rows, places: abs(rows[:, 0] - y[places])  # a model that looks at the first column only
    >>> shifts = np.array([[1, 2, 0], [2, 0, 1]])
    >>> effects_of_columns(absolute, X, shifts, columns=(0, 1), base=np.zeros(3)).mean(0).round(3).tolist()
    [1.333, 0.0]
    """
    repeats, n = permutations.shape
    blocks = [(column, permutation) for column in columns for permutation in permutations]
    together = max(1, AT_ONCE // n)
    added = np.empty((len(blocks), n))
    for start in range(0, len(blocks), together):
        some = blocks[start : start + together]
        places = np.tile(np.arange(n), len(some))
        sources: dict[int, np.ndarray] = {}
        for k, (column, permutation) in enumerate(some):
            sources.setdefault(column, places.copy())[k * n : (k + 1) * n] = permutation
        found = losses(with_columns_from(X, places, sources), places)
        added[start : start + len(some)] = found.reshape(len(some), n) - base
    effects = np.empty((n, len(columns)))
    for k, each in enumerate(added.reshape(len(columns), repeats, n)):
        given = np.bincount(permutations.ravel(), each.ravel(), n) / repeats
        effects[:, k] = each.mean(0) + given - each.mean()
    return effects


def rank_columns(names: Sequence[str], effects: np.ndarray, *, measure: str, base: float, n_repeats: int) -> Importance:
    """Rank columns by the loss added, with normal intervals from the effects of the rows."""
    n = len(effects)
    means = effects.mean(0)
    half = NORMAL * effects.std(0, ddof=1) / math.sqrt(n) if n > 1 else np.full(len(means), math.inf)
    order = np.argsort(-means, kind="stable").tolist()
    rows = [
        ColumnImportance(str(names[k]), float(means[k]), float(means[k] - half[k]), float(means[k] + half[k]))
        for k in order
    ]
    return Importance(rows, measure, base, n, n_repeats)
