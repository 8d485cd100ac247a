"""One training loop: an objective, hyperparameters, data, and a way to take steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.numerics.linalg import Workspace
from kernelwright.objectives.objective import Evaluation, Hyperparameters, Objective
from kernelwright.parameters import bounds_from_here, plain_values
from kernelwright.storage.saved import saved

__all__ = ["LBFGS", "Adam", "Step", "TrainingResult", "train"]


@saved("training-step")
@dataclass(frozen=True)
class Step:
    """What one step saw: the objective and its parts at the hyperparameters of that moment."""

    objective: float
    loss: float
    complexity: float
    hyperparameters: dict[str, np.ndarray]
    stage: str = ""  # objectives of different stages cannot be compared


@dataclass(frozen=True)
class TrainingResult:
    """Where training ended. The hyperparameters have been set to the best that were seen."""

    value: float
    n_iter: int
    history: list[Step]
    message: str
    stopped: bool = False  # by the callback or the keyboard, not by itself


@dataclass(frozen=True)
class LBFGS:
    """L-BFGS-B on the whole objective, within the bounds of the parameters."""

    max_iter: int = 100
    tol: float = 1e-6

    def run(self, journal: _Journal) -> str:
        """Take the steps."""
        parameters = journal.parameters()
        limits = [bounds_from_here(journal.hyper, name) for name in parameters]
        bounds = [
            pair for low, high in limits for pair in zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)
        ]
        newest: list[Evaluation] = []

        def value_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
            _unpack(theta, parameters)
            try:
                evaluation = journal.evaluate()
            except NumericalError:
                if not journal.history:
                    raise
                return 1e300, np.zeros_like(theta)  # a step too far: the line search comes back
            newest[:] = [evaluation]
            if not journal.history:
                journal.record(evaluation)
            return evaluation.value, np.concatenate([evaluation.gradients[name].numpy().ravel() for name in parameters])

        found = minimize(
            value_and_gradient,
            np.clip(_pack(parameters), *np.transpose(bounds)),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=lambda _: journal.record(newest[0]),
            options={"maxiter": self.max_iter, "ftol": self.tol, "gtol": 1e-8},
        )
        return str(found.message)


@dataclass(frozen=True)
class Adam:
    """Adam on the whole objective or on mini-batches (Algorithm 1 of [Hsu2018]_).

    ``batches`` is "random" (drawn anew each step) or "sequential" (all rows in turn, shuffled once an epoch).
    Training stops early when the best value has not fallen by ``tol`` for ``patience`` steps. On the whole objective
    the history ends with the point after the last step, as that of :class:`LBFGS` does. Of mini-batches it has the
    point before each step: their values cannot be compared, so the point after the last step is kept unseen.
    """

    max_iter: int = 1000
    learning_rate: float = 0.1
    batch_size: int | None = None
    batches: str = "random"
    tol: float = 0.0
    patience: int | None = None
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if self.batches not in ("random", "sequential"):
            raise ValueError(f"Mini-batches must be 'random' or 'sequential'. Got {self.batches!r} instead.")

    def run(self, journal: _Journal) -> str:
        """Take the steps."""
        parameters = journal.parameters()
        limits = {name: bounds_from_here(journal.hyper, name) for name in parameters}
        optimiser = torch.optim.Adam(parameters.values(), lr=self.learning_rate)
        best, since, message = np.inf, 0, "All steps were taken."
        for _, rows in zip(range(self.max_iter), self._rows(len(journal.data)), strict=False):
            try:
                evaluation = journal.evaluate(rows)
            except NumericalError as error:
                if not journal.history:
                    raise
                return f"A step led where the matrix cannot be factorised. {error}"
            journal.record(evaluation, whole=rows is None)
            for name, parameter in parameters.items():
                parameter.grad = evaluation.gradients[name].reshape(parameter.shape).to(parameter.dtype)
            optimiser.step()
            with torch.no_grad():
                for name, parameter in parameters.items():
                    parameter.clamp_(*limits[name])
                    parameter.grad = None
            since = 0 if evaluation.value < best - self.tol else since + 1
            best = min(best, evaluation.value)
            if self.patience is not None and since >= self.patience:
                message = f"The objective has not fallen by {self.tol:g} for {self.patience} steps."
                break
        return self._end(journal, message)

    def _end(self, journal: _Journal, message: str) -> str:
        """Look at the point that the last step led to, which no step has seen; say how it ended."""
        if self._size(len(journal.data)) < len(journal.data):
            journal.best_state = {}  # no batch could say whether it is better: it is taken as it is
            return message
        try:
            journal.record(journal.evaluate())
        except NumericalError as error:
            return f"The last step led where the matrix cannot be factorised. {error}"
        return message

    def _size(self, n: int) -> int:
        return n if self.batch_size is None else min(self.batch_size, n)

    def _rows(self, n: int) -> Iterator[Tensor | None]:
        """Row numbers of each step's batch; None for all rows."""
        size = self._size(n)
        while True:
            if size == n:
                yield None
            elif self.batches == "random":
                yield torch.randperm(n, generator=self.generator)[:size]
            else:
                yield from torch.randperm(n, generator=self.generator).split(size)[: n // size]


@dataclass
class _Journal:
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

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        return {name: p for name, p in self.hyper.named_parameters() if p.requires_grad}

    def evaluate(self, rows: Tensor | None = None) -> Evaluation:
        data = self.data if rows is None else self.data.subset(rows)
        evaluation = self.objective(self.hyper, data, self.workspace)
        if rows is None and evaluation.value < self.best_value:
            self.best_value, self.best_state = evaluation.value, _state(self.hyper)
        return evaluation

    def record(self, evaluation: Evaluation, whole: bool = True) -> None:
        if not whole:  # values of different batches cannot be compared: the newest state counts as best
            self.best_value, self.best_state = evaluation.value, _state(self.hyper)
        step = Step(evaluation.value, evaluation.loss, evaluation.complexity, plain_values(self.hyper), self.stage)
        self.history.append(step)
        if self.callback is not None:
            try:
                self.callback(step)
            except StopIteration:
                self.stopped = True  # SciPy would keep it to itself
                raise


def train(
    objective: Objective,
    hyper: Hyperparameters,
    data: TrainingSet,
    *,
    optimizer: LBFGS | Adam,
    callback: Callable[[Step], Any] | None = None,
    stage: str = "",
) -> TrainingResult:
    """Minimise an objective over hyperparameters, which are changed in place and end at the best point seen.

    Ctrl-C stops training and keeps that point, with a warning. ``callback`` is called with each :class:`Step`
    and may stop training by raising ``StopIteration``.
    """
    journal = _Journal(objective, hyper, data, callback, stage)
    with stopping(journal.history) as stop:
        stop.message = optimizer.run(journal)
    if journal.best_state:
        hyper.load_state_dict(journal.best_state)
    return TrainingResult(
        journal.best_value, len(journal.history), journal.history, stop.message, stop.stopped or journal.stopped
    )


@dataclass
class Stop:
    """How a loop ended."""

    message: str = ""
    stopped: bool = False


@contextmanager
def stopping(history: list[Step]) -> Iterator[Stop]:
    """Let a callback's ``StopIteration`` or Ctrl-C end a loop that has something to keep."""
    stop = Stop()
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


def _pack(parameters: dict[str, torch.nn.Parameter]) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in parameters.values()])


def _unpack(theta: np.ndarray, parameters: dict[str, torch.nn.Parameter]) -> None:
    place = 0
    with torch.no_grad():
        for p in parameters.values():
            p.copy_(torch.from_numpy(theta[place : place + p.numel()].copy()).reshape(p.shape))
            place += p.numel()
