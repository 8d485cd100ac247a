"""A given Gram matrix as a kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelwright.arrays import as_matrix
from kernelwright.kernels.base import Kernel

__all__ = ["Precomputed"]


class Precomputed(Kernel):
    """Kernel values that are known already.

    A point is the row of its kernel values with the training objects, behind its own place among them. So any
    subset of training points still knows its columns, and a new object (place -1) can be compared with
    training objects, but not with another new object.

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
        """Points of the training objects from their square Gram matrix."""
        K = as_matrix(K)
        if K.shape[0] != K.shape[1]:
            raise ValueError(
                f"A precomputed kernel must be square at fit: rows and columns are the training objects. "
                f"Got shape {tuple(K.shape)} instead."
            )
        gap = float((K - K.T).abs().max())
        if gap > 1e-8 * max(1.0, float(K.abs().max())):
            raise ValueError(f"A precomputed kernel must be symmetric. Entries differ from their mirror by {gap:.3g}.")
        return torch.column_stack([torch.arange(len(K), dtype=K.dtype), K])

    def encode(self, X: Any) -> Tensor:
        if torch.is_tensor(X):
            return X
        K = as_matrix(X)
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
