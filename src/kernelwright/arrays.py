"""The border: what a user passed in becomes checked tensors, labels become one-hot rows, seeds generators."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state, column_or_1d, validation
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from kernelwright.errors import MemoryBudgetError
from kernelwright.numerics.memory import in_words, room_below_limits

__all__ = [
    "ClassTotals",
    "DistinctRows",
    "as_matrix",
    "check_class_weight",
    "check_labels",
    "check_memory",
    "class_labels",
    "free_memory",
    "generator",
    "group_numbers",
    "merge_duplicates",
    "one_hot",
    "plain",
    "row_weights",
    "seed_of",
    "validate_data",
]


def as_matrix(X: Any) -> Tensor:
    """A 2-D array of numbers as a float64 tensor; a copy only where one is needed."""
    if np.ndim(X) != 2:
        raise ValueError(f"Expected a 2-D array of numbers (rows are points). Got shape {np.shape(X)} instead.")
    if torch.is_tensor(X):
        return X if X.is_floating_point() else X.to(torch.float64)
    array = np.asarray(X, dtype=np.float64)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()  # torch takes neither read-only memory nor negative strides
    return torch.from_numpy(np.ascontiguousarray(array))


def check_labels(y: np.ndarray) -> None:
    """Refuse what are no labels of classes: missing ones, text among numbers, measurements."""
    if y.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in y.tolist()], dtype=bool)  # NaN differs
        if missing.any():
            raise ValueError(
                f"The labels have {missing.sum()} missing values (None or NaN; the first at row {missing.argmax()}). "
                "Leave these rows out, or give a missing label a name of its own."
            )
        text = np.array([isinstance(label, str) for label in y.tolist()])
        if text.any() and not text.all():
            raise ValueError(
                f"The labels mix text ({y[text][0]!r}) and other values ({y[~text][0]!r}), which have no common order. "
                "Make all of them text: y.astype(str)."
            )
    check_classification_targets(y)


def plain(values: Any) -> Any:
    """Values as NumPy reads them: a tensor leaves its graph and its device behind, and all else stays as it is.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.arrays import plain
    >>> plain(torch.ones(2, requires_grad=True))
    array([1., 1.], dtype=float32)
    """
    if torch.is_tensor(values):
        values = values.float() if values.dtype == torch.bfloat16 else values  # which NumPy does not have
        return values.numpy(force=values.device.type != "meta")
    if isinstance(values, (list, tuple)) and any(torch.is_tensor(value) for value in values):
        return [plain(value) for value in values]
    return values


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Check as :func:`sklearn.utils.validation.validate_data` does, and take any tensor for its values."""
    try:
        return validation.validate_data(estimator, plain(X), plain(y), **options)
    except OverflowError as error:  # of whole numbers without end
        raise ValueError(f"A number of the input is too large for double precision: {error}.") from error


