"""Targets of the learned kernel: labels or a similarity matrix become a checked problem over pairs of points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils import check_consistent_length, column_or_1d
from torch import Tensor

from kernelwright.inputs.arrays import as_matrix
from kernelwright.inputs.duplicates import merge_duplicates
from kernelwright.inputs.labels import check_labels, class_labels
from kernelwright.inputs.weights import row_weights

__all__ = ["CODINGS", "LabelTarget", "MatrixTarget", "PairProblem", "Target", "pair_problem", "target_matrix"]

SYMMETRY = {4: 1e-4, 8: 1e-6}  # relative asymmetry that rounding may cause, by the bytes of a number
CODINGS = {"signed": (1.0, -1.0), "indicator": (1.0, 0.0)}  # targets within a class and between classes


class Target(Protocol):
    """The target value of the kernel for each pair of points."""

    def __len__(self) -> int:
        """Return the number m of points."""

    def at(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the targets of pairs; NaN where they are unknown."""

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the relative weights of pairs."""

    def mean(self) -> float:
        """Return the weighted mean over pairs."""

    def spread(self) -> float:
        """Return the unit in which errors are measured."""

    def largest(self) -> float:
        """Return the largest absolute value."""

    def normalised(self, centre: float, scale: float) -> Target:
        """Subtract ``centre`` and divide by ``scale``."""

    def subset(self, rows: Tensor) -> Target:
        """Return the target of some of the points."""


@dataclass(frozen=True)
class LabelTarget:
    """The ideal kernel of labels: one value within a class and another between classes.

    With 1 and -1 it is ``y y^T`` for two classes and ``2 delta - 1`` for more; with 1 and 0 it is ``delta``.
    """

    labels: Tensor
    other: float = -1.0
    same: float = 1.0
    point_weights: Tensor | None = None  # the weight of a pair is the product; None: all pairs have equal weight

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, i: Tensor, j: Tensor) -> Tensor:
        values = torch.tensor([self.other, self.same], dtype=torch.float64)
        return values[(self.labels[i] == self.labels[j]).long()]

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        w = self.point_weights
        return torch.ones(len(i), dtype=torch.float64) if w is None else w[i] * w[j]

    def low_rank(self) -> tuple[Tensor, Tensor]:
        """Return ``(R, signs)`` such that ``R diag(signs) R^T`` is the target matrix."""
        one_hot = torch.nn.functional.one_hot(self.labels).double()
        ones = torch.ones(len(self), 1, dtype=torch.float64)
        n_classes = one_hot.shape[1]
        root = torch.cat([(self.same - self.other) ** 0.5 * one_hot, abs(self.other) ** 0.5 * ones], 1)
        return root, torch.tensor([1.0] * n_classes + [-1.0 if self.other < 0 else 1.0], dtype=torch.float64)

    def mean(self) -> float:
        """Return the weighted mean over all pairs."""
        w = torch.ones(len(self), dtype=torch.float64) if self.point_weights is None else self.point_weights
        shares = torch.bincount(self.labels, w) / w.sum()
        return self.other + (self.same - self.other) * float(shares.square().sum())

    def spread(self) -> float:
        """Return the unit in which errors are measured."""
        return 1.0

    def largest(self) -> float:
        """Return the largest absolute value."""
        return max(abs(self.same), abs(self.other))

    def normalised(self, centre: float, scale: float) -> LabelTarget:
        """Subtract ``centre`` and divide by ``scale``."""
        return replace(self, other=(self.other - centre) / scale, same=(self.same - centre) / scale)

    def subset(self, rows: Tensor) -> LabelTarget:
        weights = None if self.point_weights is None else self.point_weights[rows]
        return replace(self, labels=self.labels[rows], point_weights=weights)


@dataclass(frozen=True)
class MatrixTarget:
    """A given symmetric matrix; NaN marks unknown pairs."""

    values: Tensor
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.values)

    def at(self, i: Tensor, j: Tensor) -> Tensor:
        return self.values[i, j]

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        return torch.ones(len(i), dtype=torch.float64) if self.weights is None else self.weights[i, j]

    def mean(self) -> float:
        """Return the weighted mean over all known pairs."""
        known = ~self.values.isnan()
        w = known.double() if self.weights is None else torch.where(known, self.weights, 0.0)
        return float((w * self.values.nan_to_num(0.0)).sum() / w.sum())

    def spread(self) -> float:
        """Return the standard deviation of the known entries."""
        return float(self.values[~self.values.isnan()].std())

    def largest(self) -> float:
        """Return the largest absolute value of the known entries."""
        return float(self.values.nan_to_num(0.0).abs().max())

    def normalised(self, centre: float, scale: float) -> MatrixTarget:
        """Subtract ``centre`` and divide by ``scale``."""
        return replace(self, values=(self.values - centre) / scale)

    def subset(self, rows: Tensor) -> MatrixTarget:
        weights = None if self.weights is None else self.weights[rows][:, rows]
        return MatrixTarget(self.values[rows][:, rows], weights)

    @classmethod
    def checked(cls, matrix: Any, weights: Any, n_points: int, *, symmetric: bool = True) -> MatrixTarget:
        """Make a target from a user's matrix, or raise an error that says what is wrong with it.

        Without ``symmetric``, the known values of (i, j) and (j, i) may differ. Their weighted mean is used, with the
        combined weight: for the squared loss this equals a fit to all m^2 ordered pairs.
        """
        read = _symmetric if symmetric else _square
        values = read(matrix, "The target matrix", n_points)
        if bool(values.isinf().any()):
            raise ValueError("The target matrix has infinite entries. Use NaN for unknown pairs.")
        w = None if weights is None else _not_negative(read(weights, "The matrix of weights", n_points))
        if w is not None:
            values = torch.where(w > 0, values, torch.nan)
        if not symmetric:
            values, w = _both_ways(values, w)
        alone = values.isnan().all(1).nonzero()[:, 0]
        if weights is None and len(alone) > 0:
            raise ValueError(
                f"{len(alone)} of {n_points} objects have no known similarity to any object (rows {_first(alone)}): "
                "leave them out of the fit. The learned kernel can be applied to them afterwards."
            )
        if bool(values.isnan().all()):
            raise ValueError("No pair has both a known similarity and a positive weight, so nothing can be learned.")
        return cls(values, w)


def _square(matrix: Any, name: str, n_points: int) -> Tensor:
    array = np.asarray(matrix)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers. Got {type(matrix).__name__} of type {array.dtype}.")
    values = as_matrix(array).double()
    if tuple(values.shape) != (n_points, n_points):
        raise ValueError(
            f"{name} must have a row and a column for each of the {n_points} points. "
            f"Got shape {tuple(values.shape)} instead."
        )
    return values


def _symmetric(matrix: Any, name: str, n_points: int) -> Tensor:
    """Average out rounding differences between (i, j) and (j, i), and raise an error for larger ones."""
    values, dtype = _square(matrix, name, n_points), np.asarray(matrix).dtype
    missing = values.isnan()
    if not torch.equal(missing, missing.T):
        one_way = int((missing != missing.T).sum()) // 2
        raise ValueError(
            f"{name} must be symmetric: {one_way} pairs are known one way only. If that is intended: symmetric=False."
        )
    filled = values.nan_to_num(0.0, posinf=torch.inf, neginf=-torch.inf)
    gap, size = (filled - filled.T).nan_to_num(0.0).abs(), float(filled.abs().max())
    if float(gap.max()) > SYMMETRY[4 if dtype.itemsize <= 4 and dtype.kind == "f" else 8] * size:
        i, j = divmod(int(gap.argmax()), n_points)
        raise ValueError(
            f"{name} must be symmetric. Entries ({i}, {j}) and ({j}, {i}) differ by {float(gap.max()):.3g}, "
            f"and the largest entry is {size:.3g}. If this is intended, use symmetric=False. If not, pass "
            "(Y + Y.T) / 2."
        )
    return 0.5 * (values + values.T)


def _not_negative(weights: Tensor) -> Tensor:
    if bool((weights < 0).any() | ~weights.isfinite().all()) or not bool((weights > 0).any()):
        raise ValueError("Weights of pairs must be finite, nonnegative and not all zero.")
    return weights


def _both_ways(values: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Return the means of the known values of (i, j) and (j, i), and their weights."""
    known = ~values.isnan()
    w = known.double() if weights is None else torch.where(known, weights, 0.0)
    total, weighted = w + w.T, w * values.nan_to_num(0.0)
    merged = torch.where(total > 0, (weighted + weighted.T) / total, torch.nan)
    same = weights is None and bool(((total == 2.0) | (total == 0.0)).all())
    return merged, None if same else 0.5 * total


