"""The leaves of trees whose rows are not all in memory, solved bucket by bucket.

A sample of the rows grows the stems of the trees, whose leaves are buckets of some ten thousand rows. Every row is
routed to one bucket of each tree. Where the rows of a bucket come together, they grow a branch with leaves of the
wanted size, and these are solved as :func:`kernelwright.embedding.tree.solve_tree` solves all leaves in memory: with
the same partition, kernel and n lambda the solution is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.partition import RowPartition, all_axes, grafted, grow_along, random_axes
from kernelwright.embedding.support import KernelSupport
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.embedding.tree import Trees, solve_tree
from kernelwright.inputs.blocks import Block
from kernelwright.inputs.targets import Targets
from kernelwright.kernels import Kernel
from kernelwright.numerics.threads import threads_for
from kernelwright.solvers.solution import Solution
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["BucketSolver", "CollectedTrees", "SolvedBucket", "grow_stems"]

BUCKET_LEAVES = 32  # leaves of a bucket, about
LEAST_SAMPLED = 50  # rows of the sample in a bucket, about: its number of rows then differs by a seventh
SINGLE_FROM = 2**30  # bytes of points in double precision, from which on they are kept in single


def grow_stems(
    kernel: Kernel, sample: Tensor, n_rows: int, leaf: int, n_trees: int, generator: torch.Generator
) -> tuple[RowPartition, ...]:
    """Grow the trees whose leaves are buckets, from a sample of ``n_rows`` rows.

    If one leaf has room for all rows, there is one tree.
    """
    bucket = max(BUCKET_LEAVES * leaf, LEAST_SAMPLED * n_rows // len(sample))
    size = max(1, bucket * len(sample) // n_rows)
    axes = [all_axes(kernel, sample)]
    if n_rows > leaf:
        axes += [random_axes(kernel, sample, generator) for _ in range(n_trees - 1)]
    return tuple(grow_along(sample, each, size) for each in axes)


@dataclass(frozen=True)
class SolvedBucket:
    """The branch of a bucket and its solution; rows are in the order of the branch's leaves."""

    rows: np.ndarray  # indices among all rows
    axis: np.ndarray
    threshold: np.ndarray
    children: np.ndarray
    starts: np.ndarray
    points: np.ndarray  # of buckets of the first tree, none of the others
    coefficients: np.ndarray
    left_out: np.ndarray
    nearest: np.ndarray
    squared_norm: np.ndarray  # a number, and so is the next
    jitter: np.ndarray

    def branch(self, stem: RowPartition) -> RowPartition:
        """Return the branch, on the axes of its stem."""
        parts = (self.axis, self.threshold, self.children, self.rows, self.starts)
        return RowPartition(stem.axes, *map(torch.from_numpy, parts))


@dataclass(frozen=True)
class BucketSolver:
    """Routes rows to buckets, and solves a bucket where its rows are. It can be sent to other processes."""

    kernel: Kernel
    scaler: Any
    targets: Targets
    prior: Tensor
    noise: float  # n lambda
    leaf: int
    stems: tuple[RowPartition, ...]
    dtype: torch.dtype = torch.float64  # of the points that are kept

    @property
    def starts(self) -> list[int]:
        """The number of the first bucket of each tree, and of all buckets."""
        return [0, *accumulate(stem.n_leaves for stem in self.stems)]

    def tree_of(self, bucket: int) -> int:
        """Return the number of the tree that a bucket belongs to."""
        return int(np.searchsorted(self.starts, bucket, side="right")) - 1

    def points(self, X: np.ndarray) -> Tensor:
        """Return rows as the kernel sees them, in the precision in which they are kept."""
        points = self.kernel.encode(X if self.scaler is None else self.scaler.transform(X))
        return points.to(self.dtype).double()

    def route(self, block: Block) -> np.ndarray:
        """Return the buckets of rows, a column for each tree."""
        points = self.points(block.X)
        columns = zip(self.stems, self.starts, strict=False)
        return np.column_stack([stem.route(points).numpy() + first for stem, first in columns])

    def solve(self, bucket: int, block: Block, rows: np.ndarray, given: None = None) -> SolvedBucket:
        """Grow the branch of a bucket and solve its leaves."""
        tree = self.tree_of(bucket)
        with torch.no_grad(), threads_for(min(len(rows), self.leaf)):
            data = self._rows(block)
            branch = grow_along(data.points, self.stems[tree].axes, self.leaf)
            solved = solve_tree(self.kernel, data, self.noise / data.total_weight, branch)
        order = branch.order.numpy()
        parts = (branch.axis, branch.threshold, branch.children, branch.starts)
        points = data.points[branch.order] if tree == 0 else data.points[:0]
        columns = (solved.coefficients, solved.left_out, solved.nearest)
        found = (points.to(self.dtype), *(column[branch.order] for column in columns))
        numbers = (np.array(number) for number in (solved.squared_norm, solved.jitter))
        return SolvedBucket(rows[order], *(each.numpy() for each in (*parts, *found)), *numbers)

    def _rows(self, block: Block) -> TrainingSet:
        weights, strata = torch.from_numpy(block.weights), self.targets.strata(block.labels)
        targets = self.targets.encode(block.labels)
        return TrainingSet.of(self.points(block.X), targets, weights=weights, prior=self.prior, strata=strata)


