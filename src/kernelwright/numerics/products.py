"""Products of thin, symmetric or weighted matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import blas
from torch import Tensor

__all__ = ["Outer", "symmetric_outer", "symmetric_product", "thin_product", "weighted_gram"]


FEW_COLUMNS = 6  # with more columns, one matrix product is faster than a product for each column


def thin_product(A: Tensor, B: Tensor) -> Tensor:
    """Return ``A B`` for a large A and few columns: twice as fast as torch's product, tuned for wide matrices."""
    if 0 in (*A.shape, *B.shape):
        return A @ B
    gemm = blas.sgemm if A.dtype == B.dtype == torch.float32 else blas.dgemm
    # All three are transposed: a C-order matrix is then in LAPACK's order without a copy.
    return torch.from_numpy(gemm(1.0, B.contiguous().numpy().T, A.contiguous().numpy().T).T)


def symmetric_product(A: Tensor, B: Tensor) -> Tensor:
    """Return ``A B`` for a symmetric A and few columns: only one triangle is read, which is three times as fast."""
    if not 0 < B.shape[1] <= FEW_COLUMNS:
        return thin_product(A, B)
    columns = B.T.contiguous().numpy()
    matrix = A.contiguous().numpy().T
    product = [blas.dsymv(1.0, matrix, column, lower=1) for column in columns]
    return torch.from_numpy(np.stack(product, axis=1))


def symmetric_outer(B: Tensor, scale: float = 1.0) -> Tensor:
    """Return a matrix ``M`` with ``<M, S> = <scale B B^T, S>`` for every symmetric ``S``.

    Only one triangle is computed (half the work of a product); its off-diagonal entries count twice.
    """
    if B.shape[1] == 0:
        return torch.zeros(len(B), len(B), dtype=B.dtype)
    syrk = blas.ssyrk if B.dtype == torch.float32 else blas.dsyrk
    M = syrk(2.0 * scale, B.numpy().T, trans=1, lower=1)  # B is in C order, so its transpose needs no copy
    M = torch.from_numpy(M.T)
    M.diagonal().mul_(0.5)
    return M


@dataclass(frozen=True)
class Outer:
    """The product ``B C^T`` of two thin matrices, formed only on request."""

    left: Tensor
    right: Tensor

    def dense(self, memory: Tensor | None = None) -> Tensor:
        """Return the full matrix."""
        return torch.mm(self.left, self.right.T, out=memory)


def weighted_gram(Z: Tensor, w: Tensor | None = None, *, whole: bool = True) -> Tensor:
    """Return ``Z^T diag(w) Z`` in float64, computed in the precision of Z with half a product; w is not negative.

    If not ``whole``, entries below the diagonal are zero; ``factorise`` does not read them.
    """
    if w is not None:
        Z = w.sqrt() * Z
    syrk = blas.ssyrk if Z.dtype == torch.float32 else blas.dsyrk
    half = syrk(1.0, Z.contiguous().numpy().T, lower=1)  # in C order the lower triangle is the upper one
    upper = torch.from_numpy(half.T).double()
    return mirror_upper_(upper) if whole else upper


def mirror_upper_(A: Tensor, tile: int = 256) -> Tensor:
    """Copy the upper triangle to the lower one, in place, in tiles that fit the cache."""
    for i in range(0, len(A), tile):
        for j in range(0, i, tile):
            A[i : i + tile, j : j + tile] = A[j : j + tile, i : i + tile].T
        corner = A[i : i + tile, i : i + tile]
        corner.copy_(corner.triu() + corner.triu(1).T)
    return A
