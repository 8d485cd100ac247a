"""Kernels given as a function of two arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from kernelwright.kernels.base import Kernel

__all__ = ["FunctionKernel", "SimilarityFunction"]

SimilarityFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


class FunctionKernel(Kernel):
    """A kernel given as a function ``(X, Z) -> matrix`` of NumPy arrays. It must be symmetric; nothing is learned.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.kernels.function import FunctionKernel
    >>> FunctionKernel(lambda X, Z: np.minimum(X, Z.T))([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    def __init__(self, function: SimilarityFunction) -> None:
        super().__init__()
        self.function = function

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        Z = X if Z is None else Z
        K = torch.from_numpy(np.array(self.function(X.numpy(), Z.numpy()), dtype=np.float64))
        if K.shape != (len(X), len(Z)):
            raise ValueError(
                f"A kernel function must return a matrix with a row for each row of its first argument and a column "
                f"for each row of its second, here {(len(X), len(Z))}. Got shape {tuple(K.shape)} instead."
            )
        return K

    def matrix(self, X: Tensor) -> Tensor:
        K = self.forward(X)
        gap = float((K - K.T).abs().max())
        if gap > 1e-8 * max(1.0, float(K.abs().max())):
            raise ValueError(
                f"A kernel function must be symmetric. Entries differ from their mirror by {gap:.3g}; "
                "use the mean of k(x, z) and k(z, x)."
            )
        return 0.5 * (K + K.T)
