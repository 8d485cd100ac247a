"""Checks of numbers to predict."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight

from kernelwright.inputs.arrays import plain
from kernelwright.inputs.weights import row_weights
from kernelwright.storage.saved import saved

__all__ = [
    "NumberInfo",
    "as_numbers",
    "check_numbers",
    "warn_of_numbers",
    "weights_of_numbers",
    "without_gaps",
]

LARGEST = 1e150  # its square can still be computed
FEW = 5  # rows, of which fewer say next to nothing
EXTREME = 1e6  # interquartile ranges that all targets together span
TEXT = "Targets must be numbers. Got {value!r} at row {row}. For classes use EmbeddingClassifier."


@saved("number-info")
@dataclass(frozen=True)
class NumberInfo:
    """What is known about numbers to predict and their row weights apart from the rows themselves."""

    n_targets: int
    one_column: bool  # whether y was one-dimensional, as predictions then are
    weighted: bool  # whether row weights differ
    unit: float = 1.0  # how much a weight of one counts


def as_numbers(y: Any) -> np.ndarray:
    """Return targets as float64; missing values of any kind become NaN, and text is refused by row."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    values = np.asarray(plain(y))
    if values.dtype.kind in "mM":
        raise ValueError(
            f"Targets must be numbers. Got dates or durations ({values.dtype}). Convert them first, for example to "
            "days: (y - y.min()) / pandas.Timedelta('1D')."
        )
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: targets must be real numbers.")
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    numbers = np.empty(values.shape)
    for place, value in np.ndenumerate(values):
        numbers[place] = _as_number(value, place[0])
    return numbers


def _as_number(value: Any, row: int) -> float:
    if value is None or type(value).__name__ == "NAType" or value != value:
        return np.nan
    if isinstance(value, Real):
        return float(value)
    try:
        return float(value)  # a decimal, or text that is a number
    except (TypeError, ValueError):
        raise ValueError(TEXT.format(value=str(value), row=row)) from None


def check_numbers(y: Any) -> tuple[np.ndarray, bool]:
    """Check targets alone: a column for each target (NaN for gaps), and whether y was one-dimensional."""
    numbers = as_numbers(y)
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Predictions will have one dimension.",
            DataConversionWarning,
            stacklevel=4,
        )
        numbers = numbers[:, 0]
    if numbers.ndim not in (1, 2) or (numbers.ndim == 2 and numbers.shape[1] == 0):
        raise ValueError(f"Targets must be of shape (n,) or (n, k). Got shape {numbers.shape} instead.")
    one = numbers.ndim == 1
    numbers = numbers[:, None] if one else numbers
    if np.isinf(numbers).any():
        raise ValueError(
            f"Input y contains infinity, first at row {int(np.isinf(numbers).any(1).argmax())}. Leave out such rows, "
            "or cap the target."
        )
    if len(numbers) and np.nanmax(np.abs(numbers), initial=0.0) > LARGEST:
        raise ValueError(f"Input y contains values beyond {LARGEST:g}. Divide the target by a constant first.")
    return numbers + 0.0, one  # + 0.0: negative zero equals zero


def warn_of_numbers(y: np.ndarray) -> None:
    """Warn if the targets, a column for each, are too few to learn from, or if a few of them drown all others."""
    if 1 < len(y) < FEW:
        warnings.warn(
            f"There are only {len(y)} rows with a target. Predictions are little more than their mean, and intervals "
            "are a guess.",
            stacklevel=4,
        )
    for column in y.T:
        if len(column) and np.ptp(column) == 0:
            rows = "There is only one row with a target" if len(column) == 1 else "All targets are equal"
            warnings.warn(
                f"{rows}: {column[0]:g} is predicted for all rows, with intervals of no width. Nothing can be learned.",
                stacklevel=4,
            )
            continue
        lower, middle, upper = np.quantile(column, [0.25, 0.5, 0.75])
        if np.ptp(column) > EXTREME * (upper - lower) > 0:
            worst = column[np.abs(column - middle).argmax()]
            warnings.warn(
                f"The target {worst:g} is far from all others: half of them lie between {lower:g} and {upper:g}. Means "
                "and squared errors are those of this row alone. If it is an error, leave it out; otherwise cap the "
                "target, or use its logarithm.",
                stacklevel=4,
            )


def without_gaps(X: Any, y: np.ndarray, *columns: Any) -> tuple[Any, ...]:
    """Leave out rows without a target, with a warning; return X, y, the other columns, and a mask of the rows left."""
    there = ~np.isnan(y).any(1)
    if there.all():
        return X, y, *columns, there
    if not there.any():
        raise ValueError("Input y contains NaN: no row has a target.")
    if len(there) != (X.shape[0] if hasattr(X, "shape") else len(X)):
        return X, y, *columns, there  # the check of both reports it
    warnings.warn(
        f"{int((~there).sum())} of {len(there)} rows have no target and are left out (the first is row "
        f"{int((~there).argmax())}).",
        stacklevel=4,
    )
    rows = np.flatnonzero(there)
    others = (None if each is None else _safe_indexing(each, rows) for each in columns)
    return _safe_indexing(X, rows), y[rows], *others, there


def weights_of_numbers(n: int, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Return row weights of mean one, a mask of the rows that count, and what a weight of one is worth."""
    labels = np.zeros(n)
    weights = row_weights(labels, sample_weight, None)
    kept = weights > 0
    given = _check_sample_weight(plain(sample_weight), labels, dtype=np.float64)
    return weights[kept], kept, float(weights[kept][0] / given[kept][0])
