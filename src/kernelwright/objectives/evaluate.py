"""Objectives by name, evaluated at plain hyperparameters."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.inputs.arrays import plain
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.weights import group_numbers
from kernelwright.kernels import Kernel
from kernelwright.objectives.base import Objective
from kernelwright.objectives.in_sample import EmpiricalRiskObjective, RademacherObjective
from kernelwright.objectives.leave_one_out import LeaveOneOutObjective
from kernelwright.objectives.losses import EPSILON, LOG_LOSS, check_clip, loss_named
from kernelwright.objectives.splits import FoldsObjective, HeldOutObjective, RegularisedFoldsObjective
from kernelwright.objectives.terms import Hyperparameters
from kernelwright.parameters import plain_gradients

__all__ = ["OBJECTIVES", "objective_named", "value_and_gradient"]

OBJECTIVES: dict[str, type[Objective]] = {
    "rademacher": RademacherObjective,
    "empirical-risk": EmpiricalRiskObjective,
    "held-out": HeldOutObjective,
    "leave-one-out": LeaveOneOutObjective,
    "folds": FoldsObjective,
    "regularised-folds": RegularisedFoldsObjective,
}


def objective_named(
    name: str,
    *,
    complexity_weight: float | str | None = None,
    loss: str | None = None,
    epsilon: float = EPSILON,
    folds: int | tuple[int, ...] = 2,
    shrinkage: float = 0.0,
    precision: str = "double",
) -> Objective:
    """Return the objective behind a word; settings that are None keep the objective's defaults."""
    if name not in OBJECTIVES:
        raise ValueError(f"The 'name' parameter must be one of {list(OBJECTIVES)}. Got {name!r} instead.")
    check_clip(epsilon)
    settings: dict[str, Any] = {"shrinkage": shrinkage, "precision": precision}
    if complexity_weight is not None:
        settings["complexity_weight"] = complexity_weight
    if loss is not None or OBJECTIVES[name].loss is LOG_LOSS:
        settings["loss"] = loss_named(loss or "log", epsilon)
    if name in ("held-out", "folds", "regularised-folds"):
        settings["folds"] = folds
    return OBJECTIVES[name](**settings)


def value_and_gradient(
    name: str,
    kernel: Kernel,
    X: Any,
    y: Any,
    *,
    ridge: float,
    complexity_weight: float | str | None = None,
    folds: Any = 2,
    loss: str | None = None,
    epsilon: float = EPSILON,
    sample_weight: Any = None,
    groups: Any = None,
) -> tuple[float, dict[str, np.ndarray]]:
    """Return the value and gradient of an objective in the plain (not log) hyperparameters.

    Parameters
    ----------
    name : {"rademacher", "empirical-risk", "held-out", "leave-one-out", "folds", "regularised-folds"}
        The objective.
    kernel : Kernel
        It is copied, not changed.
    X, y : array-like
        Points and labels.
    ridge : float
        lambda.
    complexity_weight : float, "4e", "4e/n", "4e/sqrt(n)", "1/n" or None, default=None
        tau; ``None`` is the objective's own: "4e/n" for "rademacher", 1 for "regularised-folds", and 0 for the others.
    folds : int or array-like of int, default=2
        Number of folds, or a fold number for each row; "held-out" trains on fold 0 and tests on the others.
    loss : {"log", "normalised", "centred", "brier", "calibrated"}, optional
        Defaults to the clipped cross entropy of Eq. (7), "log", where [Hsu2018]_ uses it ("rademacher",
        "empirical-risk", "held-out"), to the Brier loss otherwise. "normalised" and "centred" are Eqs. (55) and (56)
        of the long version: see :class:`~kernelwright.objectives.ClippedLogLoss`.
    epsilon : float
        The clip of the cross entropy, between 0 and 1/e.
    sample_weight : array-like, optional
        How much each row counts, relative to the others.
    groups : array-like, optional
        Names of groups of rows that are left out together and share a fold; n is then the number of groups.

    Returns
    -------
    value : float
    gradient : dict
        ``{"ridge": ..., "kernel.lengthscale": ...}``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright.kernels import Gaussian
    >>> from kernelwright.objectives import value_and_gradient
    >>> X, y = load_iris(return_X_y=True)
    >>> value, gradient = value_and_gradient("leave-one-out", Gaussian(), X, y, ridge=0.01)
    >>> round(value, 3), sorted(gradient)
    (0.069, ['kernel.lengthscale', 'ridge'])
    """
    number_or_numbers = int(folds) if np.ndim(folds) == 0 else tuple(int(fold) for fold in folds)
    objective = objective_named(
        name, complexity_weight=complexity_weight, loss=loss, epsilon=epsilon, folds=number_or_numbers
    )
    kernel = copy.deepcopy(kernel)
    points = kernel.encode_training(X)
    weights = torch.from_numpy(
        _check_sample_weight(plain(sample_weight), points, dtype=np.float64, ensure_non_negative=True)
    )
    counted = weights > 0  # rows of weight zero do not count
    if isinstance(number_or_numbers, tuple):
        if len(number_or_numbers) != len(points):
            raise ValueError(f"'folds' has {len(number_or_numbers)} fold numbers for {len(points)} rows.")
        if isinstance(objective, (HeldOutObjective, FoldsObjective)):
            objective = replace(objective, folds=tuple(np.array(number_or_numbers)[counted.numpy()].tolist()))
    classes, labels = np.unique(column_or_1d(y), return_inverse=True)
    check_consistent_length(points, labels)
    names = None if groups is None else torch.from_numpy(group_numbers(groups, len(points)))
    data = TrainingSet.of(points, one_hot(labels, len(classes)), weights=weights, groups=names).subset(counted)
    data = replace(data, weights=data.weights * (data.n_units / data.total_weight))
    kernel.prepare_(data.points, data.weights)
    hyper = Hyperparameters(kernel, ridge)
    evaluation = objective(hyper, data)
    return evaluation.value, plain_gradients(hyper, evaluation.gradients)
