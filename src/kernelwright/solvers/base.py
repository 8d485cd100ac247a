"""The base class of solvers."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch

from kernelwright.embedding.dual import embed
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import PrecisionWarning
from kernelwright.inputs.options import Option
from kernelwright.kernels import Kernel
from kernelwright.numerics.memory import free_memory
from kernelwright.numerics.work import Work
from kernelwright.objectives.losses import Loss
from kernelwright.solvers.solution import Columns, Solution, SolvedColumns

__all__ = ["PRECISIONS", "Solver", "usual_landmarks", "warn_of_fallback"]

PRECISIONS = {"auto", "single", "double"}


class Solver(Option):
    """A way to compute and store the embedding of all rows."""

    precision: str = "auto"
    stretches: ClassVar[bool] = True  # whether left-out neighbours may change the length scales for many rows

    @abstractmethod
    def size(self, n_rows: int) -> int:
        """Return the number of points or features that the coefficients belong to."""

    @abstractmethod
    def n_bytes(self, n_rows: int) -> float:
        """Estimate the peak memory of the matrices; the robustness tests measure it."""

    def work(self, n_rows: int) -> Work | None:
        """Return the work of the solution, or None if it is not known."""
        return None

    @abstractmethod
    def solve(self, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator) -> Solution:
        """Solve the embedding of the rows."""

    def more(self, kernel: Kernel, solution: Solution, columns: Sequence[Columns]) -> list[SolvedColumns]:
        """Solve for more targets of the fitted rows, at the points of a solution; here by the dual form."""
        data, left_out, found = solution.fitted_rows, solution.left_out.rows, []
        K = kernel.matrix(data.points)
        K_new = None if left_out is data else kernel.forward(left_out.points, data.points)
        for each in columns:
            embedding = embed(K, replace(data, targets=each.targets, prior=each.prior), each.ridge)
            outputs = embedding.leave_one_out() if K_new is None else embedding.outputs(K_new)
            found.append(SolvedColumns(embedding.coefficients, outputs))
        return found

    def for_rows(self, n_rows: int, *, divisible: bool = True) -> Solver:
        """Return the solver for this number of rows, which a tree can divide or not: itself, unless it chooses one."""
        return self

    def settled(
        self,
        found: Solver,
        kernel: Kernel,
        data: TrainingSet,
        ridge: float,
        loss: Loss,
        generator: torch.Generator,
    ) -> Solver:
        """Return the solver for these rows, once the kernel is learned; ``found`` is that of their number."""
        return found

    def share_kept(self, n_rows: int) -> float:
        """Return the share of the rows that the solution keeps as points; zero if it uses features or picks rows."""
        return 0.0

    @property
    def advice(self) -> str:
        """What to do if memory is short."""
        return "Use fewer (n), or fewer rows."

    def described(self, n_rows: int) -> str:
        """Return a phrase that names the job, for messages."""
        return f"solver={self.word!r} with {self.size(n_rows)} of {n_rows} rows"


def usual_landmarks(n: int) -> int:
    """Return half of the rows up to 4000, then one in twenty; from 1000 to 7500, if a few such matrices fit."""
    fits = int(math.sqrt(0.2 * free_memory() / 8.0))
    return max(1, min(max(1000, min(n // 2, 4000), n // 20), 7500, fits))


def warn_of_fallback(reason: str) -> None:
    """Warn that double precision was used instead of single."""
    warnings.warn(
        f"{reason} The system was solved in double precision instead. A very small ridge, or inputs too large for "
        "single precision, are the usual causes.",
        PrecisionWarning,
        stacklevel=5,
    )
