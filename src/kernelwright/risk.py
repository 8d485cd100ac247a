"""Losses, the complexity of an embedding, and the risk bound made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["RiskBound", "brier_loss", "clipped_log_loss", "complexity_multiplier", "rademacher_bound"]

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


def brier_loss(outputs: Tensor, targets: Tensor, weights: Tensor, epsilon: float = 0.0) -> tuple[float, Tensor]:
    """Weighted mean of ``|f - y|^2`` and its gradient in the outputs (``epsilon`` is not used)."""
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


@dataclass(frozen=True)
class RiskBound:
    """An upper bound on an expected loss, with its parts and the conditions under which it holds."""

    method: str
    parts: Mapping[str, float]
    confidence: float
    ceiling: float  # the bounded loss is never larger than this
    conditions: str

    @property
    def total(self) -> float:
        """The bound."""
        return float(sum(self.parts.values()))

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing: it is at least as large as the loss can ever be."""
        return self.total >= self.ceiling

    def __str__(self) -> str:
        width = max(len(name) for name in (*self.parts, "total"))
        rows = [f"{name:<{width}}  {value:10.4f}" for name, value in (*self.parts.items(), ("total", self.total))]
        verdict = f"vacuous: the loss itself is at most {self.ceiling:g}" if self.vacuous else "not vacuous"
        head = f"Risk bound ({self.method}), holds with probability {self.confidence:g}"
        return "\n".join([head, *rows, verdict, self.conditions])


def rademacher_bound(loss: float, complexity: float, n: float, beta: float, *, empirical: bool = False) -> RiskBound:
    """Theorem 4, Eq. (11) of [Hsu2018]_: data fit, ``4e`` times the complexity, and a term of the sample size."""
    if not 0 < beta < 1:
        raise ValueError(f"The 'beta' parameter must lie between 0 and 1. Got {beta!r} instead.")
    conditions = (
        "Bounds the expected cross entropy clipped at 1/e (at most 1) on new rows drawn like the training rows, "
        "as stated by Theorem 4 of [Hsu2018]."
    )
    if empirical:
        conditions += " The kernel is unbounded: its sup k(x, x) was taken over the training rows, so the bound "
        conditions += "speaks only of inputs that are no larger."
    return RiskBound(
        method="rademacher",
        parts={
            "training loss": loss,
            "4e x complexity": 4 * math.e * complexity,
            "sample size": math.sqrt(8 / n * math.log(2 / beta)),
        },
        confidence=1 - beta,
        ceiling=1.0,
        conditions=conditions,
    )
