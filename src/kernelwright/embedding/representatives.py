"""A few targets that stand for many, so that the masses of a distribution fit in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.target_space import TargetSpace, spread_over
from kernelwright.kernels import KroneckerDelta
from kernelwright.numerics.linalg import Factor, factorise

__all__ = ["Representatives"]

MOST_BINS = 1000  # of numbers: a bin holds a thousandth of the rows
MOST_POINTS = 500  # of vectors and strings
RELATIVE_NOISE = 1e-8  # on the diagonal of their kernel matrix: targets may be close to each other


@dataclass(frozen=True)
class Representatives:
    """Targets that stand for all distinct ones, and how each of these is shared out among them.

    The shares of each target sum to one. Up to 1000 distinct targets, and all labels, stand for themselves. Of more
    numbers, each stands in one of 1000 bins with equally many rows. Vectors and strings are projected: the shares a
    minimise ``|l(y, .) - sum_j a_j l(c_j, .)|^2`` for 500 targets c, so they may be negative.
    """

    space: TargetSpace  # the few; their counts are sums of shares over the rows
    every: TargetSpace
    place: Tensor | None = None  # of each distinct target, the one that stands for it
    factor: Factor | None = None  # or: of the kernel matrix of the few

    @classmethod
    def of(cls, every: TargetSpace) -> Representatives:
        """Choose the targets that stand for all others."""
        n = len(every.values)
        if n <= MOST_BINS or isinstance(every.kernel, KroneckerDelta):
            return cls(every, every, torch.arange(n))
        if every.kind == "numbers":
            return cls._binned(every)
        some = every.subset(spread_over(n, MOST_POINTS))
        L = some.gram()
        found = cls(some, every, factor=factorise(L, RELATIVE_NOISE * float(L.diagonal().mean())))
        return found._counted()

    @classmethod
    def _binned(cls, every: TargetSpace) -> Representatives:
        below = (np.cumsum(every.counts) - 0.5 * every.counts) / every.counts.sum()
        _, first, place = np.unique((MOST_BINS * below).astype(np.int64), return_index=True, return_inverse=True)
        middle = (first + np.append(first[1:], len(below)) - 1) // 2
        return cls(every.subset(middle), every, torch.from_numpy(place.reshape(-1)))._counted()

    def _counted(self) -> Representatives:
        counts = torch.from_numpy(self.every.counts).double()
        shared = self.sums(counts[:, None], torch.arange(len(counts)))[0]
        return Representatives(self.space.counted(shared.numpy()), self.every, self.place, self.factor)

    def sums(self, Z: Tensor, number: Tensor) -> Tensor:
        """Return ``sum_i z_i a(y_i)^T`` for rows of Z whose targets have these numbers among the distinct ones."""
        if self.place is not None:
            found = torch.zeros(Z.shape[1], len(self.space.values), dtype=torch.float64)
            return found.index_add_(1, self.place[number], Z.T.contiguous())
        return torch.cat([self._shares(some) for some in number.split(MOST_POINTS * 8)]).T.matmul(Z).T

    def _shares(self, number: Tensor) -> Tensor:
        """Return the shares of some targets, a row for each."""
        assert self.factor is not None
        few = self.space
        with torch.no_grad():
            values = few.kernel.forward(few.points(few.values), self.every.points(self.every.values[number.numpy()]))
        shares, even = self.factor.solve(values).T, self.factor.solve(torch.ones(len(values), 1, dtype=torch.float64))
        return shares + (1.0 - shares.sum(1, keepdim=True)) * (even / even.sum()).T
