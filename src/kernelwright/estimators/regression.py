"""The steps of a fit to numbers that differ from those for classes: scale and map of each target, and the loss."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from kernelwright.distributions.fitted import (
    LeftOutTarget,
    fit_distribution,
    log_residuals,
)
from kernelwright.distributions.number_targets import NumberTargets
from kernelwright.distributions.options import Direct, Distribution
from kernelwright.distributions.target import TargetScale, describe, learned_by
from kernelwright.distributions.transforms import IdentityMap, TargetMap
from kernelwright.embedding.dual import embed
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.arrows import FitPlan, choose_for, gather
from kernelwright.inputs.dataset import Dataset
from kernelwright.learning import Auto, EmpiricalRisk, Given, Rademacher
from kernelwright.objectives.losses import ClippedSquaredLoss, LogCrpsLoss, LogSquaredLoss, Loss
from kernelwright.solvers import Exact

__all__ = ["NOISES", "for_numbers", "indicators_of", "learned_from", "marginal_of", "mean_squares", "target_scales"]

FINE_STEPS = 10  # of the default recipe: numbers deserve more than classes, and length scales as they are learned
MAP_ROWS, MAP_STEPS = 400, 5  # rows that decide between maps of a target, and steps of each stage of learning
BETTER_MAP = 0.99  # of the CRPS: another map than the identity must be better by this factor
NOISES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 1e4)  # n lambda


def loss_for(plan: FitPlan) -> Loss:
    """Return the loss of numbers: bounded for objectives that bound the risk, else the cross entropy of residuals."""
    return ClippedSquaredLoss() if isinstance(plan.method, (Rademacher, EmpiricalRisk)) else LogSquaredLoss()


def for_numbers(plan: FitPlan, targets: NumberTargets) -> FitPlan:
    """Return the plan with these targets and the loss of numbers."""
    plan = replace(plan, targets=targets, loss=loss_for(plan), averages=False, fine_steps=FINE_STEPS)
    return replace(plan, method=Given()) if all(scale.constant for scale in targets.scales) else plan


def learned_from(data: TrainingSet, plan: FitPlan, how: Distribution) -> tuple[TrainingSet, FitPlan]:
    """Return rows and plan of learning: a direct estimate is learned by the CRPS, with indicators as targets."""
    targets = plan.targets
    if not isinstance(how, Direct) or not isinstance(plan.loss, LogSquaredLoss):
        return data, plan
    assert isinstance(targets, NumberTargets)
    blocks = [_in_units_of_one(block, data.weights) for block in indicators_of(targets, targets.decode(data.targets))]
    columns = torch.cat(blocks, 1)
    prior = data.weights @ columns / data.weights.sum()
    return replace(data, targets=columns, prior=prior), replace(plan, loss=LogCrpsLoss())


def _in_units_of_one(block: Tensor, weights: Tensor) -> Tensor:
    """Return indicators whose variances sum to one: terms on the norm know no units, and targets count equally."""
    prior = weights @ block / weights.sum()
    return block / float(mean_squares(block - prior, weights).sum().clamp(min=1e-300).sqrt())


# The scale of each target -------------------------------------------------------------------------------


def target_scales(rows: Dataset, plan: FitPlan, how: Distribution, random: torch.Generator) -> tuple[TargetScale, ...]:
    """Describe each target, and choose its map by leave-one-out CRPS in the units of the target."""
    found = []
    for column in rows.y.T:
        scale, maps = describe(column, rows.weights, how)
        if len(maps) == 1:
            found.append(learned_by(maps[0], scale, column, rows.weights, how))
            continue
        some = torch.randperm(len(rows), generator=random)[:MAP_ROWS].sort().values.numpy()
        sample = replace(rows.subset(some), y=column[some][:, None])
        best = _best_map(scale, maps, sample, plan, random)
        found.append(learned_by(best, scale, column, rows.weights, how))
    return tuple(found)


def _best_map(
    scale: TargetScale, maps: Sequence[TargetMap], rows: Dataset, plan: FitPlan, random: torch.Generator
) -> TargetMap:
    """Return the map with the least leave-one-out CRPS of a location with a constant scale.

    The kernel is learned from normal scores of the targets, which are the same for all maps.
    """
    ranks = NormalScores.of(rows.y[:, 0])
    method = Auto(max_iter=MAP_STEPS) if plan.method.learns else plan.method
    small = replace(plan, kernel=copy.deepcopy(plan.kernel), method=method, callback=None, warm=False)
    targets = NumberTargets.of((scale,), rows.y)
    small = for_numbers(small, targets)
    data, _, _ = gather(rows, small)
    y = targets.decode(data.targets)[:, 0]
    learned = choose_for(replace(data, targets=ranks(y), prior=torch.zeros(1).double()), small, Exact(), random)
    with torch.no_grad():
        K = learned.kernel.matrix(data.points)
    scores = [_score_of_map(scale.mapped(each, y, data.weights.numpy()), y, K, data) for each in maps]
    factors = [BETTER_MAP if isinstance(each, IdentityMap) else 1.0 for each in maps]
    return maps[int(np.argmin(np.multiply(scores, factors)))]


def _score_of_map(scale: TargetScale, y: np.ndarray, K: Tensor, data: TrainingSet) -> float:
    """Return the mean leave-one-out CRPS, with the ridge that has the least squared loss."""
    encoded = torch.from_numpy(scale.encode(y))[:, None]
    rows, weights = (
        replace(data, targets=encoded, prior=data.weights @ encoded / data.weights.sum()),
        data.weights.numpy(),
    )
    outputs = [embed(K, rows, noise / rows.total_weight).leave_one_out() for noise in NOISES]
    errors = [float(mean_squares(encoded - each, data.weights)) for each in outputs]
    location = outputs[int(np.argmin(errors))][:, 0].numpy()
    log_scale = np.full(len(y), float(np.average(log_residuals(scale.encode(y) - location, weights), weights=weights)))
    target = LeftOutTarget(y, weights, location, log_scale, None, np.ones(len(y)))
    link = fit_distribution(scale, target, marginal_of(scale, y, weights), 0.0)
    return float(np.average(link(location, log_scale, None, target.support).crps(y), weights=weights))


@dataclass(frozen=True)
class NormalScores:
    """Normal quantiles of the ranks of values."""

    values: np.ndarray  # sorted
    scores: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray) -> NormalScores:
        """Rank the values."""
        distinct, counts = np.unique(y, return_counts=True)
        return cls(distinct, ndtri((np.cumsum(counts) - 0.5 * counts) / len(y)))

    def __call__(self, y: np.ndarray) -> Tensor:
        """Return a column of scores."""
        return torch.from_numpy(np.interp(y, self.values, self.scores))[:, None]


def marginal_of(scale: TargetScale, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted distribution function of all targets at the thresholds."""
    below = scale.thresholds.below(y).T @ weights / weights.sum()
    return np.append(below, 1.0)


def mean_squares(columns: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean square of each column."""
    return weights @ columns.square() / weights.sum()


def indicators_of(targets: NumberTargets, y: np.ndarray) -> list[Tensor]:
    """Return the weighted indicators of each target."""
    pairs = zip(targets.scales, y.T, strict=True)
    return [torch.from_numpy(scale.thresholds.encode(column)) for scale, column in pairs]
