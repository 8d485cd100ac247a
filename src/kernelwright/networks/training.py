"""The training of embedding networks: Adam over mini-batches, epoch by epoch, with checkpoints.

All random numbers come from torch's own generator inside :func:`seeded`, which restores its state afterwards.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.learning.loop import Step, TrainingResult, stopping
from kernelwright.networks.checkpoint import Checkpoint
from kernelwright.networks.heads import BatchObjective, EmbeddingNetwork, Parts
from kernelwright.objectives import HeldOutObjective
from kernelwright.parameters import plain_values

__all__ = ["Plan", "seeded", "train_network"]


CHECK_ROWS = 2000  # training rows whose embedding scores the held-out rows after each epoch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's generators inside the block, and restore their states afterwards.

    They are shared by the whole process, so only one thread at a time may be inside.
    """
    with _turn.lock, torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


class _Turn:
    """A lock that is free in a forked process, even if it was held at the fork."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.lock = threading.RLock()


_turn = _Turn()


@dataclass(frozen=True)
class Plan:
    """The plan of a training run.

    With the schedule "cosine" the learning rate falls to zero along half a cosine. Training stops early if the loss at
    held-out rows has not fallen for ``patience`` epochs.
    """

    batch_size: int
    max_epochs: int
    learning_rate: float
    schedule: str | None = "cosine"
    max_grad_norm: float | None = None
    patience: int | None = None

    def rate(self, step: int, n_steps: int) -> float:
        """Return the learning rate of a step."""
        if self.schedule is None:
            return self.learning_rate
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * step / n_steps))


def train_network(
    network: EmbeddingNetwork,
    data: TrainingSet,
    *,
    goal: BatchObjective,
    plan: Plan,
    held_out: TrainingSet | None = None,
    callback: Callable[[Step], Any] | None = None,
    checkpoint: Checkpoint | None = None,
) -> TrainingResult:
    """Minimise the objective over the network and its head, and restore the state of the best epoch.

    The best epoch has the least loss at the held-out rows; without held-out rows it is the last one. Ctrl-C and a
    callback that raises ``StopIteration`` stop training and keep the best epoch. If the checkpoint exists, the run
    resumes from it, with exactly the result of an uninterrupted run.
    """
    run = _Run(network, data, goal, plan, held_out, callback, checkpoint)
    run.resume()
    with stopping(run.history) as stop:
        stop.message = run.take_epochs()
    if run.best:
        network.load_state_dict(run.best)
    value = run.history[run.best_epoch - 1].objective
    return TrainingResult(value, len(run.history), run.history, stop.message, stop.stopped)


@dataclass
class _Run:
    """A training run and its current state."""

    network: EmbeddingNetwork
    data: TrainingSet
    goal: BatchObjective
    plan: Plan
    held_out: TrainingSet | None
    callback: Callable[[Step], Any] | None
    checkpoint: Checkpoint | None
    history: list[Step] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_loss: float = math.inf
    best_epoch: int = 0

    def __post_init__(self) -> None:
        self.optimiser = torch.optim.Adam([p for p in self.network.parameters() if p.requires_grad])
        self.n_batches = max(1, round(len(self.data) / self.plan.batch_size))

    def take_epochs(self) -> str:
        while len(self.history) < self.plan.max_epochs:
            if self.plan.patience is not None and len(self.history) - self.best_epoch >= self.plan.patience:
                return f"The loss at held-out rows has not fallen for {self.plan.patience} epochs."
            self.network.train()
            try:
                parts = [self.take_step(rows) for rows in self.batches()]
                self.close_epoch(parts)
            except NumericalError as error:
                if not self.history:
                    raise
                return f"After a step the embedding could not be solved; the best epoch is kept. {error}"
        return "All epochs are done."

    def batches(self) -> tuple[Tensor, ...]:
        """Draw the mini-batches of an epoch as row indices; their sizes differ by at most one."""
        whole = self.n_batches == 1 and not isinstance(self.goal.objective, HeldOutObjective)
        order = torch.arange(len(self.data)) if whole else torch.randperm(len(self.data))
        return order.tensor_split(self.n_batches)

    def take_step(self, rows: Tensor) -> Parts:
        batch = self.data.subset(rows)
        self.optimiser.zero_grad()
        parts = self.network.head.backward(self.network(batch.points), batch, self.goal)
        if self.plan.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.plan.max_grad_norm)
        for group in self.optimiser.param_groups:
            group["lr"] = self.plan.rate(self.n_steps, self.plan.max_epochs * self.n_batches)
        self.optimiser.step()
        self.network.head.keep_in_limits()
        self.n_steps += 1
        return parts

    def close_epoch(self, parts: list[Parts]) -> None:
        """Record the epoch, keep its state if it is the best, write the checkpoint and call the callback."""
        value, loss, complexity = np.mean([(part.value, part.loss, part.complexity) for part in parts], axis=0).tolist()
        step = Step(value, loss, complexity, plain_values(self.network.head))
        judged = -math.inf if self.held_out is None else self.held_out_loss(self.held_out)
        self.history.append(step)
        if judged < self.best_loss or self.held_out is None:
            self.best_loss, self.best_epoch = judged, len(self.history)
            self.best = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        if self.checkpoint is not None:
            self.checkpoint.write(self.state())
        if self.callback is not None:
            self.callback(step)

    def held_out_loss(self, held_out: TrainingSet) -> float:
        """Compute the clipped loss at the held-out rows, by the embedding of (a sample of) the training rows."""
        some = self.data.subset(torch.linspace(0, len(self.data) - 1, min(CHECK_ROWS, len(self.data))).long())
        solution = self.network.head.solve(self.network, some, torch.arange(1), choose_ridge=False)
        new = self.network.features(held_out.points)
        outputs, _ = self.network.head.apply_solution(new, solution.coefficients, solution.points, solution.support)
        return self.goal.objective.loss(outputs, held_out)[0]

    # checkpoints ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        steps = [(s.objective, s.loss, s.complexity, _lists(s.hyperparameters)) for s in self.history]
        return {
            "history": steps,
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "best": self.best,
            "best_loss": self.best_loss,
            "best_epoch": self.best_epoch,
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }

    def resume(self) -> None:
        """Resume the run from the checkpoint, if there is one."""
        self.n_steps = 0
        state = None if self.checkpoint is None else self.checkpoint.read()
        if state is None:
            return
        self.history += [Step(value, loss, r, _arrays(values)) for value, loss, r, values in state["history"]]
        self.n_steps = len(self.history) * self.n_batches
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.best, self.best_loss, self.best_epoch = state["best"], state["best_loss"], state["best_epoch"]
        torch.set_rng_state(state["random"])
        if state["random_cuda"]:
            torch.cuda.set_rng_state_all(state["random_cuda"])


def _lists(values: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: value.tolist() for name, value in values.items()}


def _arrays(values: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.array(value) for name, value in values.items()}
