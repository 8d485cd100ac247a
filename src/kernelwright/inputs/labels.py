"""Class labels: checks, class indices, one-hot rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

__all__ = ["check_labels", "class_labels", "one_hot"]


def check_labels(y: np.ndarray) -> None:
    """Raise an error for values that are not class labels: missing ones, text mixed with numbers, measurements."""
    if y.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in y.tolist()], dtype=bool)  # NaN differs
        if missing.any():
            raise ValueError(
                f"The labels have {missing.sum()} missing values (None or NaN; the first at row {missing.argmax()}). "
                "Leave these rows out, or give missing labels a name of their own."
            )
        text = np.array([isinstance(label, str) for label in y.tolist()])
        if text.any() and not text.all():
            raise ValueError(
                f"The labels mix text ({y[text][0]!r}) and other values ({y[~text][0]!r}), which have no common order. "
                "Make all of them text: y.astype(str)."
            )
    check_classification_targets(y)


def class_labels(y: np.ndarray, owner: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes and the class index of each row; raise an error if there are fewer than two classes."""
    check_labels(y)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{type(owner).__name__} needs rows of at least 2 classes, but the data contain only one class: "
            f"{classes.tolist()!r}."
        )
    return classes, labels


def one_hot(labels: np.ndarray, n_classes: int) -> Tensor:
    """Convert integer labels to rows of the identity matrix (Y of [Hsu2018]_)."""
    return torch.eye(n_classes, dtype=torch.float64)[torch.from_numpy(np.asarray(labels, dtype=np.int64))]
