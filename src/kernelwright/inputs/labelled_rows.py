"""Labelled rows for classifiers of any kind: to fit, to split and to divide into folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils.validation import _check_sample_weight, has_fit_parameter

from kernelwright.inputs.arrays import plain, random_numbers
from kernelwright.inputs.labels import check_labels
from kernelwright.inputs.weights import group_numbers

__all__ = ["LabelledRows", "check_labelled"]


def check_labelled(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Check labels, and that X has as many rows; the classifier checks the contents of the rows."""
    if y is None:
        raise ValueError("PredictionSets requires y to be passed, but the target y is None.")
    X, y = indexable(X, column_or_1d(y, warn=True))
    check_labels(y)
    return X, y


@dataclass(frozen=True)
class LabelledRows:
    """Rows to fit and to calibrate with, and the label, weight and group of each."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None  # a group index for each row: rows of a group stay together

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LabelledRows:
        """Check the rows; drop those of weight zero."""
        X, y = check_labelled(X, y)
        weights = None if sample_weight is None else _check_sample_weight(plain(sample_weight), X)
        rows = cls(X, y, weights, None if groups is None else group_numbers(groups, len(y)))
        return rows if weights is None or (weights > 0).all() else rows.subset(np.flatnonzero(weights > 0))

    def __len__(self) -> int:
        return len(self.y)

    def subset(self, some: np.ndarray) -> LabelledRows:
        """Return some of the rows, by index."""
        weights, groups = (None if each is None else each[some] for each in (self.weights, self.groups))
        return LabelledRows(_safe_indexing(self.X, some), self.y[some], weights, groups)

    def fit(self, classifier: Any) -> Any:
        """Return a copy of a classifier, fitted to the rows."""
        options = {} if self.weights is None else {"sample_weight": self.weights}
        if self.groups is not None and has_fit_parameter(classifier, "groups"):
            options["groups"] = self.groups
        return clone(classifier).fit(self.X, self.y, **options)

    def divided(self, share: float, random_state: Any) -> tuple[LabelledRows, LabelledRows]:
        """Return rows to fit, and a random share of about this size to calibrate with.

        If all rows of a class are drawn for calibration, its first row moves to the rows to fit:
        otherwise no set could ever hold that class.
        """
        y = self.y
        random_state = random_numbers(random_state)
        if self.groups is None:
            fitted, held = train_test_split(np.arange(len(y)), test_size=share, random_state=random_state)
        else:
            splitter = GroupShuffleSplit(1, test_size=share, random_state=random_state)
            fitted, held = next(splitter.split(y, y, self.groups))
        moved = np.isin(held, [held[y[held] == label][0] for label in np.setdiff1d(y, y[fitted])])
        return self.subset(np.append(fitted, held[moved])), self.subset(held[~moved])

    def folds(self, n_folds: int, random_state: Any) -> Iterator[tuple[LabelledRows, LabelledRows]]:
        """Yield the other rows and the rows of each random fold; groups stay together.

        A fold is skipped if the other rows have only one class.
        """
        unit = np.arange(len(self)) if self.groups is None else self.groups
        order = random_numbers(random_state).permutation(int(unit.max()) + 1)
        for fold in range(min(n_folds, len(order))):
            inside = (order % n_folds == fold)[unit]
            others, own = np.flatnonzero(~inside), np.flatnonzero(inside)
            if len(own) and len(np.unique(self.y[others])) > 1:
                yield self.subset(others), self.subset(own)
