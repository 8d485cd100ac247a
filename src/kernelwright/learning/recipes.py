"""Ways to choose hyperparameters."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed, effective_n_jobs

from kernelwright.embedding.dual import embed
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import CollapseWarning, NumericalError
from kernelwright.kernels import ConvexSum, FeatureKernel, Kernel
from kernelwright.learning.optimisers import LBFGS, Adam, Step, TrainingResult, stopping, train
from kernelwright.numerics.threads import on_one_thread, threads_for
from kernelwright.objectives.losses import complexity_multiplier
from kernelwright.objectives.objective import USUAL_NOISE, Hyperparameters, Objective
from kernelwright.parameters import plain_values

__all__ = ["Choice", "Settings", "choose"]

MANY = 8000  # rows; methods that look at all rows at once take samples or mini-batches of more


@dataclass(frozen=True)
class Settings:
    """What a user may say about learning; None or "auto" leaves it to the method."""

    learn: str | None = "auto"
    complexity_weight: float | str = "auto"
    ridge: float | str = "auto"
    optimizer: str = "auto"
    max_iter: int | None = None
    learning_rate: float = 0.1
    batch_size: int | None = None
    batch_order: str = "random"
    tol: float = 1e-6
    patience: int | None = None
    n_folds: int = 5
    loss: str | None = None
    callback: Callable[[Step], Any] | None = None
    warm: bool = False  # kernel and ridge come from an earlier fit: refine them
    precision: str = "auto"  # "single": factors in single precision, where an objective has them
    average: bool = False  # "auto" may return the mean of two kernels

    def start_ridge(self) -> float:
        """The ridge as given; 0.01 is a safer start than the 1 of [Hsu2018]_."""
        return 0.01 if isinstance(self.ridge, str) else float(self.ridge)

    def learning_precision(self, *, many: bool = False) -> str:
        """Single where it is asked for; for many rows, which are solved in it anyhow, also where nobody said."""
        return "double" if self.precision == "auto" and not many else self.precision


@dataclass(frozen=True)
class Choice:
    """Hyperparameters that were chosen, and how."""

    kernel: Kernel
    ridge: float
    value: float  # of the objective, NaN where none was used
    history: list[Step]
    message: str
    batch_size: int | None = None  # rows of a mini-batch, where there were any


def choose(kernel: Kernel, data: TrainingSet, settings: Settings, generator: torch.Generator) -> Choice:
    """Choose a kernel's numbers and the ridge. The given kernel is changed: pass a copy."""
    kernel.prepare(data.points, data.weights)
    if settings.learn is None:
        return Choice(kernel, settings.start_ridge(), math.nan, [], "Hyperparameters as given.")
    if settings.learn == "median":
        return _median(kernel, data, settings)
    if settings.learn == "auto":
        return _coarse_to_fine(kernel, data, settings, generator)
    n = data.total_weight
    many = len(data) > MANY and settings.batch_size is None
    if many:
        if settings.learn == "cross-validation" or settings.optimizer == "lbfgs":
            data = data.sample(MANY, generator)
        else:
            settings = replace(settings, batch_size=_batch_size(kernel))
    with threads_for(min(len(data), settings.batch_size or len(data))):
        if settings.learn == "cross-validation":
            choice = _grid(kernel, data, settings)
        else:
            choice = replace(_by_gradient(kernel, data, settings, generator), batch_size=settings.batch_size)
    # What carries over from some rows to all of them is n lambda; a batch size that was given is left as published.
    used = min(settings.batch_size or len(data), len(data)) / len(data) * data.total_weight
    return replace(choice, ridge=choice.ridge * used / n) if many else choice


def _batch_size(kernel: Kernel) -> int:
    """Rows of a mini-batch where nobody said: cheap as a dense matrix, and more than there are explicit features."""
    return max(1000, 2 * kernel.features.n_features if isinstance(kernel, FeatureKernel) else 0)


def _median(kernel: Kernel, data: TrainingSet, settings: Settings) -> Choice:
    """The median heuristic: it uses no labels and says nothing of the ridge, which stays as given."""
    kernel.use_median()
    kernel.prepare(data.points, data.weights)
    return Choice(kernel, settings.start_ridge(), math.nan, [], "Length scales at the median distance.")


# By gradient of one objective ------------------------------------------------------------------------------

TAU: dict[str, float | str] = {
    "rademacher": "4e/n",
    "held-out": "1/n",
    "leave-one-out": "1/n",
    "folds": 0.0,
    "empirical-risk": 0.0,
}


