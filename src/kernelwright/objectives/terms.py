"""What an objective is evaluated at, and what comes out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kernelwright.kernels import Kernel
from kernelwright.numerics.products import Outer
from kernelwright.objectives.losses import Loss
from kernelwright.parameters import Positive

__all__ = ["DualTerms", "Hyperparameters", "ObjectiveValue", "PrimalTerms", "Setting"]

USUAL_NOISE = 0.1  # n lambda where learning starts
# And where the prior on it lies, with its scale on a log scale. A handful of rows can look learnable by luck; far from
# the prior the pull fades, so that clean data, which want a hundredth or less, are not held back.
CAUTIOUS_NOISE, CAUTION_SCALE = 5.0, 2.0


class Hyperparameters(nn.Module):
    """All that is learned: a kernel's numbers and the ridge."""

    ridge = Positive(1e-10, 1e4, vectors=False, firm=True)  # a smaller one cannot be told from rounding
    log_ridge: nn.Parameter

    def __init__(self, kernel: Kernel, ridge: float) -> None:
        super().__init__()
        self.kernel, self.ridge = kernel, ridge

    def penalty(self, n: float) -> Tensor:
        """A shrinkage term: the kernel's own, and minus the log density of a Cauchy-like prior on ``n lambda``."""
        away = (self.log_ridge + math.log(n / CAUTIOUS_NOISE)) / CAUTION_SCALE
        return self.kernel.penalty() + torch.log1p(0.5 * away**2)


@dataclass(frozen=True)
class Setting:
    """The numbers at which an objective is evaluated, besides a kernel matrix or features."""

    ridge: float
    tau: float
    sup: float  # alpha^2 = sup k(x, x)
    loss: Loss
    precision: str = "double"  # "single", or "auto": single, without a warning where it does not suffice

    def complexity_and_slope(self, squared_norm: float) -> tuple[float, float]:
        """Return ``r = sqrt(sup * t)`` and ``c = tau * dr/dt``, for the squared norm t of an embedding."""
        r = math.sqrt(self.sup * max(squared_norm, 0.0))
        return r, self.tau * self.sup / (2.0 * r) if r > 0 else 0.0

    def slope_in_sup(self, complexity: float) -> float:
        """Return ``tau * dr/dsup``."""
        return self.tau * complexity / (2.0 * self.sup) if self.sup > 0 else 0.0


@dataclass(frozen=True)
class DualTerms:
    """Loss and complexity at a kernel matrix, with the gradient of ``loss + tau * complexity``."""

    loss: float
    complexity: float
    d_kernel: Tensor | Outer
    d_ridge: float
    d_sup: float  # in alpha^2 = sup k(x, x)


@dataclass(frozen=True)
class PrimalTerms:
    """Loss and complexity at features Z, with the gradient of ``loss + tau * complexity``; terms of splits add up."""

    loss: float
    complexity: float
    d_features: Tensor
    d_ridge: float
    d_sup: float

    def __add__(self, other: PrimalTerms) -> PrimalTerms:
        return PrimalTerms(
            self.loss + other.loss,
            self.complexity + other.complexity,
            self.d_features + other.d_features,
            self.d_ridge + other.d_ridge,
            self.d_sup + other.d_sup,
        )


@dataclass(frozen=True)
class ObjectiveValue:
    """An objective at one setting of the hyperparameters; gradients are in the raw parameters."""

    value: float
    loss: float
    complexity: float
    gradients: dict[str, Tensor]
