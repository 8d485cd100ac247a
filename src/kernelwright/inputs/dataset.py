"""Checked training rows as one record, for all estimators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from kernelwright.inputs.arrays import plain, validate_data
from kernelwright.inputs.blocks import Block
from kernelwright.inputs.duplicates import merge_duplicates
from kernelwright.inputs.labels import check_labels, class_labels
from kernelwright.inputs.layout import TableLayout
from kernelwright.inputs.weights import group_numbers, row_weights
from kernelwright.storage.saved import saved

__all__ = ["ClassInfo", "Dataset", "check_classes", "check_rows", "counted_groups", "given_weights"]


@dataclass(frozen=True)
class Dataset:
    """Training rows: vectors as given, codes of a table, or points that a kernel on other objects has encoded."""

    X: Any
    points: Tensor | None
    y: np.ndarray  # the class index of each row, or a number to predict
    weights: np.ndarray
    groups: np.ndarray | None = None  # a group index for each row: rows of a group are left out together
    counts: np.ndarray | None = None  # number of equal rows merged into each row
    layout: TableLayout | None = None  # what the columns of X stand for, if they are codes

    @classmethod
    def of(cls, block: Block, groups: np.ndarray | None = None) -> Dataset:
        """Make a data set from checked vectors."""
        return cls(block.X, None, block.labels, block.weights, groups)

    def __len__(self) -> int:
        return len(self.y)

    def subset(self, chosen: np.ndarray) -> Dataset:
        """Return some of the rows, by indices or by a mask; if these are all rows in order, nothing is copied."""
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        if np.array_equal(chosen, np.arange(len(self))):
            return self
        X, groups, counts = (None if each is None else each[chosen] for each in (self.X, self.groups, self.counts))
        points = None if self.points is None else self.points[torch.from_numpy(chosen)]
        return Dataset(X, points, self.y[chosen], self.weights[chosen], groups, counts, self.layout)

    def with_mean_weight_one(self) -> Dataset:
        """Scale the weights so that they sum to the number of rows, or of groups: the n of all formulas."""
        n = len(self.weights) if self.groups is None else len(np.unique(self.groups))
        return replace(self, weights=self.weights * (n / self.weights.sum()))

    def merged(self) -> tuple[Dataset, np.ndarray]:
        """Merge equal rows; also return, for each given row, the index of its distinct row.

        If rows are left out one at a time, only rows of equal weight are merged, so that each has the same share of its
        point. If groups are left out, all equal rows of a group are merged, whatever their weights.
        """
        apart = self.weights if self.groups is None else self.groups
        found = merge_duplicates(self.X, self.y, self.weights, apart)
        groups, counts = (None, found.counts) if self.groups is None else (found.apart, None)
        return Dataset(found.X, None, found.y, found.weights, groups, counts, self.layout), found.place


@saved("class-info")
@dataclass(frozen=True)
class ClassInfo:
    """What is known about labels and row weights apart from the rows themselves."""

    classes: np.ndarray
    class_weight: np.ndarray  # relative weight of the rows of each class
    weighted: bool  # whether row weights differ
    unit: float = 1.0  # how much a weight of one counts


def check_classes(
    y: np.ndarray, sample_weight: Any, class_weight: Any, owner: Any
) -> tuple[ClassInfo, np.ndarray, np.ndarray, np.ndarray]:
    """Check labels and weights: return the classes, the class indices and weights of rows that count, their mask."""
    check_labels(y)  # before classes are weighted
    weights = row_weights(y, sample_weight, class_weight)
    kept = weights > 0
    classes, labels = class_labels(y[kept], owner)
    plain_weights = row_weights(y, sample_weight, None)[kept]
    of_class = np.bincount(labels, weights[kept]) / np.bincount(labels, plain_weights)
    unit = 1.0
    if not isinstance(class_weight, str):
        with np.errstate(over="ignore"):
            unit = float(weights[kept][0] / given_weights(y, sample_weight, class_weight)[kept][0])
    info = ClassInfo(classes, of_class, bool(np.ptp(weights[kept]) > 0), unit)
    return info, labels, weights[kept], kept


def given_weights(y: np.ndarray, sample_weight: Any, class_weight: dict[Any, float] | None) -> np.ndarray:
    """Return weights as given. The first rows fix what a weight of one means, for all rows that follow."""
    weights = _check_sample_weight(plain(sample_weight), y, dtype=np.float64, ensure_non_negative=True)
    classes, place = np.unique(y, return_inverse=True)
    of_class = class_weight or {}
    return weights * np.array([of_class.get(label, 1.0) for label in classes])[place]


def check_rows(
    owner: Any, X: Any, y: Any, *, vectors: bool, finite: bool | str = True, **options: Any
) -> tuple[Any, np.ndarray]:
    """Check inputs and targets for consistency: arrays of numbers, or a column of any objects."""
    if vectors:
        return validate_data(owner, X, y, ensure_all_finite=finite, **({"dtype": np.float64} | options))
    X, y = np.asarray(X, dtype=object), np.asarray(y) if options.get("multi_output") else column_or_1d(y)
    check_consistent_length(X, y)
    return X, y


def counted_groups(groups: Any, kept: np.ndarray) -> np.ndarray | None:
    """Return the group index of each row that counts; at least two groups are required."""
    if groups is None:
        return None
    found = group_numbers(groups, len(kept))[kept]
    if len(np.unique(found)) < 2:
        raise ValueError(
            "'groups' needs at least 2 different groups among rows of positive weight: one is left out at a time. "
            "Do not pass 'groups' if rows are independent."
        )
    return found
