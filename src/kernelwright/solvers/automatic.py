"""The solver that is chosen by the number of rows and the memory."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import StrOptions

from kernelwright.embedding.partition import divisible
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.numerics.memory import free_memory
from kernelwright.objectives.losses import Loss, half_log
from kernelwright.solvers.base import PRECISIONS, Solver
from kernelwright.solvers.contest import Contest
from kernelwright.solvers.exact import Exact
from kernelwright.solvers.landmarks import Landmarks
from kernelwright.solvers.solution import Solution
from kernelwright.solvers.tree import Tree
from kernelwright.storage.saved import saved

__all__ = ["EXACT_UP_TO", "TREE_FROM", "Auto"]

EXACT_UP_TO = 8000  # rows; beyond, landmarks are as good and far cheaper
TREE_FROM = 20_000  # rows; from here on the leaves of a tree see more detail than landmarks, on all tables tried
CONTEST_FROM = 4000  # rows; with fewer, the parts that decide would be the table itself
TREE_WORTH = 0.01  # least fall of half the logarithm of the held-out loss for which a tree takes the place of landmarks


@saved("auto-solver")
class Auto(Solver):
    """Exact up to 8000 rows, landmarks or a tree beyond or if memory is short, and a tree from 20,000 rows on.

    Between landmarks and a tree, rows held out of two parts of the table decide, once the kernel is learned
    (:class:`kernelwright.solvers.contest.Contest`). Points that no tree can split, such as sparse rows, have landmarks.

    Parameters
    ----------
    precision : {"auto", "single", "double"}, default="auto"
        As in :class:`Exact` and :class:`Landmarks`.
    """

    word: ClassVar[str] = "auto"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"precision": [StrOptions(PRECISIONS)]}

    def __init__(self, precision: str = "auto") -> None:
        self.precision = precision

    def for_rows(self, n_rows: int, *, divisible: bool = True) -> Solver:
        """Return the solver for this number of rows; only points that are rows of numbers are divisible."""
        exact = Exact(precision=self.precision)
        if n_rows <= EXACT_UP_TO and exact.n_bytes(n_rows) < 0.9 * free_memory():
            return exact
        large = n_rows >= TREE_FROM and divisible and self.precision != "single"
        if large and Tree().n_bytes(n_rows) < 0.9 * free_memory():
            return Tree()
        return Landmarks(precision=self.precision)

    def settled(  # noqa: D102
        self,
        found: Solver,
        kernel: Kernel,
        data: TrainingSet,
        ridge: float,
        loss: Loss,
        generator: torch.Generator,
    ) -> Solver:
        n, tree = len(data), Tree()
        many = isinstance(found, Landmarks) and n >= CONTEST_FROM and self.precision != "single"
        if not (many and divisible(kernel, data.points) and tree.n_bytes(n) < 0.9 * free_memory()):
            return found
        contest, share = Contest.of(kernel, data, ridge, generator), found.size(n) / n
        if not contest.held:  # every part is one group
            return found
        of_landmarks = contest.loss(lambda rows: Landmarks(max(1, round(share * rows))), loss, generator)
        of_tree = contest.loss(lambda _: tree, loss, generator)
        gain = half_log(loss, of_landmarks) - half_log(loss, of_tree)
        return tree if gain > TREE_WORTH else found

    def size(self, n_rows: int) -> int:  # noqa: D102
        return self.for_rows(n_rows).size(n_rows)

    def n_bytes(self, n_rows: int) -> float:  # noqa: D102
        return self.for_rows(n_rows).n_bytes(n_rows)

    def solve(  # noqa: D102
        self, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator
    ) -> Solution:
        return self.for_rows(len(data), divisible=divisible(kernel, data.points)).solve(kernel, data, ridge, generator)
