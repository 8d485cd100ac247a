"""What a fit will take, said before it begins."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.kernels import Kernel
from kernelwright.learning import LearningMethod
from kernelwright.numerics.memory import in_words
from kernelwright.numerics.threads import threads_for
from kernelwright.numerics.work import WorkPace
from kernelwright.solvers import Solver, Tree

__all__ = ["FitEstimate", "estimate"]

TIMED_ROWS = 800
OF_THE_REST = 1.2  # calibration, checks and views, relative to learning and solving


@dataclass(frozen=True)
class FitEstimate:
    """CPU seconds at the present pace of this machine, and the bytes of the matrices and points."""

    learning: float
    solving: float
    n_bytes: float
    parts: str = ""

    @property
    def seconds(self) -> float:
        """All CPU seconds of a fit."""
        return OF_THE_REST * (self.learning + self.solving)

    def __str__(self) -> str:
        parts = f" ({self.parts})" if self.parts else ""
        return (
            f"expected: about {self.seconds:.2g} CPU seconds, {self.learning:.2g} of them for learning and "
            f"{self.solving:.2g} for solving{parts}, and {in_words(self.n_bytes)}"
        )


def estimate(kernel: Kernel, points: Tensor, solver: Solver, method: LearningMethod) -> FitEstimate | None:
    """Time a small kernel matrix and its factor, and multiply by the work; None if that is not known."""
    n, work = len(points), solver.work(len(points))
    if work is None or not kernel.takes_vectors or not torch.is_tensor(points) or n < 2:
        return None
    some = points[torch.linspace(0, n - 1, min(n, TIMED_ROWS)).long()]
    tried = copy.deepcopy(kernel)
    with torch.no_grad(), threads_for(0):
        tried.prepare_(some, torch.ones(len(some), dtype=torch.float64))
        pace = WorkPace.measured(lambda: tried.matrix(some))
    leaves = -(-n // solver.leaf) if isinstance(solver, Tree) else 1
    learning_bytes = 7 * 8.0 * min(n, method.matrix_rows) ** 2
    n_bytes = max(learning_bytes, solver.n_bytes(n)) + 2.0 * points.numel() * points.element_size()
    parts = f"{solver.trees} trees of {leaves} leaves" if isinstance(solver, Tree) else ""
    return FitEstimate(method.work(n).seconds(pace), work.seconds(pace), n_bytes, parts)