def _by_gradient(kernel: Kernel, data: TrainingSet, settings: Settings, generator: torch.Generator) -> Choice:
    learn = str(settings.learn)
    tau = TAU[learn] if settings.complexity_weight == "auto" else settings.complexity_weight
    loss = settings.loss or ("brier" if learn in ("leave-one-out", "folds") else "log")
    n_folds = min(settings.n_folds, data.n_units) if learn == "folds" else 2
    objective = Objective(
        learn, complexity_weight=tau, loss=loss, folds=n_folds, precision=settings.learning_precision()
    )
    hyper = Hyperparameters(kernel, settings.start_ridge())
    result = train(objective, hyper, data, optimizer=_optimizer(settings, generator), callback=settings.callback)
    ridge = float(hyper.ridge.detach())
    if learn in ("rademacher", "held-out"):
        rows = min(len(data), settings.batch_size or len(data))
        _warn_of_collapse(kernel, data, ridge, complexity_multiplier(tau, rows))
    return Choice(kernel, ridge, result.value, result.history, result.message)


def _optimizer(settings: Settings, generator: torch.Generator) -> LBFGS | Adam:
    name = settings.optimizer
    if name == "auto":
        name = "lbfgs" if settings.batch_size is None else "adam"
    if name == "lbfgs":
        if settings.batch_size is not None:
            raise ValueError(
                "optimizer='lbfgs' works on all rows at once and cannot take batch_size; use optimizer='adam'."
            )
        return LBFGS(settings.max_iter or 100, settings.tol)
    return Adam(
        settings.max_iter or 1000,
        settings.learning_rate,
        batch_size=settings.batch_size,
        batches=settings.batch_order,
        tol=settings.tol,
        patience=settings.patience,
        generator=generator,
    )


def _warn_of_collapse(kernel: Kernel, data: TrainingSet, ridge: float, tau: float) -> None:
    """Tell when the complexity term has won: the outputs are the same for every row.

    At that point ``r = 1 / tau`` (if tau exceeds one over the norm of the class frequencies nothing is better).
    """
    sample = data.sample(1000, torch.Generator().manual_seed(0))
    with torch.no_grad():
        embedding = embed(kernel.matrix(sample.points), sample, ridge)
        complexity = math.sqrt(float(kernel.sup_diag(sample.points)) * embedding.squared_norm)
    outputs = embedding.fitted
    varied = float((outputs - outputs.mean(0)).abs().mean())
    published = 4 * math.e / len(data)
    advice = f" ('4e/n' is {published:.3g} here)" if published < tau else ""
    if tau > 0 and varied < 0.02 and complexity * tau < 1.2:
        warnings.warn(
            "Learning collapsed to the class frequencies: the outputs are the same for all rows. The complexity "
            f"weight tau = {tau:.3g} on the mean loss is too strong for these data (complexity {complexity:.3g}, "
            f"1/tau = {1 / tau:.3g}). Use a smaller complexity_weight{advice}, or learn='auto'.",
            CollapseWarning,
            stacklevel=4,
        )


# By a grid ---------------------------------------------------------------------------------------------------


def _grid(kernel: Kernel, data: TrainingSet, settings: Settings) -> Choice:
    """Folds over a grid of ridges and of factors on all length scales; the Brier loss decides."""
    data = data.unmerged()
    objective = Objective("folds", loss="brier", folds=min(settings.n_folds, data.n_units))
    state = copy.deepcopy(kernel.state_dict())
    learned = (name for name, number in kernel.named_parameters() if number.requires_grad)
    scales = [name for name in learned if name.endswith("log_lengthscale")]
    factors = np.log(2.0) * np.arange(-3, 4) if scales else np.zeros(1)
    states = [{name: v + factor if name in scales else v for name, v in state.items()} for factor in factors]
    history: list[Step] = []
    best: tuple[float, int, float] = (math.inf, 0, 0.01)
    # One after another, unless joblib.parallel_config says where else.
    work = partial(on_one_thread, _grid_row) if effective_n_jobs(None) > 1 else _grid_row
    rows = Parallel(return_as="generator")(delayed(work)(kernel, moved, objective, data) for moved in states)
    with stopping(history):
        for number, row in enumerate(rows):
            for ridge, step in row:
                history.append(step)
                best = min(best, (step.objective, number, ridge))
                if settings.callback is not None:
                    settings.callback(step)
    value, number, ridge = best
    kernel.load_state_dict(states[number])
    return Choice(kernel, ridge, value, history, f"Best of {len(history)} grid points.")


