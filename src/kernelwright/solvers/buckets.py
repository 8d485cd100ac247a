"""The leaves of trees whose rows are not all in memory, solved bucket by bucket.

A sample of the rows grows the stems of the trees, whose leaves are buckets of some ten thousand rows. Every row is
routed to one bucket of each tree. Where the rows of a bucket come together, they grow a branch with leaves of the
wanted size, and these are solved as :func:`kernelwright.embedding.tree.solve_tree` solves all leaves in memory: with
the same partition, kernel and n lambda the solution is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import EmbeddedRows
from kernelwright.embedding.partition import RowPartition, all_axes, grafted, grow_along, random_axes
from kernelwright.embedding.support import KernelSupport
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.embedding.tree import Trees, solve_tree
from kernelwright.inputs.blocks import Block, Gathered
from kernelwright.inputs.rows_done import RowsDone
from kernelwright.inputs.targets import Targets
from kernelwright.kernels import Kernel
from kernelwright.numerics.threads import threads_for
from kernelwright.solvers.solution import Columns, Solution, SolvedColumns
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["BucketSolver", "CollectedTrees", "MoreColumns", "SolvedBucket", "SolvedColumnsOfBucket", "grow_stems"]

BUCKET_LEAVES = 32  # leaves of a bucket, about
LEAST_SAMPLED = 50  # rows of the sample in a bucket, about: its number of rows then differs by a seventh
SINGLE_FROM = 2**28  # bytes of points in double precision, from which on they are kept in single


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
    points: np.ndarray  # of buckets of the first tree, none of the others; and so are the next two
    weights: np.ndarray
    strata: np.ndarray
    coefficients: np.ndarray
    judged: np.ndarray  # the places of rows of the bucket among those that are judged; the next two are theirs
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
    judged: np.ndarray | None = None  # indices of the rows whose left-out outputs are wanted; None: all rows
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
            data, branch = self.grown(bucket, block)
            solved = solve_tree(self.kernel, data, self.noise / data.total_weight, branch)
        order = branch.order.numpy()
        parts = (branch.axis, branch.threshold, branch.children, branch.starts)
        kept = branch.order if tree == 0 else branch.order[:0]
        of_rows = (data.points[kept].to(self.dtype), data.weights[kept], data.strata[kept])
        here, judged = _found_among(self.judged, rows)
        found = (*of_rows, solved.coefficients[branch.order], judged, solved.left_out[here], solved.nearest[here])
        numbers = (np.array(number) for number in (solved.squared_norm, solved.jitter))
        return SolvedBucket(rows[order], *(each.numpy() for each in (*parts, *found)), *numbers)

    def grown(self, bucket: int, block: Block) -> tuple[TrainingSet, RowPartition]:
        """Return the rows of a bucket and its branch."""
        data = self.training_set(block)
        return data, grow_along(data.points, self.stems[self.tree_of(bucket)].axes, self.leaf)

    def training_set(self, block: Block) -> TrainingSet:
        """Return rows with their targets, as they are solved."""
        weights, strata = torch.from_numpy(block.weights), self.targets.strata(block.labels)
        targets = self.targets.encode(block.labels)
        return TrainingSet.of(self.points(block.X), targets, weights=weights, prior=self.prior, strata=strata)


@dataclass(frozen=True)
class SolvedColumnsOfBucket:
    """More columns of a bucket; rows are in the order of the branch's leaves."""

    rows: np.ndarray
    coefficients: np.ndarray
    judged: np.ndarray  # the places of rows of the bucket among those that are judged
    left_out: np.ndarray  # of these


