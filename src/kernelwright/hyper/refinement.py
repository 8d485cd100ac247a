"""What a hyper-kernel leaves over, smoothed over pairs of known points.

A Gaussian hyper-kernel sees of a pair its length and its midpoint, no more. A similarity that follows a manifold,
say, has more structure. Its residual R between the known points is extended by ridge regression with the product
kernel of pairs ``k(x, r) k(x', s)`` (pairwise learning, [Stock2018]_), which has a closed form in the eigenvectors of
one m x m matrix: ``k(x)^T B k(x')`` with ``B = U ((U^T R U) / (e e^T + noise)) U^T``, ``K = U diag(e) U^T``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kernelwright.kernels import Gaussian
from kernelwright.kernels.base import Kernel
from kernelwright.linalg import eigen

__all__ = ["PairSmoother", "smooth_residual"]

WIDTHS = (0.25, 0.5, 1.0, 2.0)  # of the median distance
NOISES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
RANK = 1e-6  # relative: smaller eigenvalues of B are left out


class PairSmoother(Kernel):
    """``k(x, z) = sum_r signs_r f_r(x) f_r(z)``, ``f(x) = directions^T kappa(x, points)`` by a Gaussian kappa."""

    def __init__(self, kernel: Gaussian, points: Tensor, directions: Tensor, signs: Tensor) -> None:
        super().__init__()
        self.kernel = kernel.requires_grad_(False)
        self.points, self.directions, self.signs = points, directions, signs

    @property
    def definite(self) -> bool:
        return bool((self.signs > 0).all())

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        left = self._features(X)
        return (left * self.signs) @ (left if Z is None else self._features(Z)).T

    def _features(self, X: Tensor) -> Tensor:
        return self.kernel.forward(X, self.points) @ self.directions

    def _diag(self, X: Tensor) -> Tensor:
        return self._features(X).square() @ self.signs

    def part(self, sign: float) -> PairSmoother:
        """The positive or the negative part, as a positive definite kernel."""
        kept = self.signs == sign
        return PairSmoother(self.kernel, self.points, self.directions[:, kept], self.signs[kept].abs())


def smooth_residual(X: Tensor, R: Tensor, folds: Tensor, spread: float) -> tuple[PairSmoother, float]:
    """The best smoother of a residual matrix, and the share of its squares that remains at left-out points.

    ``spread`` is the length that widths are relative to. Unknown entries (NaN) count as fitted already.
    """
    R = R.nan_to_num(0.0)
    errors = {
        (width, noise): error
        for width in WIDTHS
        for noise, error in zip(NOISES, _left_out_errors(Gaussian(width * spread), X, R, folds), strict=True)
    }
    width, noise = min(errors, key=lambda setting: errors[setting])
    kernel = Gaussian(width * spread)
    values, U = _spectrum(kernel, X)
    B = U @ (_shrunk(values, U, R, noise)) @ U.T
    weights, vectors = eigen(0.5 * (B + B.T))
    kept = weights.abs() > RANK * weights.abs().max()
    directions = vectors[:, kept] * weights[kept].abs().sqrt()
    return PairSmoother(kernel, X, directions, weights[kept].sign()), errors[width, noise]


def _left_out_errors(kernel: Gaussian, X: Tensor, R: Tensor, folds: Tensor) -> list[float]:
    """For each noise, the share of the squared residual that remains at pairs with a left-out point."""
    errors, total = torch.zeros(len(NOISES), dtype=torch.float64), 0.0
    for fold in folds.unique():
        out, inside = (folds == fold).nonzero()[:, 0], (folds != fold).nonzero()[:, 0]
        known, new, mixed = R[inside][:, inside], R[out][:, out], R[out][:, inside]
        values, U = _spectrum(kernel, X[inside])
        with torch.no_grad():
            features = kernel.forward(X[out], X[inside]) @ U
        for number, noise in enumerate(NOISES):
            rows = features @ _shrunk(values, U, known, noise)
            # A mixed pair stands in the matrix twice.
            errors[number] += (rows @ features.T - new).square().sum()
            errors[number] += 2.0 * (rows @ (U * values).T - mixed).square().sum()
        total += float(new.square().sum() + 2.0 * mixed.square().sum())
    return (errors / max(total, 1e-300)).tolist()


def _spectrum(kernel: Gaussian, X: Tensor) -> tuple[Tensor, Tensor]:
    values, U = eigen(kernel.matrix(X))
    return values.clamp(min=0.0), U


def _shrunk(values: Tensor, U: Tensor, R: Tensor, noise: float) -> Tensor:
    return (U.T @ R @ U) / (torch.outer(values, values) + noise)
