"""Regression over pairs: ridge, support vector and nonnegative least squares give the weights of a basis.

Ridge minimises ``(1/N) sum_ij w_ij (k(x_i, x_j) - Y_ij)^2 + ridge |k|^2`` with ``N = sum w``, Eq. (4) of [Liu2021]_
(there N = m^2), plus ``CONSTANT b^2`` if a constant b is added to k. One eigendecomposition gives the solutions for all
ridges. Targets come centred and in units of their spread; whoever did that puts it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
import torch
from scipy.optimize import nnls
from sklearn.svm import SVR, LinearSVR
from torch import Tensor

from kernelwright.distances import squared_euclidean
from kernelwright.errors import NumericalError
from kernelwright.hyper.bases import Basis, MidpointBasis
from kernelwright.hyper.pairs import Pairs
from kernelwright.hyperkernels import PointPairs
from kernelwright.linalg import eigen, factorise, triangular_solve, weighted_gram

__all__ = [
    "Coefficients",
    "DualPath",
    "PrimalPath",
    "all_pair_moments",
    "exact_ridge",
    "fold_moments",
    "largest_good",
    "leave_points_out",
    "leave_points_out_dual",
    "nonnegative",
    "pair_values",
    "point_splits",
    "support_vector",
    "support_vector_primal",
    "whitening",
]

BLOCK_ENTRIES = 2**21  # basis values made at once
MOST_STEPS = 1_000_000  # of a support vector solver, which could go on for ever; it warns when it stops here
ROUNDING = 1e-15  # of a sum in double precision, relative to the norm of its terms
RIDGES = tuple(10.0 ** np.arange(-11.0, 1.1, 0.5))
# A constant that is free would be huge wherever wide functions can make up for it near the points, and k* returns to it
# far from them. This keeps it within a few spreads of the mean.
CONSTANT = 0.01
RANK = 1e-12  # relative: directions of a smaller norm in the hyper-RKHS are rounding


@dataclass(frozen=True)
class Coefficients:
    """Weights of basis functions, and a constant; and how the ridge was chosen, where it was."""

    weights: Tensor
    bias: float = 0.0
    ridge: float = np.nan
    errors: np.ndarray | None = None  # for each of RIDGES


class Path(Protocol):
    """Solutions for every ridge."""

    def at(self, ridge: float) -> Coefficients:
        """The solution for one."""


# sums over pairs ---------------------------------------------------------------------------------------


def fold_moments(basis: Basis, X: Tensor, pairs: Pairs, folds: Tensor) -> dict[tuple[int, int], Tensor]:
    """``A^T diag(w) A`` with ``A = [phi, Y, 1]`` for the pairs of each two folds of points.

    All that squared loss needs: training on all points but a fold's, and the error at its pairs, are sums of these.
    """
    f, g = folds[pairs.first], folds[pairs.second]
    codes = torch.minimum(f, g) * (int(folds.max()) + 1) + torch.maximum(f, g)
    values = pair_values(basis, X)
    moments = {}
    for code in codes.unique().tolist():
        total: Tensor | float = 0.0
        for rows in (codes == code).nonzero()[:, 0].split(max(1, BLOCK_ENTRIES // len(basis))):
            some = pairs.subset(rows)
            A = torch.cat([values(some), some.targets[:, None], torch.ones(len(some), 1, dtype=torch.float64)], 1)
            total = total + weighted_gram(A, some.weights[:, None])
        moments[divmod(code, int(folds.max()) + 1)] = torch.as_tensor(total)
    return moments


def pair_values(basis: Basis, X: Tensor) -> Callable[[Pairs], Tensor]:
    """The basis at pairs of rows of X; bumps of the midpoint form are made once a point, not once a pair."""
    if not isinstance(basis, MidpointBasis):
        return lambda pairs: basis.at(PointPairs(X[pairs.first], X[pairs.second]))
    bumps, x = basis.bumps(X), basis.hyperkernel.scaled(X)

    def values(pairs: Pairs) -> Tensor:
        lengths = PointPairs(x[pairs.first], x[pairs.second]).squared_length
        return basis.at_bumps(bumps[:, pairs.first] * bumps[:, pairs.second], lengths)

    return values


def all_pair_moments(
    basis: MidpointBasis, X: Tensor, root: Tensor, signs: Tensor, *, rank: int = 200, tol: float = 1e-3
) -> Tensor:
    """The moments of all m^2 pairs in O(m q^2 r) for a target ``Y = root diag(signs) root^T``, without visiting a pair.

    With falloffs ``exp(-|x - x'|^2/a') ~ Psi Psi^T`` of rank r the normal matrix is ``sum_t (E^T D_t E) o (E^T D_t
    E)``, ``D_t = diag(psi_t)``. This needs wide falloffs: where ``rank`` columns miss more than ``tol``, an error
    says so.
    """
    x, rates, q = basis.hyperkernel.scaled(X), basis.rates(), len(basis.centres)
    bumps = basis.bumps(X).expand(len(rates), -1, -1)
    M = torch.zeros(len(basis) + 2, len(basis) + 2, dtype=torch.float64)
    for s in range(len(rates)):
        rows = slice(s * q, (s + 1) * q)
        for t in range(s, len(rates)):
            columns = slice(t * q, (t + 1) * q)
            for psi in _falloff_root(x, float(rates[s] + rates[t]), rank, tol).T:
                M[rows, columns] += (bumps[s].T @ (psi[:, None] * bumps[t])) ** 2
            M[columns, rows] = M[rows, columns].T
        Psi = _falloff_root(x, float(rates[s]), rank, tol)
        M[rows, -1] = M[-1, rows] = (bumps[s].T @ Psi).square().sum(1)
        for column, sign in zip(root.T, signs, strict=True):
            M[rows, -2] += sign * (bumps[s].T @ (column[:, None] * Psi)).square().sum(1)
        M[-2, rows] = M[rows, -2]
    M[-1, -1], M[-1, -2] = float(len(x)) ** 2, (signs * root.sum(0).square()).sum()
    M[-2, -1], M[-2, -2] = M[-1, -2], ((signs * (root.T @ root)) @ (signs * (root.T @ root))).trace()
    return M


def _falloff_root(x: Tensor, rate: float, rank: int, tol: float) -> Tensor:
    """``Psi`` with ``Psi Psi^T ~ exp(-rate |x - x'|^2 / 2)``, by the leading directions of some landmarks."""
    some = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[: 4 * rank]
    values, vectors = eigen(torch.exp(-0.5 * rate * squared_euclidean(x[some])))
    kept = (values > RANK * values[-1]).nonzero()[:, 0][-rank:]
    Psi = torch.exp(-0.5 * rate * squared_euclidean(x, x[some])) @ (vectors[:, kept] / values[kept].sqrt())
    missed = float((1.0 - Psi.square().sum(1)).mean())  # of the diagonal, which is one; never more than that
    if missed > tol:
        raise NumericalError(
            f"The falloff of a width is not of low rank on these points: {rank} columns miss {missed:.1g} of it. Sums "
            "over all pairs in linear time need wide hyper-kernels; sample pairs instead (n_pairs=...)."
        )
    return Psi


# ridge -------------------------------------------------------------------------------------------------


def whitening(G: Tensor) -> Tensor:
    """T with ``T^T G T = I`` on the span that is there to working precision: weights are ``T u``, norms ``|u|``."""
    values, vectors = eigen(G)
    kept = values > RANK * values[-1]
    return vectors[:, kept] / values[kept].sqrt()


class PrimalPath:
    """Ridge from moments ``A^T diag(w) A``, ``A = [phi, Y, 1]``, with all ridges by one eigendecomposition."""

    def __init__(self, moments: Tensor, T: Tensor, *, bias: bool) -> None:
        M = moments / moments[-1, -1]
        self.mean, self.target_mean = M[:-2, -1], float(M[-2, -1])
        self.share = 1 / (1 + CONSTANT) if bias else 0.0  # of the mean residual, that the constant takes
        gram = M[:-2, :-2] - self.share * torch.outer(self.mean, self.mean)
        self.values, vectors = eigen(T.T @ gram @ T)
        self.back = T @ vectors
        self.projected = self.back.T @ (M[:-2, -2] - self.share * self.target_mean * self.mean)

    def at(self, ridge: float) -> Coefficients:
        w = self.back @ (self.projected / (self.values.clamp(min=0.0) + ridge))
        return Coefficients(w, self.share * (self.target_mean - float(self.mean @ w)))


class DualPath:
    """Ridge (6) on unique pairs: ``(K + N ridge W^-1) alpha + bias = Y``, by the eigenvectors of ``W^1/2 K W^1/2``."""

    def __init__(self, K: Tensor, pairs: Pairs, *, bias: bool) -> None:
        self.root, self.total = pairs.weights.sqrt(), float(pairs.weights.sum())
        self.values, self.vectors = eigen(self.root[:, None] * K * self.root)
        self.projected = self.vectors.T @ (self.root * pairs.targets)
        self.constant = self.vectors.T @ self.root if bias else torch.zeros_like(self.projected)

    def at(self, ridge: float) -> Coefficients:
        noise = self.values.clamp(min=0.0) + self.total * ridge
        b = _constant(self.constant @ (self.projected / noise), self.constant @ (self.constant / noise), ridge)
        return Coefficients(self.root * (self.vectors @ ((self.projected - b * self.constant) / noise)), b)


def exact_ridge(K: Tensor, pairs: Pairs, ridge: float, *, bias: bool) -> Coefficients:
    """The solution of :class:`DualPath` for one ridge, by a Cholesky factor."""
    noise = float(pairs.weights.sum()) * ridge / pairs.weights
    right = torch.stack([pairs.targets, torch.full_like(pairs.targets, float(bias))], 1)
    solved, ones = factorise(K, noise).solve(right).T
    b = _constant(solved.sum() if bias else solved.new_zeros(()), ones.sum(), ridge)
    return Coefficients(solved - b * ones, b)


def _constant(weighted_targets: Tensor, weight: Tensor, ridge: float) -> float:
    """The constant at which ``ridge 1^T alpha = CONSTANT b``, from ``1^T A^-1 Y`` and ``1^T A^-1 1``."""
    return float(weighted_targets / (CONSTANT / ridge + weight))


def point_splits(
    moments: dict[tuple[int, int], Tensor], everything: Tensor | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """For each fold of points, the moments of the pairs without its points, and of those with at least one of them."""
    everything = reduce(torch.add, moments.values()) if everything is None else everything
    for fold in sorted({f for key in moments for f in key}):
        held_out = reduce(torch.add, (M for key, M in moments.items() if fold in key))
        yield everything - held_out, held_out


def leave_points_out(
    splits: Iterable[tuple[Tensor, Tensor]], solve: Callable[[Tensor], Path], ridges: Sequence[float] = RIDGES
) -> np.ndarray:
    """Squared error at pairs of left-out points for each ridge, relative to the squared targets.

    Leaving out pairs, not points, would choose far too small a ridge: the same points would be on both sides.
    """
    errors, squares = np.zeros(len(ridges)), 0.0
    for fitted, held_out in splits:
        if float(fitted[-1, -1]) <= 0 or float(held_out[-1, -1]) <= 0:
            continue  # no pair is known there
        path = solve(fitted)
        for number, ridge in enumerate(ridges):
            found = path.at(ridge)
            v = torch.cat([found.weights, torch.tensor([-1.0, found.bias], dtype=torch.float64)])
            # Large weights cancel: what rounding may have taken away is counted, or such a ridge would look best.
            rounding = ROUNDING * float((v[:, None] * held_out * v).norm())
            errors[number] += max(float(v @ held_out @ v), 0.0) + rounding
        squares += float(held_out[-2, -2])
    return _relative(errors, squares)


def leave_points_out_dual(
    K: Tensor, pairs: Pairs, folds: Tensor, *, bias: bool, ridges: Sequence[float] = RIDGES
) -> np.ndarray:
    """The same for the exact form."""
    errors, squares = np.zeros(len(ridges)), 0.0
    for fold in folds.unique():
        out = (folds[pairs.first] == fold) | (folds[pairs.second] == fold)
        judged, fitted = out.nonzero()[:, 0], (~out).nonzero()[:, 0]
        if len(judged) == 0 or len(fitted) == 0:
            continue
        some, path = pairs.subset(judged), DualPath(K[fitted][:, fitted], pairs.subset(fitted), bias=bias)
        K_new = K[judged][:, fitted]
        for number, ridge in enumerate(ridges):
            found = path.at(ridge)
            gap = K_new @ found.weights + found.bias - some.targets
            errors[number] += float((some.weights * gap**2).sum())
        squares += float((some.weights * some.targets**2).sum())
    return _relative(errors, squares)


def _relative(errors: np.ndarray, squares: float) -> np.ndarray:
    if not np.isfinite(errors).all() or squares <= 0:
        raise ValueError(
            "The ridge cannot be chosen by leaving out points: too few pairs are known, or their values are too large "
            "to be squared. Pass a number (ridge=1e-3, say), or more similarities."
        )
    return errors / squares


def largest_good(ridges: Sequence[float], errors: np.ndarray, slack: float = 0.05) -> float:
    """The largest ridge whose error is within ``slack`` of the least: as good, and far better conditioned."""
    return max(ridge for ridge, error in zip(ridges, errors, strict=True) if error <= (1 + slack) * errors.min())


# other losses ------------------------------------------------------------------------------------------


def nonnegative(moments: Tensor, G: Tensor, ridge: float, *, bias: bool) -> Coefficients:
    """Ridge with weights, and a constant, that are not negative: positive definite by construction."""
    total = moments[-1, -1]
    kept = [*range(len(G)), *([len(moments) - 1] if bias else [])]
    A = moments[kept][:, kept] / total
    A[: len(G), : len(G)] += ridge * G
    factor = factorise(A, 1e-12 * float(A.diagonal().mean()))
    right = triangular_solve(factor, moments[kept, -2][:, None] / total)
    found, _ = nnls(factor.triangle.T, right[:, 0].numpy(), maxiter=30 * len(kept))
    weights = torch.from_numpy(found)
    return Coefficients(weights[: len(G)], float(weights[-1]) if bias else 0.0)


def support_vector(K: Tensor, pairs: Pairs, *, C: float, epsilon: float) -> Coefficients:
    """Epsilon-insensitive regression (8) on unique pairs; their weights make it that of all pairs."""
    machine = SVR(kernel="precomputed", C=C, epsilon=epsilon, cache_size=1000, max_iter=MOST_STEPS)
    machine.random_state = 0  # or it would draw from NumPy's global state
    machine.fit(K.numpy(), pairs.targets.numpy(), sample_weight=pairs.weights.numpy())
    weights = torch.zeros(len(pairs), dtype=torch.float64)
    weights[torch.from_numpy(machine.support_).long()] = torch.from_numpy(machine.dual_coef_[0])
    return Coefficients(weights, float(machine.intercept_[0]))


def support_vector_primal(Z: Tensor, pairs: Pairs, *, C: float, epsilon: float) -> Coefficients:
    """The squared epsilon-insensitive loss, linear in features Z of the pairs; in the primal, as the dual is slow."""
    machine = LinearSVR(
        loss="squared_epsilon_insensitive", dual=False, C=C, epsilon=epsilon, intercept_scaling=100.0, random_state=0
    )
    # liblinear penalises the intercept; as the weight of a large constant feature it is small enough not to matter.
    machine.fit(Z.numpy(), pairs.targets.numpy(), sample_weight=pairs.weights.numpy())
    return Coefficients(torch.from_numpy(machine.coef_), float(machine.intercept_[0]))
