"""Refinement: the residual of a learned kernel, smoothed over pairs of known points.

A Gaussian hyper-kernel sees only the length and the midpoint of a pair. A similarity along a manifold, for example,
has more structure. Its residual R between the known points is extended by ridge regression with the product kernel of
pairs ``k(x, r) k(x', s)`` (pairwise learning, [Stock2018]_). It has a closed form in the eigenvectors of one m x m
matrix: ``k(x)^T B k(x')`` with ``B = U ((U^T R U) / (e e^T + noise)) U^T``, ``K = U diag(e) U^T``.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from kernelwright.hyper.targets import MatrixTarget, PairProblem
from kernelwright.kernels import Gaussian
from kernelwright.kernels.base import Kernel
from kernelwright.kernels.vector import spread_rows
from kernelwright.numerics.distances import euclidean, median_distance
from kernelwright.numerics.linalg import eigen
from kernelwright.storage.saved import saved

__all__ = ["PairSmoother", "refinement_of", "smooth_residual"]

REFINED = (20, 3000)  # fewest and most points
REFINED_FROM = 0.02  # share of the targets' deviation: a smaller residual is not refined
REFINED_TO = 0.9  # share of the squared residual that may remain at held-out points

WIDTHS = (0.25, 0.5, 1.0, 2.0)  # multiples of the median distance
NOISES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
RANK = 1e-6  # relative: smaller eigenvalues of B are dropped
CHOOSING_POINTS, FOLDS = 500, 4
FILLINGS = 10  # rounds of filling in unknown entries


@saved("pair-smoother", fields="kernel points directions signs")
class PairSmoother(Kernel):
    """``k(x, z) = sum_r signs_r f_r(x) f_r(z)``, ``f(x) = directions^T kappa(x, points)``, kappa Gaussian."""

    def __init__(self, kernel: Gaussian, points: Tensor, directions: Tensor, signs: Tensor) -> None:
        super().__init__()
        self.kernel = copy.deepcopy(kernel).requires_grad_(False)
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
        """Return the positive or the negative part, as a positive definite kernel."""
        kept = self.signs == sign
        return PairSmoother(self.kernel, self.points, self.directions[:, kept], self.signs[kept].abs())


def refinement_of(
    kernel: Kernel, problem: PairProblem, *, refine: bool | str, definite: bool, random: torch.Generator
) -> PairSmoother | None:
    """Return a smoother of a kernel's residual on a given matrix, or None where it does not help at held-out points.

    ``refine`` is True (always), False (never) or "auto". A kernel that must be ``definite`` cannot be refined.
    """
    target, X = problem.target, problem.points
    possible = isinstance(target, MatrixTarget) and REFINED[0] <= len(X) <= REFINED[1] and not definite
    if refine is True and not possible:
        raise ValueError(
            f"refine=True is for matrices of {REFINED[0]} to {REFINED[1]} points, without nonnegative=True. "
            "Use 'auto' or False."
        )
    if refine is False or not isinstance(target, MatrixTarget) or not possible:
        return None
    residual, known = target.values - kernel.matrix(X), ~target.values.isnan()
    if residual[known].square().mean() < REFINED_FROM**2 * target.values[known].var():
        return None  # the fit is good already, and a smoother would have to keep all points
    trust = known.double() if target.weights is None else torch.where(known, target.weights / target.weights.max(), 0.0)
    spread = median_distance(euclidean(X[spread_rows(len(X))]))
    smoother, remaining = smooth_residual(X, residual.nan_to_num(0.0), trust, spread, random)
    return smoother if refine is True or remaining < REFINED_TO else None


def smooth_residual(
    X: Tensor, R: Tensor, trust: Tensor, spread: float, random: torch.Generator
) -> tuple[PairSmoother, float]:
    """Find the best smoother of a residual matrix, and the share of the squares that remains at held-out points.

    ``trust`` is a weight from 0 (unknown) to 1 for each entry. Entries below 1 are moved towards the smoother's own
    values in a few rounds. ``spread`` is the length that widths are multiples of. Width and noise are chosen on a
    sample of the points.
    """
    some = torch.randperm(len(X), generator=random)[:CHOOSING_POINTS]
    folds = torch.arange(len(some)) % FOLDS
    points, residual, certain = X[some], R[some][:, some], trust[some][:, some]
    errors = {
        (width, noise): error
        for width in WIDTHS
        for noise, error in zip(
            NOISES, _left_out_errors(Gaussian(width * spread), points, residual, certain, folds), strict=True
        )
    }
    width, noise = min(errors, key=lambda setting: errors[setting])
    kernel = Gaussian(width * spread)
    values, U = _spectrum(kernel, X)
    B = U @ _fitted(values, U, U.T @ (trust * R) @ U, trust, noise) @ U.T
    weights, vectors = eigen(0.5 * (B + B.T))
    kept = weights.abs() > RANK * weights.abs().max()
    directions = vectors[:, kept] * weights[kept].abs().sqrt()
    return PairSmoother(kernel, X, directions, weights[kept].sign()), errors[width, noise]


def _left_out_errors(kernel: Gaussian, X: Tensor, R: Tensor, trust: Tensor, folds: Tensor) -> list[float]:
    """Return, for each noise, the share of the squared residual that remains at pairs with a held-out point."""
    errors, total = torch.zeros(len(NOISES), dtype=torch.float64), 0.0
    for fold in folds.unique():
        out, inside = (folds == fold).nonzero()[:, 0], (folds != fold).nonzero()[:, 0]
        values, U = _spectrum(kernel, X[inside])
        with torch.no_grad():
            features = kernel.forward(X[out], X[inside]) @ U
        known, certain = R[inside][:, inside], trust[inside][:, inside]
        projected = U.T @ (certain * known) @ U
        # A pair of a held-out point and another point is in the matrix twice.
        blocks = [
            (R[out][:, others], trust[out][:, others], right, times)
            for others, right, times in ((out, features, 1.0), (inside, U * values, 2.0))
        ]
        for number, noise in enumerate(NOISES):
            rows = features @ _fitted(values, U, projected, certain, noise)
            for residual, weight, right, times in blocks:
                errors[number] += times * (weight * (rows @ right.T - residual).square()).sum()
        total += sum(times * float((weight * residual.square()).sum()) for residual, weight, _, times in blocks)
    return (errors / max(total, 1e-300)).tolist()


def _fitted(values: Tensor, U: Tensor, projected: Tensor, trust: Tensor, noise: float) -> Tensor:
    """Return ``A`` of the fit ``K U A U^T K``, from ``U^T (trust o R) U``.

    Entries that are not trusted are filled in from the fit, and the fit is repeated.
    """
    shrink = torch.outer(values, values) + noise
    A = projected / shrink
    if bool((trust == 1.0).all()):
        return A
    for _ in range(FILLINGS):
        fit = (U * values) @ A @ (U * values).T
        A = (projected + U.T @ ((1.0 - trust) * fit) @ U) / shrink
    return A


def _spectrum(kernel: Gaussian, X: Tensor) -> tuple[Tensor, Tensor]:
    values, U = eigen(kernel.matrix(X))
    return values.clamp(min=0.0), U
