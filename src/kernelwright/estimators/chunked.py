"""The fit of rows in chunks: hyperparameters from a sample, then sums over all rows, or leaves bucket by bucket."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import EmbeddedRows
from kernelwright.embedding.partition import divisible
from kernelwright.embedding.primal import FeatureSums
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.arrows import FitPlan, gather, learn
from kernelwright.estimators.progress import logger
from kernelwright.estimators.row_split import RowSplit
from kernelwright.estimators.streaming import PointSums, RunningEmbedding, known_beforehand, sum_points
from kernelwright.inputs.blocks import Block, Chunks
from kernelwright.inputs.dataset import Dataset
from kernelwright.inputs.targets import Targets
from kernelwright.kernels import FeatureKernel, Kernel
from kernelwright.learning import Choice
from kernelwright.numerics.memory import check_memory
from kernelwright.solvers import Auto, Solution, Solver, Tree
from kernelwright.solvers.buckets import SINGLE_FROM, BucketSolver, CollectedTrees, grow_stems
from kernelwright.solvers.explicit import Explicit
from kernelwright.solvers.solution import LEFT_OUT_ROWS, Columns, SolvedColumns

__all__ = ["ChunkFit", "described_rows", "fit_chunks"]

JUDGED = 5_000_000  # outputs of left-out rows, about: those of far fewer rows already say how good they are


@dataclass(frozen=True)
class ChunkFit:
    """What a fit of rows in chunks has found.

    Parameters
    ----------
    choice : Choice
    solution : Solution
        With outputs at a sample of the rows.
    scaler : transformer or None
    rows : EmbeddedRows
    solver : Solver
    more : callable
        Solves for more columns of all rows.
    """

    choice: Choice
    solution: Solution
    scaler: Any
    rows: EmbeddedRows
    solver: Solver
    more: Callable[[Sequence[Columns]], list[SolvedColumns]]


def described_rows(rows: Dataset | Chunks, parts: RowSplit) -> Dataset:
    """Return the rows that describe the targets: a sample of chunks, or all rows but those held out."""
    if isinstance(rows, Chunks):
        return _sample(rows, 0)[1]
    return rows.subset(np.union1d(parts.learned, parts.solved))


def fit_chunks(chunks: Chunks, plan: FitPlan, n_features: int, random: torch.Generator, *, more: int = 0) -> ChunkFit:
    """Learn the hyperparameters from a random sample, and solve the embedding of all rows.

    ``more`` is the number of columns that will be solved for besides; they ask for the left-out outputs of all rows.
    """
    seed = int(torch.randint(2**31 - 1, (), generator=random))
    fit = partial(_fit_sums, n_features=n_features) if plan.explicit else partial(_fit_trees, more=more)
    return fit(chunks, plan, seed, random)


def _sample(chunks: Chunks, seed: int) -> tuple[np.ndarray, Dataset]:
    """Return random rows, and their indices."""
    rows = chunks.some_rows(np.random.default_rng(seed))
    return rows, replace(Dataset.of(chunks.take(rows)), layout=chunks.layout)


def _keeps_noise(plan: FitPlan) -> bool:
    """Return whether n lambda is the same for a sample and for all rows, rather than lambda."""
    return plan.method.learns and plan.method.mini_batches is None


# Sums over rows ------------------------------------------------------------------------------------------


def _fit_sums(chunks: Chunks, plan: FitPlan, seed: int, random: torch.Generator, *, n_features: int) -> ChunkFit:
    """Sum up all rows; in one pass if nothing is learned."""
    kernel, sums = plan.kernel, None
    assert isinstance(kernel, FeatureKernel)
    if known_beforehand(kernel, learns=plan.method.word != "given", scale=plan.scale):
        kernel.prepare_(torch.empty(0, n_features, dtype=torch.float64))
        some = chunks.some_rows(np.random.default_rng(seed))
        block, sums = chunks.take_and_reduce(some, sum_points, kernel, None, plan.targets)
        sample = Dataset.of(block)
    else:
        sample = _sample(chunks, seed)[1]
    data, place, scaler = gather(sample, plan)
    rows = EmbeddedRows.of(np.ones(len(place), dtype=bool), place, sample.weights, data)
    solver = Explicit()
    choice = learn(data, plan, solver, random)
    found: PointSums = sums or chunks.map_reduce(sum_points, choice.kernel, scaler, plan.targets)
    ridge = choice.ridge * (data.total_weight / found.moments.total if _keeps_noise(plan) else 1.0)
    kept = data.sample(LEFT_OUT_ROWS, random)
    summed = FeatureSums(found.moments, kept, len(chunks), found.low, found.high)
    assert isinstance(choice.kernel, FeatureKernel)
    drawn = plan.method.shrinks_to_frequencies
    running = RunningEmbedding(choice.kernel, scaler, plan.targets, summed, ridge, drawn)
    solution = running.solution()
    choice = replace(choice, ridge=ridge)
    return ChunkFit(choice, solution, scaler, rows, solver, partial(solver.more, choice.kernel, solution))


# Leaves, bucket by bucket --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Totals:
    """What is known of the targets of all rows."""

    weight: float
    mean: Tensor  # of the encoded targets
    strata: np.ndarray  # the weight of each

    @classmethod
    def of(cls, chunks: Chunks, targets: Targets) -> _Totals:
        """Sum up the targets of all rows."""
        sums, strata = np.split(chunks.reduce_targets(_target_sums, targets), [-targets.n_strata])
        weight = float(strata.sum())
        return cls(weight, torch.from_numpy(sums / weight), strata)

    def prior(self, targets: Targets) -> Tensor:
        """Return the value that outputs approach far from all data."""
        return targets.prior(self.mean[None], torch.tensor([self.weight], dtype=torch.float64))

    def balanced(self, sample: TrainingSet) -> TrainingSet:
        """Return a sample whose strata have the shares that they have among all rows; its mean weight is one."""
        own = np.bincount(sample.strata.numpy(), sample.weights.numpy(), len(self.strata))
        factors = torch.from_numpy(self.strata / np.maximum(own, 1e-300))
        weights = sample.weights * factors[sample.strata]
        return replace(sample, weights=weights * (len(weights) / weights.sum()))


def _target_sums(y: np.ndarray, weights: np.ndarray, targets: Targets) -> np.ndarray:
    """Return the weighted sums of encoded targets, and the weight of each stratum."""
    of_strata = np.bincount(targets.strata(y).numpy(), weights, targets.n_strata)
    return np.concatenate([weights @ targets.encode(y).numpy(), of_strata])


def _fit_trees(chunks: Chunks, plan: FitPlan, seed: int, random: torch.Generator, *, more: int) -> ChunkFit:
    """Route all rows to buckets, and solve the leaves of each."""
    tree, started = _tree_of(plan.solver), time.monotonic()
    rows, sample = _sample(chunks, seed)
    data, _, scaler = gather(sample, plan)
    if not divisible(plan.kernel, data.points):
        raise ValueError(f"A tree can split points that are dense rows of numbers only, not those of {plan.kernel!r}.")
    _refuse_if_too_large(len(chunks), data, tree, more)
    totals = _Totals.of(chunks, plan.targets)
    nearest = _NearestInChunks(chunks, scaler, plan.targets, data.prior)
    choice = learn(data, replace(plan, nearest=plan.nearest or nearest), tree, random)
    noise = choice.ridge * (data.total_weight if _keeps_noise(plan) else totals.weight)
    solver = BucketSolver(
        choice.kernel,
        scaler,
        plan.targets,
        totals.prior(plan.targets) if plan.method.shrinks_to_frequencies else data.prior,
        noise,
        tree.leaf,
        grow_stems(choice.kernel, data.points, len(chunks), tree.leaf, tree.trees, random),
        None if more else rows,
        torch.float32 if 8.0 * len(chunks) * data.points.shape[1] >= SINGLE_FROM else torch.float64,
    )
    logger.info("%d rows: %r, %d buckets", len(chunks), tree, solver.starts[-1])
    gathered = chunks.gathered(solver.route, solver.starts[-1])
    logger.info("%d rows are routed, after %.0f s", len(chunks), time.monotonic() - started)
    trees = CollectedTrees(solver, gathered)
    trees.collect()
    block = Block(sample.X, sample.y, sample.weights)
    judged = _judged(solver.training_set(block), rows, random)
    solution = trees.solution(judged[0], totals.balanced(judged[1]))
    choice = replace(choice, ridge=noise / totals.weight)
    return ChunkFit(choice, solution, scaler, trees.rows, tree, partial(trees.more, solution, judged[0]))


def _judged(sample: TrainingSet, rows: np.ndarray, random: torch.Generator) -> tuple[np.ndarray, TrainingSet]:
    """Return the indices of the rows whose left-out outputs judge the solution, and these rows."""
    most = max(LEFT_OUT_ROWS, JUDGED // sample.targets.shape[1])
    places = replace(sample, points=torch.arange(len(sample))).sample(most, random).points
    return rows[places.numpy()], sample.subset(places)


def _tree_of(solver: Solver) -> Tree:
    """Return the tree that solves rows in chunks."""
    if isinstance(solver, Auto):
        return Tree()
    if isinstance(solver, Tree) and not solver.landmarks:
        return solver
    raise ValueError(
        "So many rows in chunks are solved leaf by leaf: use solver='auto' or Tree(leaf, trees=...) without "
        f"landmarks, or explicit features, such as features=RandomFourier(1000). Got {solver!r}, which needs all rows "
        "in memory."
    )


def _refuse_if_too_large(n_rows: int, data: TrainingSet, tree: Tree, more: int) -> None:
    """Raise an error if the model itself would not fit into the memory of this process."""
    n_columns, width = data.targets.shape[1] + 2 * more, data.points.shape[1]  # more columns are copied once
    n_bytes = 8.0 * n_rows * width
    of_points = n_bytes if n_bytes < SINGLE_FROM else 0.5 * n_bytes
    needed = of_points + 8.0 * n_rows * (tree.trees * (n_columns + 2) + 5)
    check_memory(needed, f"A model that keeps {n_rows} rows", "Use fewer trees, fewer rows, or explicit features.")


# The rows next to some points ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _NearestInChunks:
    """Finds the rows next to some points among all rows of some chunks."""

    chunks: Chunks
    scaler: Any
    targets: Targets
    prior: Tensor

    def __call__(self, kernel: Kernel, centres: Tensor, size: int) -> list[TrainingSet]:
        """Return the rows with the largest kernel values with each centre."""
        found: _Near = self.chunks.map_reduce(_nearest_of_block, kernel, self.scaler, centres, size)
        return [self._training_set(kernel, block) for block, _ in found.rows]

    def _training_set(self, kernel: Kernel, block: Block) -> TrainingSet:
        points = kernel.encode(block.X if self.scaler is None else self.scaler.transform(block.X))
        targets, strata = self.targets.encode(block.labels), self.targets.strata(block.labels)
        weights = torch.from_numpy(block.weights)
        return TrainingSet.of(points, targets, weights=weights, prior=self.prior, strata=strata)


@dataclass(frozen=True)
class _Near:
    """The nearest rows of each of some points, nearest first, and their kernel values."""

    rows: tuple[tuple[Block, np.ndarray], ...]
    size: int

    def __add__(self, other: _Near) -> _Near:
        pairs = zip(self.rows, other.rows, strict=True)
        joined = ((map(np.concatenate, zip(a, b, strict=True)), np.append(u, v)) for (a, u), (b, v) in pairs)
        return _Near(tuple(_first(Block(*columns), values, self.size) for columns, values in joined), self.size)


def _first(block: Block, values: np.ndarray, size: int) -> tuple[Block, np.ndarray]:
    order = np.argsort(-values, kind="stable")[:size]
    return Block(*(column[order] for column in block)), values[order]


def _nearest_of_block(block: Block, kernel: Kernel, scaler: Any, centres: Tensor, size: int) -> _Near:
    with torch.no_grad():
        points = kernel.encode(block.X if scaler is None else scaler.transform(block.X))
        values = kernel.local.forward(centres, points).numpy()
    return _Near(tuple(_first(block, own, size) for own in values), size)
