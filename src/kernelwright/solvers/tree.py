"""The solver whose embedding is exact within the leaves of trees."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor

from kernelwright.embedding.partition import RowPartition, all_axes, divisible, grow, random_axes
from kernelwright.embedding.support import KernelSupport
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.embedding.tree import GlobalPart, SolvedTree, Trees, averaged, solve_tree
from kernelwright.kernels import Kernel
from kernelwright.numerics.threads import n_threads
from kernelwright.numerics.work import Work
from kernelwright.solvers.base import Solver
from kernelwright.solvers.exact import Exact
from kernelwright.solvers.held_out import hold_out
from kernelwright.solvers.landmarks import Landmarks
from kernelwright.solvers.solution import LEFT_OUT_ROWS, Columns, Solution, SolvedColumns
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["Tree"]

NUMBERS_A_ROW = 50  # values along axes, coefficients, outputs


@saved("tree-solver")
class Tree(Solver):
    """Leaves of at most some thousand rows, each solved exactly: time and memory are linear in the rows.

    Beside the functions of the leaves there may be one of all rows, in the span of landmarks; all are solved together.
    Every row is left out in closed form. Rows are split where they are spread most, in length scales; a new row asks
    its own leaf, by the same splits. See :mod:`kernelwright.embedding.tree`.

    Parameters
    ----------
    leaf : int, default=1000
        The most rows of a leaf. Cost grows with its square: three trees with leaves of 1000 rows cost no more than one
        with leaves of 2000, and are mostly better.
    trees : int, default=3
        Number of trees whose outputs are averaged; the first splits columns, the others random mixtures of columns.
        They smooth the borders of leaves.
    landmarks : int, default=0
        Rows that connect the leaves: what is smooth in all rows is learned from all rows. 500 double the cost.
    max_age : int or None, default=None
        For ``partial_fit``: rows after which so many others have come are dropped.
    half_life : float or None, default=None
        For ``partial_fit``: a row counts half as much after so many others have come. Rows that count less than a
        thousandth are dropped.

    Notes
    -----
    Kernels on other objects than vectors, and sparse rows, cannot be split: they get landmarks instead, with a warning.
    With ``groups`` and landmarks, one row in twenty, at most 5000, is held out for calibration (in whole groups), as
    the rows of a group may lie in several leaves.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import EmbeddingClassifier
    >>> from kernelwright.solvers import Tree
    >>> X = np.random.default_rng(0).uniform(-2, 2, (1200, 2))
    >>> y = np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1]) > 0
    >>> model = EmbeddingClassifier(solver=Tree(300, trees=2), random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9), model.embedding_.trees.partitions[0].n_leaves
    (True, 4)
    """

    word: ClassVar[str] = "tree"
    # Neighbours in a series of measurements are nearly copies of each other: among them, short length scales look good.
    stretches: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "leaf": [Interval(Integral, 2, None, closed="left")],
        "trees": [Interval(Integral, 1, None, closed="left")],
        "landmarks": [Interval(Integral, 0, None, closed="left")],
        "max_age": [Interval(Integral, 1, None, closed="left"), None],
        "half_life": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        leaf: int = 1000,
        *,
        trees: int = 3,
        landmarks: int = 0,
        max_age: int | None = None,
        half_life: float | None = None,
    ) -> None:
        self.leaf = leaf
        self.trees = trees
        self.landmarks = landmarks
        self.max_age = max_age
        self.half_life = half_life

    def size(self, n_rows: int) -> int:  # noqa: D102
        return n_rows

    def n_bytes(self, n_rows: int) -> float:  # noqa: D102
        leaf, M = min(self.leaf, n_rows), min(self.landmarks, n_rows) if n_rows > self.leaf else 0
        of_leaf = 4 * leaf**2 + 3 * leaf * M
        of_landmarks = (n_rows + 4 * M) * M + -(-n_rows // leaf) * M**2
        at_once = min(n_threads(), -(-n_rows // leaf))  # leaves, each on a thread of its own
        return 8.0 * (at_once * of_leaf + of_landmarks + NUMBERS_A_ROW * n_rows)

    def work(self, n_rows: int) -> Work:  # noqa: D102
        leaves = -(-n_rows // self.leaf)
        size, M = n_rows / leaves, min(self.landmarks, n_rows) if leaves > 1 else 0
        with_landmarks = Work(2.0 * size * M, 4.5 * size**2 * M)  # 3 m^2 M operations; a cube has 2/3
        return (Work.of_matrix(size) + with_landmarks).times(leaves * (self.trees if leaves > 1 else 1))

    def share_kept(self, n_rows: int) -> float:  # noqa: D102
        return 1.0

    @property
    def advice(self) -> str:  # noqa: D102
        return "Use smaller leaves or fewer landmarks, or fewer rows."

    def described(self, n_rows: int) -> str:  # noqa: D102
        return f"{self!r} of {n_rows} rows"

    def for_rows(self, n_rows: int, *, divisible: bool = True) -> Solver:  # noqa: D102
        if divisible:
            return self
        found = Exact() if n_rows <= self.leaf else Landmarks()
        warnings.warn(
            f"A tree can split points that are dense rows of numbers only. These are solved by {found!r} instead.",
            UserWarning,
            stacklevel=4,
        )
        return found

    def solve(  # noqa: D102
        self, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator
    ) -> Solution:
        if not divisible(kernel, data.points):
            return self.for_rows(len(data), divisible=False).solve(kernel, data, ridge, generator)
        held, rows, noise = None, data, ridge * data.total_weight
        if data.groups is not None and self.landmarks and len(data) > self.leaf:
            rows, held = hold_out(data, min(len(data) // 20, LEFT_OUT_ROWS), generator)
        partitions, landmarks = self._grown(kernel, rows, generator)
        global_part = GlobalPart.of(kernel, landmarks) if len(landmarks) else None
        solved = [solve_tree(kernel, rows, noise / rows.total_weight, each, global_part) for each in partitions]
        return _solution(kernel, rows, held, Trees(partitions, landmarks), solved)

    def _grown(
        self, kernel: Kernel, rows: TrainingSet, generator: torch.Generator
    ) -> tuple[tuple[RowPartition, ...], Tensor]:
        """Return the trees and the landmarks; one leaf needs neither more trees nor landmarks."""
        first = grow(rows.points, all_axes(kernel, rows.points), self.leaf)
        if first.n_leaves == 1:
            return (first,), rows.points[:0]
        landmarks = rows.points[rows.spread(self.landmarks, generator)] if self.landmarks else rows.points[:0]
        others = (random_axes(kernel, rows.points, generator) for _ in range(self.trees - 1))
        return (first, *(grow(rows.points, axes, self.leaf) for axes in others)), landmarks

    def more(  # noqa: D102
        self, kernel: Kernel, solution: Solution, columns: Sequence[Columns]
    ) -> list[SolvedColumns]:
        trees, data, held = solution.trees, solution.fitted_rows, solution.left_out.rows
        if trees is None:  # the points could not be split
            return self.for_rows(len(data), divisible=False).more(kernel, solution, columns)
        global_part = GlobalPart.of(kernel, trees.landmarks) if len(trees.landmarks) else None
        found: dict[int, SolvedColumns] = {}
        for ridge in {each.ridge for each in columns}:  # columns of the same ridge share their factors
            places = [place for place, each in enumerate(columns) if each.ridge == ridge]
            targets = torch.cat([columns[place].targets for place in places], 1)
            prior = torch.cat([columns[place].prior for place in places])
            rows = replace(data, targets=targets, prior=prior)
            solved = [solve_tree(kernel, rows, ridge, partition, global_part) for partition in trees.partitions]
            V, outputs = trees.coefficients(solved), averaged(solved).left_out
            if held is not data:
                outputs = prior + trees.outputs(kernel, data.points, V, held.points)[0]
            sizes = [len(columns[place].prior) for place in places]
            parts = zip(places, V.split(sizes, 1), outputs.split(sizes, 1), strict=True)
            found |= {place: SolvedColumns(*each) for place, *each in parts}
        return [found[place] for place in range(len(columns))]


def _solution(
    kernel: Kernel, rows: TrainingSet, held: TrainingSet | None, trees: Trees, solved: Sequence[SolvedTree]
) -> Solution:
    """Return the mean of some trees, judged by rows that were held out, or by all rows in turn."""
    mean, coefficients = averaged(solved), trees.coefficients(solved)
    outputs, nearest = mean.left_out, mean.nearest
    if held is not None:
        outputs, nearest = trees.outputs(kernel, rows.points, coefficients, held.points)
        outputs = outputs + rows.prior
    judged = rows if held is None else held
    largest = (
        2.0 if len(trees.landmarks) else 1.0
    )  # k(x, x) in the kernel of a tree, at most, against the kernel itself
    support = KernelSupport.of(nearest, judged.weights)
    return Solution(
        rows.points,
        coefficients,
        largest * mean.squared_norm,
        mean.fitted,
        rows,
        LeftOutOutputs(outputs, judged, support.relative(nearest)),
        support,
        mean.jitter,
        trees=trees,
    )
