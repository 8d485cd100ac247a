"""Predicted distributions of one target, one for each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kernelwright.distributions.shape import ResidualShape
from kernelwright.distributions.transforms import TargetMap

__all__ = ["ContinuousPrediction", "DiscretePrediction", "Prediction", "SmoothPart", "TablePart"]

MOMENT_LEVELS = (np.arange(200) + 0.5) / 200  # at which means of the smooth part are taken
CRPS_LEVELS = np.concatenate([[1e-5, 1e-4, 1e-3], (np.arange(150) + 0.5) / 150, [1 - 1e-3, 1 - 1e-4, 1 - 1e-5]])
BISECTIONS = 50
GAP_SHARE = 0.01  # of the mass of a border that lies between it and the next targets: none may have the density zero


class Prediction(ABC):
    """Distributions of a target, one for each row."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def mean(self) -> np.ndarray:
        """Return the mean of each row."""

    @abstractmethod
    def std(self) -> np.ndarray:
        """Return the standard deviation of each row."""

    @abstractmethod
    def cdf(self, t: np.ndarray) -> np.ndarray:
        """Return ``P(Y <= t)`` for points t of shape (n, j)."""

    @abstractmethod
    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """Return quantiles at levels of shape (n, j)."""

    @abstractmethod
    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the log density, or log probability of a discrete value, at one target for each row."""

    @abstractmethod
    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the continuous ranked probability score at one target for each row."""

    @abstractmethod
    def spread_pit(self, y: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return ``F(y)``; for a value that has mass, a random number between ``F(y-)`` and ``F(y)``."""


@dataclass(frozen=True)
class SmoothPart:
    """A location and a scale for each row, of a mapped target, with one shape; truncated to a range, or censored.

    Parameters
    ----------
    gaps : tuple of float
        Distances from both ends of the range within which the mass lies at the end itself, as does all mass beyond;
        zero for an end at which no target lies.
    edge : float
        Width of the step that stands for the mass at an end in densities.
    """

    location: np.ndarray
    scale: np.ndarray
    shape: ResidualShape
    target_map: TargetMap
    low: float = -np.inf
    high: float = np.inf
    gaps: tuple[float, float] = (0.0, 0.0)
    edge: float = 1.0

    def _standardised(self, t: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            z = (self.target_map(t) - self.location[:, None]) / self.scale[:, None]
        return np.clip(z, -1e100, 1e100)

    def _below(self, point: float) -> np.ndarray:
        """Return the distribution function of the line at a point, a column."""
        return self.shape.cdf(self._standardised(np.full((len(self.location), 1), point)))

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distribution function of the line at both ends of the range, as columns; 0 and 1 if censored."""
        truncated = [np.isfinite(end) and gap == 0 for end, gap in zip((self.low, self.high), self.gaps, strict=True)]
        first = self._below(self.low) if truncated[0] else np.zeros((1, 1))
        last = self._below(self.high) if truncated[1] else np.ones((1, 1))
        first = np.minimum(first, 1.0 - 1e-9)
        return first, np.maximum(last, first + 1e-9)

    def _borders(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the masses at both ends of the range, as columns, with those between them and the next targets."""
        first, last = self._ends()
        lower = self._below(self.low + self.gaps[0]) - first if self.gaps[0] > 0 else np.zeros((1, 1))
        upper = last - self._below(self.high - self.gaps[1]) if self.gaps[1] > 0 else np.zeros((1, 1))
        return np.clip(lower / (last - first), 0.0, 1.0), np.clip(upper / (last - first), 0.0, 1.0)

    def cdf(self, t: np.ndarray) -> np.ndarray:
        """Return the distribution function at points of shape (n, j)."""
        first, last = self._ends()
        found = np.clip((self.shape.cdf(self._standardised(t)) - first) / (last - first), 0.0, 1.0)
        lower, upper = self._borders()
        if self.gaps[0] > 0:
            place = (t - self.low) / self.gaps[0]
            found = np.where(place < 1.0, lower * (1.0 - GAP_SHARE * (1.0 - place)), found)
        if self.gaps[1] > 0:
            place = (self.high - t) / self.gaps[1]
            found = np.where(place < 1.0, 1.0 - upper * (1.0 - GAP_SHARE * (1.0 - place)), found)
        return np.where(t < self.low, 0.0, np.where(t >= self.high, 1.0, found))

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """Return quantiles at levels of shape (n, j), or (1, j) for all rows alike."""
        first, last = self._ends()
        z = self.shape.quantile(first + levels * (last - first))
        with np.errstate(over="ignore"):
            found = self.target_map.inverse(self.location[:, None] + self.scale[:, None] * z)
        lower, upper = self._borders()
        if self.gaps[0] > 0:
            inside = _within_gap(levels, lower)
            found = np.where(levels < lower, self.low + self.gaps[0] * inside, found)
        if self.gaps[1] > 0:
            inside = _within_gap(1.0 - levels, upper)
            found = np.where(1.0 - levels < upper, self.high - self.gaps[1] * inside, found)
        return np.clip(found, self.low, self.high)

    def density(self, t: np.ndarray) -> np.ndarray:
        """Return the density at points of shape (n, j)."""
        first, last = self._ends()
        z = self._standardised(t)
        with np.errstate(over="ignore", under="ignore"):
            inside = np.exp(self.shape.log_density(z) + self.target_map.log_slope(t)) / self.scale[:, None]
        found = inside / (last - first)
        for mass, gap, away in zip(self._borders(), self.gaps, (t - self.low, self.high - t), strict=True):
            if gap > 0:
                steps = np.where(away > 0, GAP_SHARE / gap, (1.0 - GAP_SHARE) / self.edge)
                found = np.where(away < gap, mass * steps, found)
        return np.where((t < self.low) | (t > self.high), 0.0, found)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance of each row, over the central 99.5 percent.

        Beyond, a heavy tail of a logarithm would have no mean.
        """
        y = self.quantile(MOMENT_LEVELS[None])
        return y.mean(1), y.var(1)


def _within_gap(levels: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return how far levels below the mass of a border are from it, as shares of the gap: zero for all but a few."""
    return np.maximum(levels / np.maximum(mass, 1e-300) - (1.0 - GAP_SHARE), 0.0) / GAP_SHARE


@dataclass(frozen=True)
class TablePart:
    """Distribution functions that are linear between common knots; zero at the first and one at the last."""

    knots: np.ndarray
    below: np.ndarray  # a row for each distribution

    def cdf(self, t: np.ndarray) -> np.ndarray:
        """Return the distribution function at points of shape (n, j)."""
        place, share = self._place(t)
        left = np.take_along_axis(self.below, place, 1)
        right = np.take_along_axis(self.below, place + 1, 1)
        return left + share * (right - left)

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """Return quantiles at levels of shape (n, j)."""
        found = np.empty(levels.shape)
        rows = np.arange(len(self.below))
        for j, q in enumerate(levels.T):
            place = np.clip((self.below < q[:, None]).sum(1) - 1, 0, len(self.knots) - 2)
            left, right = self.below[rows, place], self.below[rows, place + 1]
            share = np.where(right > left, (q - left) / np.maximum(right - left, 1e-300), 0.0)
            found[:, j] = self.knots[place] + np.clip(share, 0.0, 1.0) * np.diff(self.knots)[place]
        return found

    def density(self, t: np.ndarray) -> np.ndarray:
        """Return the density at points of shape (n, j); at a knot that before it, where the step of an atom ends."""
        place = np.clip(np.searchsorted(self.knots, t, side="left") - 1, 0, len(self.knots) - 2)
        slopes = np.diff(self.below, axis=1) / np.diff(self.knots)
        outside = (t < self.knots[0]) | (t > self.knots[-1])
        return np.where(outside, 0.0, np.take_along_axis(slopes, place, 1))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance of each row."""
        mass, middle = np.diff(self.below, axis=1), 0.5 * (self.knots[:-1] + self.knots[1:])
        mean = self.knots[0] + mass @ (middle - self.knots[0])
        within = np.square(np.diff(self.knots)) / 12.0
        return mean, (mass * (np.square(middle - mean[:, None]) + within)).sum(1)

    def _place(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = np.clip(np.searchsorted(self.knots, t, side="right") - 1, 0, len(self.knots) - 2)
        return place, np.clip((t - self.knots[place]) / np.diff(self.knots)[place], 0.0, 1.0)


@dataclass(frozen=True)
class ContinuousPrediction(Prediction):
    """``share * smooth + (1 - share) * table``, row by row.

    Parameters
    ----------
    smooth : SmoothPart
    table : TablePart
    share : ndarray
    atoms : tuple of float
        Values that have mass.
    edge : float
        Width of the step before an atom that stands for its mass.
    """

    smooth: SmoothPart
    table: TablePart
    share: np.ndarray
    atoms: tuple[float, ...] = ()
    edge: float = 0.0

    def __len__(self) -> int:
        return len(self.share)

    def _mixed(self, part: Callable[[SmoothPart | TablePart], np.ndarray]) -> np.ndarray:
        return self.share[:, None] * part(self.smooth) + (1.0 - self.share)[:, None] * part(self.table)

    def mean(self) -> np.ndarray:  # noqa: D102
        return self._moments()[0]

    def std(self) -> np.ndarray:  # noqa: D102
        return np.sqrt(self._moments()[1])

    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return means and variances; mean squares would lose all digits of a target far from zero."""
        (mean, variance), (other, other_variance) = self.smooth.moments(), self.table.moments()
        share, rest = self.share, 1.0 - self.share
        between = share * rest * np.square(mean - other)
        return share * mean + rest * other, share * variance + rest * other_variance + between

    def cdf(self, t: np.ndarray) -> np.ndarray:  # noqa: D102
        inside = self._mixed(lambda part: part.cdf(t))
        return np.where(t < self.smooth.low, 0.0, np.where(t >= self.smooth.high, 1.0, inside))

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """Return the quantiles: between those of the two parts, found by bisection, or an atom.

        Within a row they are sorted: those of levels next to each other start from other brackets, and end with
        another rounding.
        """
        smooth = self.smooth.quantile(levels)
        both = self.share < 1.0
        if not both.any():
            return smooth
        rows = self._rows(both)
        found = [smooth[both], rows.table.quantile(levels[both])]
        smooth[both] = rows._bisected(levels[both], np.minimum(*found), np.maximum(*found))
        order = levels.argsort(axis=1)
        np.put_along_axis(smooth, order, np.sort(smooth, axis=1), axis=1)
        for atom in self.atoms:
            below, upto = self._around(np.full((len(self), 1), atom))
            smooth = np.where((levels > below) & (levels <= upto), atom, smooth)
        return np.clip(smooth, self.smooth.low, self.smooth.high)

    def _around(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distribution function without and with the mass at points of shape (n, j)."""
        return self.cdf(t - self.edge), self.cdf(t)

    def _rows(self, chosen: np.ndarray) -> ContinuousPrediction:
        smooth = replace(self.smooth, location=self.smooth.location[chosen], scale=self.smooth.scale[chosen])
        table = replace(self.table, below=self.table.below[chosen])
        return replace(self, smooth=smooth, table=table, share=self.share[chosen])

    def _bisected(self, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        finite = np.isfinite(low) & np.isfinite(high)
        for _ in range(BISECTIONS):
            with np.errstate(invalid="ignore"):
                middle = 0.5 * (low + high)
            above = self.cdf(np.where(finite, middle, 0.0)) >= levels
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        # At the levels 0 and 1 the smooth part ends at infinity, wherever the table ends.
        return np.where(finite, high, np.where(levels < 0.5, -np.inf, np.inf))

    def log_density(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        with np.errstate(divide="ignore"):
            return np.log(self._mixed(lambda part: part.density(y[:, None])))[:, 0]

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return ``integral (F(t) - 1{y <= t})^2 dt``, with F linear between its quantiles, the knots and y."""
        t = crps_grid(self, y)
        return squared_integral(t, self.cdf(t), y)

    def spread_pit(self, y: np.ndarray, random: np.random.Generator) -> np.ndarray:  # noqa: D102
        below, upto = self._around(y[:, None])
        return (below + random.uniform(size=(len(y), 1)) * (upto - below))[:, 0]

    def share_inside(self, y: np.ndarray, coverage: float) -> np.ndarray:
        """Return the share of the mass at each target between the quantiles around the coverage; elsewhere 0 or 1."""
        below, upto = self._around(y[:, None])
        low, high = 0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage
        mass = np.maximum(upto - below, 1e-12)
        return np.clip((np.minimum(upto, high) - np.maximum(below, low)) / mass, 0.0, 1.0)[:, 0]


def crps_grid(prediction: ContinuousPrediction, y: np.ndarray) -> np.ndarray:
    """Return, for each row, increasing points between which both parts are close to linear."""
    n = len(y)
    quantiles = prediction.smooth.quantile(CRPS_LEVELS[None])
    knots = np.broadcast_to(prediction.table.knots, (n, len(prediction.table.knots)))
    return np.sort(np.hstack([quantiles, knots, y[:, None]]), axis=1)


def squared_integral(t: np.ndarray, below: np.ndarray, y: np.ndarray, other: np.ndarray | None = None) -> np.ndarray:
    """Return ``integral (F - H)(G - H) dt`` with ``H(t) = 1{y <= t}``, for functions linear between the points t.

    ``y`` is one of the points of its row; G is F unless ``other`` is given.
    """
    after = t[:, :-1] >= y[:, None]
    a, b = (below[:, :-1] - after, below[:, 1:] - after)
    c, d = (a, b) if other is None else (other[:, :-1] - after, other[:, 1:] - after)
    return (np.diff(t) * (2 * a * c + 2 * b * d + a * d + b * c)).sum(1) / 6.0


@dataclass(frozen=True)
class DiscretePrediction(Prediction):
    """Probabilities of common values, row by row."""

    values: np.ndarray
    below: np.ndarray  # the distribution function at the values, a row for each distribution

    def __len__(self) -> int:
        return len(self.below)

    def _mass(self) -> np.ndarray:
        return np.diff(self.below, axis=1, prepend=0.0)

    def mean(self) -> np.ndarray:  # noqa: D102
        return self._mass() @ self.values

    def std(self) -> np.ndarray:  # noqa: D102
        away = np.square(self.values - self.mean()[:, None])
        return np.sqrt((self._mass() * away).sum(1))

    def cdf(self, t: np.ndarray) -> np.ndarray:  # noqa: D102
        place = np.searchsorted(self.values, t, side="right")
        return np.take_along_axis(np.hstack([np.zeros((len(self.below), 1)), self.below]), place, 1)

    def quantile(self, levels: np.ndarray) -> np.ndarray:  # noqa: D102
        last = len(self.values) - 1
        places = [(self.below < q[:, None] - 1e-12).sum(1).clip(max=last) for q in levels.T]
        return self.values[np.stack(places, 1)] if places else np.empty(levels.shape)

    def log_density(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        place = np.searchsorted(self.values, y).clip(max=len(self.values) - 1)
        mass = np.take_along_axis(self._mass(), place[:, None], 1)[:, 0]
        with np.errstate(divide="ignore"):
            return np.log(np.where(self.values[place] == y, mass, 0.0))

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the exact score; a target between or beyond the values counts as it is."""
        t = np.sort(np.hstack([np.broadcast_to(self.values, self.below.shape), y[:, None]]), axis=1)
        steps = self.cdf(t[:, :-1]) - (t[:, :-1] >= y[:, None])
        return (np.diff(t) * steps**2).sum(1)

    def spread_pit(self, y: np.ndarray, random: np.random.Generator) -> np.ndarray:  # noqa: D102
        upper = self.cdf(y[:, None])[:, 0]
        lower = self.cdf(np.nextafter(y, -np.inf)[:, None])[:, 0]
        return lower + random.uniform(size=len(y)) * (upper - lower)