@dataclass(frozen=True)
class MoreColumns:
    """Solves for more columns in a bucket: its branch grows again, as it grew before."""

    solver: BucketSolver
    columns: tuple[Columns, ...]  # what their targets are is said by their rules
    noises: tuple[float, ...]  # n lambda of each
    judged: np.ndarray  # indices of the rows whose left-out outputs are wanted

    def solve(self, bucket: int, block: Block, rows: np.ndarray, left_out: np.ndarray) -> SolvedColumnsOfBucket:
        """Solve, given the left-out outputs of the rows; columns of the same ridge share their factors."""
        solver, found = self.solver, dict[int, tuple[Tensor, Tensor]]()
        here, judged = _found_among(self.judged, rows)
        with torch.no_grad(), threads_for(min(len(rows), solver.leaf)):
            data, branch = solver.grown(bucket, block)
            targets = [each.of_rows(block.labels, left_out) for each in self.columns]
            for noise in set(self.noises):
                places = [place for place, own in enumerate(self.noises) if own == noise]
                priors = [self.columns[place].prior for place in places]
                own = replace(data, targets=torch.cat([targets[place] for place in places], 1), prior=torch.cat(priors))
                solved = solve_tree(solver.kernel, own, noise / own.total_weight, branch)
                sizes = [len(prior) for prior in priors]
                V, outputs = solved.coefficients[branch.order].split(sizes, 1), solved.left_out[here].split(sizes, 1)
                found |= dict(zip(places, zip(V, outputs, strict=True), strict=True))
        V, outputs = (torch.cat(parts, 1).numpy() for parts in zip(*map(found.get, sorted(found)), strict=True))
        return SolvedColumnsOfBucket(rows[branch.order.numpy()], V, judged.numpy(), outputs)


