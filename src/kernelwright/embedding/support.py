"""Support: how close a point is to the training data.

Support is relative. One is the level that a hundredth of the training points stay below, with respect to the others:
one or more is usual, and near zero is far from all data.
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

UNUSUAL = 0.01  # share of training rows whose support is below one
BLOCK_ROWS = 64  # rows of a kernel matrix read at once, so that they stay in the cache
LARGEST = 1e12  # a level near zero would make support infinite
SKETCH = 32  # random directions, the same for all rows: enough for leverages within a quarter


class Support:
    """A map from kernel values with the training points, or features, to the relative support of each row."""

    n_rows: int  # training rows that set the level, which is only as exact as their quantile

    def __call__(self, values: Tensor) -> Tensor:
        """Return one number for each row."""
        raise NotImplementedError


@saved("kernel-support")
@dataclass(frozen=True)
class KernelSupport(Support):
    """Support by the kernel value with the nearest training point."""

    level: float
    n_rows: int = 1

    @classmethod
    def of(cls, nearest: Tensor, weights: Tensor) -> KernelSupport:
        """Set the level from the value of each training point with its nearest other one."""
        return cls(_level(nearest, weights, UNUSUAL), len(nearest))

    def __call__(self, K: Tensor) -> Tensor:  # noqa: D102
        return self.relative(K.amax(1).double())  # the level may be too small for single precision

    def relative(self, nearest: Tensor) -> Tensor:
        """Return support in units of the level; all ones if the training points themselves have no support."""
        return (nearest / self.level).clamp(0.0, LARGEST) if self.level > 0 else torch.ones_like(nearest)


@saved("feature-support")
@dataclass(frozen=True)
class FeatureSupport(Support):
    """Support by explicit features z, if no training point is kept: the smaller of two quantities.

    One over the leverage ``z^T S^-1 z`` falls if the features point in a direction without training rows; ``|z|^2``
    falls if the features vanish far from their landmarks.
    """

    sketch: Tensor  # R with |z R|^2 ~ z^T S^-1 z: a few random directions instead of the whole factor
    inverse_leverage: float
    squared_norm: float
    n_rows: int = 1

    @classmethod
    def of(cls, factor: Factor, Z: Tensor, rows: TrainingSet) -> FeatureSupport:
        """Set the levels from the factor of S and the features of (some) training rows."""
        # The directions are always the same, so that stored levels remain valid.
        directions = torch.randn(len(factor), SKETCH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        sketch = triangular_solve(factor, directions, transposed=True) / SKETCH**0.5
        unscaled = cls(sketch, 1.0, 1.0)
        if rows.groups is None:  # left out: (1 - w q) / q
            inverse_leverage = unscaled._inverse_leverage(Z) - rows.weights * rows.one_of_equals
        else:
            inverse_leverage = _inverse_leverage_without_group(Z @ sketch, rows)
        # Half of one percent each: a row is unusual if one of the two is.
        by_leverage, by_norm = (_level(v, rows.weights, 0.5 * UNUSUAL) for v in (inverse_leverage, Z.square().sum(1)))
        return cls(sketch, by_leverage, by_norm, len(Z))

    def _inverse_leverage(self, Z: Tensor) -> Tensor:
        return 1.0 / (Z @ self.sketch).square().sum(1).clamp(min=1e-300)

    def __call__(self, Z: Tensor) -> Tensor:  # noqa: D102
        parts = ((self._inverse_leverage(Z), self.inverse_leverage), (Z.square().sum(1), self.squared_norm))
        relative = [value / level if level > 0 else torch.ones_like(value) for value, level in parts]
        return torch.minimum(*relative)


def nearest_other(K: Tensor, rows: TrainingSet) -> Tensor:
    """Return the largest kernel value of each training point with another one, or with one of another group.

    A point that stands for two equal rows is its own neighbour. Rows of K are copied in blocks: K may be as large as
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
    largest = torch.where(largest.isfinite(), largest, own)  # there is only one point, or one group
    if rows.counts is None or rows.groups is not None:
        return largest
    return torch.where(rows.counts >= 2, own, largest)


def _inverse_leverage_without_group(root: Tensor, rows: TrainingSet) -> Tensor:
    """Return one over the leave-one-group-out leverage of each row.

    With ``H = root_g root_g^T`` and ``M = W^1/2 H W^1/2``, leverages go from ``diag H`` to ``diag M (I - M)^-1 / w``.
    """
    assert rows.groups is not None
    found = torch.empty(len(root), dtype=torch.float64)
    for group in rows_by_group(rows.groups):
        w = rows.weights[group]
        half = w.sqrt()[:, :, None] * root[group]
        values, vectors = eigen(half @ half.transpose(1, 2))
        odds = values.clamp(0.0, 1.0 - 1e-9) / (1.0 - values.clamp(0.0, 1.0 - 1e-9))  # a sketch may exceed one
        leverage = (vectors.square() * odds[:, None, :]).sum(2) / w
        found[group] = 1.0 / leverage.clamp(min=1e-300)
    return found


def _level(support: Tensor, weights: Tensor, unusual: float) -> float:
    """Return the support that this share of the rows stays below."""
    order = support.argsort()
    share = weights[order].cumsum(0) / weights.sum()
    first = int(torch.searchsorted(share, torch.tensor(unusual, dtype=share.dtype)))
    return float(support[order[min(first, len(order) - 1)]])
