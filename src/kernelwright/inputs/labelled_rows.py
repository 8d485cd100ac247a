"""Labelled rows for classifiers of any kind: to fit, to split and to divide into folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.validation import _check_sample_weight

from kernelwright.inputs.arrays import plain
from kernelwright.inputs.fitting_rows import FittingRows
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
class LabelledRows(FittingRows):
    """Rows to fit and to calibrate with, and the label, weight and group of each."""

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LabelledRows:
        """Check the rows; drop those of weight zero."""
        X, y = check_labelled(X, y)
        weights = None if sample_weight is None else _check_sample_weight(plain(sample_weight), X)
        return cls(X, y, weights, None if groups is None else group_numbers(groups, len(y))).counted()

    def divided(self, share: float, random_state: Any) -> tuple[LabelledRows, LabelledRows]:
        """Return rows to fit, and a random share of about this size to calibrate with.

        If all rows of a class are drawn for calibration, its first row moves to the rows to fit:
        otherwise no set could ever hold that class.
        """
        y, (fitted, held) = self.y, self.two_parts(share, random_state)
        moved = np.isin(held, [held[y[held] == label][0] for label in np.setdiff1d(y, y[fitted])])
        return self.subset(np.append(fitted, held[moved])), self.subset(held[~moved])

    def folds(self, n_folds: int, random_state: Any) -> Iterator[tuple[LabelledRows, LabelledRows]]:
        """Yield the other rows and the rows of each random fold; groups stay together.

        A fold is skipped if the other rows have only one class.
        """
        for others, own in self.fold_parts(n_folds, random_state):
            if len(np.unique(self.y[others])) > 1:
                yield self.subset(others), self.subset(own)