def class_labels(y: np.ndarray, owner: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes, and for each row the number of its class; an error if there are not two."""
    check_labels(y)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{type(owner).__name__} needs rows of at least 2 classes, but the data contain only one class: "
            f"{classes.tolist()!r}."
        )
    return classes, labels


def one_hot(labels: np.ndarray, n_classes: int) -> Tensor:
    """Integer labels -> the rows of the identity they name (Y of [Hsu2018]_)."""
    return torch.eye(n_classes, dtype=torch.float64)[torch.from_numpy(np.asarray(labels, dtype=np.int64))]


def generator(random_state: Any) -> torch.Generator:
    """A torch generator from anything scikit-learn takes as ``random_state``; no global state is touched."""
    return torch.Generator().manual_seed(seed_of(random_state))


def seed_of(random_state: Any) -> int:
    """A whole number from anything scikit-learn takes as ``random_state``; None is another one every time."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31 - 1))
    return int(check_random_state(random_state).randint(2**31 - 1))


@dataclass(frozen=True)
class ClassTotals:
    """The classes of some rows of positive weight: how many rows, their weight, the largest. Added, those of more."""

    classes: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    largest: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray) -> ClassTotals:
        """From labels and weights."""
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
        """Of all classes."""
        return int(self.rows.sum())

    def factors(self, class_weight: Any) -> np.ndarray:
        """What weights of the rows of each class are multiplied by, so that all rows that count have mean one.

        Weights are relative: a factor on all of them changes nothing.
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
            raise ValueError("The sum of the weights is too large for a number. Divide them all by the largest.")
        return factors * (self.rows[counted].sum() / total)


def check_class_weight(class_weight: dict[Any, float] | None) -> None:
    """Refuse weights of classes that are no weights, by name."""
    for label, weight in (class_weight or {}).items():
        if not isinstance(weight, Real) or not 0 <= weight < math.inf:  # also where it is not a number
            raise ValueError(
                f"class_weight[{label!r}] must be a number of at least 0 and finite (0 leaves the class out). "
                f"Got {weight!r} instead."
            )


NO_WEIGHT = 1e-150  # relative to the largest: the noise of such a row, one over its weight, would overflow


def row_weights(y: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """Weights of rows: the given ones times those of the classes, with mean one over the rows that count."""
    weights = _check_sample_weight(plain(sample_weight), y, dtype=np.float64, ensure_non_negative=True, copy=True)
    largest = weights.max(initial=0.0)
    if largest > 0:
        with np.errstate(under="ignore"):
            weights /= largest  # their sum must not overflow
    # A factor on all weights moves their last digits, and learning would carry that far: these digits go.
    mantissa, exponent = np.frexp(weights)
    weights = np.ldexp(np.round(mantissa * 2.0**40) / 2.0**40, exponent)
    weights[weights < NO_WEIGHT] = 0.0
    counted = weights > 0
    totals = ClassTotals.of(y[counted], weights[counted])
    weights[counted] *= totals.factors(class_weight)[np.searchsorted(totals.classes, y[counted])]
    return weights


def group_numbers(groups: Any, n_rows: int) -> np.ndarray:
    """A number for the group of each row."""
    groups = column_or_1d(groups)
    if len(groups) != n_rows:
        raise ValueError(f"'groups' must name a group for each of the {n_rows} rows. Got {len(groups)} names.")
    missing = np.array([name is None or name != name for name in groups.tolist()], dtype=bool)
    if missing.any():
        raise ValueError(
            f"'groups' has {missing.sum()} missing values (the first at row {missing.argmax()}). Give a row that "
            "belongs to no other a name of its own."
        )
    try:
        return np.unique(groups, return_inverse=True)[1].reshape(-1)
    except TypeError as error:
        raise TypeError("'groups' mixes numbers and text. Make all names text: groups.astype(str).") from error


@dataclass(frozen=True)
class DistinctRows:
    """Rows of which no two are equal, with the sums of the weights of those that were."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    apart: np.ndarray
    place: np.ndarray  # of each given row, that of its distinct row

    @property
    def counts(self) -> np.ndarray:
        """How many given rows each stands for."""
        return np.bincount(self.place, minlength=len(self.X)).astype(np.float64)


def merge_duplicates(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, apart: np.ndarray | None = None
) -> DistinctRows:
    """Distinct rows of (X, y) with summed weights; rows that differ in ``apart`` are different.

    An embedding sees data only through distinct rows and their weights. Merging takes singular blocks out of the kernel
    matrix, and makes the result independent of row order.
    """
    apart = np.zeros(len(X)) if apart is None else apart
    table = np.column_stack([X, y, apart]) + 0.0  # + 0.0: negative zero equals zero
    distinct, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    return DistinctRows(X[first], y[first], np.bincount(place, weights, len(distinct)), apart[first], place)


LOADED_LATER = 64 * 2**20  # bytes of addresses that compiled loops, threads and libraries still take during a fit


def free_memory() -> float:
    """Bytes a process may still take: the system's free memory, its container's or its own limit, the smallest."""
    candidates = [max(0.0, min(room_below_limits()) - LOADED_LATER)]
    try:
        with open("/proc/meminfo") as lines:
            candidates += [float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
        with open("/sys/fs/cgroup/memory.max") as limit, open("/sys/fs/cgroup/memory.current") as current:
            candidates.append(float(limit.read()) - float(current.read()))
    except (OSError, ValueError):  # not Linux, no limit set ("max"), or no container
        pass
    if len(candidates) == 1:
        candidates.append(float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES"))
    return min(candidates)


def check_memory(n_bytes: float, what: str, instead: str) -> None:
    """Refuse a job whose matrices would not fit, before anything is allocated."""
    free = free_memory()
    if n_bytes > 0.9 * free:
        limited = min(room_below_limits()) < free + 2 * LOADED_LATER
        where = "are left by the limit set for this process (ulimit -v or -d)" if limited else "are free"
        raise MemoryBudgetError(f"{what} needs about {in_words(n_bytes)}, and {in_words(free)} {where}. {instead}")
