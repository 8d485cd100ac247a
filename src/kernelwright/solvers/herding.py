"""The embedding of a weighted subset of the rows."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor

from kernelwright.embedding.herding import herd
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.solvers.base import Solver, usual_landmarks
from kernelwright.solvers.exact import solve_exactly
from kernelwright.solvers.solution import LEFT_OUT_ROWS, Solution, judged_by_new_rows
from kernelwright.storage.saved import saved

__all__ = ["Herding"]

HERDING_CANDIDATES = 5000  # of each class: their kernel matrix must fit


@saved("herding-solver")
class Herding(Solver):
    """A subset that represents each class: picked by kernel herding, weighted by how often each row was picked.

    A row of large weight (one with many equal rows) is picked repeatedly.

    Parameters
    ----------
    n : int or None, default=None
        Number of rows in the subset; ``None`` is as many as :class:`Landmarks` would take.
    """

    word: ClassVar[str] = "herding"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n": [Interval(Integral, 1, None, closed="left"), None]}

    def __init__(self, n: int | None = None) -> None:
        self.n = n

    def size(self, n_rows: int) -> int:  # noqa: D102
        return min(self.n or usual_landmarks(n_rows), n_rows)

    def n_bytes(self, n_rows: int) -> float:  # noqa: D102
        size = self.size(n_rows)
        candidates = min(n_rows, max(HERDING_CANDIDATES, size))
        left_out = 4 * 8.0 * min(n_rows, LEFT_OUT_ROWS) * size
        return max(3 * 8.0 * candidates**2, 4 * 8.0 * size**2 + left_out)

    def solve(  # noqa: D102
        self, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator
    ) -> Solution:
        size = self.size(len(data))
        if size >= len(data):  # all rows are picked
            return solve_exactly(kernel, data, ridge)
        picked, weights = _pick(kernel, data, size, generator)
        found = solve_exactly(kernel, replace(data.subset(picked), weights=weights, counts=None), ridge)
        others = torch.ones(len(data), dtype=torch.bool)
        others[picked] = False
        if data.groups is not None:
            others &= ~torch.isin(data.groups, data.groups[picked])
        if not bool(others.any()):
            return found
        # A picked row represents many, so leaving it out says little. Rows that were not picked serve as new rows.
        rows = data.subset(others).sample(LEFT_OUT_ROWS, generator)
        left_out, support = judged_by_new_rows(kernel, rows, data.points[picked], found.coefficients)
        return replace(found, left_out=left_out, support=support)


def _pick(kernel: Kernel, data: TrainingSet, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the indices of the picked rows, a share for each class, and their weights."""
    chosen, weights = [], []
    for stratum in data.strata.unique():
        own = (data.strata == stratum).nonzero()[:, 0]
        total = float(data.weights[own].sum())
        picks = max(1, round(size * len(own) / len(data)))
        candidates = own[torch.randperm(len(own), generator=generator)[: max(HERDING_CANDIDATES, picks)]]
        share = data.weights[candidates] / data.weights[candidates].sum()
        picked, times = herd(kernel.matrix(data.points[candidates]), share, picks).unique(return_counts=True)
        chosen.append(candidates[picked])
        weights.append(total / picks * times.double())
    return torch.cat(chosen), torch.cat(weights)
