"""The last step of the recipe for many rows: common factors on length scales and ridge, by left-out loss."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from kernelwright.embedding.dual import DualEmbedding, embed, embed_in_single
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.kernels import FeatureKernel, Kernel
from kernelwright.learning.base import MANY, Choice, LearningTask
from kernelwright.learning.loop import Step, stopping
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives import CalibratedLogLoss, Hyperparameters
from kernelwright.objectives.losses import Loss
from kernelwright.parameters import plain_values

__all__ = ["POLISHED_FROM", "descend", "neighbourhoods", "polish", "stretched"]

POLISHED_FROM = 2000  # rows; with fewer, the factors hardly differ from one
BLOCK = 2000  # maximum number of rows of a neighbourhood
SCALE_STEP, RIDGE_STEP = 2.0, 3.0  # the loss is flat: finer steps change nothing that a test set can show
FARTHEST = 5  # steps in each direction
WORTH = 2e-3  # a step must lower the loss by this share
LEAST_RIDGE = 1e-9

Place = tuple[int, int]  # steps of the length scales, steps of the ridge
MOVES: tuple[Place, ...] = ((0, -1), (0, 1), (-1, 0), (1, 0))


def polish(choice: Choice, task: LearningTask) -> Choice:
    r"""Multiply all length scales by one factor and the ridge by another, chosen by left-out loss.

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
    if isinstance(choice.kernel, FeatureKernel):  # features are learned from all rows, or are not stretched
        return choice
    blocks = _Blocks(choice, task, neighbourhoods(choice.kernel, task.data, task.generator))
    with torch.no_grad(), threads_for(len(blocks.parts[0])):
        place, value = descend(blocks.loss, (0, 0))
    scale, ridge = blocks.factors(place)
    kernel, found = stretched(choice.kernel, scale), choice.ridge * ridge
    n_rows = sum(map(len, blocks.parts))
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


def neighbourhoods(kernel: Kernel, data: TrainingSet, generator: torch.Generator) -> list[Tensor]:
    """Return the indices of the rows next to some random rows: at most half of all rows, and at most 2000, in each."""
    size = max(2, min(BLOCK, len(data) // 2))
    n_blocks = 1 if len(data) <= 2 * BLOCK else 2 if len(data) <= MANY else 4
    centres = torch.randperm(len(data), generator=generator)[:n_blocks]
    with torch.no_grad():
        near = [kernel.forward(data.points[[centre]], data.points)[0] for centre in centres.tolist()]
    return [values.argsort(descending=True, stable=True)[:size].sort().values for values in near]


def descend(value: Callable[[Place], float], start: Place) -> tuple[Place, float]:
    """Walk on a lattice, one step at a time, as long as a step is worth it; return the end and its value."""
    best, seen, improved = start, {start: value(start)}, True
    while improved:
        improved = False
        for move in MOVES:
            there = (best[0] + move[0], best[1] + move[1])
            while max(map(abs, there)) <= FARTHEST and there not in seen:
                seen[there] = value(there)
                if not seen[there] < (1.0 - WORTH) * seen[best]:
                    break
                best, improved = there, True
                there = (best[0] + move[0], best[1] + move[1])
    return best, seen[best]


@dataclass(frozen=True)
class _Blocks:
    """The left-out loss of all neighbourhoods together, as a function of steps from a choice."""

    choice: Choice
    task: LearningTask
    parts: list[Tensor]
    matrices: dict[int, list[Tensor]] = field(default_factory=dict)  # of the latest length scales

    def factors(self, place: Place) -> tuple[float, float]:
        return SCALE_STEP ** place[0], RIDGE_STEP ** place[1]

    def loss(self, place: Place) -> float:
        """Return the loss; infinite where the system cannot be solved, or nothing would change."""
        ridge = self.choice.ridge * self.factors(place)[1]
        if not ridge >= min(LEAST_RIDGE, self.choice.ridge):
            return torch.inf
        data, loss = self.task.data, self.task.loss or CalibratedLogLoss()
        try:
            outputs = [
                self._embedding(K, data.subset(rows), ridge).leave_one_out()
                for K, rows in zip(self._matrices(place[0]), self.parts, strict=True)
            ]
        except NumericalError:
            return torch.inf
        return _loss_of(loss, torch.cat(outputs), data.subset(torch.cat(self.parts)))

    def _matrices(self, steps: int) -> list[Tensor]:
        """Return the kernel matrices for these length scales, in single precision if that is accurate enough."""
        if steps not in self.matrices:
            kernel = stretched(self.choice.kernel, self.factors((steps, 0))[0])
            dtype = torch.float32 if self._single(kernel) else torch.float64
            points = [self.task.data.points[rows].to(dtype) for rows in self.parts]
            self.matrices.clear()
            self.matrices[steps] = [kernel.to(dtype).matrix(some) for some in points]
        return self.matrices[steps]

    def _single(self, kernel: Kernel) -> bool:
        return kernel.bounded and kernel.takes_vectors and self.task.precision != "double"

    def _embedding(self, K: Tensor, rows: TrainingSet, ridge: float) -> DualEmbedding:
        """Solve with the noise that the rows have among all rows."""
        own = ridge * self.task.data.total_weight / rows.total_weight
        if K.dtype == torch.float32:
            try:
                return embed_in_single(K, rows, own)
            except NumericalError:
                return embed(K.double(), rows, own)
        return embed(K, rows, own)


def _loss_of(loss: Loss, outputs: Tensor, rows: TrainingSet) -> float:
    value = loss(outputs, rows)[0]
    return value if value == value else torch.inf
