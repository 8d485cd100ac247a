"""The kernel of Brownian motion, whose squared distances are plain distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.kernels.base import Kernel
from kernelwright.numerics.distances import euclidean
from kernelwright.storage.saved import saved

__all__ = ["Brownian"]


@saved("brownian-kernel", fields="_origin")
class Brownian(Kernel):
    """``k(x, z) = (|x - a| + |z - a| - |x - z|) / 2`` with the origin a and Euclidean norms.

    In its space, the squared distance of two points is ``|x - z|``. As the kernel between targets it makes the loss of
    an embedding, with weights that sum to one, the energy score ``E|Y - y| - E|Y - Y'| / 2``: for numbers the
    continuous ranked probability score (CRPS) [Gneiting2007]_, [Sejdinovic2013]_. The origin then cancels. The kernel
    is unbounded: ``sup_diag`` is empirical. It has no parameters to learn.

    Parameters
    ----------
    origin : float or vector, default=0.0
        The point a, whose kernel with all points is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.kernels import Brownian
    >>> Brownian()(np.array([[1.0], [3.0], [-2.0]]))
    array([[1., 1., 0.],
           [1., 3., 0.],
           [0., 0., 2.]])
    """

    def __init__(self, origin: Any = 0.0) -> None:
        super().__init__()
        self.origin = origin

    @property
    def origin(self) -> Any:
        """The point whose kernel with all points is zero: a number for all features, or one for each."""
        return self._origin

    @origin.setter
    def origin(self, value: Any) -> None:
        numbers = np.asarray(value, dtype=np.float64)
        if numbers.ndim > 1 or not np.isfinite(numbers).all():
            raise ValueError(f"The 'origin' parameter of Brownian must be a finite number or vector. Got {value!r}.")
        self._origin: float | tuple[float, ...] = float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist())

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        left = self._diag(X)
        right = left if Z is None else self._diag(Z)
        return 0.5 * (left[:, None] + right - euclidean(X, Z))

    def _diag(self, X: Tensor) -> Tensor:
        origin = torch.as_tensor(self._origin, dtype=X.dtype)
        if origin.ndim and len(origin) != X.shape[1]:
            raise ValueError(f"The origin of Brownian has {len(origin)} features, but the points have {X.shape[1]}.")
        return torch.linalg.vector_norm(X - origin, dim=1)
