"""The training loop: an objective, hyperparameters, data, and an optimiser."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.numerics.linalg import Workspace
from kernelwright.objectives import Hyperparameters, Objective, ObjectiveValue
from kernelwright.parameters import plain_values
from kernelwright.storage.saved import saved

__all__ = ["Journal", "Optimizer", "Step", "TrainingResult", "stopping", "train"]


@saved("training-step")
@dataclass(frozen=True)
class Step:
    """A record of one step: the objective and its terms at the current hyperparameters."""

    objective: float
    loss: float
    complexity: float
    hyperparameters: dict[str, np.ndarray]
    stage: str = ""  # objectives of different stages cannot be compared

    def in_units(self, unit: float) -> Step:
        """Return the step with losses in another unit, a unit of squares."""
        complexity = math.sqrt(unit) * self.complexity
        return replace(self, objective=unit * self.objective, loss=unit * self.loss, complexity=complexity)


@dataclass(frozen=True)
class TrainingResult:
    """The end of training. The hyperparameters are set to the best values seen."""

    value: float
    n_iter: int
    history: list[Step]
    message: str
    stopped: bool = False  # by the callback or the keyboard


@dataclass
class Journal:
    """Evaluates the objective, writes the history and remembers the best point."""

    objective: Objective
    hyper: Hyperparameters
    data: TrainingSet
    callback: Callable[[Step], Any] | None = None
    stage: str = ""
    history: list[Step] = field(default_factory=list)
    best_value: float = np.inf
    best_state: dict[str, Tensor] = field(default_factory=dict)
    stopped: bool = False
    workspace: Workspace = field(default_factory=Workspace)
    batch_size: int | None = None  # of mini-batches; None: all rows at every step
    generator: torch.Generator | None = None  # for mini-batches

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Return the parameters that are learned, by name."""
        return {name: p for name, p in self.hyper.named_parameters() if p.requires_grad}

    def evaluate(self, rows: Tensor | None = None) -> ObjectiveValue:
        """Evaluate the objective at some rows, or at all of them, and remember the best point."""
        data = self.data if rows is None else self.data.subset(rows)
        evaluation = self.objective(self.hyper, data, self.workspace)
        if rows is None and evaluation.value < self.best_value:
            self.best_value, self.best_state = evaluation.value, _state(self.hyper)
        return evaluation

    def record(self, evaluation: ObjectiveValue, whole: bool = True) -> None:
        """Write a step to the history and call the callback."""
        if not whole:  # values of different batches cannot be compared: the newest state counts as best
            self.best_value, self.best_state = evaluation.value, _state(self.hyper)
        step = Step(evaluation.value, evaluation.loss, evaluation.complexity, plain_values(self.hyper), self.stage)
        self.history.append(step)
        if self.callback is not None:
            try:
                self.callback(step)
            except StopIteration:
                self.stopped = True  # SciPy would swallow the exception
                raise


class Optimizer(Protocol):
    """A way to take steps."""

    def run(self, journal: Journal) -> str:
        """Take the steps; return a message that says how it ended."""


def train(
    objective: Objective,
    hyper: Hyperparameters,
    data: TrainingSet,
    *,
    optimizer: Optimizer,
    batch_size: int | None = None,
    generator: torch.Generator | None = None,
    callback: Callable[[Step], Any] | None = None,
    stage: str = "",
) -> TrainingResult:
    """Minimise an objective over hyperparameters, which change in place and end at the best point seen.

    Ctrl-C stops training and keeps that point, with a warning. ``callback`` is called with each :class:`Step`
    and may stop training by raising ``StopIteration``.
    """
    journal = Journal(objective, hyper, data, callback, stage, batch_size=batch_size, generator=generator)
    with stopping(journal.history) as stop:
        stop.message = optimizer.run(journal)
    if journal.best_state:
        hyper.load_state_dict(journal.best_state)
    return TrainingResult(
        journal.best_value, len(journal.history), journal.history, stop.message, stop.stopped or journal.stopped
    )


@dataclass
class LoopEnd:
    """How a loop ended."""

    message: str = ""
    stopped: bool = False


@contextmanager
def stopping(history: list[Step]) -> Iterator[LoopEnd]:
    """End a loop that has something to keep on a callback's ``StopIteration`` or on Ctrl-C."""
    stop = LoopEnd()
    try:
        yield stop
    except StopIteration as reason:
        stop.message, stop.stopped = f"Stopped by the callback. {reason}".strip(), True
    except KeyboardInterrupt:
        if not history:
            raise
        stop.message = f"Interrupted after {len(history)} steps; the best hyperparameters so far are kept."
        stop.stopped = True
        warnings.warn(stop.message, UserWarning, stacklevel=4)


def _state(hyper: Hyperparameters) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in hyper.state_dict().items()}