def _first(rows: Tensor, most: int = 5) -> str:
    return ", ".join(str(int(row)) for row in rows[:most]) + (", ..." if len(rows) > most else "")


# what a user passed in ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairProblem:
    """Points, and the target value of the kernel for each pair of them."""

    points: Tensor
    target: Target
    weights: Tensor | None = None  # of the points; None: all equal
    classes: np.ndarray | None = None  # only if the targets come from labels

    def __len__(self) -> int:
        return len(self.points)


def pair_problem(
    X: np.ndarray,
    y: Any,
    sample_weight: Any = None,
    *,
    coding: str = "signed",
    class_weight: Any = None,
    symmetric: bool = True,
    owner: Any = None,
) -> PairProblem:
    """Check targets and weights, and return the problem; errors name the ``owner`` that they were passed to.

    Equal labelled points are merged and sorted. Points with a matrix stay as they are.
    """
    if y is None:
        raise ValueError(
            f"{type(owner).__name__} requires y to be passed: m labels, or an m x m matrix of similarities."
        )
    if issparse(y) or isinstance(y, np.ma.MaskedArray):
        raise ValueError("A matrix of similarities must be a plain array. Use NaN for unknown pairs.")
    y = np.asarray(y)
    if _is_matrix(y):
        return PairProblem(as_matrix(X), _given_target(y, sample_weight, len(X), symmetric))
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    check_labels(y)  # before class weights are computed
    weights = row_weights(y, sample_weight, class_weight)
    kept = weights > 0
    classes, labels = class_labels(y[kept], owner)
    distinct = merge_duplicates(X[kept], labels, weights[kept])
    weights = distinct.weights / distinct.weights.mean()
    w = None if bool(np.ptp(weights) == 0.0) else torch.from_numpy(weights)
    same, other = CODINGS[coding]
    return PairProblem(as_matrix(distinct.X), LabelTarget(torch.from_numpy(distinct.y), other, same, w), w, classes)


