"""Checks of targets of any kind (numbers, vectors or labels) and of functions of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from kernelwright.inputs.arrays import plain
from kernelwright.inputs.dataset import check_rows

__all__ = ["DistinctTargets", "check_any_rows", "check_any_targets", "check_levels", "kind_of", "values_at"]

NUMBERS = "iuf"  # dtype kinds that are numbers; booleans are labels


@dataclass(frozen=True)
class DistinctTargets:
    """The distinct values among targets, sorted."""

    values: np.ndarray
    number: np.ndarray  # for each row, the index of its target among the values
    counts: np.ndarray  # number of rows with each value

    @classmethod
    def of(cls, Y: np.ndarray) -> DistinctTargets:
        """Find the distinct values among checked targets."""
        try:
            values, number, counts = np.unique(
                Y, return_inverse=True, return_counts=True, axis=0 if Y.ndim == 2 else None
            )
        except TypeError:
            kinds = sorted({type(label).__name__ for label in Y})
            raise ValueError(f"Labels must be of one type, so that they can be sorted. Got {kinds}.") from None
        return cls(values, number.reshape(-1), counts)

    @property
    def kind(self) -> str:
        """The kind of the values, as in :func:`kind_of`."""
        return kind_of(self.values)


def kind_of(Y: np.ndarray) -> str:
    """Return "labels", "numbers" or "vectors"."""
    if Y.dtype.kind not in NUMBERS:
        return "labels"
    return "numbers" if Y.ndim == 1 else "vectors"


def check_any_rows(owner: Any, X: Any, Y: Any, *, vectors: bool, finite: bool | str = True) -> tuple[Any, np.ndarray]:
    """Check inputs (arrays of numbers, or a column of any objects) and targets of any kind; at least two rows."""
    Y = plain(_labels_of_category(Y))
    if vectors:
        X, Y = check_rows(owner, X, Y, vectors=True, finite=finite, multi_output=True, ensure_min_samples=2)
    else:
        X = np.asarray(X, dtype=object)
        Y = check_array(Y, dtype=None, ensure_2d=False, ensure_min_samples=2, input_name="Y", estimator=owner)
        check_consistent_length(X, Y)
    return X, _as_kept(Y)


def check_any_targets(y: Any) -> np.ndarray:
    """Check targets alone: numbers of shape (n,) or (n, p), or labels of shape (n,)."""
    return _as_kept(check_array(plain(_labels_of_category(y)), dtype=None, ensure_2d=False, input_name="y"))


def _labels_of_category(Y: Any) -> Any:
    """Return a pandas categorical as an array of objects: a category of numbers is still a label."""
    return np.asarray(Y, dtype=object) if str(getattr(Y, "dtype", "")) == "category" else Y


def _as_kept(Y: np.ndarray) -> np.ndarray:
    if Y.dtype.kind in NUMBERS:
        return Y + np.zeros((), dtype=Y.dtype)  # negative zero equals zero
    if Y.dtype.kind not in "bOUS":
        raise ValueError(f"Targets must be numbers, vectors of numbers or labels. Got dtype {Y.dtype} instead.")
    if Y.ndim == 2 and Y.shape[1] > 1:
        raise ValueError(f"Labels must be a single column. Got shape {Y.shape} of dtype {Y.dtype} instead.")
    Y = column_or_1d(Y, warn=True)
    if Y.dtype.kind == "O" and any(label is None for label in Y):
        raise ValueError("The labels contain None. Leave out rows without a label.")
    return Y


def values_at(g: Any, Y: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the values of a function g at the targets.

    Parameters
    ----------
    g : callable, mapping, array-like or None
        ``None`` is the target itself: labels as one-hot rows, numbers and vectors as they are.
    Y : ndarray
        The targets.
    values : ndarray
        The distinct targets, sorted.

    Returns
    -------
    ndarray of shape (n,) or (n, q)

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.inputs.any_targets import values_at
    >>> values_at({"cheap": 1, "dear": 9}, np.array(["dear", "cheap", "dear"]), np.array(["cheap", "dear"]))
    array([9., 1., 9.])
    """
    found: Any
    labels = kind_of(values) == "labels"
    if g is None:
        found = Y[:, None] == values if labels else Y
    elif isinstance(g, Mapping):
        if not labels:
            raise ValueError("A mapping g is for labels, but this model was fitted on numbers: pass a function.")
        missing = [label for label in values.tolist() if label not in g]
        if missing:
            raise ValueError(f"The mapping g must give a number for every label. It has none for {missing[:5]}.")
        found = [g[label] for label in Y.tolist()]
    else:
        found = g(Y.copy()) if callable(g) else g
    found = np.asarray(found, dtype=np.float64)
    if found.ndim not in (1, 2) or len(found) != len(Y):
        raise ValueError(
            f"g must give one number, or one row of numbers, for each of the {len(Y)} training targets. Got "
            f"shape {found.shape} instead."
        )
    if not np.isfinite(found).all():
        raise ValueError("The values of g at the training targets contain NaN or infinity.")
    return found


def check_levels(q: Any) -> np.ndarray:
    """Check quantile levels: a number in [0, 1] or a list of them."""
    levels = np.asarray(q, dtype=np.float64)
    if levels.ndim > 1 or not np.all((levels >= 0) & (levels <= 1)):
        raise ValueError(f"The 'q' parameter must be a number in [0, 1] or a list of them. Got {q!r} instead.")
    return levels