def _grid_row(
    kernel: Kernel, state: dict[str, Any], objective: Objective, data: TrainingSet
) -> list[tuple[float, Step]]:
    """The ridges of a grid at one state of the kernel, with what was found."""
    kernel = copy.deepcopy(kernel)  # rows may be worked on at the same time, by threads
    kernel.load_state_dict(state)
    found = []
    for ridge in 10.0 ** np.arange(-7.0, 0.5):
        hyper = Hyperparameters(kernel, ridge)
        try:
            terms = objective(hyper, data)
        except NumericalError:  # this point of the grid is none; the others may be
            continue
        found.append((float(ridge), Step(terms.value, terms.loss, terms.complexity, plain_values(hyper))))
    return found


# The library's own recipe --------------------------------------------------------------------------------------

COARSE_ROWS, FINE_ROWS = 500, 800
START_STEPS, COARSE_STEPS, FINE_STEPS = 6, 10, 5
# A kernel that is to serve more rows is worth more: from so many rows on, rows to learn it from, and steps.
WORTH_MORE = {4000: (1200, 8), MANY: (2000, 10)}
# A change of the objective by less cannot alter predictions that matter.
STAGE_TOL = 1e-5


def _coarse_to_fine(kernel: Kernel, data: TrainingSet, settings: Settings, generator: torch.Generator) -> Choice:
    """Leave-one-out loss with a small complexity term, equal length scales first, then one a feature.

    A few steps by the Brier loss, whose valley is wide, lead to where the calibrated cross entropy takes over.
    Hyperparameters of this kind need few rows: a sample decides them. What carries over from a sample to all
    rows is the absolute ridge ``n lambda``, not lambda. The default kernel ends as the mean of what the two stages
    have found: equal length scales vary less from sample to sample, single ones follow the features.
    """
    if settings.batch_size is not None or settings.optimizer == "adam":
        raise ValueError(
            "learn='auto' takes its own samples and steps: it has no use for batch_size or optimizer='adam'. "
            "Choose another way to learn, such as 'rademacher' or 'leave-one-out'."
        )
    tau = "1/n" if settings.complexity_weight == "auto" else settings.complexity_weight
    reached = [least for least in WORTH_MORE if len(data) > least]
    fine_rows, fine_steps = WORTH_MORE[max(reached)] if reached else (FINE_ROWS, FINE_STEPS)
    fine = data.spread_sample(fine_rows, generator) if reached else data.sample(fine_rows, generator)
    coarse = fine.sample(COARSE_ROWS, generator)
    n = data.total_weight
    hyper = Hyperparameters(kernel, (USUAL_NOISE if isinstance(settings.ridge, str) else settings.ridge * n) / n)
    history: list[Step] = []

    def stage(rows: TrainingSet, loss: str, steps: int) -> TrainingResult:
        precision = settings.learning_precision(many=len(data) > MANY)
        objective = Objective("leave-one-out", complexity_weight=tau, loss=loss, shrinkage=1.0, precision=precision)
        hyper.ridge = float(hyper.ridge.detach()) * n / rows.total_weight
        with threads_for(len(rows)):
            optimizer = LBFGS(settings.max_iter or steps, max(settings.tol, STAGE_TOL))
            name = f"leave-one-out, {loss} loss, {len(rows)} rows"
            result = train(objective, hyper, rows, optimizer=optimizer, callback=settings.callback, stage=name)
        hyper.ridge = float(hyper.ridge.detach()) * rows.total_weight / n
        history.extend(result.history)
        return result

    loss = settings.loss or "calibrated"
    if settings.warm:
        result = stage(fine, loss, fine_steps)
        return Choice(kernel, float(hyper.ridge.detach()), result.value, history, result.message)
    kernel.tie()
    result = stage(coarse, "brier", START_STEPS)
    if not result.stopped:
        result = stage(coarse, loss, COARSE_STEPS)
    kernel.prepare(fine.points, fine.weights)
    equal, equal_ridge = copy.deepcopy(kernel), float(hyper.ridge.detach())
    if not result.stopped:
        result = stage(fine, loss, fine_steps)
    ridge = float(hyper.ridge.detach())
    if settings.average and not result.stopped:
        kernel, ridge = ConvexSum([equal, kernel]), math.sqrt(equal_ridge * ridge)
    return Choice(kernel, ridge, result.value, history, result.message)
