"""The solver whose embedding is exact within the leaves of trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval

from kernelwright.embedding.partition import all_axes, grow, random_axes
from kernelwright.embedding.support import KernelSupport
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.embedding.tree import GlobalPart, Trees, averaged, solve_tree
from kernelwright.kernels import Kernel
from kernelwright.solvers.base import Solver
from kernelwright.solvers.solution import Columns, Solution, SolvedColumns
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["Tree"]


@saved("tree-solver")
class Tree(Solver):
    word: ClassVar[str] = "tree"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "leaf": [Interval(Integral, 2, None, closed="left")],
        "trees": [Interval(Integral, 1, None, closed="left")],
        "landmarks": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, leaf: int = 2000, *, trees: int = 1, landmarks: int = 0) -> None:
        self.leaf = leaf
        self.trees = trees
        self.landmarks = landmarks

    def size(self, n_rows: int) -> int:  # noqa: D102
        return n_rows

    def n_bytes(self, n_rows: int) -> float:  # noqa: D102
        M, leaf = min(self.landmarks, n_rows), min(self.leaf, n_rows)
        return 8.0 * (4 * leaf**2 + 2 * n_rows * M + 4 * M**2 + 4 * leaf * M)

    def share_kept(self, n_rows: int) -> float:  # noqa: D102
        return 1.0

    @property
    def advice(self) -> str:  # noqa: D102
        return "Use a smaller leaf or fewer landmarks, or fewer rows."

    def described(self, n_rows: int) -> str:  # noqa: D102
        return f"solver='tree' with leaves of {self.leaf} of {n_rows} rows and {self.landmarks} landmarks"

    def solve(  # noqa: D102
        self, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator
    ) -> Solution:
        landmarks = data.points[data.spread(self.landmarks, generator)] if self.landmarks else data.points[:0]
        global_part = GlobalPart.of(kernel, landmarks) if self.landmarks else None
        partitions = []
        for number in range(self.trees):
            axes = all_axes(kernel, data.points) if number == 0 else random_axes(kernel, data.points, generator)
            partitions.append(grow(data.points, axes, self.leaf))
        solved = [solve_tree(kernel, data, ridge, each, global_part) for each in partitions]
        trees, found = Trees(tuple(partitions), landmarks), averaged(solved)
        support = KernelSupport.of(found.nearest, data.weights)
        return Solution(
            data.points,
            trees.coefficients(solved),
            found.squared_norm,
            found.fitted,
            data,
            LeftOutOutputs(found.left_out, data, support.relative(found.nearest)),
            support,
            found.jitter,
            trees=trees,
        )

    def more(  # noqa: D102
        self, kernel: Kernel, solution: Solution, columns: Sequence[Columns]
    ) -> list[SolvedColumns]:
        trees, data = solution.trees, solution.fitted_rows
        assert trees is not None
        global_part = GlobalPart.of(kernel, trees.landmarks) if len(trees.landmarks) else None
        found = []
        for each in columns:
            rows = replace(data, targets=each.targets, prior=each.prior)
            solved = solve_tree(kernel, rows, each.ridge, trees.partitions[0], global_part)
            found.append(SolvedColumns(trees.coefficients([solved]), solved.left_out))
        return found
