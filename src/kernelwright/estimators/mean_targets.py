"""Whether mean targets of categories pay: judged by outer folds, which no statistic of the target has seen."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch

from kernelwright.embedding.dual import embed
from kernelwright.estimators.arrows import FitPlan, gather, learn
from kernelwright.estimators.row_split import RowSplit
from kernelwright.inputs.coordinates import columns_for_means
from kernelwright.inputs.dataset import Dataset
from kernelwright.inputs.fitting_rows import FittingRows
from kernelwright.learning import Auto
from kernelwright.solvers import Exact

__all__ = ["with_means_that_pay"]

MOST_ROWS = 2000  # that are looked at
FEW = 400  # rows: of fewer, one half says too little about words
FOLDS, FOLDS_OF_FEW, STEPS = 2, 4, 4  # outer folds, and steps of each stage of learning
ENOUGH = 400  # rows that judge; further folds are left out
WORTH = 0.99  # of the squared error without mean targets: with them it must be smaller
DOUBT = 1.2  # standard errors by which it must be smaller


def with_means_that_pay(rows: Dataset, parts: RowSplit, plan: FitPlan) -> FitPlan:
    """Return the plan, with mean targets only if they clearly lower the squared error in outer folds.

    The mean target of a category is made from the targets of its rows. So rows of one category know of each other's
    targets, which leave-one-out errors do not notice. In an outer fold, neither the mean targets nor the kernel have
    seen the rows that judge.

    Parameters
    ----------
    rows : Dataset
    parts : RowSplit
        Only the rows that learn the kernel are looked at.
    plan : FitPlan

    Returns
    -------
    FitPlan
        With ``means`` set.
    """
    many = rows.layout is not None and columns_for_means(rows.layout, len(parts.learned))
    if not many or plan.warm or not plan.method.learns:
        return plan
    rows, random = rows.subset(parts.learned), np.random.RandomState(0)
    if len(rows) > MOST_ROWS:
        rows = rows.subset(np.sort(random.permutation(len(rows))[:MOST_ROWS]))
    n_folds = FOLDS_OF_FEW if len(rows) < FEW else FOLDS
    folds = list(FittingRows(rows.X, rows.y, groups=_numbered(rows.groups)).fold_parts(n_folds, random))
    folds = folds[:1] if len(folds[0][1]) >= ENOUGH else folds
    with_means, without = (
        np.concatenate(
            [_errors(replace(plan, means=means), rows.subset(fitted), rows.subset(held)) for fitted, held in folds]
        )
        for means in (True, False)
    )
    return replace(plan, means=_clearly_less(with_means, without))


def _clearly_less(errors: np.ndarray, others: np.ndarray) -> bool:
    """Say whether the sum of some errors is less than that of others, by more than chance between the rows."""
    gain = others - errors
    return bool(gain.sum() > max((1.0 - WORTH) * others.sum(), DOUBT * gain.std() * np.sqrt(len(gain))))


def _numbered(groups: np.ndarray | None) -> np.ndarray | None:
    return None if groups is None else np.unique(groups, return_inverse=True)[1]


def _errors(plan: FitPlan, fitted: Dataset, held: Dataset) -> np.ndarray:
    """Return the weighted squared errors at held-out rows of an embedding that was learned in a few steps."""
    plan = replace(plan, kernel=copy.deepcopy(plan.kernel), method=Auto(max_iter=STEPS, trend=False), callback=None)
    data, _, scaler = gather(fitted, plan)
    choice = learn(data, plan, Exact(), torch.Generator().manual_seed(0))
    new = plan.kernel.encode(scaler.transform(held.X))
    with torch.no_grad():
        embedding = embed(choice.kernel.matrix(data.points), data, choice.ridge)
        outputs = embedding.outputs(choice.kernel.forward(new, data.points))
        squares = (plan.targets.encode(held.y) - outputs).square().sum(1)
        return held.weights * squares.numpy()
