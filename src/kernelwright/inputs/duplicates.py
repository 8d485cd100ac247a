"""Equal rows, merged and counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["DistinctRows", "merge_duplicates"]


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
