"""The border: what a user passed in becomes checked tensors, labels become one-hot rows, seeds generators."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from kernelwright.errors import MemoryBudgetError

__all__ = [
    "ClassTotals",
    "as_matrix",
    "check_memory",
    "class_labels",
    "free_memory",
    "generator",
    "merge_duplicates",
    "one_hot",
    "row_weights",
    "seed_of",
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


def class_labels(y: np.ndarray, owner: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes, and for each row the number of its class; an error if there are not two."""
    check_classification_targets(y)
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
        """What weights of the rows of each class are multiplied by.

        Weights that are all below one are relative, and their mean is made one: elsewhere a weight counts rows, so
        weights of sum one would mean a data set of one row.
        """
        if class_weight == "balanced":
            factors = self.n_rows / (len(self.classes) * self.rows)
        else:
            factors = compute_class_weight(class_weight, classes=self.classes, y=self.classes)
        counted = factors > 0
        if not counted.any():
            raise ValueError("All weights are zero: there is nothing to learn from.")
        if (factors * self.largest).max() >= 1.0:
            return factors
        return factors * self.rows[counted].sum() / (factors * self.weight).sum()


NO_WEIGHT = 1e-150  # relative to the largest: the noise of such a row, one over its weight, would overflow


def row_weights(y: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """Weights of rows: the given ones times those of the classes, made to count rows."""
    weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True, copy=True)
    weights[weights < NO_WEIGHT * weights.max(initial=0.0)] = 0.0
    counted = weights > 0
    totals = ClassTotals.of(y[counted], weights[counted])
    weights[counted] *= totals.factors(class_weight)[np.searchsorted(totals.classes, y[counted])]
    return weights


def merge_duplicates(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows of (X, y) with summed weights, and for each given row the place of its distinct row.

    An embedding sees data only through distinct rows and their weights. Merging makes weights mean exactly
    repetition, takes singular blocks out of the kernel matrix, and makes the result independent of row order.
    """
    table = np.column_stack([X, y]) + 0.0  # + 0.0: negative zero equals zero
    distinct, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    return X[first], y[first], np.bincount(place, weights, len(distinct)), place


def free_memory() -> float:
    """Bytes a process may still take: the system's free memory or its container's limit, the smaller."""
    candidates = []
    try:
        with open("/proc/meminfo") as lines:
            candidates += [float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
        with open("/sys/fs/cgroup/memory.max") as limit, open("/sys/fs/cgroup/memory.current") as current:
            candidates.append(float(limit.read()) - float(current.read()))
    except (OSError, ValueError):  # not Linux, no limit set ("max"), or no container
        pass
    if not candidates:
        candidates.append(float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES"))
    return min(candidates)


def check_memory(n_bytes: float, what: str, instead: str) -> None:
    """Refuse a job whose matrices would not fit, before anything is allocated."""
    free = free_memory()
    if n_bytes > 0.9 * free:
        raise MemoryBudgetError(
            f"{what} needs about {n_bytes / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free. {instead}"
        )
