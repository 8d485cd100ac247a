"""A kernel that was learned: a combination of functions of pairs, and a kernel like any other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelwright.hyper.bases import Basis, MidpointBasis, PairBasis
from kernelwright.hyperkernels import PointPairs
from kernelwright.indefinite import Signature, signature
from kernelwright.kernels.base import Kernel

__all__ = ["LearnedKernel"]


class LearnedKernel(Kernel):
    """``k*(x, z) = sum_p w_p phi_p(x, z) + bias``, cut to [-bound, bound] if there is a bound.

    It may be indefinite: ``signature(X)`` tells by how much. Its numbers are fixed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from kernelwright import HyperKernelRidge
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> kernel = HyperKernelRidge().fit(X, y).kernel_
    >>> kernel(X[:3], X[:2]).shape
    (3, 2)
    >>> bool(SVC(kernel=kernel).fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(self, basis: Basis, weights: Tensor, bias: float = 0.0, bound: float | None = None) -> None:
        super().__init__()
        if isinstance(basis, PairBasis):  # far cheaper to evaluate, where the hyper-kernel allows it
            kept = weights != 0
            basis = PairBasis(basis.hyperkernel, PointPairs(*(x[kept] for x in basis.pairs)))
            basis, weights = basis.as_midpoints(weights[kept]) or (basis, weights[kept])
        self.basis, self.weights, self.bias, self.bound = basis, weights.detach(), float(bias), bound
        self.hyperkernel = basis.hyperkernel.requires_grad_(False)

    @property
    def definite(self) -> bool:
        """Whether it is positive definite by construction: no negative weight, no cut."""
        return bool((self.weights >= 0).all()) and self.bias >= 0 and self.bound is None

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        K = self.basis.combine(self.weights, X.double(), (X if Z is None else Z).double())
        return self._cut(K.add_(self.bias)).to(X.dtype)

    def _diag(self, X: Tensor) -> Tensor:
        blocks = [self.basis.at(PointPairs(x, x)) @ self.weights for x in X.double().split(2048)]
        return self._cut(torch.cat(blocks) + self.bias).to(X.dtype)

    def _cut(self, values: Tensor) -> Tensor:
        return values if self.bound is None else values.clamp_(-self.bound, self.bound)

    def signature(self, X: Any) -> Signature:
        """How indefinite the kernel matrix of these points is."""
        return signature(self.matrix(self.encode(X)))

    def split(self) -> tuple[LearnedKernel, LearnedKernel]:
        """Two positive definite kernels whose difference it is, but for a bound: one a sign of the weights.

        With Gaussian hyper-kernels and ``c >= a/4``, as all integral ones have, each function of the basis is a kernel.
        """
        return tuple(  # type: ignore[return-value]
            LearnedKernel(self.basis, (sign * self.weights).clamp(min=0.0), max(sign * self.bias, 0.0))
            for sign in (1.0, -1.0)
        )

    def __repr__(self) -> str:
        form = "midpoints" if isinstance(self.basis, MidpointBasis) else "pairs"
        return f"LearnedKernel({len(self.basis)} functions of {form}, bias={self.bias:.4g})"
