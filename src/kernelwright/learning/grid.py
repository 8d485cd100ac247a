"""Cross-validation over a grid, as a baseline."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.utils._param_validation import Interval

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.kernels import Kernel
from kernelwright.learning.base import MANY, SHARES, Choice, LearningMethod, LearningTask
from kernelwright.learning.loop import Step, stopping
from kernelwright.numerics.threads import on_one_thread, threads_for
from kernelwright.objectives import FoldsObjective, Hyperparameters, Objective
from kernelwright.objectives.losses import BRIER
from kernelwright.parameters import plain_values
from kernelwright.storage.saved import saved

__all__ = ["CrossValidation"]


@saved("learn-cross-validation")
class CrossValidation(LearningMethod):
    """Choose by cross-validated Brier loss over a grid of ridges and of factors on all length scales.

    Parameters
    ----------
    n_folds : int, default=5
    kernel_share, holdout_share : float or None, default=None
        See :class:`~kernelwright.learning.base.LearningMethod`.
    """

    word: ClassVar[str] = "cross-validation"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = SHARES | {
        "n_folds": [Interval(Integral, 2, None, closed="left")]
    }

    def __init__(
        self, n_folds: int = 5, *, kernel_share: float | None = None, holdout_share: float | None = None
    ) -> None:
        self.n_folds = n_folds
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    def choose(self, task: LearningTask) -> Choice:  # noqa: D102
        n, many = task.data.total_weight, len(task.data) > MANY
        if many:
            task = replace(task, data=task.data.sample(MANY, task.generator))
        with threads_for(len(task.data)):
            choice = self._best_of_grid(task)
        # n lambda carries over from a sample to all rows.
        return replace(choice, ridge=choice.ridge * task.data.total_weight / n) if many else choice

    def _best_of_grid(self, task: LearningTask) -> Choice:
        kernel, data = task.kernel, task.data.unmerged()
        objective = FoldsObjective(loss=task.loss or BRIER, folds=min(self.n_folds, data.n_units))
        state = copy.deepcopy(kernel.state_dict())
        learned = (name for name, number in kernel.named_parameters() if number.requires_grad)
        scales = [name for name in learned if name.endswith("log_lengthscale")]
        factors = np.log(2.0) * np.arange(-3, 4) if scales else np.zeros(1)
        states = [{name: v + factor if name in scales else v for name, v in state.items()} for factor in factors]
        history: list[Step] = []
        best: tuple[float, int, float] | None = None
        # Sequential, unless joblib.parallel_config says otherwise.
        work = partial(on_one_thread, _grid_row) if effective_n_jobs(None) > 1 else _grid_row
        rows = Parallel(return_as="generator")(delayed(work)(kernel, moved, objective, data) for moved in states)
        with stopping(history):
            for number, row in enumerate(rows):
                for ridge, step in row:
                    history.append(step)
                    point = (step.objective, number, ridge)
                    best = point if best is None else min(best, point)
                    if task.callback is not None:
                        task.callback(step)
        if best is None:
            raise NumericalError(
                "No point of the grid has a kernel matrix that can be factorised. Check the scale of the inputs, or "
                "learn the kernel by another method."
            )
        value, number, ridge = best
        kernel.load_state_dict(states[number])
        return Choice(kernel, ridge, value, history, f"Best of {len(history)} grid points.")


def _grid_row(
    kernel: Kernel, state: dict[str, Any], objective: Objective, data: TrainingSet
) -> list[tuple[float, Step]]:
    """Evaluate the ridges of a grid at one state of the kernel."""
    kernel = copy.deepcopy(kernel)  # grid rows may run at the same time, in threads
    kernel.load_state_dict(state)
    found = []
    for ridge in 10.0 ** np.arange(-7.0, 0.5):
        hyper = Hyperparameters(kernel, ridge)
        try:
            terms = objective(hyper, data)
        except NumericalError:  # skip this grid point; the others may work
            continue
        found.append((float(ridge), Step(terms.value, terms.loss, terms.complexity, plain_values(hyper))))
    return found
