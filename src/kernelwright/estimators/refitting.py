"""Refits without each fold, to measure the bias of learning that closed-form leave-one-out cannot see."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import EmbeddedRows, FittedEmbedding
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.arrows import FitPlan, embedding_of, learn, solve
from kernelwright.estimators.calibrating import Calibrated, calibrate
from kernelwright.estimators.checking import plan_of
from kernelwright.inputs.arrays import generator
from kernelwright.inputs.targets import Targets
from kernelwright.solvers import Solution
from kernelwright.uncertainty.bounds import LeftOutLoss
from kernelwright.uncertainty.risk import left_out_losses

__all__ = ["refitted_losses", "without_parts"]

REFITTED_UP_TO, REFITTED_PARTS = 2000, 10  # most rows, and folds, of a risk estimate that includes learning

CalibrateStep = Callable[[Solution, FittedEmbedding, FitPlan], Calibrated]


def without_parts(
    rows: TrainingSet, n_parts: int, new_plan: Callable[[], FitPlan], calibrated: CalibrateStep, *, balanced: bool
) -> tuple[Tensor, Tensor]:
    """Return outputs and log probabilities of all rows, each from a model fitted without the row's fold.

    Parameters
    ----------
    rows : TrainingSet
        Rows, none of them merged.
    n_parts : int
    new_plan : callable
        Returns a plan with an unlearned kernel.
    calibrated : callable
        Fits the link of a solution.
    balanced : bool
        Whether classes have equal total weight in every fit.
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
            warnings.simplefilter("ignore")  # the model of all rows has already warned
            outputs[held], log_p[held] = _taught_by(some, rows.points[held], plan, calibrated)
    return outputs, log_p


def _taught_by(data: TrainingSet, new: Tensor, plan: FitPlan, calibrated: CalibrateStep) -> tuple[Tensor, Tensor]:
    """Return outputs and log probabilities at new points, from a model fitted to other rows."""
    data = replace(data, weights=data.weights * (data.n_units / data.total_weight))
    if plan.method.shrinks_to_frequencies:
        data = replace(data, prior=plan.targets.prior(data.targets, data.weights))
    random, solver = generator(plan.random_state), plan.solver_for(len(data), data.points)
    choice = learn(data, plan, solver, random)
    solution = solve(choice, data, solver, random)
    rows = EmbeddedRows.of(np.ones(len(data), dtype=bool), np.arange(len(data)), data.weights.numpy(), data)
    embedding = embedding_of(solution, choice, scaler=None, rows=rows, solver=solver)
    found = calibrated(solution, embedding, plan)
    outputs, support = found.embedding.outputs(None, new)
    return outputs, found.link(outputs, support, found.link.of_line(new))


def refitted_losses(model: Any, targets: Targets) -> tuple[dict[str, LeftOutLoss], int]:
    """Return the losses at each fold from a model fitted to the other folds, and the number of folds.

    They exist for exact solutions of few rows, fitted with the current settings.
    """
    embedding = model.embedding_
    plan = replace(plan_of(model, sparse=embedding.sparse), callback=None, targets=targets)
    elsewhere = model.kernel == "precomputed" or plan.method.kernel_share is not None
    exact = embedding.solver == "exact" and len(embedding.points) <= REFITTED_UP_TO
    if not exact or elsewhere:
        return {}, 0
    rows = embedding.rows.training_set(embedding.points, targets.encode(embedding.rows.strata)).unmerged()
    outputs, log_p = without_parts(
        rows,
        REFITTED_PARTS,
        lambda: replace(plan, kernel=plan_of(model, sparse=embedding.sparse).kernel),
        lambda solution, fitted, its_plan: calibrate(solution, fitted, its_plan, model.probability),
        balanced=isinstance(model.class_weight, str),
    )
    return left_out_losses(outputs, log_p, rows), min(REFITTED_PARTS, rows.n_units)
