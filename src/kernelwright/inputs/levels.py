"""Coordinates of categories: equal or not, and the mean target of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelwright.storage.saved import saved

__all__ = ["FREQUENT", "LevelMeans", "Levels", "cross_fitted_means"]

FREQUENT = 50  # categories with a coordinate of their own, if a column has too many for all
GAP = -2.0  # the code of a gap among those of categories
RARE = 2  # rows; categories with fewer are counted among the others
FARTHEST = 2.5  # a coordinate: squashed numbers lie within 3
USUAL_SHRINKAGE = 10.0  # rows of the overall mean that are added to each category, if each has one row only
LEAST_SHRINKAGE, MOST_SHRINKAGE = 0.1, 100.0
FOLDS = 5
MOST_MEANS = 3  # directions of the targets in which categories are compared
NEGLIGIBLE = 1e-6  # relative spread of a direction


@saved("category-levels")
@dataclass(frozen=True)
class Levels:
    """A coordinate for each of some codes, of a size that gives all together a standard deviation of one.

    Parameters
    ----------
    levels : ndarray
        Codes with a coordinate of their own, increasing; -2 is a gap.
    size : float
        The value of the coordinate of a row's code; the others are zero.
    others : bool
        Whether a last coordinate stands for all other codes; without it, all their coordinates are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.inputs.levels import Levels
    >>> levels = Levels.of(np.array([0.0, 0.0, 1.0, 1.0, 2.0]), np.ones(5))
    >>> levels(np.array([0.0, 1.0, 2.0, 7.0, np.nan])) / levels.size
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.],
           [0., 0., 1.],
           [0., 0., 1.]])
    """

    levels: np.ndarray
    size: float
    others: bool = True

    @classmethod
    def of_gaps(cls, codes: np.ndarray, weights: np.ndarray) -> Levels:
        """Make a single coordinate, for gaps."""
        share = float(weights[np.isnan(codes)].sum() / weights.sum())
        return cls(np.array([GAP]), _size(np.array([share])), others=False)

    @classmethod
    def of(
        cls, codes: np.ndarray, weights: np.ndarray, counts: np.ndarray | None = None, *, most: int = FREQUENT
    ) -> Levels:
        """Take the codes that occur at least twice; if there are more than ``most`` codes, only the frequent ones.

        ``counts`` are the rows that each code stands for.
        """
        distinct, place = np.unique(_with_gaps(codes), return_inverse=True)
        counts = np.bincount(place, counts, len(distinct))
        usual = np.argsort(-counts, kind="stable")
        usual = usual[:FREQUENT] if (distinct != GAP).sum() > most else usual
        levels = np.sort(distinct[usual[counts[usual] >= RARE]])
        share = np.bincount(place, weights, len(distinct)) / weights.sum()
        own = share[np.isin(distinct, levels)]
        return cls(levels, _size(np.append(own, max(0.0, 1.0 - own.sum()))), others=len(levels) < len(distinct))

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def n_columns(self) -> int:
        """The number of coordinates."""
        return len(self.levels) + self.others

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Return the coordinates of each row."""
        found = np.zeros((len(codes), len(self.levels) + 1))
        found[np.arange(len(codes)), _places(self.levels, _with_gaps(codes))] = self.size
        return found[:, : self.n_columns]

    def codes(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the codes of rows with these coordinates; NaN for a gap, and -1 for other codes."""
        own = coordinates[:, : len(self.levels)]
        found = np.append(self.levels, -1.0)[np.where((own > 0.5 * self.size).any(1), own.argmax(1), len(self.levels))]
        return np.where(found == GAP, np.nan, found)


@saved("category-means")
@dataclass(frozen=True)
class LevelMeans:
    """Mean targets of categories, shrunken towards the mean of all rows as far as they are noise.

    Parameters
    ----------
    levels : ndarray
        All codes that occur, increasing; -2 is a gap.
    means : ndarray of shape (levels, k)
        Differences from the mean of all rows; codes that never occurred have none.
    """

    levels: np.ndarray
    means: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> LevelMeans:
        """Average the targets of each code."""
        levels, place = np.unique(_with_gaps(codes), return_inverse=True)
        away = targets - np.average(targets, axis=0, weights=weights)
        sums = np.column_stack([np.bincount(place, column, len(levels)) for column in (weights[:, None] * away).T])
        sizes = np.bincount(place, weights, len(levels))
        return cls(levels, sums / (sizes + shrinkage(place, away, sums, weights))[:, None])

    @property
    def n_columns(self) -> int:
        """The number of targets."""
        return self.means.shape[1]

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Return the means of the category of each row."""
        known = np.vstack([self.means, np.zeros((1, self.n_columns))])
        return known[_places(self.levels, _with_gaps(codes))]


def shrinkage(place: np.ndarray, away: np.ndarray, sums: np.ndarray, weights: np.ndarray) -> float:
    r"""Return how many rows of the overall mean to add to each category: the variance within over that between.

    With :math:`n_w` rows of category w, mean :math:`\bar y_w` and L categories of n rows, the analysis of variance with
    random effects estimates ::

        within = sum_i (y_i - mean_w(i))^2 / (n - L)
        between = (sum_w n_w (mean_w - mean)^2 - (L - 1) within) / (n - sum_w n_w^2 / n)

    and ``sum / (n_w + within / between)`` is the best linear prediction of a category's mean. Several targets share it.

    Parameters
    ----------
    place : ndarray of shape (n,)
        The category of each row, from 0.
    away : ndarray of shape (n, k)
        Targets less their mean.
    sums : ndarray of shape (L, k)
        Their weighted sums over the rows of each category.
    weights : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.inputs.levels import shrinkage
    >>> random, place = np.random.default_rng(0), np.repeat(np.arange(500), 4)
    >>> y = 0.5 * random.standard_normal(500)[place] + random.standard_normal(2000)
    >>> sums = np.bincount(place, y - y.mean())[:, None]
    >>> bool(3.0 < shrinkage(place, (y - y.mean())[:, None], sums, np.ones(2000)) < 5.0)  # 1 / .25
    True
    """
    n, n_levels, total = len(place), len(sums), float(weights.sum())
    if n == n_levels:
        return USUAL_SHRINKAGE
    sizes = np.bincount(place, weights, n_levels)
    means = sums / np.maximum(sizes, 1e-300)[:, None]
    within = (weights @ (away - means[place]) ** 2).sum() / total * n / (n - n_levels)
    explained = (sizes @ means**2).sum() - (n_levels - 1) * within
    between = max(explained / max(total - (sizes @ sizes) / total, 1e-300), 1e-300)
    return float(np.clip(within / between, LEAST_SHRINKAGE, MOST_SHRINKAGE))


def cross_fitted_means(
    codes: np.ndarray, targets: np.ndarray, weights: np.ndarray, groups: np.ndarray | None = None
) -> tuple[LevelMeans, np.ndarray]:
    """Return the mean targets of categories for new rows, and for each training row those of the other folds.

    Of several targets at most three directions are kept, in which the categories differ most.
    """
    targets = targets @ _directions(codes, targets, weights)
    units = np.arange(len(codes)) if groups is None else np.unique(groups, return_inverse=True)[1]
    fold = np.random.default_rng(0).permutation(int(units.max()) + 1)[units] % FOLDS
    left_out = np.zeros_like(targets)
    for each in np.unique(fold):
        inside = fold == each
        if not inside.all():
            left_out[inside] = LevelMeans.of(codes[~inside], targets[~inside], weights[~inside])(codes[inside])
    return LevelMeans.of(codes, targets, weights), left_out


def _directions(codes: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return orthonormal directions of the targets, in which the means of categories differ most."""
    of_rows = LevelMeans.of(codes, targets, weights)(codes) * np.sqrt(weights)[:, None]
    _, sizes, directions = np.linalg.svd(of_rows, full_matrices=False)
    kept = max(1, min(MOST_MEANS, int((sizes > NEGLIGIBLE * max(sizes[0], 1e-300)).sum())))
    found = directions[:kept]
    return (found * np.where(found.sum(1) < 0, -1.0, 1.0)[:, None]).T


def _size(shares: np.ndarray) -> float:
    """Return the value of coordinates with these shares of rows that gives them a deviation of one together."""
    spread = float(np.sqrt((shares * (1.0 - shares)).sum()))
    return min(1.0 / max(spread, 1e-9), FARTHEST)


def _with_gaps(codes: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(codes), GAP, codes)


def _places(levels: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the index of each code among the levels, or their number if it is not there."""
    if not len(levels):
        return np.zeros(len(codes), dtype=np.int64)
    place = np.minimum(np.searchsorted(levels, codes), len(levels) - 1)
    return np.where(levels[place] == codes, place, len(levels))
