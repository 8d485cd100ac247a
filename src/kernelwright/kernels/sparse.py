"""Kernels on sparse rows: the default, and which others work on them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kernelwright.kernels.base import (
    Constant,
    ConvexSum,
    Gradients,
    Kernel,
    Product,
    Pullback,
    Scaled,
    Sum,
)
from kernelwright.kernels.vector import Gaussian, Laplace, Linear, Polynomial, RationalQuadratic
from kernelwright.numerics.distances import squared_norms
from kernelwright.parameters import Positive
from kernelwright.storage.saved import saved

__all__ = ["Angular", "refuse_unless_sparse"]


@saved("angular-kernel", parameters="log_lengthscale")
class Angular(Kernel):
    """``k(x, z) = exp((cos(x, z) - 1) / lengthscale^2)``, with the cosine of the angle between two points.

    This is the Gaussian kernel of points divided by their length. The cosine with a point of zeros is zero.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from kernelwright.kernels import Angular
    >>> Angular()(csr_array([[1.0, 1.0], [5.0, 5.0], [3.0, 0.0]])).round(3)
    array([[1.   , 1.   , 0.746],
           [1.   , 1.   , 0.746],
           [0.746, 0.746, 1.   ]])
    """

    lengthscale = Positive(1e-2, 1e2, vectors=False)
    log_lengthscale: nn.Parameter

    def __init__(self, lengthscale: float = 1.0) -> None:
        super().__init__()
        self.lengthscale = lengthscale

    bounded = True  # type: ignore[assignment]

    def sup_diag(self, X: Any = None) -> Tensor:
        return torch.ones((), dtype=torch.float64)

    def _diag(self, X: Tensor) -> Tensor:
        return self._of_cosines((squared_norms(X) > 0).to(X.dtype))

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return self._of_cosines(_cosines(X, Z))

    def _of_cosines(self, c: Tensor) -> Tensor:
        return ((c - 1.0) / self.lengthscale**2).exp()

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        with torch.no_grad():
            c, scale = _cosines(X, None), self.lengthscale
            K = self._of_cosines(c)

        def pullback(dK: Tensor) -> Gradients:
            learned = self.log_lengthscale.requires_grad
            return {"log_lengthscale": 2.0 * ((1.0 - c) * K * dK).sum() / scale**2} if learned else {}

        return K, pullback

    def stretch_(self, factor: float) -> None:
        if self.log_lengthscale.requires_grad:
            self.lengthscale = factor * self.lengthscale.detach()


def _cosines(X: Tensor, Z: Tensor | None) -> Tensor:
    """Return the cosines of the angles between points; zero for points of zeros."""
    inverse = [squared_norms(points).clamp(min=1e-300).rsqrt() for points in (X, X if Z is None else Z)]
    return (X @ (X if Z is None else Z).T).mul_(inverse[0][:, None]).mul_(inverse[1])


ON_SPARSE_ROWS = (Angular, Constant, ConvexSum, Gaussian, Laplace, Linear)
ON_SPARSE_ROWS += (Polynomial, Product, RationalQuadratic, Scaled, Sum)  # type: ignore[assignment]


def refuse_unless_sparse(kernel: Kernel) -> None:
    """Raise an error that says what to do if a kernel, or a part of it, does not work on sparse rows.

    A kernel of one's own opts in by an attribute ``takes_sparse = True``: its formula has only ``X @ Z.T``,
    squared or L1 distances of points, and points divided by a number.
    """
    advice = "Use Linear(), Gaussian(), Laplace(), Angular() (the default) or sums of them, or pass X.toarray()."
    for part in kernel.modules():
        if not isinstance(part, Kernel):
            continue
        name = type(part).__name__
        if not (type(part) in ON_SPARSE_ROWS or getattr(part, "takes_sparse", False)):
            raise ValueError(f"The kernel {name} does not work on sparse rows. {advice}")
        if getattr(part, "ard", False):
            raise ValueError(
                f"A length scale for each column of sparse rows is not available: {name} has ard=True or a vector of "
                f"them. Use one length scale for all columns, {name}(lengthscale='median'), or pass X.toarray()."
            )
