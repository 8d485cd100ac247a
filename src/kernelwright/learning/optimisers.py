"""Optimisers: L-BFGS-B and Adam."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.optimize import minimize
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from kernelwright.errors import NumericalError
from kernelwright.inputs.options import Option
from kernelwright.learning.loop import Journal
from kernelwright.objectives import ObjectiveValue
from kernelwright.parameters import bounds_from_here
from kernelwright.storage.saved import saved

__all__ = ["LBFGS", "OPTIMIZERS", "Adam", "Optimizing"]


class Optimizing(Option):
    """An optimiser, as chosen by a user."""

    def run(self, journal: Journal) -> str:
        """Take the steps; return a message that says how it ended."""
        raise NotImplementedError


@saved("lbfgs")
class LBFGS(Optimizing):
    """L-BFGS-B on the whole objective, within the bounds of the parameters.

    Parameters
    ----------
    max_iter : int, default=100
        Maximum number of steps.
    tol : float, default=1e-6
        Stop if the objective changes by less, relative to its size.
    """

    word: ClassVar[str] = "lbfgs"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, max_iter: int = 100, tol: float = 1e-6) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def run(self, journal: Journal) -> str:
        """Take the steps; return a message that says how it ended."""
        if journal.batch_size is not None:
            raise ValueError("L-BFGS works on all rows at once and cannot take batch_size; use optimizer=Adam().")
        parameters = journal.parameters()
        limits = [bounds_from_here(journal.hyper, name) for name in parameters]
        bounds = [
            pair for low, high in limits for pair in zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)
        ]
        newest: list[ObjectiveValue] = []

        def value_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
            _unpack(theta, parameters)
            try:
                evaluation = journal.evaluate()
            except NumericalError:
                if not journal.history:
                    raise
                return 1e300, np.zeros_like(theta)  # a step too far: the line search backtracks
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


@saved("adam")
class Adam(Optimizing):
    """Adam on the whole objective or on mini-batches (Algorithm 1 of [Hsu2018]_).

    Parameters
    ----------
    learning_rate : float, default=0.1
    max_iter : int, default=1000
        Maximum number of steps.
    patience : int or None, default=None
        Stop if the best value has not fallen by ``tol`` for this many steps; ``None`` takes all steps.
    tol : float, default=1e-6
    batch_order : {"random", "sequential"}, default="random"
        Whether each mini-batch is drawn at random, or all rows are taken in turn, shuffled once per epoch.

    Notes
    -----
    On the whole objective the history ends with the point after the last step, like that of :class:`LBFGS`. With
    mini-batches it has the point before each step: values of different batches cannot be compared, so the point after
    the last step is kept without being evaluated.
    """

    word: ClassVar[str] = "adam"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "batch_order": [StrOptions({"random", "sequential"})],
    }

    def __init__(
        self,
        learning_rate: float = 0.1,
        max_iter: int = 1000,
        patience: int | None = None,
        *,
        tol: float = 1e-6,
        batch_order: str = "random",
    ) -> None:
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.patience = patience
        self.tol = tol
        self.batch_order = batch_order

    def run(self, journal: Journal) -> str:
        """Take the steps; return a message that says how it ended."""
        parameters = journal.parameters()
        limits = {name: bounds_from_here(journal.hyper, name) for name in parameters}
        optimiser = torch.optim.Adam(parameters.values(), lr=self.learning_rate)
        best, since, message = np.inf, 0, "All steps were taken."
        for _, rows in zip(range(self.max_iter), self._batches(journal), strict=False):
            try:
                evaluation = journal.evaluate(rows)
            except NumericalError as error:
                if not journal.history:
                    raise
                return f"A step led to a matrix that cannot be factorised. {error}"
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

    def _end(self, journal: Journal, message: str) -> str:
        """Evaluate the point after the last step, which no step has evaluated; return how it ended."""
        if _size(journal) < len(journal.data):
            journal.best_state = {}  # no batch can tell whether it is better: it is kept
            return message
        try:
            journal.record(journal.evaluate())
        except NumericalError as error:
            return f"The last step led to a matrix that cannot be factorised. {error}"
        return message

    def _batches(self, journal: Journal) -> Iterator[Tensor | None]:
        """Yield the row indices of each step's batch; None for all rows."""
        n, size = len(journal.data), _size(journal)
        while True:
            if size == n:
                yield None
            elif self.batch_order == "random":
                yield torch.randperm(n, generator=journal.generator)[:size]
            else:
                yield from torch.randperm(n, generator=journal.generator).split(size)[: n // size]


OPTIMIZERS: dict[str, type[Optimizing]] = {"lbfgs": LBFGS, "adam": Adam}


def _size(journal: Journal) -> int:
    """Return the number of rows in a mini-batch."""
    n = len(journal.data)
    return n if journal.batch_size is None else min(journal.batch_size, n)


def _pack(parameters: dict[str, torch.nn.Parameter]) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in parameters.values()])


def _unpack(theta: np.ndarray, parameters: dict[str, torch.nn.Parameter]) -> None:
    place = 0
    with torch.no_grad():
        for p in parameters.values():
            p.copy_(torch.from_numpy(theta[place : place + p.numel()].copy()).reshape(p.shape))
            place += p.numel()
