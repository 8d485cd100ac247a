"""Chunks of Dask collections as checked blocks: what workers do to a chunk before anything else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array, check_consistent_length

from kernelwright.inputs.blocks import Block
from kernelwright.inputs.frames.reader import FrameReader
from kernelwright.inputs.numbers import check_numbers

__all__ = ["BlockReader", "ChunkReader", "NumberReader", "RowReader", "counted"]


@dataclass(frozen=True)
class RowReader:
    """Turns the rows of a chunk into numbers.

    Parameters
    ----------
    n_features : int
    frames : FrameReader or None
        Reads data frames as codes.
    gaps : bool
        Whether NaN is a missing value.
    dtype, allow_nd
        As in ``check_array`` of scikit-learn.
    """

    n_features: int
    frames: FrameReader | None = None
    gaps: bool = False
    dtype: Any = np.float64
    allow_nd: bool = False

    def __call__(self, X: Any) -> np.ndarray:
        """Return the rows as numbers."""
        if self.frames is not None:
            return self.frames.codes(X)
        finite = "allow-nan" if self.gaps else True
        X = check_array(X, dtype=self.dtype, allow_nd=self.allow_nd, ensure_min_samples=0, ensure_all_finite=finite)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but {self.n_features} were expected.")
        return X


@dataclass(frozen=True)
class BlockReader(ABC):
    """Turns a chunk into a :class:`Block` on a worker; it is sent to the workers once."""

    rows: RowReader

    @abstractmethod
    def targets(self, y: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a mask of the rows that count, and their targets and weights."""

    def __call__(self, X: Any, y: Any, weights: Any, number: int, *, as_given: bool = False) -> Block:
        """Check one chunk; errors name it. Rows ``as_given`` are neither checked nor turned into numbers."""
        try:
            X = X if as_given else self.rows(X)
            check_consistent_length(X, y)
            kept, targets, weights = self.targets(y, weights)
        except ValueError as error:
            raise ValueError(f"In chunk {number} of the data: {error}") from error
        return Block(_safe_indexing(X, np.flatnonzero(kept)), targets, weights)


@dataclass(frozen=True)
class ChunkReader(BlockReader):
    """Reads chunks of labelled rows. Rows without weight, and of classes without weight, are left out."""

    classes: np.ndarray
    factors: np.ndarray  # class weights: row weights are multiplied by these

    def targets(self, y: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # noqa: D102
        y = np.asarray(y)
        kept, weights = counted(y, weights)
        kept &= np.isin(y, self.classes)
        labels = np.searchsorted(self.classes, y[kept])
        return kept, labels, weights[kept] * self.factors[labels]


@dataclass(frozen=True)
class NumberReader(BlockReader):
    """Reads chunks of rows with numbers as targets. Rows without a target or weight are left out."""

    factor: float  # that makes the mean weight one

    def targets(self, y: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # noqa: D102
        y, _ = check_numbers(y)
        kept, weights = counted(y, weights)
        kept &= ~np.isnan(y).any(1)
        return kept, y[kept], weights[kept] * self.factor


def counted(y: np.ndarray, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the rows with non-zero weight, and the weights."""
    if weights is None:
        weights = np.ones(len(y))
    weights = check_array(weights, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="sample_weight")
    check_consistent_length(y, weights)
    if (weights < 0).any():
        raise ValueError("Negative values in sample_weight.")
    return weights > 0, weights
