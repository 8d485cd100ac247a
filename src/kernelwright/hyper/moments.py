"""Sums over pairs of products of basis functions, targets and ones: all that the squared loss needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

import torch
from torch import Tensor

from kernelwright.errors import NumericalError
from kernelwright.hyper.bases import RANK, Basis, MidpointBasis
from kernelwright.hyper.kernels import PointPairs
from kernelwright.hyper.pairs import Pairs
from kernelwright.numerics.distances import squared_euclidean
from kernelwright.numerics.linalg import eigen
from kernelwright.numerics.products import weighted_gram

__all__ = ["MOMENT_BLOCK", "all_pair_moments", "fold_moments", "pair_values", "point_splits"]

MOMENT_BLOCK = 2**21  # basis values computed at once


def fold_moments(basis: Basis, X: Tensor, pairs: Pairs, folds: Tensor) -> dict[tuple[int, int], Tensor]:
    """Compute ``A^T diag(w) A`` with ``A = [phi, Y, 1]`` over the pairs between each two folds of points.

    Training without a fold, and the error at the pairs of that fold, need only sums of these matrices.
    """
    f, g = folds[pairs.first], folds[pairs.second]
    codes = torch.minimum(f, g) * (int(folds.max()) + 1) + torch.maximum(f, g)
    values = pair_values(basis, X)
    moments = {}
    for code in codes.unique().tolist():
        total: Tensor | float = 0.0
        for rows in (codes == code).nonzero()[:, 0].split(max(1, MOMENT_BLOCK // len(basis))):
            some = pairs.subset(rows)
            A = torch.cat([values(some), some.targets[:, None], torch.ones(len(some), 1, dtype=torch.float64)], 1)
            total = total + weighted_gram(A, some.weights[:, None])
        moments[divmod(code, int(folds.max()) + 1)] = torch.as_tensor(total)
    return moments


def pair_values(basis: Basis, X: Tensor) -> Callable[[Pairs], Tensor]:
    """Return a function that evaluates the basis at pairs of rows of X; midpoint bumps are computed once per point."""
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
    """Compute the moments of all m^2 pairs in O(m q^2 r), without listing them, for ``Y = root diag(signs) root^T``.

    With falloffs ``exp(-|x - x'|^2/a') ~ Psi Psi^T`` of rank r the normal matrix is ``sum_t (E^T D_t E) o (E^T D_t
    E)``, ``D_t = diag(psi_t)``. This needs wide falloffs: if ``rank`` columns miss more than ``tol``, it raises.
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
    """Return ``Psi`` with ``Psi Psi^T ~ exp(-rate |x - x'|^2 / 2)``, from the leading directions of some landmarks."""
    some = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[: 4 * rank]
    values, vectors = eigen(torch.exp(-0.5 * rate * squared_euclidean(x[some])))
    kept = (values > RANK * values[-1]).nonzero()[:, 0][-rank:]
    Psi = torch.exp(-0.5 * rate * squared_euclidean(x, x[some])) @ (vectors[:, kept] / values[kept].sqrt())
    missed = float((1.0 - Psi.square().sum(1)).mean())  # mean over the diagonal, whose entries are one
    if missed > tol:
        raise NumericalError(
            f"The falloff of a width is not of low rank on these points: {rank} columns miss {missed:.1g} of it. Sums "
            "over all pairs in linear time need wide hyper-kernels. Sample pairs instead: Midpoints(n_pairs=...)."
        )
    return Psi


def point_splits(
    moments: dict[tuple[int, int], Tensor], everything: Tensor | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, for each fold, the moments of the pairs without its points and of the pairs with at least one of them."""
    everything = reduce(torch.add, moments.values()) if everything is None else everything
    for fold in sorted({f for key in moments for f in key}):
        held_out = reduce(torch.add, (M for key, M in moments.items() if fold in key))
        yield everything - held_out, held_out
