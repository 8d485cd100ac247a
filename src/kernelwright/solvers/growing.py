"""Solutions of trees to which rows are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kernelwright.embedding.growing import ColumnBlock, GrowingTrees
from kernelwright.embedding.support import KernelSupport
from kernelwright.embedding.tree import SolvedTree, Trees, averaged
from kernelwright.kernels import Kernel
from kernelwright.solvers.solution import Columns, Solution, SolvedColumns
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["GrowingSolver"]


@dataclass
class GrowingSolver:
    """Solves trees that have other rows than before, where leaves have changed.

    Parameters
    ----------
    trees : GrowingTrees
        Their state; each step of this solver replaces it.
    noise : float
        n lambda of the main columns.
    pinned : Tensor or None
        Targets of the first of the other columns, of rows that have some already: these depend on left-out outputs,
        and are not set anew with each of them.
    """

    trees: GrowingTrees
    noise: float
    pinned: Tensor | None = None
    exact: bool = False  # whether a single leaf is given as an exact solution, in the order of its rows

    def solve(self, prior: Tensor, judged: Tensor | None = None) -> Solution:
        """Return the embedding of the targets, judged by all rows or some, each left out in turn."""
        data = replace(self.trees.data, prior=prior)
        block = ColumnBlock(data.targets, self.noise)
        self.trees = self.trees.solved(0, block)
        solved = self.trees.solutions(0, block, prior)
        mean, trees = averaged(solved), self._trees()
        support = KernelSupport.of(mean.nearest, data.weights)
        rows, fitted, left_out, nearest = data, mean.fitted, mean.left_out, mean.nearest
        if judged is not None:
            rows, fitted, left_out, nearest = data.subset(judged), fitted[judged], left_out[judged], nearest[judged]
        return Solution(
            data.points,
            self._coefficients(trees, solved),
            mean.squared_norm,
            fitted,
            rows,
            LeftOutOutputs(left_out, rows, support.relative(nearest)),
            support,
            mean.jitter,
            trees=None if self.is_exact else trees,
        )

    def more(self, kernel: Kernel, solution: Solution, columns: Sequence[Columns]) -> list[SolvedColumns]:
        """Solve for more columns of the same rows, and then take the leaves as settled."""
        first, *others = (each.targets for each in columns)
        if self.pinned is not None:
            first = torch.cat([self.pinned, first[len(self.pinned) :]])
        self.pinned = first
        total, found, trees = self.trees.data.total_weight, [], self._trees()
        for number, (each, targets) in enumerate(zip(columns, (first, *others), strict=True), 1):
            block = ColumnBlock(targets, each.ridge * total)
            self.trees = self.trees.solved(number, block)
            solved = self.trees.solutions(number, block, each.prior)
            found.append(SolvedColumns(self._coefficients(trees, solved), averaged(solved).left_out))
        return found

    @property
    def is_exact(self) -> bool:
        """Whether the solution is that of all rows in one leaf."""
        return self.exact and self.trees.trees[0].partition.n_leaves == 1

    def _trees(self) -> Trees:
        partitions = tuple(tree.partition for tree in self.trees.trees)
        return Trees(partitions, self.trees.data.points[:0])

    def _coefficients(self, trees: Trees, solved: Sequence[SolvedTree]) -> Tensor:
        return solved[0].coefficients if self.is_exact else trees.coefficients(solved)
