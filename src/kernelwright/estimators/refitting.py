"""Learn anew without parts of the rows, to see what learning hides from closed-form leave-one-out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import EmbeddedRows, FittedEmbedding
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.arrows import FitPlan, embedding_of, learn, solve
from kernelwright.estimators.calibrating import Calibrated
from kernelwright.inputs.arrays import generator
from kernelwright.solvers import Solution

__all__ = ["without_parts"]

Calibrate = Callable[[Solution, FittedEmbedding, FitPlan], Calibrated]


def without_parts(
    rows: TrainingSet, n_parts: int, new_plan: Callable[[], FitPlan], calibrate: Calibrate, *, balanced: bool
) -> tuple[Tensor, Tensor]:
    """Return outputs and log probabilities of all rows, each by a model of the rows that are not in its part.

    Parameters
    ----------
    rows : TrainingSet
        None of which are merged.
    n_parts : int
    new_plan : callable
        Gives a plan with a kernel that nothing was learned of.
    calibrate : callable
    balanced : bool
        Whether classes are to weigh the same in every part.
    """
    folds = rows.random_parts(n_parts, generator(new_plan().random_state))
    outputs, log_p = torch.zeros_like(rows.targets), torch.zeros_like(rows.targets)
    for fold in folds.unique():
        held, plan = folds == fold, new_plan()
        some = rows.subset(~held)
        if balanced:
            n_classes = rows.targets.shape[1]
            whole, part = (torch.bincount(each.strata, each.weights, n_classes) for each in (rows, some))
            some = replace(some, weights=some.weights * (whole / part.clamp(min=1e-300))[some.strata])
        if len(some.strata.unique()) < 2:
            outputs[held], log_p[held] = rows.prior, torch.log(plan.targets.prior(some.targets, some.weights))
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model of all rows has given its own
            outputs[held], log_p[held] = _taught_by(some, rows.points[held], plan, calibrate)
    return outputs, log_p


def _taught_by(data: TrainingSet, new: Tensor, plan: FitPlan, calibrate: Calibrate) -> tuple[Tensor, Tensor]:
    """Return outputs and log probabilities at new points by a model of other rows."""
    data = replace(data, weights=data.weights * (data.n_units / data.total_weight))
    if plan.method.shrinks_to_frequencies:
        data = replace(data, prior=plan.targets.prior(data.targets, data.weights))
    random, solver = generator(plan.random_state), plan.solver_for(len(data))
    choice = learn(data, plan, solver, random)
    solution = solve(choice, data, solver, random)
    rows = EmbeddedRows.of(np.ones(len(data), dtype=bool), np.arange(len(data)), data.weights.numpy(), data)
    embedding = embedding_of(solution, choice, scaler=None, rows=rows, solver=solver)
    found = calibrate(solution, embedding, plan)
    outputs, support = found.embedding.outputs(None, new)
    return outputs, found.link(outputs, support)
