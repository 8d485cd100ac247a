"""The last step of the recipe for many rows: common factors on length scales and ridge, by left-out loss."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from kernelwright.embedding.dual import DualEmbedding, embed, embed_in_single
from kernelwright.embedding.primal import RidgeSystem, left_out_residuals
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError, NumericalRepairWarning
from kernelwright.kernels import FeatureKernel, Kernel
from kernelwright.learning.base import Choice, LearningTask
from kernelwright.learning.loop import Step, stopping
from kernelwright.numerics.linalg import factorise, triangular_solve
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives import CalibratedLogLoss, Hyperparameters
from kernelwright.objectives.losses import Loss, half_log
from kernelwright.parameters import plain_values

__all__ = ["POLISHED_FROM", "Neighbourhood", "descend", "neighbourhoods", "polish", "stretched"]

POLISHED_FROM = 2000  # rows; with fewer, the factors hardly differ from one
BLOCK = 1000  # rows of a neighbourhood: small ones are cheap, and more of them see more of the table
FEW_BLOCKS, MANY_BLOCKS, LANDMARK_BLOCKS = 3, 5, 8  # neighbourhoods; for more than 4000 rows; with landmarks
LANDMARKS, MOST_ROWS = 333, 4000  # of a neighbourhood, if there are landmarks
FLOOR = 1e-6  # added to the diagonal of their kernel matrix, which is about one: far below any useful noise
SCALE_STEP, RIDGE_STEP = 2.0, 3.0  # the loss is flat: finer steps change nothing that a test set can show
FARTHEST = 5  # steps in each direction
WORTH = 1e-3  # a step must lower half the logarithm of the loss by this much
LEAST_RIDGE = 1e-9

Place = tuple[int, int]  # steps of the length scales, steps of the ridge
RIDGE_MOVES: tuple[Place, ...] = ((0, -1), (0, 1))
MOVES: tuple[Place, ...] = (*RIDGE_MOVES, (-1, 0), (1, 0))


def polish(choice: Choice, task: LearningTask) -> Choice:
    """Multiply all length scales by one factor and the ridge by another, chosen by left-out loss.

    The recipe learns from a sample, which is too thin to show the detail that all rows can resolve. Neighbourhoods have
    the density of all rows, so their leave-one-out loss shows it, at a small part of the cost.

    Parameters
    ----------
    choice : Choice
        The kernel and the ridge that the recipe has found.
    task : LearningTask
        Its data are all rows.

    Returns
    -------
    Choice
        With one more step in its history; its value is the left-out loss.
    """
    if isinstance(choice.kernel, FeatureKernel) or not task.kept:
        return choice
    with torch.no_grad():
        parts = neighbourhoods(task, choice.kernel)
        n_rows = sum(len(part.rows) for part in parts)
        with threads_for(n_rows), warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalRepairWarning)  # of a place that is only tried
            # How far landmarks reach depends on where they are, which neighbourhoods do not show.
            moves = MOVES if task.stretches and task.kept == 1.0 else RIDGE_MOVES
            blocks = _Blocks(choice, task, parts)
            place, _ = descend(lambda at: half_log(blocks.measure, blocks.loss(at)), moves=moves)
        value = blocks.loss(place)
    scale, ridge = SCALE_STEP ** place[0], RIDGE_STEP ** place[1]
    kernel, found = stretched(choice.kernel, scale), choice.ridge * ridge
    stage = f"polish, {n_rows} rows: length scales x {scale:.3g}, ridge x {ridge:.3g}"
    step = Step(value, value, 0.0, plain_values(Hyperparameters(kernel, found)), stage)
    with stopping([step]):
        if task.callback is not None:
            task.callback(step)
    return replace(choice, kernel=kernel, ridge=found, value=value, history=[*choice.history, step])


def stretched(kernel: Kernel, factor: float) -> Kernel:
    """Return a copy with all length scales multiplied by a factor; frozen ones stay."""
    made = copy.deepcopy(kernel)
    made.stretch_(factor)
    return made


@dataclass(frozen=True)
class Neighbourhood:
    """Some rows next to each other, and which of them are landmarks; None if all are."""

    rows: TrainingSet
    landmarks: Tensor | None = None

    def features(self, kernel: Kernel) -> Tensor:
        """Return the kernel matrix; or features z with ``z z' = k_M K_MM^-1 k_M'``, if there are landmarks."""
        if self.landmarks is None:
            return kernel.matrix(self.rows.points)
        landmarks = self.rows.points[self.landmarks]
        root = factorise(kernel.matrix(landmarks).double(), FLOOR)
        return triangular_solve(root, kernel.forward(landmarks, self.rows.points).double()).T.contiguous()

    def left_out(self, features: Tensor, ridge: float) -> tuple[Tensor, TrainingSet]:
        """Return leave-one-out outputs, and the rows they belong to: a landmark is not like a new row."""
        rows = self.rows
        if self.landmarks is None:
            return _dual(features, rows, ridge).leave_one_out(), rows
        system = RidgeSystem.of(features, ridge * rows.total_weight, rows.weights, primal=True)
        W, U = system.weights(rows.centred), system.solve(features.T).T
        outputs = rows.targets - left_out_residuals(features, U, rows.centred - features @ W, rows)
        new = torch.ones(len(rows), dtype=torch.bool)
        new[self.landmarks] = False
        return outputs[new], rows.subset(new)


def neighbourhoods(task: LearningTask, kernel: Kernel) -> list[Neighbourhood]:
    """Return the rows next to some random rows: at most half of all rows in each.

    With landmarks, the same share of a neighbourhood are landmarks as of all rows, drawn at random.
    """
    data, generator = task.data, task.generator
    n_blocks, size = FEW_BLOCKS if len(data) <= 2 * POLISHED_FROM else MANY_BLOCKS, BLOCK
    if task.kept < 1.0:
        n_blocks, size = LANDMARK_BLOCKS, min(int(LANDMARKS / task.kept), MOST_ROWS)
    size = max(2, min(size, len(data) // 2))
    centres = torch.randperm(len(data), generator=generator)[:n_blocks]
    found = []
    for rows in (task.nearest or partial(_nearest, data))(kernel, data.points[centres], size):
        n_landmarks = max(1, round(task.kept * size))
        drawn = torch.randperm(size, generator=generator)[:n_landmarks].sort().values
        found.append(Neighbourhood(rows, drawn if n_landmarks < size else None))
    return found


def _nearest(data: TrainingSet, kernel: Kernel, centres: Tensor, size: int) -> Iterator[TrainingSet]:
    for number in range(len(centres)):
        near = kernel.local.forward(centres[number : number + 1], data.points)[0].argsort(descending=True, stable=True)
        yield data.subset(near[:size].sort().values)


def descend(
    value: Callable[[Place], float], start: Place = (0, 0), moves: tuple[Place, ...] = MOVES
) -> tuple[Place, float]:
    """Walk on a lattice, one step at a time, as long as a step is worth it; return the end and its value."""
    best, seen, improved = start, {start: value(start)}, True
    while improved:
        improved = False
        for move in moves:
            there = (best[0] + move[0], best[1] + move[1])
            while max(map(abs, there)) <= FARTHEST and there not in seen:
                seen[there] = value(there)
                if not seen[there] < seen[best] - WORTH:
                    break
                best, improved = there, True
                there = (best[0] + move[0], best[1] + move[1])
    return best, seen[best]


@dataclass(frozen=True)
class _Blocks:
    """The left-out loss of all neighbourhoods together, as a function of steps from a choice."""

    choice: Choice
    task: LearningTask
    parts: list[Neighbourhood]
    features: dict[int, list[Tensor]] = field(default_factory=dict)  # of the latest length scales
    losses: dict[Place, float] = field(default_factory=dict)

    @property
    def measure(self) -> Loss:
        return self.task.loss or CalibratedLogLoss()

    def loss(self, place: Place) -> float:
        """Return the loss; NaN where the system cannot be solved."""
        if place not in self.losses:
            self.losses[place] = self._loss(place)
        return self.losses[place]

    def _loss(self, place: Place) -> float:
        ridge = self.choice.ridge * RIDGE_STEP ** place[1]
        if not ridge >= min(LEAST_RIDGE, self.choice.ridge):
            return torch.nan
        noise = ridge * self.task.data.total_weight  # the same among neighbours as among all rows
        try:
            found = [
                part.left_out(features, noise / part.rows.total_weight)
                for part, features in zip(self.parts, self._features(place[0]), strict=True)
            ]
        except NumericalError:
            return torch.nan
        outputs, rows = (list(each) for each in zip(*found, strict=True))
        return self.measure(torch.cat(outputs), _joined(rows))[0]

    def _features(self, steps: int) -> list[Tensor]:
        """Return kernel matrices or features for these length scales, in single precision if that is enough."""
        if steps not in self.features:
            kernel = stretched(self.choice.kernel, SCALE_STEP**steps)
            single = kernel.local.bounded and kernel.takes_vectors and self.task.precision != "double"
            dtype = torch.float32 if single else torch.float64
            kernel = kernel.to(dtype)
            self.features.clear()
            self.features[steps] = [_in(part, dtype).features(kernel) for part in self.parts]
        return self.features[steps]


def _in(part: Neighbourhood, dtype: torch.dtype) -> Neighbourhood:
    return replace(part, rows=replace(part.rows, points=part.rows.points.to(dtype)))


def _joined(parts: list[TrainingSet]) -> TrainingSet:
    """Return the rows of all parts, without points: for a loss."""
    whole = {name: torch.cat([getattr(part, name) for part in parts]) for name in ("targets", "weights", "strata")}
    return replace(parts[0], points=whole["targets"], counts=None, groups=None, **whole)


def _dual(K: Tensor, rows: TrainingSet, ridge: float) -> DualEmbedding:
    """Solve in the precision of K, or in double if single precision is not enough."""
    if K.dtype == torch.float32:
        with suppress(NumericalError):
            return embed_in_single(K, rows, ridge)
    return embed(K.double(), rows, ridge)
