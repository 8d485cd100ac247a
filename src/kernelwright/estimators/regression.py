"""The steps of a fit to numbers that differ from those for classes: scales, spread and distribution."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from kernelwright.distributions.fitted import (
    LARGEST_WEIGHT,
    DistributionLink,
    LeftOutTarget,
    fit_distribution,
    log_residuals,
)
from kernelwright.distributions.number_targets import NumberTargets
from kernelwright.distributions.options import Direct, Distribution, LocationScale
from kernelwright.distributions.target import TargetScale, describe
from kernelwright.distributions.transforms import IdentityMap, TargetMap
from kernelwright.embedding.dual import embed
from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.arrows import FitPlan, choose_for, gather
from kernelwright.inputs.dataset import Dataset
from kernelwright.kernels import Kernel
from kernelwright.learning import Auto, EmpiricalRisk, Given, Rademacher
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives.losses import ClippedSquaredLoss, LogCrpsLoss, LogSquaredLoss, Loss
from kernelwright.solvers import Exact, Solution, Solver
from kernelwright.solvers.solution import Columns
from kernelwright.uncertainty.calibration import trust_by_evidence
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = [
    "Spread",
    "for_numbers",
    "learned_from",
    "predictions_of",
    "spread_of",
    "target_scales",
    "with_columns",
]

FINE_STEPS = 10  # of the default recipe: numbers deserve more than classes, and length scales as they are learned
MAP_ROWS, MAP_STEPS = 400, 5  # rows that decide between maps of a target, and steps of each stage of learning
BETTER_MAP = 0.99  # of the CRPS: another map than the identity must be better by this factor
RIDGE_ROWS = 800  # that decide the ridges of scale and direct estimate
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
    blocks = [_in_units_of_one(block, data.weights) for block in _indicators(targets, targets.decode(data.targets))]
    columns = torch.cat(blocks, 1)
    prior = data.weights @ columns / data.weights.sum()
    return replace(data, targets=columns, prior=prior), replace(plan, loss=LogCrpsLoss())


def _in_units_of_one(block: Tensor, weights: Tensor) -> Tensor:
    """Return indicators whose variances sum to one: terms on the norm know no units, and targets count equally."""
    prior = weights @ block / weights.sum()
    return block / float(_mean_squares(block - prior, weights).sum().clamp(min=1e-300).sqrt())


# The scale of each target -------------------------------------------------------------------------------


def target_scales(rows: Dataset, plan: FitPlan, how: Distribution, random: torch.Generator) -> tuple[TargetScale, ...]:
    """Describe each target, and choose its map by leave-one-out CRPS in the units of the target."""
    found = []
    for column in rows.y.T:
        scale, maps = describe(column, rows.weights, how)
        if len(maps) == 1:
            found.append(scale.mapped(maps[0], column, rows.weights))
            continue
        some = torch.randperm(len(rows), generator=random)[:MAP_ROWS].sort().values.numpy()
        sample = replace(rows.subset(some), y=column[some][:, None])
        best = _best_map(scale, maps, sample, plan, random)
        found.append(scale.mapped(best, column, rows.weights))
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
    errors = [float(_mean_squares(encoded - each, data.weights)) for each in outputs]
    location = outputs[int(np.argmin(errors))][:, 0].numpy()
    log_scale = np.full(len(y), float(np.average(log_residuals(scale.encode(y) - location, weights), weights=weights)))
    target = LeftOutTarget(y, weights, location, log_scale, None, np.ones(len(y)))
    link = fit_distribution(scale, target, _marginal(scale, y, weights), 0.0)
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


def _marginal(scale: TargetScale, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted distribution function of all targets at the thresholds."""
    below = scale.thresholds.below(y).T @ weights / weights.sum()
    return np.append(below, 1.0)


# Scale and direct estimate: more columns of the same embedding -------------------------------------------


@dataclass(frozen=True)
class Spread:
    """The links of all targets, and the columns that they read besides the locations."""

    links: tuple[DistributionLink, ...]
    coefficients: Tensor
    prior: Tensor
    left_out: tuple[LeftOutTarget, ...]


