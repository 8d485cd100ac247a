"""Logistic regression on the columns of a table, to stand beside an embedding.

The squared loss of an embedding also punishes outputs that are right by far, so straight lines are learned better by
logistic regression. The two are pooled, ``p ~ p_embedding^(1 - b) p_line^b``: b and the penalty of the slopes are
chosen by log loss at rows left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels.trend import unsquashed
from kernelwright.numerics.linalg import eigen
from kernelwright.storage.saved import saved

__all__ = ["LogisticLine", "fit_line", "fit_lines", "pooled", "weight_of_line"]

PENALTIES = tuple(10.0**power for power in (3, 2, 1, 0, -1, -2))  # of squared slopes, strongest first
STEP = 0.01  # a smaller rise of the left-out loss does not yet end the search for a penalty
DOUBT = 0.3  # part of a row added to the targets, without which separable rows would need infinite slopes
ENOUGH_ROWS = 500  # a fifth of so many rows can choose the penalty; with fewer, all rows do, in ten folds
FOLDS, FOLDS_OF_FEW = 5, 10
MOST_ROWS = 5000  # to learn from, where not every row must be left out
LARGEST = 3e7  # rows x columns x classes x folds
CURVATURE = 0.25  # of the loss in the logits, at most; it only sets the units of the search
SEARCH = {"maxiter": 50, "maxcor": 10, "ftol": 1e-5, "gtol": 1e-5}
DEPENDENT = 1e-10  # relative eigenvalue below which a combination of columns is left out
LOWEST = -30.0  # log probability of a row
# Half the weight is the usual one: kernel and ridge were chosen by the same left-out rows, so their loss is a little
# too good. A line is left out if it would cost about eight nats more than it gains.
USUAL_WEIGHT, PULL, LEAST_WEIGHT = 0.5, 16.0, 0.02


@saved("logistic-line")
@dataclass(frozen=True)
class LogisticLine:
    """``p_k ~ exp(<b(x), w_k> + c_k)``, with b the columns of a table on their own scale."""

    slopes: Tensor
    intercepts: Tensor
    left_out: Tensor  # log probabilities of rows by a line that has not seen them
    weight: float = 0.0  # beside the embedding

    def log(self, points: Tensor) -> Tensor:
        """Return log probabilities at points that are the views of a table."""
        return torch.log_softmax(unsquashed(points) @ self.slopes + self.intercepts, 1)


def pooled(log_p: Tensor, of_line: Tensor, weight: float) -> Tensor:
    """Return the logarithm of ``p^(1 - weight) p_line^weight``, normalised."""
    return torch.log_softmax((1.0 - weight) * log_p + weight * of_line, 1)


def weight_of_line(log_p: Tensor, of_line: Tensor, rows: TrainingSet) -> float:
    """Return the weight of the line that gives the least log loss at rows which neither model has seen.

    It is pulled towards one half, like ``PULL`` rows would, and zero if it is small.
    """
    log_p, of_line = log_p.clamp(min=LOWEST), of_line.clamp(min=LOWEST)

    def loss(weight: float) -> float:
        return log_loss(pooled(log_p, of_line, weight), rows) + 0.5 * PULL * (weight - USUAL_WEIGHT) ** 2 / rows.n_units

    weight = float(minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-3}).x)
    return weight if weight > LEAST_WEIGHT else 0.0


def log_loss(log_p: Tensor, rows: TrainingSet) -> float:
    """Return the weighted mean of the cross entropy, with log probabilities of at least ``LOWEST``."""
    return -float(rows.weights @ (rows.targets * log_p.clamp(min=LOWEST)).sum(1)) / rows.total_weight


def fit_line(fitted: TrainingSet, judged: TrainingSet, log_p: Tensor) -> LogisticLine | None:
    """Fit a line and its weight beside an embedding; None if it is of no use, or if that would take long.

    Parameters
    ----------
    fitted : TrainingSet
        Points are the views of a table.
    judged : TrainingSet
        The rows that choose penalty and weight: ``fitted`` itself, each fold (of groups, if there are any) left out in
        turn; or other rows.
    log_p : Tensor
        Log probabilities of the judged rows by the embedding, which has not seen them.
    """
    own, random = judged is fitted, torch.Generator().manual_seed(0)
    if not own:
        fitted = fitted.sample(MOST_ROWS, random)
    few, fold = fitted.n_units < ENOUGH_ROWS, torch.zeros(len(judged), dtype=torch.int64)
    if own:
        fold = fitted.with_groups_in_order().random_parts(FOLDS_OF_FEW if few else FOLDS, random)
    n_folds = int(fold.max()) + 1
    if fitted.targets.numel() * fitted.points.shape[1] // 2 * n_folds > LARGEST:
        return None
    seen = torch.ones(len(fitted), 1, dtype=torch.float64)
    if own:  # the last fit is to all rows
        seen = torch.hstack([1.0 - torch.nn.functional.one_hot(fold).double(), seen])
    penalties: Sequence[float] = PENALTIES
    if own and not few:
        first = fold == 0
        some, taught = judged.subset(first), fitted.subset(~first).sample(MOST_ROWS, random)
        alone = torch.ones(len(taught), 1, dtype=torch.float64)
        penalty, line = _best_line(taught, alone, penalties, some, fold[first])
        if not weight_of_line(log_p[first], line.left_out, some):
            return None
        penalties = [penalty]
    line = _best_line(fitted, seen, penalties, judged, fold)[1]
    weight = weight_of_line(log_p, line.left_out, judged)
    return replace(line, weight=weight) if weight else None


def _best_line(
    fitted: TrainingSet, seen: Tensor, penalties: Sequence[float], judged: TrainingSet, fold: Tensor
) -> tuple[float, LogisticLine]:
    """Return the penalty of least loss at left-out rows, and its line; ``fold`` is the fit to judge each row by."""
    columns, new, rows = unsquashed(fitted.points), unsquashed(judged.points), torch.arange(len(fold))
    found: list[tuple[float, float, LogisticLine]] = []
    lines = fit_lines(columns, fitted.targets, fitted.weights[:, None] * seen, penalties)
    for penalty, (slopes, intercepts) in zip(penalties, lines, strict=True):
        logits = (new @ slopes.flatten(1)).unflatten(1, intercepts.shape) + intercepts
        log_p = torch.log_softmax(logits[rows, fold], 1)
        found.append((log_loss(log_p, judged), penalty, LogisticLine(slopes[:, -1], intercepts[-1], log_p)))
        if found[-1][0] > min(found)[0] + STEP:
            break
    return min(found)[1:]


def fit_lines(
    columns: Tensor, targets: Tensor, weights: Tensor, penalties: Sequence[float]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, for each penalty, the slopes and intercepts of a logistic regression for each column of row weights.

    They minimise ``sum_i w_i H(y_i, p_i) + penalty / 2 |W|^2`` with H the cross entropy: all at once, by L-BFGS in
    coordinates in which the squared loss would be a sphere.
    """
    mean = (weights[:, -1] @ columns) / weights[:, -1].sum()
    spread, axes = _principal_axes(columns - mean, weights[:, -1])
    rotated = (columns - mean) @ axes
    n, m, shape = float(weights[:, -1].sum()), targets.shape[1], (weights.shape[1], targets.shape[1])
    doubt = DOUBT / (n + DOUBT)
    smoothed, share = ((1.0 - doubt) * targets + doubt / m)[:, None], (weights / n)[:, :, None]
    units = torch.ones(1, dtype=torch.float64)
    theta = torch.zeros(len(spread) + 1, m * weights.shape[1], dtype=torch.float64)
    for penalty in penalties:
        scale = 1.0 / torch.cat([CURVATURE * spread + penalty, units * CURVATURE * n]).sqrt()
        Q = torch.hstack([rotated, torch.ones(len(rotated), 1, dtype=torch.float64)]) * scale
        pull = torch.cat([penalty * scale[:-1].square(), 0.0 * units])[:, None] / n

        def loss(flat: np.ndarray, Q: Tensor = Q, pull: Tensor = pull) -> tuple[float, np.ndarray]:
            at = torch.from_numpy(flat).view(len(Q.T), -1)
            log_p = torch.log_softmax((Q @ at).unflatten(1, shape), 2)
            value = -float((share * smoothed * log_p).sum()) + 0.5 * float((pull * at.square()).sum())
            slope = Q.T @ (share * (log_p.exp_() - smoothed)).flatten(1)
            return value, (slope + pull * at).numpy().ravel()

        found = minimize(loss, (theta / scale[:, None]).numpy().ravel(), jac=True, method="L-BFGS-B", options=SEARCH)
        theta = torch.from_numpy(found.x).view_as(theta) * scale[:, None]
        slopes = (axes @ theta[:-1]).unflatten(1, shape).contiguous()
        yield slopes, theta[-1].view(shape) - torch.tensordot(mean, slopes, 1)


def _principal_axes(columns: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of squares along the principal axes, and the axes as columns; without those of no extent."""
    weighted = columns * weights.sqrt()[:, None]
    many = len(columns.T) > len(columns)
    spread, axes = eigen(weighted @ weighted.T if many else weighted.T @ weighted)
    kept = spread > DEPENDENT * spread[-1].clamp(min=1e-300)
    spread, axes = spread[kept], axes[:, kept]
    return spread, weighted.T @ axes / spread.sqrt() if many else axes
