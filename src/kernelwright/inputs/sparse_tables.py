"""Tables as sparse matrices of scipy, checked: the values that are not zero, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kernelwright.inputs.arrays import validate_data

__all__ = ["check_sparse", "is_sparse", "row_ranks"]


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array of scipy."""
    return sparse.issparse(X)


def check_sparse(owner: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Check rows (and targets) as for dense tables; return the rows as a canonical CSR array, a copy if need be.

    Its indices are sorted, and each stands for one value that is not zero. Dense rows are converted.
    """
    checked = validate_data(owner, X, y, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, **options)
    X, *targets = checked if isinstance(checked, tuple) else (checked,)
    matrix = sparse.csr_array(X)
    _refuse_gaps(matrix)
    if not (matrix.has_canonical_format and matrix.data.all()):
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return (matrix, *targets) if targets else matrix


def _refuse_gaps(matrix: sparse.csr_array) -> None:
    """Raise an error that names the first value that is not a finite number."""
    wrong = np.flatnonzero(~np.isfinite(matrix.data))
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        what = "NaN" if np.isnan(matrix.data[wrong[0]]) else "infinity"
        raise ValueError(
            f"Input X contains {what}, first at row {row}, column {matrix.indices[wrong[0]]} ({len(wrong)} values are "
            "not finite). Leave out such rows, or fill in the values; of a sparse matrix, X.data holds them."
        )


def row_ranks(matrix: sparse.csr_array) -> np.ndarray:
    """Return the place of each row among the distinct rows, in the order of the dense rows.

    That order is lexicographic. Where two rows differ first, the value of one of them may be zero, which is not stored:
    so a negative value ranks the lower, the earlier its column, and a positive value the higher.
    """
    width, negative = matrix.shape[1], matrix.data < 0
    column = np.where(negative, matrix.indices, 2 * width - matrix.indices.astype(np.int64)).astype(np.uint64)
    bits = np.abs(matrix.data).view(np.uint64)  # of positive numbers they are in the order of the numbers
    keys = np.column_stack([column, np.where(negative, ~bits, bits)]).astype(">u8")  # bytes in the order of numbers
    end = np.array([width], dtype=">u8").tobytes()
    rows = [keys[start:stop].tobytes() + end for start, stop in zip(matrix.indptr, matrix.indptr[1:], strict=False)]
    place = {row: rank for rank, row in enumerate(sorted(set(rows)))}
    return np.array([place[row] for row in rows], dtype=np.float64)