def spread_of(kernel: Kernel, solution: Solution, solver: Solver, targets: NumberTargets, how: Distribution) -> Spread:
    """Solve for the scale of residuals and for the direct estimate, and fit the distribution to left-out rows."""
    rows, left_out = solution.fitted_rows, solution.left_out
    y, y_left = targets.decode(rows.targets), targets.decode(left_out.rows.targets)
    blocks = [_log_scales(solution), *(_indicators(targets, y) if not isinstance(how, LocationScale) else [])]
    with torch.no_grad(), threads_for(len(rows)):
        ridges = [noise / rows.total_weight for noise in _best_noises(kernel, rows, blocks)]
        priors = [rows.weights @ block / rows.weights.sum() for block in blocks]
        columns = [Columns(*each) for each in zip(blocks, priors, ridges, strict=True)]
        solved = solver.more(kernel, solution, columns)
    trust = _trust(left_out, rows.total_weight)
    kept, links, targets_left = [0], [], []
    for j, scale in enumerate(targets.scales):
        direct = solved[1 + j].left_out.numpy() if len(solved) > 1 else None
        target = LeftOutTarget(
            y_left[:, j],
            left_out.rows.weights.numpy(),
            left_out.outputs[:, j].numpy(),
            solved[0].left_out[:, j].numpy(),
            direct,
            left_out.support.numpy(),
        )
        marginal = _marginal(scale, y[:, j], rows.weights.numpy())
        given = _weight_of_direct(scale, how)
        link = fit_distribution(scale, target, marginal, given, trust[j], trend=kernel.local is not kernel)
        if link.direct > 0:
            kept.append(1 + j)
        links.append(link)
        targets_left.append(target if link.direct > 0 else replace(target, direct=None))
    return Spread(
        tuple(links),
        torch.cat([solved[number].coefficients for number in kept], 1),
        torch.cat([priors[number] for number in kept]),
        tuple(targets_left),
    )


def _weight_of_direct(scale: TargetScale, how: Distribution) -> float | None:
    """Return the weight of the direct estimate, or None if left-out rows decide it."""
    if isinstance(how, LocationScale) or scale.constant:
        return 0.0
    return (1.0 if scale.values is not None else LARGEST_WEIGHT) if isinstance(how, Direct) else None


def _log_scales(solution: Solution) -> Tensor:
    """Return the logarithms of left-out residuals at the fitted rows.

    If other rows were left out, the residuals of fitted rows are too small; all get the factor by which those of the
    left-out rows are larger.
    """
    rows, left_out = solution.fitted_rows, solution.left_out
    residuals = left_out.rows.targets - left_out.outputs
    if left_out.rows is not rows:
        others = _mean_squares(residuals, left_out.rows.weights)
        residuals = rows.targets - solution.fitted
        own = _mean_squares(residuals, rows.weights)
        residuals = residuals * (others / own.clamp(min=1e-300)).sqrt().clamp(min=1.0)
    weights = rows.weights.numpy()
    return torch.from_numpy(np.column_stack([log_residuals(column, weights) for column in residuals.numpy().T]))


def _mean_squares(columns: Tensor, weights: Tensor) -> Tensor:
    return weights @ columns.square() / weights.sum()


def _indicators(targets: NumberTargets, y: np.ndarray) -> list[Tensor]:
    """Return the weighted indicators of each target."""
    pairs = zip(targets.scales, y.T, strict=True)
    return [torch.from_numpy(scale.thresholds.encode(column)) for scale, column in pairs]


def _best_noises(kernel: Kernel, rows: TrainingSet, blocks: Sequence[Tensor]) -> list[float]:
    """Return, for each block of columns, the n lambda with the least squared leave-one-out loss, from a grid."""
    every = replace(rows, targets=torch.cat(list(blocks), 1))
    some = every.whole_groups(RIDGE_ROWS, torch.Generator().manual_seed(0))
    some = replace(some, prior=some.weights @ some.targets / some.weights.sum())
    K, sizes, losses = kernel.matrix(some.points), [block.shape[1] for block in blocks], []
    for noise in NOISES:
        residuals = some.targets - embed(K, some, noise / some.total_weight).leave_one_out()
        losses.append([float(part.sum()) for part in _mean_squares(residuals, some.weights).split(sizes)])
    return [NOISES[int(place)] for place in np.argmin(losses, axis=0)]


def _trust(left_out: LeftOutOutputs, n: float) -> list[float]:
    """Return the trust in the location of each target, against the mean of the other rows."""
    w = (left_out.rows.weights / left_out.rows.weights.sum()).numpy()
    targets, outputs = left_out.rows.targets.numpy(), left_out.outputs.numpy()
    own = np.minimum(w, 0.5)[:, None]
    others = (w @ targets - own * targets) / (1.0 - own)
    errors, baseline = w @ (targets - outputs) ** 2, w @ (targets - others) ** 2
    evidence = 0.5 * n * np.log(np.maximum(baseline, 1e-300) / np.maximum(errors, 1e-300))
    return [trust_by_evidence(float(each), n) for each in evidence]


def with_columns(embedding: FittedEmbedding, spread: Spread) -> FittedEmbedding:
    """Return the embedding with the columns of the spread after those of the locations."""
    return replace(
        embedding,
        coefficients=torch.cat([embedding.coefficients, spread.coefficients], 1),
        prior=torch.cat([embedding.prior, spread.prior]),
    )


def predictions_of(links: Sequence[DistributionLink], outputs: Any, support: Any) -> list[Any]:
    """Return the predicted distributions of each target, from the outputs of an embedding with all columns."""
    k, start, found = len(links), 2 * len(links), []
    for j, link in enumerate(links):
        direct = None
        if link.direct > 0:
            size = len(link.scale.thresholds.values) - 1
            direct, start = outputs[:, start : start + size], start + size
        found.append(link(outputs[:, j], outputs[:, k + j], direct, support))
    return found
