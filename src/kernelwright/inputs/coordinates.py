"""Coordinates of a table of numbers, categories, dates and gaps: where a kernel measures distances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelwright.inputs.cycles import Cycle, cycles_of
from kernelwright.inputs.layout import CodedColumn, TableLayout
from kernelwright.inputs.levels import FREQUENT, LevelMeans, Levels, cross_fitted_means
from kernelwright.inputs.scaling import TableViews
from kernelwright.storage.saved import saved

__all__ = ["ColumnCoordinates", "TableCoordinates", "columns_for_means"]

MOST_WORDS = 200  # of a column in which each has a coordinate
ENOUGH_ROWS = 5  # of each word, on average: with fewer, its mean target may tell more than a coordinate
MOST_COORDINATES = 1000  # of all such columns together


@saved("column-coordinates")
@dataclass(frozen=True)
class ColumnCoordinates:
    """How one column of codes becomes coordinates.

    Each entry that is not None has a learned length scale of its own.
    """

    column: int
    number: bool = False  # the code itself, standardised and ranked
    n_words: int | None = None  # of categories that are numbers: any other code is a gap
    gaps: Levels | None = None  # whether there is a gap
    levels: Levels | None = None  # equal or not
    means: LevelMeans | None = None  # the mean target of the category
    cycles: tuple[Cycle, ...] = ()

    def numbers(self, codes: np.ndarray, means: np.ndarray | None = None) -> list[np.ndarray]:
        """Return the columns that are standardised and ranked; NaN for a gap. ``means`` replace those of new rows."""
        found = [self.known(codes)[:, None]] if self.number else []
        if self.means is not None:
            found.append(self.means(codes) if means is None else means)
        return found

    def known(self, codes: np.ndarray) -> np.ndarray:
        """Return the codes; NaN for words that were never seen, if the words are numbers."""
        if self.n_words is None:
            return codes
        return np.where(np.isin(codes, np.arange(self.n_words)), codes, np.nan)

    def fixed(self, codes: np.ndarray) -> list[np.ndarray]:
        """Return the coordinates that are taken as they are, a block for each length scale."""
        found = [cycle(codes) for cycle in self.cycles]
        if self.gaps is not None:
            found.append(self.gaps(self.known(codes)))
        if self.levels is not None:
            found.append(self.levels(codes))
        return found


@saved("table-coordinates", fields="of_columns_ views_ groups_ sources_ columns_")
class TableCoordinates(TransformerMixin, BaseEstimator):
    """Two views ``[z | q]`` of a matrix of codes, for which see :class:`~kernelwright.inputs.layout.TableLayout`.

    - A number has the two views of :class:`~kernelwright.inputs.scaling.TableViews`. A gap lies at their centre, and is
      a state of its own: a further coordinate, with its own length scale, says that there is none.
    - A category has a coordinate for each word that occurs twice, and one for the rare ones, with one length scale for
      all: two rows are equal in it or not. Words that were never seen are like rare ones. A gap is a word.
    - A category of more than 200 words has coordinates for the 50 most frequent ones (if all columns together would
      have more than 1000 coordinates, a category of more than 50 words). It may also have the mean target of each word,
      shrunken towards that of all rows [MicciBarreca2001]_, as a number; and so may a category of more than 50 words
      with fewer than five rows of each, then beside the coordinates of the 50 most frequent ones. Training rows get the
      means of other folds.
    - Ordered categories are numbers. A date is a number, and a point on a circle for each of its cycles.

    Parameters
    ----------
    layout : TableLayout
    views : bool, default=True
        Whether numbers have two views; without, they are only standardised.
    means : bool, default=True
        Whether categories may have mean targets as coordinates.

    Attributes
    ----------
    groups_ : tuple of int
        For each coordinate of one view the number of its length scale.
    sources_, columns_ : ndarray of int
        For each length scale, and for each coordinate, the index of its column of the user's table
        (``layout.sources``).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.inputs.coordinates import TableCoordinates
    >>> from kernelwright.inputs.layout import CodedColumn, TableLayout
    >>> layout = TableLayout((CodedColumn("size"), CodedColumn("town", "category", ("Bonn", "Rome", "Ulm"))))
    >>> codes = np.array([[1.0, 0], [2.0, 0], [np.nan, 1], [4.0, 1], [3.0, 2], [0.0, 2]])
    >>> table = TableCoordinates(layout).fit(codes)
    >>> table.groups_, table.sources_.tolist()  # size; its gaps; three towns
    ((0, 1, 2, 2, 2), [0, 0, 1])
    >>> table.transform(codes).shape
    (6, 10)
    """

    def __init__(self, layout: TableLayout, views: bool = True, means: bool = True) -> None:
        self.layout = layout
        self.views = views
        self.means = means

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, counts: Any = None
    ) -> TableCoordinates:
        """Learn the coordinates."""
        self.fit_transform(X, y, sample_weight, groups, counts)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, counts: Any = None
    ) -> np.ndarray:
        """Learn the coordinates, and return those of the training rows, whose mean targets are those of other folds.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Codes.
        y : ndarray of shape (n, k), optional
            Targets as numbers; without them no category has a mean target.
        sample_weight : ndarray of shape (n,), optional
        groups : ndarray of shape (n,), optional
            Rows of a group are in one fold.
        counts : ndarray of shape (n,), optional
            How many equal rows each row stands for: a word is rare if it occurs in one of these.
        """
        w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.of_columns_, left_out = [], {}
        most = most_words(self.layout)
        for_means = columns_for_means(self.layout, len(X)) if self.means and y is not None else ()
        for place, (column, codes) in enumerate(zip(self.layout.columns, X.T, strict=True)):
            found = _coordinates_of(place, column, codes, w, counts, FREQUENT if place in for_means else most)
            if place in for_means:
                means, left_out[place] = cross_fitted_means(codes, y, w, groups)
                found = replace(found, means=means)
            self.of_columns_.append(found)
        N = self._numbers(X, left_out)
        self.views_ = TableViews().fit(N, sample_weight=w) if N.shape[1] else None
        self._number_length_scales(X)
        return self._joined(N, X)

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates of new rows, in both views side by side."""
        check_is_fitted(self)
        return self._joined(self._numbers(X, {}), X)

    def inverse_transform(self, V: Any) -> np.ndarray:
        """Return codes of rows with these coordinates: rare and new categories are -1."""
        V = np.asarray(V)
        V = V[:, : V.shape[1] // 2] if self.views else V
        n_viewed = 0 if self.views_ is None else len(self.views_.columns_)
        numbers = np.empty((len(V), 0))
        if self.views_ is not None:
            back = self.views_.inverse_transform if self.views else self.views_.of_standardised
            numbers = back(V[:, :n_viewed])
        X, first, fixed = np.full((len(V), len(self.of_columns_)), np.nan), 0, n_viewed
        for column in self.of_columns_:
            values = numbers[:, first] if column.number else np.full(len(V), np.nan)
            first += int(column.number) + (0 if column.means is None else column.means.n_columns)
            fixed += 2 * len(column.cycles)
            if column.gaps is not None:
                missing = np.isnan(column.gaps.codes(V[:, fixed : fixed + 1]))
                values, fixed = np.where(missing, np.nan, values), fixed + 1
            if column.levels is not None:
                values = column.levels.codes(V[:, fixed : fixed + column.levels.n_columns])
                fixed += column.levels.n_columns
            X[:, column.column] = values
        return X

    def beyond(self, X: Any) -> np.ndarray:
        """Return how far each coordinate lies outside the training range, in training standard deviations."""
        far = np.zeros((len(X), len(self.groups_)))
        if self.views_ is not None:
            far[:, : len(self.views_.columns_)] = self.views_.beyond(self._numbers(X, {}))
        return far

    def _numbers(self, X: np.ndarray, left_out: dict[int, np.ndarray]) -> np.ndarray:
        """Return the columns that are standardised and ranked."""
        blocks = [
            block for each in self.of_columns_ for block in each.numbers(X[:, each.column], left_out.get(each.column))
        ]
        return np.hstack(blocks) if blocks else np.empty((len(X), 0))

    def _joined(self, N: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the views of numbers, each with the fixed coordinates beside it."""
        blocks = [block for each in self.of_columns_ for block in each.fixed(X[:, each.column])]
        F = np.hstack(blocks) if blocks else np.empty((len(X), 0))
        if self.views_ is None:
            return np.hstack([F, F]) if self.views else F
        if not self.views:
            return np.hstack([self.views_.standardised(N), F])
        z, q = np.hsplit(self.views_.transform(N), 2)
        return np.hstack([z, F, q, F])

    def _number_length_scales(self, X: np.ndarray) -> None:
        """Give each number that varies a length scale, then each block of fixed coordinates."""
        columns = {source: place for place, source in enumerate(self.layout.sources)}
        of = [columns[column.source] for column in self.layout.columns]
        numbers: list[int] = []
        blocks: list[tuple[int, int]] = []
        for each in self.of_columns_:
            for block in each.numbers(X[:1, each.column]):
                numbers += [of[each.column]] * block.shape[1]
            blocks += [(of[each.column], block.shape[1]) for block in each.fixed(X[:1, each.column])]
        varying = [] if self.views_ is None else [numbers[place] for place in self.views_.columns_]
        self.sources_ = np.array([*varying, *(source for source, _ in blocks)], dtype=np.int64)
        fixed = [[len(varying) + place] * width for place, (_, width) in enumerate(blocks)]
        self.groups_ = (*range(len(varying)), *(group for block in fixed for group in block))
        self.columns_ = self.sources_[list(self.groups_)]


def most_words(layout: TableLayout) -> int:
    """Return up to how many words of a column each have a coordinate."""
    sizes = [len(column.words) for column in layout.columns if _has_levels(column)]
    return MOST_WORDS if sum(size for size in sizes if size <= MOST_WORDS) <= MOST_COORDINATES else FREQUENT


def columns_for_means(layout: TableLayout, n_rows: int) -> frozenset[int]:
    """Return the columns whose mean targets may be coordinates: with too many words, or too few rows of each."""
    most = max(FREQUENT, min(most_words(layout), n_rows // ENOUGH_ROWS))
    columns = enumerate(layout.columns)
    return frozenset(place for place, column in columns if _has_levels(column) and len(column.words) > most)


def _has_levels(column: CodedColumn) -> bool:
    return column.kind == "category" and not column.ordered and len(column.words) != 2


def _coordinates_of(
    place: int, column: CodedColumn, codes: np.ndarray, w: np.ndarray, counts: np.ndarray | None, most: int
) -> ColumnCoordinates:
    """Return the coordinates of a column, without mean targets."""
    if _has_levels(column):
        return ColumnCoordinates(place, levels=Levels.of(codes, w, counts, most=most))
    found = ColumnCoordinates(place, number=True, n_words=len(column.words) if column.kind == "category" else None)
    codes = found.known(codes)
    missing = np.isnan(codes)
    gaps = Levels.of_gaps(codes, w) if missing.any() and not missing.all() else None
    return replace(found, gaps=gaps, cycles=cycles_of(codes) if column.kind == "date" else ())
