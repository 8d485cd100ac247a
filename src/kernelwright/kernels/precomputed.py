"""Kernels given as a Gram matrix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelwright.inputs.arrays import as_matrix
from kernelwright.kernels.base import Kernel
from kernelwright.storage.saved import saved

__all__ = ["Precomputed", "looks_like_distances"]

ROUNDING = 1e-6  # relative size of differences in a precomputed matrix that are rounding errors


def looks_like_distances(K: Tensor) -> bool:
    """Return whether every object is least similar to itself: each row is smallest on the diagonal.

    A positive semidefinite matrix is like that only if all its values are equal: ``K_ij`` is at most the mean of
    ``K_ii`` and ``K_jj``.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.kernels.precomputed import looks_like_distances
    >>> looks_like_distances(torch.tensor([[0.0, 2.0], [2.0, 0.0]])), looks_like_distances(torch.ones(2, 2))
    (True, False)
    """
    if not K.numel():
        return False
    smallest, largest = (float(bound) for bound in K.aminmax())
    spread = largest - smallest
    if spread <= ROUNDING * max(abs(smallest), abs(largest)):
        return False  # constant
    return bool((K.diagonal() <= K.amin(1) + ROUNDING * spread).all())


def finite_values(K: Tensor) -> Tensor:
    """Return the matrix; raise an error that locates a value that is not finite."""
    missing = (~torch.isfinite(K)).nonzero()
    if len(missing):
        row, column = missing[0].tolist()
        value = {"nan": "NaN"}.get(text := str(float(K[row, column])), text)
        raise ValueError(
            f"A precomputed kernel must have a finite value for each pair, but the one of row {row} and column "
            f"{column} is {value} (values that are NaN or infinity: {len(missing)}). Compute it, or leave out "
            "objects with missing values."
        )
    return K


@saved("precomputed-kernel")
class Precomputed(Kernel):
    """A kernel whose values are already known.

    A point is its index among the training objects, followed by the row of its kernel values with them. So any subset
    of training points still knows its columns. A new object (index -1) can be compared with training objects, but not
    with another new object.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.kernels import Precomputed
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> kernel = Precomputed()
    >>> points = kernel.encode_training(K)
    >>> kernel(kernel.encode([[5.0, 6.0]]), points)
    tensor([[5., 6.]], dtype=torch.float64)
    """

    takes_vectors = False  # type: ignore[assignment]

    def encode_training(self, K: Any) -> Tensor:
        """Encode the training objects from their square Gram matrix."""
        points = self.encode_similarities(K)
        if looks_like_distances(points[:, 1:]):
            raise ValueError(
                "This precomputed matrix is not a kernel matrix: each row is smallest on the diagonal. If the "
                "values are distances, convert them to similarities, such as np.exp(-D / D_train.mean()), for fit and "
                "prediction. If they are similarities, put the similarity of each object to itself on the diagonal."
            )
        return points

    def encode_similarities(self, S: Any) -> Tensor:
        """Encode the training objects from any square symmetric matrix, for methods that accept indefinite ones."""
        S = finite_values(as_matrix(S))
        if S.shape[0] != S.shape[1]:
            raise ValueError(
                f"A precomputed kernel must be square at fit: rows and columns are the training objects. "
                f"Got shape {tuple(S.shape)} instead."
            )
        gap = float((S - S.T).abs().max())
        if gap > 1e-8 * max(1.0, float(S.abs().max())):
            raise ValueError(f"A precomputed kernel must be symmetric. Entries differ from their mirror by {gap:.3g}.")
        return torch.column_stack([torch.arange(len(S), dtype=S.dtype), S])

    def encode(self, X: Any) -> Tensor:
        if torch.is_tensor(X):
            return X
        K = finite_values(as_matrix(X))
        return torch.column_stack([torch.full((len(K),), -1.0, dtype=K.dtype), K])

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        places = (X if Z is None else Z)[:, 0].long()
        if bool((places < 0).any()):
            raise ValueError("The kernel between two new objects is not among the precomputed values.")
        return X[:, 1 + places]

    def _diag(self, X: Tensor) -> Tensor:
        return X.gather(1, 1 + X[:, :1].long()).squeeze(1)

    def sup_diag(self, X: Any = None) -> Tensor:
        return super().sup_diag(None) if X is None else self._diag(X).max()
