"""A kernel that was learned: a combination of functions of pairs, and a kernel like any other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelwright.hyper.bases import Basis, MidpointBasis, PairBasis
from kernelwright.hyper.kernels import PointPairs
from kernelwright.hyper.refinement import PairSmoother
from kernelwright.kernels.base import Kernel
from kernelwright.similarity.indefinite import Signature, signature
from kernelwright.storage.saved import saved

__all__ = ["LearnedKernel"]


@saved("learned-kernel", fields="basis weights bias bound refinement hyperkernel")
class LearnedKernel(Kernel):
    """``k*(x, z) = sum_p w_p phi_p(x, z) + bias``, clipped to [-bound, bound] if there is a bound.

    With a ``refinement``, the residual of the fit is smoothed over pairs of known points and added. The kernel may be
    indefinite: ``signature(X)`` says by how much. Its parameters are fixed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from kernelwright import HyperKernelRidge
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> kernel = HyperKernelRidge(random_state=0).fit(X, y).kernel_
    >>> kernel(X[:3], X[:2]).shape
    (3, 2)
    >>> bool(SVC(kernel=kernel).fit(X, y).score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        basis: Basis,
        weights: Tensor,
        bias: float = 0.0,
        bound: float | None = None,
        refinement: PairSmoother | None = None,
    ) -> None:
        super().__init__()
        if isinstance(basis, PairBasis):  # much cheaper to evaluate, if the hyper-kernel allows it
            used = weights != 0
            basis, weights = basis.kept(used), weights[used]
            basis, weights = basis.as_midpoints(weights) or (basis, weights)
        self.basis: Basis = basis.fixed()
        self.weights, self.bias, self.bound = weights.detach(), float(bias), bound
        self.refinement = refinement
        self.hyperkernel = self.basis.hyperkernel

    @property
    def definite(self) -> bool:
        """Whether it is positive definite by construction: no negative weight, no bound."""
        plain = self.bound is None and (self.refinement is None or self.refinement.definite)
        return plain and bool((self.weights >= 0).all()) and self.bias >= 0

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        left, right = X.double(), (X if Z is None else Z).double()
        K = self.basis.combine(self.weights, left, right).add_(self.bias)
        if self.refinement is not None:
            K += self.refinement.forward(left, right)
        return self._cut_(K).to(X.dtype)

    def _diag(self, X: Tensor) -> Tensor:
        blocks = [self.basis.at(PointPairs(x, x)) @ self.weights for x in X.double().split(2048)]
        values = torch.cat(blocks) + self.bias
        if self.refinement is not None:
            values += self.refinement._diag(X.double())
        return self._cut_(values).to(X.dtype)

    def _cut_(self, values: Tensor) -> Tensor:
        return values if self.bound is None else values.clamp_(-self.bound, self.bound)

    def signature(self, X: Any) -> Signature:
        """Return how indefinite the kernel matrix of these points is."""
        return signature(self.matrix(self.encode(X)))

    def split(self) -> tuple[LearnedKernel, LearnedKernel]:
        """Return two positive definite kernels, of the positive and the negative weights: k* is their difference.

        A bound is ignored. With Gaussian hyper-kernels and ``c >= a/4`` (all integral ones), each function of the basis
        is a kernel.
        """
        return self._part(1.0), self._part(-1.0)

    def _part(self, sign: float) -> LearnedKernel:
        refinement = None if self.refinement is None else self.refinement.part(sign)
        return LearnedKernel(
            self.basis, (sign * self.weights).clamp(min=0.0), max(sign * self.bias, 0.0), refinement=refinement
        )

    def __repr__(self) -> str:
        form = "midpoints" if isinstance(self.basis, MidpointBasis) else "pairs"
        more = "" if self.refinement is None else f", refined at {len(self.refinement.points)} points"
        return f"LearnedKernel({len(self.basis)} functions of {form}, bias={self.bias:.4g}{more})"
