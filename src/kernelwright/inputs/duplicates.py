"""Equal rows, merged and counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelwright.inputs.sparse_tables import is_sparse, row_ranks

__all__ = ["DistinctRows", "merge_duplicates"]


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows, each with the sum of the weights of its equal rows."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    apart: np.ndarray
    place: np.ndarray  # for each given row, the index of its distinct row

    @property
    def counts(self) -> np.ndarray:
        """The number of given rows behind each distinct row."""
        return np.bincount(self.place, minlength=len(self.y)).astype(np.float64)


def merge_duplicates(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, apart: np.ndarray | None = None
) -> DistinctRows:
    """Merge equal rows of (X, y) and sum their weights; rows that differ in ``apart`` stay separate.

    An embedding depends on the data only through distinct rows and their weights. Merging removes singular blocks from
    the kernel matrix, and makes the result independent of row order.
    """
    apart = np.zeros(len(y)) if apart is None else apart
    columns = row_ranks(X) if is_sparse(X) else X
    table = np.column_stack([columns, y, apart]) + 0.0  # + 0.0: negative zero equals zero
    table[np.isnan(table)] = np.inf  # a gap equals a gap; checked rows have no infinities
    distinct, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    return DistinctRows(X[first], y[first], np.bincount(place, weights, len(distinct)), apart[first], place)
