"""Points as rows of a sparse matrix: most of their coordinates are zero and are not stored.

They stand in for a dense tensor of points wherever a formula needs no more than inner products, squared distances or L1
distances. These are dense matrices of numbers between pairs of rows; the rows themselves are never made dense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from kernelwright.storage.saved import saved

__all__ = ["KEPT_ROWS", "SparseRows"]

KEPT_ROWS = 2048  # rows whose numbers between pairs are kept: learning needs them again for every length scale
BLOCK_VALUES = 2**22  # numbers between pairs computed at once


@saved(
    "sparse-rows",
    fields="values columns starts n_columns",
    transient={"unit": 1.0, "dtype": torch.float64, "_known": None},
)
class SparseRows:
    """Rows of a sparse matrix, divided by a ``unit``; they behave like the tensor of the same rows.

    Parameters
    ----------
    values, columns, starts : ndarray
        Values and their columns, row by row, and where each row starts (as in :class:`scipy.sparse.csr_array`).
    n_columns : int

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from kernelwright.numerics.sparse_rows import SparseRows
    >>> X = SparseRows.of(sparse.csr_array([[3.0, 0.0, 4.0], [0.0, 0.0, 1.0]]))
    >>> X @ X.T
    tensor([[25.,  4.],
            [ 4.,  1.]], dtype=torch.float64)
    >>> (X / 2.0).squared_distances()
    tensor([[0.0000, 4.5000],
            [4.5000, 0.0000]], dtype=torch.float64)
    """

    unit: Any  # a number, or a tensor through which gradients flow
    dtype: torch.dtype
    _known: dict[str, Any] | None

    def __init__(self, values: np.ndarray, columns: np.ndarray, starts: np.ndarray, n_columns: int) -> None:
        self.values, self.columns, self.starts, self.n_columns = values, columns, starts, n_columns
        self.unit, self.dtype, self._known = 1.0, torch.float64, None

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        """Take the rows of any sparse matrix of scipy."""
        csr = sparse.csr_array(matrix, dtype=np.float64)
        if not csr.has_canonical_format:
            csr = csr.copy()  # the arrays may be the user's
            csr.sum_duplicates()
        return cls(csr.data, csr.indices, csr.indptr, csr.shape[1])

    def _with(self, **changes: Any) -> SparseRows:
        """Return the same rows with another unit or precision; what is known about pairs is shared."""
        self._facts()
        made = SparseRows.__new__(SparseRows)
        vars(made).update(vars(self) | changes)
        return made

    # like a tensor ---------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return len(self), self.n_columns

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Any) -> SparseRows:
        """Return some of the rows: by a slice, a mask, or indices."""
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self
        chosen = SparseRows.of(self.matrix[rows if isinstance(rows, slice) else np.asarray(rows)])
        return chosen._with(unit=self.unit, dtype=self.dtype)

    def split(self, n_rows: int) -> Iterator[SparseRows]:
        """Yield the rows in blocks; without rows, one empty block."""
        return (self[start : start + n_rows] for start in range(0, max(len(self), 1), n_rows))

    def to(self, dtype: torch.dtype) -> SparseRows:
        """Return the rows with another precision of the numbers between pairs."""
        return self if dtype == self.dtype else self._with(dtype=dtype)

    def float(self) -> SparseRows:
        """Return the rows with numbers between pairs in single precision."""
        return self.to(torch.float32)

    def is_floating_point(self) -> bool:
        """Return that the values are not whole numbers."""
        return True

    def new_empty(self, *shape: int) -> Tensor:
        """Return a tensor of this precision, not filled."""
        return torch.empty(*shape, dtype=self.dtype)

    def new_ones(self, *shape: int) -> Tensor:
        """Return a tensor of ones of this precision."""
        return torch.ones(*shape, dtype=self.dtype)

    def __truediv__(self, unit: Any) -> SparseRows:
        """Divide the rows by one number."""
        if np.ndim(unit):
            raise ValueError("Sparse rows can be divided by one length scale, not by one for each column.")
        return self._with(unit=self.unit * unit)

    @property
    def T(self) -> _Turned:
        """The transpose, for ``X @ Z.T``."""
        return _Turned(self)

    def __matmul__(self, other: _Turned) -> Tensor:
        """Return the inner products of two sets of rows."""
        return self.inner_products(other.rows)

    # numbers between pairs -------------------------------------------------------------------------------

    @property
    def matrix(self) -> sparse.csr_array:
        """The rows as given, without a copy."""
        return sparse.csr_array((self.values, self.columns, self.starts), shape=self.shape, copy=False)

    @property
    def squared_norms(self) -> Tensor:
        """The inner product of each row with itself."""
        return self._fact("squares", lambda: self._sums(self.values**2)).to(self.dtype) / self.unit**2

    def inner_products(self, Z: SparseRows | None = None) -> Tensor:
        """Return ``x_i . z_j``."""
        return self._pairs("products", Z, _inner_products) / (self.unit * (self if Z is None else Z).unit)

    def squared_distances(self, Z: SparseRows | None = None) -> Tensor:
        """Return ``|x_i - z_j|^2``: never negative, exactly zero between a row and itself."""
        other = self if Z is None else Z
        sizes = self.squared_norms[:, None] + other.squared_norms
        D = sizes.sub_(2.0 * self.inner_products(Z)).clamp_(min=0.0)
        return D.fill_diagonal_(0.0) if Z is None else D

    def l1_distances(self, Z: SparseRows | None = None) -> Tensor:
        """Return ``sum_d |x_id - z_jd|``, of rows in the same unit."""
        return self._pairs("l1", Z, _l1_distances) / self.unit

    def _pairs(self, name: str, Z: SparseRows | None, function: Callable[[Any, Any], np.ndarray]) -> Tensor:
        """Return numbers between rows as stored; those of few rows among themselves are computed only once."""
        if Z is not None and Z.n_columns != self.n_columns:
            raise ValueError(
                f"Points with {self.n_columns} features cannot be compared with points that have {Z.n_columns}."
            )

        def computed() -> Tensor:
            return torch.from_numpy(function(self.matrix, (self if Z is None else Z).matrix))

        found = self._fact(name, computed) if Z is None and len(self) <= KEPT_ROWS else computed()
        return found.to(self.dtype)

    def _sums(self, values: np.ndarray) -> Tensor:
        rows = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return torch.from_numpy(np.bincount(rows, values, len(self)).astype(np.float64))

    def _facts(self) -> dict[str, Any]:
        if self._known is None:
            self._known = {}
        return self._known

    def _fact(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        known = self._facts()
        if name not in known:
            known[name] = make()
        return known[name]

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: numbers between pairs are computed again."""
        return vars(self) | {"_known": None}

    def __deepcopy__(self, memo: Any) -> SparseRows:
        """Return the same rows: nothing changes them."""
        return self


