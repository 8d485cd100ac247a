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
SHRINKAGE = 10.0  # rows of the overall mean that are added to each category
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
    """Mean targets of categories, shrunken towards the mean of all rows by ten rows.

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
        away = weights[:, None] * (targets - np.average(targets, axis=0, weights=weights))
        sums = np.column_stack([np.bincount(place, column, len(levels)) for column in away.T])
        return cls(levels, sums / (np.bincount(place, weights, len(levels)) + SHRINKAGE)[:, None])

    @property
    def n_columns(self) -> int:
        """The number of targets."""
        return self.means.shape[1]

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Return the means of the category of each row."""
        known = np.vstack([self.means, np.zeros((1, self.n_columns))])
        return known[_places(self.levels, _with_gaps(codes))]


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
