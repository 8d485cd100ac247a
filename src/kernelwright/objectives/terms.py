"""The inputs and results of an objective."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kernelwright.kernels import Kernel
from kernelwright.numerics.products import Outer
from kernelwright.objectives.losses import Loss
from kernelwright.parameters import Positive

__all__ = ["DualTerms", "Hyperparameters", "ObjectiveValue", "PrimalTerms", "RidgeSetting", "Setting"]

# The centre of the prior on n lambda, and its scale on a log scale. A handful of rows can look learnable by luck. Far
# from the prior the pull fades, so that clean data, which need a hundredth or less, are not held back.
CAUTIOUS_NOISE, CAUTION_SCALE = 5.0, 2.0


class Hyperparameters(nn.Module):
    """All that is learned: the kernel's parameters and the ridge."""

    ridge = Positive(1e-10, 1e4, vectors=False, firm=True)  # a smaller one is lost in rounding errors
    log_ridge: nn.Parameter

    def __init__(self, kernel: Kernel, ridge: float) -> None:
        super().__init__()
        self.kernel, self.ridge = kernel, ridge

    def penalty(self, n: float) -> Tensor:
        """Return the kernel's penalty minus the log density of a Cauchy-like prior on ``n lambda``."""
        away = (self.log_ridge + math.log(n / CAUTIOUS_NOISE)) / CAUTION_SCALE
        return self.kernel.penalty() + torch.log1p(0.5 * away**2)


@dataclass(frozen=True)
class Setting:
    """The numbers at which an objective is evaluated, besides a kernel matrix or features."""

    ridge: float
    tau: float
    sup: float  # alpha^2 = sup k(x, x)
    loss: Loss
    precision: str = "double"  # "single", or "auto": single, without a warning if it fails

    def complexity_and_slope(self, squared_norm: float) -> tuple[float, float]:
        """Return ``r = sqrt(sup * t)`` and ``c = tau * dr/dt``, for the squared norm t of an embedding."""
        r = math.sqrt(self.sup * max(squared_norm, 0.0))
        return r, self.tau * self.sup / (2.0 * r) if r > 0 else 0.0

    def slope_in_sup(self, complexity: float) -> float:
        """Return ``tau * dr/dsup``."""
        return self.tau * complexity / (2.0 * self.sup) if self.sup > 0 else 0.0


@dataclass(frozen=True)
class RidgeSetting(Setting):
    """A setting whose complexity is ``ridge * t`` for the squared norm t, the term of ridge regression itself."""

    def complexity_and_slope(self, squared_norm: float) -> tuple[float, float]:
        """Return ``ridge * t`` and ``tau * ridge``."""
        return self.ridge * max(squared_norm, 0.0), self.tau * self.ridge

    def slope_in_sup(self, complexity: float) -> float:
        """Return zero: the term has no alpha."""
        return 0.0


@dataclass(frozen=True)
class DualTerms:
    """Loss and complexity at a kernel matrix, with the gradient of ``loss + tau * complexity``."""

    loss: float
    complexity: float
    d_kernel: Tensor | Outer
    d_ridge: float
    d_sup: float  # derivative in alpha^2 = sup k(x, x)


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
    """An objective at given hyperparameters; gradients are in the raw parameters."""

    value: float
    loss: float
    complexity: float
    gradients: dict[str, Tensor]
