"""Rows with a number to predict, for regressors of any kind: to fit and to split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils import indexable
from sklearn.utils.validation import _check_sample_weight

from kernelwright.inputs.arrays import plain
from kernelwright.inputs.fitting_rows import FittingRows
from kernelwright.inputs.numbers import check_numbers, without_gaps
from kernelwright.inputs.weights import group_numbers

__all__ = ["NumberedRows"]


@dataclass(frozen=True)
class NumberedRows(FittingRows):
    """Rows to fit and to calibrate with, and the number, weight and group of each."""

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> NumberedRows:
        """Check the rows; drop those of weight zero, and with a warning those without a target.

        The regressor checks the contents of the rows.
        """
        numbers, one_column = check_numbers(y)
        if not one_column:
            raise ValueError(
                f"Prediction intervals are for one target. Got {numbers.shape[1]}; fit one PredictionIntervals for "
                "each column of y."
            )
        X, numbers = indexable(X, numbers)
        weights = None if sample_weight is None else _check_sample_weight(plain(sample_weight), X)
        units = None if groups is None else group_numbers(groups, len(numbers))
        X, numbers, weights, units, _ = without_gaps(X, numbers, weights, units)
        return cls(X, numbers[:, 0], weights, units).counted()

    def divided(self, share: float, random_state: Any) -> tuple[NumberedRows, NumberedRows]:
        """Return rows to fit, and a random share of about this size to calibrate with."""
        fitted, held = self.two_parts(share, random_state)
        return self.subset(fitted), self.subset(held)