class CollectedTrees:
    """Trees, put together from solved buckets as they come.

    Parameters
    ----------
    solver : BucketSolver
    gathered : Gathered
        The rows, brought together in buckets.
    """

    def __init__(self, solver: BucketSolver, gathered: Gathered) -> None:
        self.solver, self.gathered, self.starts = solver, gathered, solver.starts
        self.n_rows, self.n_trees = int(gathered.sizes[: self.starts[1]].sum()), len(solver.stems)
        self.judged = judged = np.arange(self.n_rows) if solver.judged is None else solver.judged
        self.ends = gathered.sizes.cumsum()  # also places among the coefficients: tree by tree, bucket by bucket
        self.branches = [None if size else self._empty(bucket) for bucket, size in enumerate(gathered.sizes)]
        n_outputs = len(solver.prior)
        self.points = torch.empty(0, 0, dtype=solver.dtype)
        self.weights, self.strata = np.zeros(self.n_rows), np.zeros(self.n_rows, dtype=np.int64)
        self.coefficients = torch.zeros(self.n_trees * self.n_rows, n_outputs, dtype=torch.float64)
        self.left_out = torch.zeros(len(judged), n_outputs, dtype=torch.float64)
        self.nearest = torch.full((len(judged),), -torch.inf, dtype=torch.float64)
        self.squared_norm, self.jitter = 0.0, 0.0

    def collect(self) -> None:
        """Solve all buckets."""
        done = RowsDone("rows of all trees solved", int(self.ends[-1]))
        for number, found in self.gathered.map(self.solver.solve):
            self.add(number, found)
            done.add(len(found.rows))

    def _empty(self, bucket: int) -> RowPartition | None:
        """Return the branch of a bucket without rows: beyond a border that only rows of the sample could cross."""
        none = torch.zeros(0, dtype=torch.int64)
        axes = self.solver.stems[self.solver.tree_of(bucket)].axes
        return RowPartition(axes, none, none.double(), none.view(0, 2), none, torch.zeros(2, dtype=torch.int64))

    def add(self, bucket: int, solved: SolvedBucket) -> None:
        """Put the solution of a bucket in its place."""
        tree, end = self.solver.tree_of(bucket), int(self.ends[bucket])
        self.branches[bucket] = solved.branch(self.solver.stems[tree])
        V = torch.from_numpy(solved.coefficients) / self.n_trees
        self.coefficients[end - len(V) : end] = V
        if tree == 0:
            self._keep(solved)
        at = torch.from_numpy(solved.judged)
        self.left_out[at] += torch.from_numpy(solved.left_out) / self.n_trees
        self.nearest[at] = torch.maximum(self.nearest[at], torch.from_numpy(solved.nearest))
        self.squared_norm += float(solved.squared_norm) / self.n_trees
        self.jitter = max(self.jitter, float(solved.jitter))

    def _keep(self, solved: SolvedBucket) -> None:
        """Keep the rows themselves."""
        if not len(self.points):
            self.points = torch.zeros(self.n_rows, solved.points.shape[1], dtype=self.solver.dtype)
        self.points[torch.from_numpy(solved.rows)] = torch.from_numpy(solved.points)
        self.weights[solved.rows], self.strata[solved.rows] = solved.weights, solved.strata

    def solution(self, rows: np.ndarray, sample: TrainingSet) -> Solution:
        """Return the solution, once all buckets are there, with outputs at some of the judged rows only.

        ``sample`` are these rows; its weights may differ from those that they have among all rows.
        """
        at, places = torch.from_numpy(np.searchsorted(self.judged, rows)), self._places(rows)
        V = torch.stack([self.coefficients[each] for each in places]).sum(0)
        noise = self.solver.noise / torch.from_numpy(self.weights[rows])
        nearest = self.nearest[at]
        support = KernelSupport.of(nearest, sample.weights)
        return Solution(
            self.points,
            self.coefficients,
            self.squared_norm,
            sample.targets - noise[:, None] * V,
            sample,
            LeftOutOutputs(self.left_out[at], sample, support.relative(nearest)),
            support,
            self.jitter,
            trees=Trees(self.partitions, self.points[:0].double()),
        )

    @property
    def rows(self) -> EmbeddedRows:
        """What is kept of the rows besides their points."""
        place, every = np.arange(self.n_rows), np.ones(self.n_rows)
        return EmbeddedRows(every.astype(bool), place, every, self.weights, self.strata, None, None)

    @cached_property
    def partitions(self) -> tuple[RowPartition, ...]:
        """The trees, once all buckets are there."""
        stems = zip(self.solver.stems, self.starts, self.starts[1:], strict=False)
        return tuple(grafted(stem, _complete(self.branches[start:stop])) for stem, start, stop in stems)

    def _places(self, rows: np.ndarray) -> Iterator[Tensor]:
        """Yield, for each tree, the places of rows among the coefficients."""
        for tree, partition in enumerate(self.partitions):
            place = torch.empty_like(partition.order)
            place[partition.order] = torch.arange(self.n_rows)
            yield tree * self.n_rows + place[torch.from_numpy(rows)]

    def more(self, solution: Solution, rows: np.ndarray, columns: Sequence[Columns]) -> list[SolvedColumns]:
        """Solve for more columns of all rows; return their left-out outputs at the rows of the solution.

        Their rules may ask for the left-out outputs of all rows, so all rows must be judged.
        """
        noises = tuple(each.ridge * solution.fitted_rows.total_weight for each in columns)
        sizes = [len(each.prior) for each in columns]
        V = torch.zeros(len(self.coefficients), sum(sizes), dtype=torch.float64)
        left_out = torch.zeros(len(rows), sum(sizes), dtype=torch.float64)
        rules = tuple(replace(each, targets=each.targets[:0]) for each in columns)
        more = MoreColumns(self.solver, rules, noises, rows)
        done = RowsDone("rows of all trees solved for their distributions", int(self.ends[-1]))
        for number, found in self.gathered.map(more.solve, self._left_out_of):
            done.add(len(found.rows))
            end = int(self.ends[number])
            V[end - len(found.rows) : end] = torch.from_numpy(found.coefficients) / self.n_trees
            left_out[torch.from_numpy(found.judged)] += torch.from_numpy(found.left_out) / self.n_trees
        return [SolvedColumns(*each) for each in zip(V.split(sizes, 1), left_out.split(sizes, 1), strict=True)]

    def _left_out_of(self, bucket: int) -> np.ndarray:
        """Return the left-out outputs of the rows of a bucket, in the order of the rows."""
        branch = self.branches[bucket]
        assert branch is not None
        return self.left_out[branch.order.sort().values].numpy()


def _found_among(known: np.ndarray | None, rows: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return which of the rows are among some known ones, which increase, and their places there; None: all are."""
    if known is None:
        return torch.arange(len(rows)), torch.from_numpy(rows)
    place = np.searchsorted(known, rows).clip(max=len(known) - 1)
    here = np.flatnonzero(known[place] == rows)
    return torch.from_numpy(here), torch.from_numpy(place[here])


def _complete(branches: Sequence[RowPartition | None]) -> list[RowPartition]:
    found = [each for each in branches if each is not None]
    assert len(found) == len(branches), "a bucket has not been solved"
    return found
