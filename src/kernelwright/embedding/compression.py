"""Fewer points that give the same answers.

An embedding ``f(x) = prior + V^T k(x)`` of n points is replaced by one of s of them. Points are chosen one by one, each
where the interpolant of the outputs through the points so far is furthest from f; then the coefficients are solved
again, by least squares on the outputs at all points. Greedy choices look at every label, and a kept point is no new
row, so leave-one-out outputs would flatter. How many points are needed is therefore decided by folds: rows are left out
of the embedding in closed form, out of the choice and out of the least squares, and judged as new rows.

Everything here is a function of matrices, so that a tree can compress its leaves one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.numerics.linalg import factorise, solve_blocks
from kernelwright.storage.saved import saved

__all__ = ["Compressed", "Compression", "Fold", "compressed", "fold_without", "greedy_points", "mean_loss", "refitted"]

SMALLEST, GROWTH = 32, 1.3  # numbers of points that are tried
RIDGE = 1e-6  # of the least squares, relative to the root of the number of rows
LEAST = 1e-12  # remaining variance of a point that the points so far already span


@saved("compression")
@dataclass(frozen=True)
class Compression:
    """What compressing an embedding changed."""

    n_before: int
    n_points: int
    loss_before: float  # of rows left out of everything, by the whole embedding
    loss: float  # by the compressed one
    tolerance: float
    measure: str  # "log loss" or "CRPS"


@dataclass(frozen=True)
class Fold:
    """Points that stay, points that are left out, and the outputs (minus the prior) of an embedding of the former."""

    rest: Tensor
    left_out: Tensor
    at_rest: Tensor
    at_left_out: Tensor


@dataclass(frozen=True)
class Compressed:
    """Chosen points with their coefficients, and the losses that decided their number."""

    chosen: Tensor
    coefficients: Tensor
    loss_before: float
    loss: float


def compressed(
    K: Tensor, outputs: Tensor, folds: Sequence[Fold], judge: Callable[[Fold, Tensor], float], tolerance: float
) -> Compressed:
    """Choose the least number of points whose left-out loss is within the tolerance.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        Kernel matrix of the points.
    outputs : Tensor of shape (n, m)
        Outputs of the embedding at the points, minus the prior.
    folds : sequence of Fold
    judge : function
        Takes a fold and outputs (minus the prior) at its left-out points, and returns a mean loss.
    tolerance : float
        Largest rise of the mean loss over the folds.
    """
    before = mean_loss(folds, judge)
    searches = [_Search(K[fold.rest][:, fold.rest], fold.at_rest) for fold in folds]
    for size in _sizes_below(min((len(fold.rest) for fold in folds), default=0)):
        losses = []
        for fold, search in zip(folds, searches, strict=True):
            chosen = search.first(size)
            coefficients = refitted(search.K[:, chosen], search.K[chosen][:, chosen], fold.at_rest)
            losses.append(judge(fold, K[fold.left_out][:, fold.rest[chosen]] @ coefficients))
        loss = sum(losses) / len(losses)
        if loss <= before + tolerance:
            chosen = greedy_points(K, outputs, size)
            return Compressed(chosen, refitted(K[:, chosen], K[chosen][:, chosen], outputs), before, loss)
    every = torch.arange(len(K))
    return Compressed(every, refitted(K, K, outputs), before, before)


def mean_loss(folds: Sequence[Fold], judge: Callable[[Fold, Tensor], float]) -> float:
    """Return the mean loss of the whole embedding at the left-out points of the folds."""
    return sum(judge(fold, fold.at_left_out) for fold in folds) / len(folds)


def _sizes_below(n: int) -> Iterator[int]:
    """Yield the numbers of points to try, each about a third more."""
    size = float(SMALLEST)
    while size < n:
        yield int(size)
        size *= GROWTH


def greedy_points(K: Tensor, outputs: Tensor, size: int) -> Tensor:
    """Return the indices of points that interpolate outputs well, in the order in which they were chosen."""
    return _Search(K, outputs).first(size)


class _Search:
    """A greedy choice of points that can go on: the next one is where the interpolant errs most.

    Columns of the Newton basis (a pivoted Cholesky factor) are added one by one, each with the error it removes.
    """

    def __init__(self, K: Tensor, outputs: Tensor) -> None:
        self.K = K
        self._error, self._left = outputs.clone(), K.diagonal().clone()
        self._basis = K.new_empty(0, len(K))  # a row for each chosen point
        self._chosen: list[int] = []

    def first(self, size: int) -> Tensor:
        """Return the first ``size`` choices."""
        if size > len(self._basis):
            self._basis = torch.cat([self._basis, self.K.new_empty(size - len(self._basis), len(self.K))])
        while len(self._chosen) < size:
            self._add()
        return torch.tensor(self._chosen[:size])

    def _add(self) -> None:
        t, scores = len(self._chosen), self._error.square().sum(1)
        scores[self._chosen] = -1.0
        new = int(scores.argmax())
        root = float(self._left[new].clamp(min=LEAST)) ** 0.5
        column = torch.addmv(self.K[new], self._basis[:t].T, self._basis[:t, new], alpha=-1.0) / root
        self._basis[t] = column
        self._error.addr_(column, self._error[new] / root, alpha=-1.0)
        self._left = (self._left - column.square()).clamp(min=0.0)
        self._chosen.append(new)


def refitted(K: Tensor, between: Tensor, outputs: Tensor) -> Tensor:
    """Return the coefficients of points whose outputs are nearest, from kernel values with and between the points."""
    normal = K.T @ K + RIDGE * len(K) ** 0.5 * between
    level = 1e-12 * float(normal.diagonal().mean())  # directions below rounding carry nothing
    return factorise(normal, level).solve(K.T @ outputs)


def fold_without(K: Tensor, inverse: Tensor, V: Tensor, left_out: Tensor) -> Fold:
    """Return the fold of an embedding without some of its points, in closed form.

    With ``A = K + noise``, its inverse and ``V = A^-1 (Y - prior)``, the coefficients of the rest without the points B
    are ``V_R - (A^-1)_RB (A^-1)_BB^-1 V_B``.
    """
    stays = torch.ones(len(K), dtype=torch.bool)
    stays[left_out] = False
    rest = stays.nonzero()[:, 0]
    block = inverse[left_out]
    change = solve_blocks(block[None, :, left_out], V[None, left_out])[0]
    without = V[rest] - block[:, rest].T @ change
    at_all = K[:, rest] @ without
    return Fold(rest, left_out, at_all[rest], at_all[left_out])
