"""Ranks of a table with fewer knots, where answers do not notice."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from kernelwright.embedding.compression import Compressed, Fold, mean_loss
from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.inputs.coordinates import TableCoordinates
from kernelwright.inputs.scaling import TableViews
from kernelwright.kernels import Kernel, Tabular

__all__ = ["Judge", "rank_error_within", "thinned"]

RANK_ERRORS = (0.01, 0.003, 0.001)  # of values in the second view, in length scales, by keeping fewer knots

Judge = Callable[[Fold, Tensor], float]


def rank_error_within(
    embedding: FittedEmbedding, K: Tensor, found: Compressed, folds: list[Fold], judge: Judge, spare: float
) -> tuple[float, float]:
    """Return the largest error of ranks by which the loss at left-out rows does not rise too much, and this rise.

    The ranks of all rows are moved by random errors of that size. Zero if even small ones matter, or there are none.
    """
    scales, before = _rank_scales(embedding.kernel), mean_loss(folds, judge)
    if scales is None:
        return 0.0, 0.0
    points, V = embedding.points, found.coefficients
    start = points.shape[1] // 2  # of the second view
    noise = 2.0 * torch.rand(len(points), start, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 1.0
    for error in RANK_ERRORS:
        moved = torch.cat([points[:, :start], points[:, start:] + error * scales * noise], 1)
        shift = embedding.kernel.forward(moved, points[found.chosen]) - K[:, found.chosen]
        shift[found.chosen, torch.arange(len(found.chosen))] = 0.0  # no new row lies on a point, a peak of the kernel
        change = shift @ V
        after = [replace(fold, at_left_out=fold.at_left_out + change[fold.left_out]) for fold in folds]
        rise = mean_loss(after, judge) - before
        if rise <= spare:
            return error, max(rise, 0.0)
    return 0.0, 0.0


def _rank_scales(kernel: Kernel) -> Tensor | None:
    """Return the least length scale of ranks in each column; None for kernels that see no ranks."""
    parts = [part for part in kernel.modules() if isinstance(part, Tabular)]
    if not parts:
        return None
    with torch.no_grad():
        return torch.stack([part.feature_scale() * part.rank_scale for part in parts]).amin(0)


def thinned(scaler: Any, kernel: Kernel, error: float) -> Any:
    """Return a scaler of tables with fewer knots of the ranks, by which these err by a share of a length scale."""
    scales = _rank_scales(kernel)
    if scales is None or not error:
        return scaler
    if isinstance(scaler, TableCoordinates) and scaler.views and scaler.views_ is not None:
        scaler = copy.copy(scaler)
        scaler.views_ = thinned(scaler.views_, kernel, error)
        return scaler
    if not isinstance(scaler, TableViews):
        return scaler
    n_columns = len(scaler.columns_)  # coordinates of other kinds follow
    return scaler.thinned(error * (scales[:n_columns] if scales.ndim else scales.expand(n_columns)).numpy())
