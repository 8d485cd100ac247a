"""Ridge regression over pairs, Eqs. (4) to (6) of [Liu2021]_.

It minimises ``(1/N) sum_ij w_ij (k(x_i, x_j) - Y_ij)^2 + ridge |k|^2`` with ``N = sum w`` (there N = m^2), plus
``CONSTANT b^2`` if a constant b is added to k. One eigendecomposition gives the solutions for all ridges. The targets
must be centred and in units of their spread; the caller transforms the solution back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import ClassVar, Protocol

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from kernelwright.errors import NumericalError
from kernelwright.hyper.bases import Basis, MidpointBasis, whitening
from kernelwright.hyper.moments import all_pair_moments, fold_moments, point_splits
from kernelwright.hyper.pairs import Pairs, number_of_pairs
from kernelwright.hyper.regression import Coefficients, PairPart, folds_of, listed, power_of_m
from kernelwright.hyper.solvers import Midpoints
from kernelwright.hyper.targets import LabelTarget
from kernelwright.numerics.linalg import eigen, factorise, triangular_solve

__all__ = [
    "RIDGES",
    "DualPath",
    "NonnegativePath",
    "PairRidge",
    "PrimalPath",
    "exact_ridge",
    "largest_good",
    "leave_points_out",
    "leave_points_out_dual",
    "nonnegative",
]

ROUNDING = 1e-15  # error of a sum in double precision, relative to the norm of its terms
RIDGES = tuple(10.0 ** np.arange(-11.0, 1.1, 0.5))
# A free constant could be huge, because wide functions can cancel it near the points; far from them k* returns to it.
# This penalty keeps it within a few spreads of the mean.
CONSTANT = 0.01


class Path(Protocol):
    """Solutions for every ridge."""

    def at(self, ridge: float) -> Coefficients:
        """Return the solution for one ridge."""


@dataclass(frozen=True)
class PairRidge:
    """Ridge regression over pairs; optionally with nonnegative weights.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.hyper import BasisPlan, PairProblem, PairRidge, fit_pairs
    >>> from kernelwright.hyper.targets import LabelTarget
    >>> X = torch.linspace(-1, 1, 30, dtype=torch.float64)[:, None]
    >>> problem = PairProblem(X, LabelTarget((X[:, 0] > 0).long()))
    >>> fit = fit_pairs(problem, BasisPlan(), PairRidge(ridge=1e-3), random=torch.Generator().manual_seed(0))
    >>> fit.solver, bool(fit.kernel(X)[0, 1] > 0 > fit.kernel(X)[0, -1])
    ('midpoint', True)
    """

    ridge: float | str = "auto"
    bias: bool = True
    nonnegative: bool = False
    refine: bool | str = "auto"
    usual_pairs: int = 100_000
    exact_first: ClassVar[bool] = False

    @property
    def centred(self) -> bool:
        return self.bias and not self.nonnegative  # a negative constant is not positive definite

    @property
    def definite(self) -> bool:
        return self.nonnegative

    def solve(self, part: PairPart, random: torch.Generator) -> tuple[Basis, Coefficients]:
        if (found := _without_pairs(self, part, random)) is not None:
            return found
        # Moments of each two folds are held, so nonnegative weights need much more memory.
        pairs, basis = listed(part, self.usual_pairs, random, matrices=18 if self.nonnegative else 4)
        return basis, _from_pairs(self, basis, part, pairs, random)


def _from_pairs(
    regressor: PairRidge, basis: Basis, part: PairPart, pairs: Pairs, random: torch.Generator
) -> Coefficients:
    """Solve for the weights of a basis, from a list of pairs."""
    X, auto, bias = part.points, regressor.ridge == "auto", regressor.bias
    folds = folds_of(len(X), random) if auto else torch.zeros(len(X), dtype=torch.int64)
    G = basis.gram()
    if part.solver.exact and not regressor.nonnegative:
        errors = leave_points_out_dual(G, pairs, folds, bias=bias) if auto else None
        ridge = _chosen(regressor.ridge, errors, len(X))
        return replace(exact_ridge(G, pairs, ridge, bias=bias), ridge=ridge, errors=errors)
    solve: Callable[[Tensor], Path] = (
        partial(NonnegativePath, G=G, bias=bias)
        if regressor.nonnegative
        else partial(PrimalPath, T=whitening(G), bias=bias)
    )
    moments = fold_moments(basis, X, pairs, folds)
    everything = reduce(torch.add, moments.values())
    return _from_moments(regressor.ridge, everything, partial(point_splits, moments, everything), solve, len(X))


def _without_pairs(regressor: PairRidge, part: PairPart, random: torch.Generator) -> tuple[Basis, Coefficients] | None:
    """Solve on all pairs without listing them, in O(m q^2 r); return None if that is not possible.

    It needs labels and wide falloffs. If the falloffs are not of low rank, the pairs must be listed.
    """
    X, target, solver = part.points, part.target, part.solver
    if not isinstance(solver, Midpoints) or part.centres is None or solver.n_pairs != "all" or regressor.nonnegative:
        return None
    few = number_of_pairs(len(X)) <= regressor.usual_pairs
    if few or not isinstance(target, LabelTarget) or target.point_weights is not None:
        return None
    basis = solver.functions(part.hyperkernel, part.centres)
    try:
        everything = _sums_of_labels(basis, X, target, torch.arange(len(X)))
    except NumericalError:
        return None
    folds = folds_of(len(X), random)

    def splits() -> list[tuple[Tensor, Tensor]]:
        fitted = [_sums_of_labels(basis, X, target, (folds != fold).nonzero()[:, 0]) for fold in folds.unique()]
        return [(some, everything - some) for some in fitted]

    solve = partial(PrimalPath, T=whitening(basis.gram()), bias=regressor.bias)
    return basis, _from_moments(regressor.ridge, everything, splits, solve, len(X))


def _sums_of_labels(basis: MidpointBasis, X: Tensor, target: LabelTarget, rows: Tensor) -> Tensor:
    return all_pair_moments(basis, X[rows], *target.subset(rows).low_rank())


def _from_moments(
    ridge: float | str,
    moments: Tensor,
    splits: Callable[[], Iterable[tuple[Tensor, Tensor]]],
    solve: Callable[[Tensor], Path],
    n_points: int,
) -> Coefficients:
    errors = leave_points_out(splits(), solve) if ridge == "auto" else None
    chosen = _chosen(ridge, errors, n_points)
    return replace(solve(moments).at(chosen), ridge=chosen, errors=errors)


def _chosen(ridge: float | str, errors: np.ndarray | None, n_points: int) -> float:
    return power_of_m(ridge, n_points, "ridge") if errors is None else largest_good(RIDGES, errors)


# solutions ---------------------------------------------------------------------------------------------


class PrimalPath:
    """Ridge solutions from moments ``A^T diag(w) A``, ``A = [phi, Y, 1]``: one eigendecomposition for all ridges."""

    def __init__(self, moments: Tensor, T: Tensor, *, bias: bool) -> None:
        M = moments / moments[-1, -1]
        self.mean, self.target_mean = M[:-2, -1], float(M[-2, -1])
        self.share = 1 / (1 + CONSTANT) if bias else 0.0  # share of the mean residual that the constant takes
        gram = M[:-2, :-2] - self.share * torch.outer(self.mean, self.mean)
        self.values, vectors = eigen(T.T @ gram @ T)
        self.back = T @ vectors
        self.projected = self.back.T @ (M[:-2, -2] - self.share * self.target_mean * self.mean)

    def at(self, ridge: float) -> Coefficients:
        w = self.back @ (self.projected / (self.values.clamp(min=0.0) + ridge))
        return Coefficients(w, self.share * (self.target_mean - float(self.mean @ w)))


class DualPath:
    """Eq. (6) on unique pairs: ``(K + N ridge W^-1) alpha + bias = Y``, by the eigenvectors of ``W^1/2 K W^1/2``."""

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
    """Solve the system of :class:`DualPath` for one ridge, by a Cholesky factor."""
    noise = float(pairs.weights.sum()) * ridge / pairs.weights
    right = torch.stack([pairs.targets, torch.full_like(pairs.targets, float(bias))], 1)
    solved, ones = factorise(K, noise).solve(right).T
    b = _constant(solved.sum() if bias else solved.new_zeros(()), ones.sum(), ridge)
    return Coefficients(solved - b * ones, b)


def _constant(weighted_targets: Tensor, weight: Tensor, ridge: float) -> float:
    """Return the constant at which ``ridge 1^T alpha = CONSTANT b``, from ``1^T A^-1 Y`` and ``1^T A^-1 1``."""
    return float(weighted_targets / (CONSTANT / ridge + weight))


class NonnegativePath:
    """Solutions with nonnegative weights, each solved on its own."""

    def __init__(self, moments: Tensor, G: Tensor, *, bias: bool) -> None:
        self.moments, self.G, self.bias = moments, G, bias

    def at(self, ridge: float) -> Coefficients:
        return nonnegative(self.moments, self.G, ridge, bias=self.bias)


def nonnegative(moments: Tensor, G: Tensor, ridge: float, *, bias: bool) -> Coefficients:
    """Solve for nonnegative weights and a nonnegative constant: the kernel is positive definite by construction."""
    total = moments[-1, -1]
    kept = [*range(len(G)), *([len(moments) - 1] if bias else [])]
    A = moments[kept][:, kept] / total
    A[: len(G), : len(G)] += ridge * G
    factor = factorise(A, 1e-12 * float(A.diagonal().mean()))
    right = triangular_solve(factor, moments[kept, -2][:, None] / total)
    found, _ = nnls(factor.triangle.T, right[:, 0].numpy(), maxiter=30 * len(kept))
    weights = torch.from_numpy(found)
    return Coefficients(weights[: len(G)], float(weights[-1]) if bias else 0.0)


# the choice of the ridge ----------------------------------------------------------------------------


def leave_points_out(
    splits: Iterable[tuple[Tensor, Tensor]], solve: Callable[[Tensor], Path], ridges: Sequence[float] = RIDGES
) -> np.ndarray:
    """Return, for each ridge, the squared error at pairs of held-out points, relative to the squared targets.

    Holding out pairs instead of points would choose a ridge that is much too small, because the same points would be in
    the training and the held-out pairs.
    """
    errors, squares = np.zeros(len(ridges)), 0.0
    for fitted, held_out in splits:
        if float(fitted[-1, -1]) <= 0 or float(held_out[-1, -1]) <= 0:
            continue  # the fold has no known pair
        path = solve(fitted)
        for number, ridge in enumerate(ridges):
            found = path.at(ridge)
            v = torch.cat([found.weights, torch.tensor([-1.0, found.bias], dtype=torch.float64)])
            # Large weights cancel. Without the possible rounding error, such a ridge would look best.
            rounding = ROUNDING * float((v[:, None] * held_out * v).norm())
            errors[number] += max(float(v @ held_out @ v), 0.0) + rounding
        squares += float(held_out[-2, -2])
    return _relative(errors, squares)


def leave_points_out_dual(
    K: Tensor, pairs: Pairs, folds: Tensor, *, bias: bool, ridges: Sequence[float] = RIDGES
) -> np.ndarray:
    """Return the errors of :func:`leave_points_out`, in the exact form."""
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
            "to be squared. Pass a number, such as ridge=1e-3, or more similarities."
        )
    return errors / squares


def largest_good(ridges: Sequence[float], errors: np.ndarray, slack: float = 0.05) -> float:
    """Return the largest ridge whose error is within ``slack`` of the least: as good, and much better conditioned."""
    return max(ridge for ridge, error in zip(ridges, errors, strict=True) if error <= (1 + slack) * errors.min())
