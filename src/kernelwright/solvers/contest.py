"""Rival solvers of the same kernel, judged by rows that are held out of parts of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kernelwright.embedding.partition import all_axes, grow
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.objectives.losses import Loss
from kernelwright.solvers.base import Solver
from kernelwright.solvers.held_out import hold_out
from kernelwright.solvers.solution import Solution

__all__ = ["Contest"]

PART_ROWS = 3000  # three leaves: a part is as dense as the table, and its borders are those of leaves
PARTS = 2
HELD = 5  # one row in so many is held out


@dataclass(frozen=True)
class Contest:
    """Parts of a table, and rows held out of each: what is left of a part is solved by every rival.

    A random sample of all rows would be thinner than the table, and would hide the detail that its leaves can show.
    """

    kernel: Kernel
    noise: float  # n lambda, the same for a part as for all rows
    fitted: list[TrainingSet]
    held: list[TrainingSet]

    @classmethod
    def of(cls, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator) -> Contest:
        """Draw some parts, which are nodes of a tree, and the rows that are held out of them."""
        nodes = grow(data.points, all_axes(kernel, data.points), PART_ROWS)
        drawn = torch.randperm(nodes.n_leaves, generator=generator)[:PARTS].tolist()
        parts = [data.subset(nodes.rows(number)) for number in drawn]
        # Rows are held out purely at random: a rare class may have few rows in a part.
        parts = [replace(part, strata=torch.zeros_like(part.strata)) for part in parts if part.n_units > 1]
        split = [hold_out(part, len(part) // HELD, generator) for part in parts]
        fitted, held = ([replace(each[side], groups=None) for each in split] for side in (0, 1))
        return cls(kernel, ridge * data.total_weight, fitted, held)

    def loss(self, rival: Callable[[int], Solver], loss: Loss, generator: torch.Generator) -> float:
        """Return the loss of a solver, which may depend on the number of rows of a part, at all held-out rows."""
        outputs = []
        for rows, held in zip(self.fitted, self.held, strict=True):
            solution = rival(len(rows)).solve(self.kernel, rows, self.noise / rows.total_weight, generator)
            outputs.append(_outputs(self.kernel, solution, held.points))
        return loss(torch.cat(outputs), _joined(self.held))[0]


def _outputs(kernel: Kernel, solution: Solution, points: Tensor) -> Tensor:
    """Return the outputs of a solution at new points."""
    prior, training = solution.fitted_rows.prior, solution.points
    assert training is not None
    if solution.trees is not None:
        return prior + solution.trees.outputs(kernel, training, solution.coefficients, points)[0]
    with torch.no_grad():
        return prior + kernel.forward(points, training) @ solution.coefficients


def _joined(parts: Sequence[TrainingSet]) -> TrainingSet:
    """Return the rows of all parts."""
    columns = ("points", "targets", "weights", "strata")
    joined = {name: torch.cat([getattr(part, name) for part in parts]) for name in columns}
    return replace(parts[0], **joined, counts=None, groups=None)
