"""Calibration of prediction intervals: a band of two quantiles (or a prediction), widened by a margin.

The score of a row is the distance by which its target misses the band, negative inside:
``s = max(low(x) - y, y - high(x))``. Conformalised quantile regression [Romano2019]_ widens the band by the
``ceil(coverage (n + 1))``-th smallest of n scores; with ``low = high`` these are absolute residuals. Only public
methods of regressors are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kernelwright.inputs.numbered_rows import NumberedRows
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.coverage_groups import CoverageGroups
from kernelwright.uncertainty.regressor_quantiles import has_quantiles, quantiles_of

__all__ = [
    "CrossIntervals",
    "FoldBand",
    "IntervalCalibration",
    "IntervalScores",
    "MarginIntervals",
    "band_of",
    "calibrate_folds",
    "calibrate_margins",
    "miss",
]

INTERVAL_ENTRIES = 2**22  # limits of intervals compared at once


def band_of(regressor: Any, X: Any, coverage: float) -> np.ndarray:
    """Return the two quantiles around the coverage at each row, or the prediction twice."""
    if has_quantiles(regressor):
        levels = [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage]
        return quantiles_of(regressor, X, levels)
    centre = np.asarray(regressor.predict(X), dtype=np.float64)
    if centre.ndim != 1:
        raise ValueError(f"Prediction intervals need one prediction for each row. Got shape {centre.shape}.")
    return np.column_stack([centre, centre])


def miss(band: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the distance by which each target misses its band; negative inside."""
    return np.maximum(band[:, 0] - y, y - band[:, 1])


@saved("interval-scores")
@dataclass(frozen=True)
class IntervalScores:
    """Scores of rows that a regressor has not seen, and the group of each."""

    scores: np.ndarray
    groups: np.ndarray
    coverage: float

    def counts(self, n_groups: int) -> np.ndarray:
        """Return the number of rows of each group."""
        return np.bincount(self.groups[self.groups >= 0], minlength=n_groups)

    def margins(self, n_groups: int) -> np.ndarray:
        """Return the margin of each group, infinite if it has too few rows, and at last that of unknown groups."""
        own = [np.sort(self.scores[self.groups == group]) for group in range(n_groups)]
        ranks = [rank_of(self.coverage, len(each)) for each in own]
        return np.array(
            [each[k - 1] if k <= len(each) else np.inf for each, k in zip(own, ranks, strict=True)] + [np.inf]
        )


def rank_of(coverage: float, n: int) -> int:
    """Return ``ceil(coverage (n + 1))``: the rank of a new score among n + 1 exchangeable ones is uniform.

    Examples
    --------
    >>> from kernelwright.uncertainty.interval_calibration import rank_of
    >>> rank_of(0.9, 99), rank_of(0.9, 9), rank_of(0.9, 8)  # nine rows are the fewest that are enough
    (90, 9, 9)
    """
    return max(1, math.ceil(coverage * (n + 1) - 1e-9))


class IntervalCalibration(Protocol):
    """A calibration that makes the intervals of new rows."""

    @property
    def groups(self) -> CoverageGroups:
        """The groups, each of which is covered."""

    @property
    def scores(self) -> IntervalScores:
        """The scores of the calibration rows."""

    @property
    def n_rows(self) -> int:
        """The number of calibration rows."""

    def intervals(self, X: Any, regressor: Any) -> np.ndarray:
        """Return an interval for each row, by the regressor fitted to all rows."""


@saved("margin-intervals")
@dataclass(frozen=True)
class MarginIntervals:
    """One margin for each group, by rows that the regressor has not seen (or that were left out in closed form)."""

    groups: CoverageGroups
    scores: IntervalScores

    @property
    def n_rows(self) -> int:
        """The number of calibration rows."""
        return len(self.scores.scores)

    def intervals(self, X: Any, regressor: Any) -> np.ndarray:
        """Return the bands, widened by the margins of their groups; a band that shrinks to nothing is its middle."""
        band = band_of(regressor, X, self.scores.coverage)
        groups = self.groups.indices(X, band[:, 1] - band[:, 0])
        margins = self.scores.margins(len(self.groups.names))[groups]
        margins = np.maximum(margins, 0.5 * (band[:, 0] - band[:, 1]))
        return np.sort(band + margins[:, None] * [-1.0, 1.0], axis=1)  # sorted: rounding at the middle


