"""Row weights and groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _check_sample_weight

from kernelwright.inputs.arrays import plain

__all__ = ["ClassTotals", "check_class_weight", "group_numbers", "row_weights"]


@dataclass(frozen=True)
class ClassTotals:
    """Classes of rows of positive weight: number of rows, total and largest weight of each. Totals add up."""

    classes: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    largest: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray) -> ClassTotals:
        """Count labels and sum their weights."""
        classes, labels = np.unique(y, return_inverse=True)
        return cls._grouped(classes, labels, np.ones(len(y), dtype=np.int64), weights, weights)

    @classmethod
    def _grouped(cls, classes: np.ndarray, labels: np.ndarray, *columns: np.ndarray) -> ClassTotals:
        rows, weight, largest = columns
        n, most = len(classes), np.zeros(len(classes))
        np.maximum.at(most, labels, largest)
        return cls(classes, np.bincount(labels, rows, n), np.bincount(labels, weight, n), most)

    def __add__(self, other: ClassTotals) -> ClassTotals:
        if not len(other.classes) or not len(self.classes):
            return self if len(self.classes) else other
        classes, labels = np.unique(np.concatenate([self.classes, other.classes]), return_inverse=True)
        pairs = ((self.rows, other.rows), (self.weight, other.weight), (self.largest, other.largest))
        return self._grouped(classes, labels, *map(np.concatenate, pairs))

    @property
    def n_rows(self) -> int:
        """The number of rows of all classes."""
        return int(self.rows.sum())

    def factors(self, class_weight: Any) -> np.ndarray:
        """Return the factor for the row weights of each class, so that the mean weight is one.

        Weights are relative: multiplying all of them by a constant changes nothing.
        """
        if isinstance(class_weight, str):  # "balanced"
            factors = self.n_rows / (len(self.classes) * self.rows)
        else:
            check_class_weight(class_weight)
            factors = np.array([float((class_weight or {}).get(label, 1.0)) for label in self.classes.tolist()])
            if class_weight and not any(label in class_weight for label in self.classes.tolist()):
                raise ValueError(
                    f"class_weight names none of the classes: its keys are {list(class_weight)}, the classes are "
                    f"{self.classes.tolist()}."
                )
        counted = factors > 0
        if not counted.any():
            raise ValueError("All weights are zero: there is nothing to learn from.")
        total = (factors * self.weight).sum()
        if not np.isfinite(total):
            raise ValueError("The sum of the weights overflows. Divide all of them by the largest.")
        return factors * (self.rows[counted].sum() / total)


def check_class_weight(class_weight: dict[Any, float] | None) -> None:
    """Raise an error that names the class if a class weight is invalid."""
    for label, weight in (class_weight or {}).items():
        if not isinstance(weight, Real) or not 0 <= weight < math.inf:  # also if it is NaN
            raise ValueError(
                f"class_weight[{label!r}] must be a number of at least 0 and finite (0 leaves the class out). "
                f"Got {weight!r} instead."
            )


NO_WEIGHT = 1e-150  # relative to the largest: the noise of such a row, one over its weight, would overflow


def row_weights(y: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """Return row weights: given weights times class weights, with mean one over the rows that count."""
    weights = _check_sample_weight(plain(sample_weight), y, dtype=np.float64, ensure_non_negative=True, copy=True)
    largest = weights.max(initial=0.0)
    if largest > 0:
        with np.errstate(under="ignore"):
            weights /= largest  # so that their sum does not overflow
    # Scaling all weights changes their last digits, which learning would amplify: these digits are dropped.
    mantissa, exponent = np.frexp(weights)
    weights = np.ldexp(np.round(mantissa * 2.0**40) / 2.0**40, exponent)
    weights[weights < NO_WEIGHT] = 0.0
    counted = weights > 0
    totals = ClassTotals.of(y[counted], weights[counted])
    weights[counted] *= totals.factors(class_weight)[np.searchsorted(totals.classes, y[counted])]
    return weights


def group_numbers(groups: Any, n_rows: int) -> np.ndarray:
    """Return a group index for each row."""
    groups = column_or_1d(groups)
    if len(groups) != n_rows:
        raise ValueError(f"'groups' must name a group for each of the {n_rows} rows. Got {len(groups)} instead.")
    missing = np.array([name is None or name != name for name in groups.tolist()], dtype=bool)
    if missing.any():
        raise ValueError(
            f"'groups' has {missing.sum()} missing values (the first at row {missing.argmax()}). Give each row that "
            "belongs to no group a name of its own."
        )
    try:
        return np.unique(groups, return_inverse=True)[1].reshape(-1)
    except TypeError as error:
        raise TypeError("'groups' mixes numbers and text. Make all names text: groups.astype(str).") from error