class _Turned:
    """The transpose of rows."""

    def __init__(self, rows: SparseRows) -> None:
        self.rows = rows


def _inner_products(X: sparse.csr_array, Z: sparse.csr_array) -> np.ndarray:
    """Return the products of all pairs, in blocks of rows: a sparse product needs more memory than a dense result."""
    found, turned = np.empty((X.shape[0], Z.shape[0])), Z.T.tocsr()
    size = max(1, BLOCK_VALUES // max(Z.shape[0], 1))
    for start in range(0, X.shape[0], size):
        found[start : start + size] = (X[start : start + size] @ turned).toarray()
    return found


def _l1_distances(X: sparse.csr_array, Z: sparse.csr_array) -> np.ndarray:
    """Return ``|x|_1 + |z|_1 - sum_d (|x_d| + |z_d| - |x_d - z_d|)``: the sum is over common columns only."""
    turned, sizes = Z.T.tocsr(), abs(Z).sum(1)
    found = np.empty((X.shape[0], Z.shape[0]))
    for i in range(X.shape[0]):
        own = slice(X.indptr[i], X.indptr[i + 1])
        columns, x = X.indices[own], X.data[own]
        first, lengths = turned.indptr[columns], np.diff(turned.indptr)[columns]
        place = np.arange(lengths.sum()) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        x_there, z_there = np.repeat(x, lengths), turned.data[place]
        common = np.abs(x_there) + np.abs(z_there) - np.abs(x_there - z_there)
        found[i] = np.abs(x).sum() + sizes - np.bincount(turned.indices[place], common, Z.shape[0])
    return np.maximum(found, 0.0)
