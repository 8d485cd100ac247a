"""Losses with their gradients, and the weight of the complexity term."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["brier_loss", "clipped_log_loss", "complexity_multiplier"]


EPSILON = 1e-15  # the clip of [Hsu2018]_, section 5


def clipped_log_loss(
    outputs: Tensor, targets: Tensor, weights: Tensor, epsilon: float = EPSILON
) -> tuple[float, Tensor]:
    """Weighted mean of ``-log clip(f_y, epsilon, 1)``, Eq. (7), and its gradient in the outputs.

    The gradient is zero on both sides of the clip.
    """
    share = weights / weights.sum()
    own = (outputs * targets).sum(1)
    value = -(share * own.clamp(epsilon, 1.0).log()).sum()
    inside = (own > epsilon) & (own < 1.0)
    slope = torch.where(inside, -share / own.clamp(min=epsilon), 0.0)
    return float(value), slope[:, None] * targets


def brier_loss(outputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[float, Tensor]:
    """Weighted mean of ``|f - y|^2`` and its gradient in the outputs."""
    share = weights / weights.sum()
    residual = outputs - targets
    return float((share[:, None] * residual * residual).sum()), 2.0 * share[:, None] * residual


def complexity_multiplier(weight: float | str, n: float) -> float:
    """The number tau behind a word: "4e" as printed in Eq. (12), "4e/n", "4e/sqrt(n)" or "1/n"."""
    words = {"4e": 4 * math.e, "4e/n": 4 * math.e / n, "4e/sqrt(n)": 4 * math.e / math.sqrt(n), "1/n": 1 / n}
    if isinstance(weight, str):
        if weight not in words:
            raise ValueError(
                f"The 'complexity_weight' parameter must be a number of at least 0, 'auto' or one of {list(words)}. "
                f"Got {weight!r} instead."
            )
        return words[weight]
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"The 'complexity_weight' parameter must be at least 0 and finite. Got {weight!r} instead.")
    return float(weight)