@saved("fold-band")
@dataclass(frozen=True)
class FoldBand:
    """A regressor fitted without a fold, and which of all calibration rows the fold has."""

    regressor: Any
    rows: np.ndarray


@saved("cross-intervals")
@dataclass(frozen=True)
class CrossIntervals:
    """Scores of each fold by a regressor fitted to the other folds: CV+ of [Barber2021]_."""

    parts: tuple[FoldBand, ...]
    groups: CoverageGroups
    scores: IntervalScores

    @property
    def n_rows(self) -> int:
        """The number of calibration rows."""
        return len(self.scores.scores)

    def intervals(self, X: Any, regressor: Any) -> np.ndarray:
        """Return, for each row, order statistics of ``low_i(x) - s_i`` and ``high_i(x) + s_i`` over the rows i.

        ``low_i`` and ``high_i`` are of the regressor fitted without the fold of i.
        """
        own = band_of(regressor, X, self.scores.coverage)
        groups = self.groups.indices(X, own[:, 1] - own[:, 0])
        bands = np.stack([band_of(part.regressor, X, self.scores.coverage) for part in self.parts])
        part_of = np.empty(self.n_rows, dtype=np.int64)
        for number, part in enumerate(self.parts):
            part_of[part.rows] = number
        found = np.tile([-np.inf, np.inf], (len(own), 1))
        for group in range(len(self.groups.names)):
            rows, new = np.flatnonzero(self.scores.groups == group), np.flatnonzero(groups == group)
            rank = rank_of(self.scores.coverage, len(rows))
            if rank > len(rows):
                continue
            for some in np.array_split(new, 1 + len(new) * len(rows) // INTERVAL_ENTRIES):
                found[some] = self._limits(bands[:, some], part_of[rows], self.scores.scores[rows], rank)
        return found

    @staticmethod
    def _limits(bands: np.ndarray, part_of: np.ndarray, scores: np.ndarray, rank: int) -> np.ndarray:
        n = len(scores)
        low = bands[part_of, :, 0] - scores[:, None]
        high = bands[part_of, :, 1] + scores[:, None]
        limits = np.partition(low, n - rank, axis=0)[n - rank], np.partition(high, rank - 1, axis=0)[rank - 1]
        crossed, middle = limits[0] > limits[1], 0.5 * (limits[0] + limits[1])
        return np.column_stack([np.where(crossed, middle, limit) for limit in limits])


def calibrate_margins(
    band: np.ndarray, X: Any, y: np.ndarray, groups: CoverageGroups, coverage: float
) -> MarginIntervals:
    """Calibrate by the bands of rows that the regressor has not seen."""
    indices = groups.indices(X, band[:, 1] - band[:, 0])
    return MarginIntervals(groups, IntervalScores(miss(band, y), indices, coverage))


def calibrate_folds(
    regressor: Any, rows: NumberedRows, make: Any, coverage: float, *, n_folds: int, random_state: Any
) -> CrossIntervals:
    """Fit a copy of a regressor for each fold without that fold, and score the fold.

    ``make`` makes the groups from all rows and the widths of their bands.
    """
    band, parts = np.empty((len(rows), 2)), []
    for others, own in rows.fold_parts(n_folds, random_state):
        if not len(others):
            raise ValueError("method='cross' needs at least two rows, or two groups. Got one sample, or one group.")
        fitted, inside = rows.subset(others).fit(regressor), rows.subset(own)
        band[own] = band_of(fitted, inside.X, coverage)
        parts.append(FoldBand(fitted, own))
    widths = band[:, 1] - band[:, 0]
    groups = make(rows.X, widths)
    scores = IntervalScores(miss(band, rows.y), groups.indices(rows.X, widths), coverage)
    return CrossIntervals(tuple(parts), groups, scores)


def too_small(groups: CoverageGroups, scores: IntervalScores) -> Sequence[str]:
    """Return the groups whose intervals are infinite, with their numbers of rows."""
    counts = scores.counts(len(groups.names))
    return [
        f"{name!r} ({count})"
        for name, count in zip(groups.names, counts, strict=True)
        if rank_of(scores.coverage, int(count)) > count
    ]
