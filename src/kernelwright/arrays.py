"""The border: what a user passed in becomes checked tensors, labels become one-hot rows, seeds generators."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from kernelwright.errors import MemoryBudgetError

__all__ = [
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


def row_weights(y: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """Weights of rows: the given ones times those of the classes.

    Weights that are all below one are relative, and their mean is made one: elsewhere a weight counts rows, so
    weights of sum one would mean a data set of one row.
    """
    weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    counted = weights > 0
    if class_weight is not None and counted.any():
        classes, labels = np.unique(y[counted], return_inverse=True)
        weights[counted] *= compute_class_weight(class_weight, classes=classes, y=y[counted])[labels]
        counted = weights > 0
    if not counted.any():
        raise ValueError("All weights are zero: there is nothing to learn from.")
    return weights / weights[counted].mean() if weights.max() < 1.0 else weights


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