class CollectedTrees:
    """Trees, put together from solved buckets as they come.

    Parameters
    ----------
    solver : BucketSolver
    sizes : ndarray
        The number of rows in each bucket.
    judged : ndarray
        Indices of the rows whose left-out outputs are kept, in increasing order.
    """

    def __init__(self, solver: BucketSolver, sizes: np.ndarray, judged: np.ndarray) -> None:
        self.solver, self.judged, self.starts = solver, judged, solver.starts
        self.n_rows, self.n_trees = int(sizes[: self.starts[1]].sum()), len(solver.stems)
        self.ends = sizes.cumsum()  # also places among the coefficients: tree by tree, bucket by bucket
        self.branches: list[RowPartition | None] = [None] * len(sizes)
        n_outputs = len(solver.prior)
        self.points = torch.empty(0, 0, dtype=solver.dtype)
        self.coefficients = torch.zeros(self.n_trees * self.n_rows, n_outputs, dtype=torch.float64)
        self.left_out = torch.zeros(len(judged), n_outputs, dtype=torch.float64)
        self.nearest = torch.full((len(judged),), -torch.inf, dtype=torch.float64)
        self.squared_norm, self.jitter = 0.0, 0.0

    def add(self, bucket: int, solved: SolvedBucket) -> None:
        """Put the solution of a bucket in its place."""
        tree, end = self.solver.tree_of(bucket), int(self.ends[bucket])
        self.branches[bucket] = solved.branch(self.solver.stems[tree])
        V = torch.from_numpy(solved.coefficients) / self.n_trees
        self.coefficients[end - len(V) : end] = V
        if tree == 0:
            if not len(self.points):
                self.points = torch.zeros(self.n_rows, solved.points.shape[1], dtype=self.solver.dtype)
            self.points[torch.from_numpy(solved.rows)] = torch.from_numpy(solved.points)
        place = np.searchsorted(self.judged, solved.rows).clip(max=len(self.judged) - 1)
        here = torch.from_numpy(np.flatnonzero(self.judged[place] == solved.rows))
        at = torch.from_numpy(place)[here]
        self.left_out[at] += torch.from_numpy(solved.left_out)[here] / self.n_trees
        self.nearest[at] = torch.maximum(self.nearest[at], torch.from_numpy(solved.nearest)[here])
        self.squared_norm += float(solved.squared_norm) / self.n_trees
        self.jitter = max(self.jitter, float(solved.jitter))

    def solution(self, sample: TrainingSet, weights: Tensor) -> Solution:
        """Return the solution, once all buckets are there, with outputs at the judged rows only.

        ``sample`` are the judged rows, and ``weights`` the weights that they have among all rows.
        """
        stems = zip(self.solver.stems, self.starts, self.starts[1:], strict=False)
        partitions = tuple(grafted(stem, _complete(self.branches[start:stop])) for stem, start, stop in stems)
        V = torch.stack([self.coefficients[at] for at in self._places(partitions)]).sum(0)
        support = KernelSupport.of(self.nearest, sample.weights)
        return Solution(
            self.points,
            self.coefficients,
            self.squared_norm,
            sample.targets - (self.solver.noise / weights)[:, None] * V,
            sample,
            LeftOutOutputs(self.left_out, sample, support.relative(self.nearest)),
            support,
            self.jitter,
            trees=Trees(partitions, self.points[:0].double()),
        )

    def _places(self, partitions: Sequence[RowPartition]) -> Iterator[Tensor]:
        """Yield, for each tree, the places of the judged rows among the coefficients."""
        for tree, partition in enumerate(partitions):
            place = torch.empty_like(partition.order)
            place[partition.order] = torch.arange(self.n_rows)
            yield tree * self.n_rows + place[torch.from_numpy(self.judged)]


def _complete(branches: Sequence[RowPartition | None]) -> list[RowPartition]:
    found = [each for each in branches if each is not None]
    assert len(found) == len(branches), "a bucket has not been solved"
    return found
