"""How much a model knows about a point: whether it saw anything like it.

Support is relative: one is what a hundredth of the training points stay below with respect to the others, so that
one or more is usual, and near zero is nowhere near the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.embedding.dual import rows_by_group
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.numerics.linalg import Factor, eigen, triangular_solve
from kernelwright.storage.saved import saved

__all__ = ["UNUSUAL", "FeatureSupport", "KernelSupport", "Support", "nearest_other"]

UNUSUAL = 0.01  # the share of training rows whose support lies below one
BLOCK_ROWS = 64  # of a kernel matrix, looked at in one go: they stay in the cache
SKETCH = 32  # random directions: enough for a leverage within a quarter, the same for all rows


class Support:
    """Kernel values with the training points, or features, of each row -> its relative support."""

    n_rows: int  # training rows whose support made the level: it is only as exact as their quantile

    def __call__(self, values: Tensor) -> Tensor:
        """One number for each row."""
        raise NotImplementedError


@saved("kernel-support")
@dataclass(frozen=True)
class KernelSupport(Support):
    """By a kernel's value with the nearest training point."""

    level: float
    n_rows: int = 1

    @classmethod
    def of(cls, nearest: Tensor, weights: Tensor) -> KernelSupport:
        """From each training point's value with its nearest other one."""
        return cls(_level(nearest, weights, UNUSUAL), len(nearest))

    def __call__(self, K: Tensor) -> Tensor:  # noqa: D102
        return self.relative(K.amax(1).double())  # the level may be too small for single precision

    def relative(self, nearest: Tensor) -> Tensor:
        """In units of the level; all ones where the training points themselves have none from each other."""
        return (nearest / self.level).clamp(min=0.0) if self.level > 0 else torch.ones_like(nearest)


@saved("feature-support")
@dataclass(frozen=True)
class FeatureSupport(Support):
    """By explicit features z, where no training point is kept: the lower of two.

    One over the leverage ``z^T S^-1 z`` falls where features point to where no training row was; ``|z|^2`` falls where
    features vanish far from the landmarks they are made of.
    """

    sketch: Tensor  # R with |z R|^2 ~ z^T S^-1 z: few random directions in place of the whole factor
    inverse_leverage: float
    squared_norm: float
    n_rows: int = 1

    @classmethod
    def of(cls, factor: Factor, Z: Tensor, rows: TrainingSet) -> FeatureSupport:
        """From the factor of S and the features of (some) training rows."""
        # Always the same directions, so that levels that were found with them fit.
        directions = torch.randn(len(factor), SKETCH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        sketch = triangular_solve(factor, directions, transposed=True) / SKETCH**0.5
        unscaled = cls(sketch, 1.0, 1.0)
        if rows.groups is None:  # left out: (1 - w q) / q
            inverse_leverage = unscaled._inverse_leverage(Z) - rows.weights * rows.one_of_equals
        else:
            inverse_leverage = _inverse_leverage_without_group(Z @ sketch, rows)
        # Half a hundredth each: a row is unusual if it is by one of the two.
        by_leverage, by_norm = (_level(v, rows.weights, 0.5 * UNUSUAL) for v in (inverse_leverage, Z.square().sum(1)))
        return cls(sketch, by_leverage, by_norm, len(Z))

    def _inverse_leverage(self, Z: Tensor) -> Tensor:
        return 1.0 / (Z @ self.sketch).square().sum(1).clamp(min=1e-300)

    def __call__(self, Z: Tensor) -> Tensor:  # noqa: D102
        parts = ((self._inverse_leverage(Z), self.inverse_leverage), (Z.square().sum(1), self.squared_norm))
        relative = [value / level if level > 0 else torch.ones_like(value) for value, level in parts]
        return torch.minimum(*relative)


def nearest_other(K: Tensor, rows: TrainingSet) -> Tensor:
    """The largest kernel value of each training point with another one, or with one of another group.

    A point that stands for two equal rows is its own other. Some rows of K are copied at a time: it may be as large as
    memory allows.
    """
    n, own = len(K), K.diagonal()
    largest, memory = K.new_empty(n), K.new_empty(min(BLOCK_ROWS, n), n)
    for start in range(0, n, BLOCK_ROWS):
        block = memory[: n - start].copy_(K[start : start + BLOCK_ROWS])
        if rows.groups is None:
            block.diagonal(start).fill_(-torch.inf)
        else:
            block.masked_fill_(rows.groups[start : start + BLOCK_ROWS, None] == rows.groups, -torch.inf)
        largest[start : start + BLOCK_ROWS] = block.amax(1)
    largest = torch.where(largest.isfinite(), largest, own)  # one point, or group, is all there is
    if rows.counts is None or rows.groups is not None:
        return largest
    return torch.where(rows.counts >= 2, own, largest)


def _inverse_leverage_without_group(root: Tensor, rows: TrainingSet) -> Tensor:
    """One over the leverage that each row would have if its group were not among the training rows.

    With ``H = root_g root_g^T`` and ``M = W^1/2 H W^1/2``, leverages go from ``diag H`` to ``diag M (I - M)^-1 / w``.
    """
    assert rows.groups is not None
    found = torch.empty(len(root), dtype=torch.float64)
    for group in rows_by_group(rows.groups):
        w = rows.weights[group]
        half = w.sqrt()[:, :, None] * root[group]
        values, vectors = eigen(half @ half.transpose(1, 2))
        odds = values.clamp(0.0, 1.0 - 1e-9) / (1.0 - values.clamp(0.0, 1.0 - 1e-9))  # a sketch may be above one
        leverage = (vectors.square() * odds[:, None, :]).sum(2) / w
        found[group] = 1.0 / leverage.clamp(min=1e-300)
    return found


def _level(support: Tensor, weights: Tensor, unusual: float) -> float:
    """The support that this share of the rows stays below."""
    order = support.argsort()
    share = weights[order].cumsum(0) / weights.sum()
    first = int(torch.searchsorted(share, torch.tensor(unusual, dtype=share.dtype)))
    return float(support[order[min(first, len(order) - 1)]])
