"""The spread of a fit to numbers: more columns of the same embedding, and the distribution fitted to left-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.distributions.fitted import (
    LARGEST_WEIGHT,
    DistributionLink,
    LeftOutTarget,
    fit_distribution,
    log_residuals,
    residual_floor,
)
from kernelwright.distributions.number_targets import NumberTargets
from kernelwright.distributions.options import Direct, Distribution, LocationScale
from kernelwright.distributions.target import TargetScale
from kernelwright.embedding.dual import embed
from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.regression import NOISES, indicators_of, marginal_of, mean_squares
from kernelwright.kernels import Kernel
from kernelwright.numerics.threads import threads_for
from kernelwright.solvers import Solution
from kernelwright.solvers.solution import Columns, SolvedColumns
from kernelwright.uncertainty.calibration import trust_by_evidence
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["Spread", "n_columns", "predictions_of", "spread_of", "with_columns"]

RIDGE_ROWS = 800  # that decide the ridges of scale and direct estimate


Solve = Callable[[Sequence[Columns]], list[SolvedColumns]]


@dataclass(frozen=True)
class Spread:
    """The links of all targets, and the columns that they read besides the locations."""

    links: tuple[DistributionLink, ...]
    coefficients: Tensor
    prior: Tensor
    left_out: tuple[LeftOutTarget, ...]
    noises: tuple[float, ...]  # n lambda of the scales, and of the direct estimate of each target if it has a weight


def n_columns(targets: NumberTargets, how: Distribution) -> int:
    """Return the number of columns that :func:`spread_of` solves for."""
    direct = 0 if isinstance(how, LocationScale) else sum(len(scale.thresholds.values) - 1 for scale in targets.scales)
    return len(targets.scales) + direct


def spread_of(
    kernel: Kernel,
    solution: Solution,
    more: Solve,
    targets: NumberTargets,
    how: Distribution,
    *,
    noises: Sequence[float] = (),
) -> Spread:
    """Solve for the scale of residuals and for the direct estimate, and fit the distribution to left-out rows.

    ``more`` solves for more columns of all fitted rows, of which the solution may have a sample only. Unless ``noises``
    are given, the n lambda of the columns have the least squared loss at some left-out rows.
    """
    rows, left_out = solution.fitted_rows, solution.left_out
    y, y_left = targets.decode(rows.targets), targets.decode(left_out.rows.targets)
    blocks: list[Tensor] = [_log_scales(solution)]
    rules: list[Any] = [_LogScales.of(solution, targets)]
    if not isinstance(how, LocationScale):
        blocks += indicators_of(targets, y)
        rules += [_Indicators(targets, number) for number in range(len(targets.scales))]
    with torch.no_grad(), threads_for(len(rows)):
        noises = tuple(noises) or tuple(_best_noises(kernel, rows, blocks))
        ridges = [noise / rows.total_weight for noise in noises]
        priors = [rows.weights @ block / rows.weights.sum() for block in blocks]
        solved = more([Columns(*each) for each in zip(blocks, priors, ridges, rules, strict=True)])
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
        marginal = marginal_of(scale, y[:, j], rows.weights.numpy())
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
        noises if len(kept) > 1 else noises[:1],
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
        others = mean_squares(residuals, left_out.rows.weights)
        residuals = rows.targets - solution.fitted
        own = mean_squares(residuals, rows.weights)
        residuals = residuals * (others / own.clamp(min=1e-300)).sqrt().clamp(min=1.0)
    weights = rows.weights.numpy()
    return torch.from_numpy(np.column_stack([log_residuals(column, weights) for column in residuals.numpy().T]))


@dataclass(frozen=True)
class _LogScales:
    """The rule of the logarithms of left-out residuals, at rows that need not be in memory."""

    targets: NumberTargets
    floors: np.ndarray

    @classmethod
    def of(cls, solution: Solution, targets: NumberTargets) -> _LogScales:
        rows = solution.left_out.rows
        residuals, weights = (rows.targets - solution.left_out.outputs).numpy(), rows.weights.numpy()
        return cls(targets, np.array([residual_floor(column, weights) for column in residuals.T]))

    def __call__(self, y: np.ndarray, left_out: Tensor) -> Tensor:
        residuals = (self.targets.encode(y) - left_out).abs()
        return (residuals + torch.from_numpy(self.floors)).log()


@dataclass(frozen=True)
class _Indicators:
    """The rule of the weighted indicators of one target."""

    targets: NumberTargets
    number: int

    def __call__(self, y: np.ndarray, left_out: Tensor) -> Tensor:
        y = self.targets.decode(self.targets.encode(y))  # rounded as targets of a solution are
        return torch.from_numpy(self.targets.scales[self.number].thresholds.encode(y[:, self.number]))


def _best_noises(kernel: Kernel, rows: TrainingSet, blocks: Sequence[Tensor]) -> list[float]:
    """Return, for each block of columns, the n lambda with the least squared leave-one-out loss, from a grid."""
    every = replace(rows, targets=torch.cat(list(blocks), 1))
    some = every.whole_groups(RIDGE_ROWS, torch.Generator().manual_seed(0))
    some = replace(some, prior=some.weights @ some.targets / some.weights.sum())
    K, sizes, losses = kernel.matrix(some.points), [block.shape[1] for block in blocks], []
    for noise in NOISES:
        residuals = some.targets - embed(K, some, noise / some.total_weight).leave_one_out()
        losses.append([float(part.sum()) for part in mean_squares(residuals, some.weights).split(sizes)])
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
