"""A test of whether neighbouring rows of a table depend on each other, as in a time series.

In some leaves of a tree, blocks of consecutive rows are left out, and then random groups of the same sizes and strata.
If rows are exchangeable within strata, whichever their order, both have the same expected error. If rows of a block are
alike, their errors without the block are larger than those of single rows say.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kernelwright.embedding.dual import embed, without_groups
from kernelwright.embedding.partition import all_axes, divisible, grow
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel

__all__ = ["TESTED_FROM", "dependent_blocks", "error_of_blocks"]

TESTED_FROM = 5000  # rows; below, a block would be too small to differ from single rows
BLOCKS = 100  # of consecutive rows, for the test
LEFT_OUT = 50  # rows of a block if the test finds dependence: errors without them are those of new rows, on ijcnn1
LEAVES, LEAF = 30, 1000  # that are tested: fewer often miss the dependence of ijcnn1
SURE, WORTH = 2.5, 1.05  # standard errors, and times the error of random groups
SORTED = 0.99  # correlation of a column with the order of the rows, by ranks: rows are sorted by it


def dependent_blocks(
    kernel: Kernel, data: TrainingSet, ridge: float, order: Tensor, generator: torch.Generator
) -> Tensor | None:
    """Return a block of consecutive rows for each row if rows depend on their neighbours, else None.

    Rows that are sorted by a column are not tested: the rows around a block say little about it, in whatever order
    they came.

    Parameters
    ----------
    order : Tensor
        The place of each row among the rows as they were given.
    """
    if data.groups is not None or len(data) < TESTED_FROM or not divisible(kernel, data.points):
        return None
    if _sorted(data.points[order.argsort()]):
        return None
    blocks = order * BLOCKS // (int(order.max()) + 1)
    of_blocks, of_random = error_of_blocks(kernel, data, ridge, blocks, generator)
    # Rows of a block are not independent: the standard error is that of sums over blocks.
    excess = of_blocks - of_random
    sums = torch.zeros(BLOCKS, dtype=torch.float64).index_add(0, blocks, excess)
    sure = float(excess.sum()) > SURE * math.sqrt(float(sums.square().sum()))
    dependent = sure and float(of_blocks.sum()) > WORTH * float(of_random.sum())
    return order // LEFT_OUT if dependent else None


def error_of_blocks(
    kernel: Kernel, data: TrainingSet, ridge: float, blocks: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return squared errors of rows left out by blocks, and by random groups of the same sizes; zero if not tested."""
    leaves = grow(data.points, all_axes(kernel, data.points), LEAF)
    noise, found = ridge * data.total_weight, torch.zeros(2, len(data), dtype=torch.float64)
    for number in torch.randperm(leaves.n_leaves, generator=generator)[:LEAVES].tolist():
        at = leaves.rows(number).sort().values
        rows = data.subset(at)
        leaf = embed(kernel.matrix(rows.points), rows, noise / rows.total_weight)
        V, inverse = leaf.coefficients, leaf.factor.into_inverse_()
        for which, groups in enumerate((blocks[at], _shuffled(blocks[at], rows.strata, generator))):
            residuals = without_groups(lambda some: inverse[some[:, :, None], some[:, None, :]], V, groups)  # noqa: B023
            found[which, at] = residuals.square().sum(1)
    return found[0], found[1]


def _shuffled(blocks: Tensor, strata: Tensor, generator: torch.Generator) -> Tensor:
    """Return the blocks in random order within each stratum, so that every one keeps its share of the strata."""
    found = blocks.clone()
    for stratum in strata.unique():
        own = (strata == stratum).nonzero()[:, 0]
        found[own] = blocks[own[torch.randperm(len(own), generator=generator)]]
    return found


def _sorted(points: Tensor) -> bool:
    """Return whether the rows are in the order of a column, up or down."""
    some = points[:: max(1, len(points) // 1000)]
    ranks = some.argsort(0).argsort(0).double()
    ranks = ranks - ranks.mean(0)
    order = torch.arange(len(some), dtype=torch.float64)
    order = order - order.mean()
    varies = some.std(0) > 0
    return bool(((order @ ranks).abs()[varies] > SORTED * order.square().sum()).any())
