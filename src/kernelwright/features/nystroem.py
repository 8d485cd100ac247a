"""Nystroem features of a kernel at landmarks."""

from __future__ import annotations

from typing import Any

import torch
from sklearn.cluster import MiniBatchKMeans
from torch import Tensor

from kernelwright.kernels import Gaussian, Kernel
from kernelwright.kernels.feature import FeatureMap
from kernelwright.kernels.vector import whole_number
from kernelwright.numerics.linalg import Factor, eigen, factorise, triangular_solve
from kernelwright.storage.saved import saved

__all__ = ["Nystroem"]


@saved("nystroem-features", fields="kernel n_landmarks landmarks seed", buffers="points root")
class Nystroem(FeatureMap):
    """Nystroem features [Williams2001]_: ``z(x) = L^-1 k(x)``, k(x) the kernel values with landmarks, ``K_MM = L L^T``.

    Inner products equal the kernel if one of the two points is a landmark. If the kernel may be indefinite, such as a
    learned one, its spectrum is flipped: ``z(x) = |L|^-1/2 U^T k(x)`` with ``K_MM = U L U^T``.

    Parameters
    ----------
    kernel : Kernel, default=Gaussian("median")
        Its parameters are learned; the landmarks stay fixed.
    n_landmarks : int, default=500
    landmarks : {"uniform", "kmeans", "leverage"}, default="uniform"
        Random training points, k-means centres, or random points drawn by approximate ridge leverage scores, which
        favour points that the others do not explain.
    seed : int, default=0
        Seed of the choice of landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.features import Nystroem
    >>> from kernelwright.kernels import Gaussian
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> features = Nystroem(Gaussian(), n_landmarks=20)
    >>> Z = features.fit(X)(X)
    >>> bool(np.abs(Z @ Z.T - Gaussian()(X)).max() < 1e-6)
    True
    """

    RULES = ("uniform", "kmeans", "leverage")
    points: Tensor
    root: Tensor

    def __init__(
        self, kernel: Kernel | None = None, n_landmarks: int = 500, landmarks: str = "uniform", seed: int = 0
    ) -> None:
        super().__init__()
        if kernel is not None and not isinstance(kernel, Kernel):
            raise ValueError(
                f"The 'kernel' parameter of Nystroem must be a kernel, such as Gaussian(). Got {kernel!r} instead; "
                "the number of landmarks is 'n_landmarks'."
            )
        self.kernel = Gaussian("median") if kernel is None else kernel
        self.n_landmarks, self.landmarks, self.seed = whole_number(n_landmarks, "n_landmarks", self), landmarks, seed
        self.forget_()

    def forget_(self) -> None:
        if self.landmarks not in self.RULES:
            raise ValueError(
                f"The 'landmarks' parameter of Nystroem must be one of {list(self.RULES)}. "
                f"Got {self.landmarks!r} instead."
            )
        self.register_buffer("points", torch.empty(0, 0, dtype=torch.float64))
        self.register_buffer("root", torch.empty(0, 0, dtype=torch.float64))

    @property
    def n_features(self) -> int:
        if len(self.points) and not self.kernel.definite:
            return self.root.shape[1]
        return len(self.points) or self.n_landmarks

    @property
    def bound(self) -> float | None:
        return float(self.kernel.sup_diag().detach()) if self.kernel.bounded else None

    def _points(self, X: Any) -> Tensor:
        return self.kernel.encode(X)

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        super().prepare_(X, weights)  # prepares the kernel
        if not self.kernel.definite:
            self.kernel.requires_grad_(False)  # flipped features are not differentiated
        with torch.no_grad():
            if len(self.points) == 0:
                self.points = self._choose(X)
            if not self.kernel.definite and self.root.numel() == 0:
                self.root = self._flipped_root()

    def _choose(self, X: Tensor) -> Tensor:
        size, generator = min(self.n_landmarks, len(X)), torch.Generator().manual_seed(int(self.seed))
        order = torch.randperm(len(X), generator=generator)
        if self.landmarks == "kmeans" and size < len(X):
            means = MiniBatchKMeans(size, random_state=int(self.seed), n_init=1, batch_size=max(1024, 3 * size))
            return torch.from_numpy(means.fit(X[order[: 50 * size]].numpy()).cluster_centers_)
        if self.landmarks == "leverage" and size < len(X):
            scores = self._leverages(X, X[order[:size]])
            return X[torch.multinomial(scores, size, generator=generator).sort().values]
        return X[order[:size].sort().values]

    def _leverages(self, X: Tensor, sample: Tensor) -> Tensor:
        """Return approximate ridge leverage scores from a first set of landmarks."""
        noise = len(sample) * 1e-3
        factor = factorise(self.kernel.matrix(sample), noise)
        scores = [
            (self.kernel._diag(block) - (triangular_solve(factor, self.kernel.forward(sample, block)) ** 2).sum(0))
            for block in X.split(4096)
        ]
        return torch.cat(scores).clamp(min=1e-12)

    def forward(self, X: Tensor) -> Tensor:
        widths = self.points if self.kernel.takes_vectors else X  # strings may be padded to any width
        self._check_inputs(X, widths.shape[1] if len(self.points) else None)
        if not self.kernel.definite:
            return self.kernel.forward(X, self.points) @ self.root.to(X.dtype)
        return _Whitened.apply(self.kernel.forward(X, self.points), self.kernel.forward(self.points))

    def _flipped_root(self) -> Tensor:
        """Return ``U |L|^-1/2`` without numerically zero directions; computed once, because the kernel is fixed."""
        values, vectors = eigen(self.kernel.matrix(self.points).double())
        kept = values.abs() > 1e-10 * values.abs().max()
        return vectors[:, kept] / values[kept].abs().sqrt()


class _Whitened(torch.autograd.Function):
    """``Z = K_xM L^-T`` with ``K_MM = L L^T``.

    Backward, with G = dq/dZ: ``dq/dK_xM = G L^-1`` and ``dq/dK_MM = -L^-T tril(G^T Z) L^-1``, symmetrised, where
    tril halves the diagonal.
    """

    JITTER = 1e-10  # of the mean of the diagonal: landmarks may be close to each other

    @staticmethod
    def forward(ctx: Any, K_xM: Tensor, K_MM: Tensor) -> Tensor:
        level = _Whitened.JITTER * float(K_MM.diagonal().mean())
        ctx.factor = factorise(K_MM.detach().double(), level)
        ctx.Z = triangular_solve(ctx.factor, K_xM.detach().double().T).T.contiguous()
        return ctx.Z.to(K_xM)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        factor: Factor = ctx.factor
        G = slopes[0].double()
        half = torch.tril(G.T @ ctx.Z)
        half.diagonal().mul_(0.5)
        inner = triangular_solve(factor, half, transposed=True)  # L^-T half
        d_MM = triangular_solve(factor, inner.T.contiguous(), transposed=True).T  # ... L^-1
        d_xM = triangular_solve(factor, G.T.contiguous(), transposed=True).T
        return d_xM.to(slopes[0]), (-0.5 * (d_MM + d_MM.T)).to(slopes[0])