def target_matrix(y: Any, coding: str = "signed") -> np.ndarray:
    """Return a similarity matrix unchanged, or the ideal kernel of labels."""
    y = np.asarray(y)
    return y if _is_matrix(y) else np.where(y.reshape(-1, 1) == y.ravel(), *CODINGS[coding])


def _is_matrix(y: np.ndarray) -> bool:
    return y.ndim == 2 and y.shape[1] != 1


def _given_target(matrix: np.ndarray, sample_weight: Any, n_points: int, symmetric: bool) -> MatrixTarget:
    """Make a target from a matrix of similarities and the weights of pairs or points."""
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.shape not in ((n_points,), (n_points, n_points)):
        raise ValueError(
            f"sample_weight must have shape ({n_points},), one weight for each point, or ({n_points}, {n_points}), "
            f"one for each pair. Got shape {weights.shape} instead."
        )
    if weights is not None and weights.ndim == 1:
        if (weights < 0).any():
            raise ValueError("Weights of points must not be negative.")
        weights = np.outer(weights, weights)
    target = MatrixTarget.checked(matrix, weights, n_points, symmetric=symmetric)
    known = target.values[~target.values.isnan()]
    if float(known.max() - known.min()) <= 1e-12 * max(float(known.abs().max()), 1e-300):
        raise ValueError(
            f"All known entries of the target matrix are {float(known[0]):.6g}: a constant says nothing about the "
            "points. Pass similarities that differ, or labels of at least 2 classes."
        )
    return target
