"""The conditional mean embedding in its dual form: one regularised solve with the kernel matrix.

With weights w (ones unless given), ``noise_i = ridge * sum(w) / w_i`` and ``A = K + diag(noise)``, the
coefficients are ``V = A^-1 (Y - prior)`` and the outputs at x are ``f(x) = prior + V^T k(x)``: Eq. (5) of
[Hsu2018]_ where the prior is zero. A row of weight two is the same as two equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from kernelwright.linalg import Factor, factorise, factorise_in_single, refined_solution

__all__ = ["DualEmbedding", "TrainingSet", "clip_normalise", "embed", "embed_in_single", "leave_one_out_divisor"]

BLOCK_ROWS = 256  # of a matrix in single precision, held in double at once


@dataclass(frozen=True)
class TrainingSet:
    """Points with targets, weights, and what is known of the targets without points."""

    points: Tensor
    targets: Tensor  # one-hot rows for labels; any features of the targets otherwise
    weights: Tensor
    prior: Tensor
    strata: Tensor  # a number for each row; samples and folds take their share of each

    @classmethod
    def of(
        cls,
        points: Tensor,
        targets: Tensor,
        *,
        weights: Tensor | None = None,
        prior: Tensor | None = None,
        strata: Tensor | None = None,
    ) -> TrainingSet:
        """Weights default to one, the prior to zero, the strata to the classes of one-hot targets."""
        return cls(
            points,
            targets,
            torch.ones(len(points), dtype=torch.float64) if weights is None else weights,
            torch.zeros(targets.shape[1], dtype=torch.float64) if prior is None else prior,
            targets.argmax(1) if strata is None else strata,
        )

    def __len__(self) -> int:
        return len(self.points)

    @property
    def total_weight(self) -> float:
        """The number of rows, where rows may count more or less than one: n in the formulas."""
        return float(self.weights.sum())

    @property
    def centred(self) -> Tensor:
        """Targets less the prior."""
        return self.targets - self.prior

    def noise(self, ridge: float) -> Tensor:
        """The diagonal that ``ridge`` adds to the kernel matrix."""
        return ridge * self.total_weight / self.weights

    def subset(self, index: Tensor) -> TrainingSet:
        """Some of the rows; the prior stays."""
        return replace(
            self,
            points=self.points[index],
            targets=self.targets[index],
            weights=self.weights[index],
            strata=self.strata[index],
        )

    def joined(self, other: TrainingSet) -> TrainingSet:
        """These rows and those of ``other``; the prior stays."""
        columns = ("points", "targets", "weights", "strata")
        return replace(self, **{name: torch.cat([getattr(self, name), getattr(other, name)]) for name in columns})

    def sample(self, size: int, generator: torch.Generator) -> TrainingSet:
        """At most ``size`` random rows: of every stratum its share, and at least one row."""
        n = len(self)
        if n <= size:
            return self
        order = torch.randperm(n, generator=generator)
        turn = _turns(self.strata[order])
        share = (turn + 0.5) / torch.bincount(self.strata).double()[self.strata[order]]
        share[turn == 0] = 0.0
        return self.subset(order[share.argsort(stable=True)[:size]].sort().values)

    def spread(self, size: int, generator: torch.Generator) -> Tensor:
        """Numbers of at most ``size`` random rows: of every stratum half its share and half an equal one."""
        order = torch.randperm(len(self), generator=generator)
        counts = torch.bincount(self.strata).double()
        share = 0.5 * counts / counts.sum() + 0.5 * (counts > 0) / (counts > 0).sum()
        quota = (size * share).floor().clamp(min=1).long().minimum(counts.long())
        early = _turns(self.strata[order]) < quota[self.strata[order]]
        return torch.cat([order[early], order[~early]])[:size].sort().values

    def spread_sample(self, size: int, generator: torch.Generator) -> TrainingSet:
        """Such rows, weighted so that every stratum counts for as much as it does among all rows.

        No weight is above that of the row itself: of a heavier row a part would stay when it is left out.
        """
        if len(self) <= size:
            return self
        some = self.subset(self.spread(size, generator))
        whole, part = (torch.bincount(rows.strata, rows.weights, int(self.strata.max()) + 1) for rows in (self, some))
        factor = (whole / part.clamp(min=1e-300))[some.strata]
        return replace(some, weights=some.weights * factor / factor.max())

    def folds(self, n_folds: int) -> np.ndarray:
        """A fold number for each row: rows take turns in the order of their strata, so that no fold is empty."""
        folds = torch.empty(len(self), dtype=torch.int64)
        folds[self.strata.argsort(stable=True)] = torch.arange(len(self)) % n_folds
        return folds.numpy()


@dataclass(frozen=True)
class DualEmbedding:
    """The solution of one embedding problem."""

    coefficients: Tensor  # V
    noise: Tensor
    data: TrainingSet
    factor: Factor

    @property
    def fitted(self) -> Tensor:
        """Outputs at the training points, ``prior + K V``, without a product: ``Y - noise V``."""
        return self.data.targets - self.noise[:, None] * self.coefficients

    @property
    def squared_norm(self) -> float:
        """``tr(V^T K V)``, the squared Hilbert-Schmidt norm of the embedding operator."""
        K_V = self.data.centred - self.noise[:, None] * self.coefficients
        return max(float((self.coefficients * K_V).sum()), 0.0)

    def outputs(self, K: Tensor) -> Tensor:
        """Raw outputs (Eq. 5) for rows of kernel values with the training points."""
        return self.data.prior + K @ self.coefficients

    def weights(self, K: Tensor) -> Tensor:
        """``A^-1 k(x)`` for each row: the weights of the training targets in Eq. (2)."""
        return self.factor.solve(K.T.contiguous()).T

    def leave_one_out(self) -> Tensor:
        """Outputs at each training row by the embedding of all the others, in closed form."""
        divisor = leave_one_out_divisor(self.factor.inverse_diagonal(), self.data.weights, self.noise)
        return self.data.targets - self.coefficients / divisor[:, None]


def embed(K: Tensor, data: TrainingSet, ridge: float) -> DualEmbedding:
    """Solve the embedding for the kernel matrix K of the training points."""
    noise = data.noise(ridge)
    factor = factorise(K, noise)
    return DualEmbedding(factor.solve(data.centred), noise, data, factor)


def embed_in_single(K: Tensor, data: TrainingSet, ridge: float) -> DualEmbedding:
    """The same for a matrix K of single precision, with a factor of single precision; coefficients are refined."""
    noise = data.noise(ridge)
    factor = factorise_in_single(K, noise)

    def apply(V: Tensor) -> Tensor:
        product = torch.cat([rows.double() @ V for rows in K.split(BLOCK_ROWS)])
        return product + noise[:, None] * V

    return DualEmbedding(refined_solution(factor.solve, apply, data.centred), noise, data, factor)


def leave_one_out_divisor(inverse_diagonal: Tensor, weights: Tensor, noise: Tensor) -> Tensor:
    """What ``V`` is divided by to give the leave-one-out residual ``Y - F``.

    For weight one it is the diagonal a of ``A^-1``. A row of weight w > 1 is w rows of which one is left out;
    that is a change of one diagonal entry of A, hence ``a / w + (w - 1) / (w noise)``. Below one, all is left out.
    """
    w = weights.clamp(min=1.0)
    return inverse_diagonal / w + (w - 1.0) / (weights * noise)


def clip_normalise(outputs: Tensor) -> Tensor:
    """Negative outputs to zero, then sum one: Eq. (6) of [Hsu2018]_; uniform where nothing is left."""
    positive = outputs.clamp(min=0.0)
    largest = positive.max(1, keepdim=True).values
    positive = positive / largest.where(largest > 0, 1.0)  # so that the sum can neither vanish nor overflow
    return torch.where(largest > 0, positive / positive.sum(1, keepdim=True).clamp(min=1.0), 1.0 / outputs.shape[1])


def smoothed_prior(targets: Tensor, weights: Tensor) -> Tensor:
    """Class frequencies with one extra row that is shared by all classes, so that none is zero."""
    counts = weights @ targets
    return (counts + 1.0 / targets.shape[1]) / (weights.sum() + 1.0)


def _turns(strata: Tensor) -> Tensor:
    """For each row, how many earlier rows are of its stratum."""
    counts = torch.bincount(strata)
    order = strata.argsort(stable=True)
    turns = torch.empty(len(strata), dtype=torch.int64)
    turns[order] = torch.arange(len(strata)) - (counts.cumsum(0) - counts)[strata[order]]
    return turns
