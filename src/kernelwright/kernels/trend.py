"""A linear trend beside a bounded kernel."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from kernelwright.kernels.base import Gradients, Kernel, Pullback, prefixed
from kernelwright.parameters import Positive
from kernelwright.storage.saved import saved

__all__ = ["WithTrend", "unsquashed"]

FARTHEST = 1000.0  # deviations that can be told apart after the squash; training values lie within sqrt(n)
FLAT_FROM = 1000.0  # robust deviations: beyond, a trend stays as it is, so that one wild value cannot set its slope
NORMAL_RANGE = 1.349  # the interquartile range of a normal distribution of deviation one
ENOUGH_ROWS = 20_000  # for quartiles


@saved("trend-kernel", fields="kernel", parameters="log_amplitude", buffers="centre width")
class WithTrend(Kernel):
    """``k(x, z) = kernel(x, z) + amplitude <b(x), b(z)> / d``, with b the d columns on their own scale.

    Points are the views of :class:`~kernelwright.inputs.scaling.TableViews`; b undoes their squash and standardises by
    median and interquartile range, so one huge value does not set the scale; it stops at 1000 of these units. An
    embedding in this kernel is that of ``kernel`` plus a linear trend, both solved at once.
    """

    amplitude = Positive(1e-6, 1e4, vectors=False)
    log_amplitude: nn.Parameter
    centre: Tensor
    width: Tensor

    def __init__(self, kernel: Kernel, amplitude: float = 1.0) -> None:
        super().__init__()
        self.kernel, self.amplitude = kernel, amplitude
        self.register_buffer("centre", torch.zeros((), dtype=torch.float64))
        self.register_buffer("width", torch.ones((), dtype=torch.float64))

    @property
    def local(self) -> Kernel:
        return self.kernel

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        super().prepare_(X, weights)
        if self.centre.ndim == 0:
            some = torch.arange(0, len(X), -(-len(X) // ENOUGH_ROWS))
            weights = X.new_ones(len(X)) if weights is None else weights
            self.centre, self.width = _middle_and_width(unsquashed(X[some]), weights[some])

    def lines(self, X: Tensor) -> Tensor:
        """Return the columns b on their own scale, divided by the root of their number."""
        values = ((unsquashed(X) - self.centre) / self.width).clamp(-FLAT_FROM, FLAT_FROM)
        return values / math.sqrt(values.shape[1])

    def trend(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        """Return the second term of the kernel."""
        B = self.lines(X)
        return self.amplitude * (B @ (B if Z is None else self.lines(Z)).T)

    def usual_diag(self, X: Tensor) -> Tensor:
        return self.kernel.usual_diag(X) + self.amplitude  # b is standardised

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return self.kernel.forward(X, Z) + self.trend(X, Z)

    def completed_(self, K: Tensor, X: Tensor, Z: Tensor | None = None) -> Tensor:
        B = self.lines(X)
        with torch.no_grad():
            return K.addmm_(B, (B if Z is None else self.lines(Z)).T, alpha=float(self.amplitude))

    def _diag(self, X: Tensor) -> Tensor:
        return self.kernel._diag(X) + self.amplitude * self.lines(X).square().sum(1)

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        K, back = self.kernel.vjp(X)
        B, amplitude = self.lines(X), self.amplitude.detach()

        def pullback(dK: Tensor) -> Gradients:
            own = {"log_amplitude": amplitude * ((dK @ B) * B).sum()} if self.log_amplitude.requires_grad else {}
            return own | prefixed("kernel", back(dK))

        return K.addmm(B, B.T, alpha=float(amplitude)), pullback


def unsquashed(X: Tensor) -> Tensor:
    """Return standardised values u from the first view ``z = u / sqrt(1 + (u/3)^2)``."""
    squashed = X[:, : X.shape[1] // 2] / 3.0
    left = (1.0 - squashed.square()).clamp(min=9.0 / (9.0 + FARTHEST**2))
    return 3.0 * squashed / left.sqrt()


def _middle_and_width(values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the median of each column, and its interquartile range in units of a normal distribution's deviation."""
    low, middle, high = (_quantile(values, weights, q) for q in (0.25, 0.5, 0.75))
    mean = (weights @ values) / weights.sum()
    spread = ((weights @ (values - mean).square()) / weights.sum()).sqrt()
    width = (high - low) / NORMAL_RANGE
    width = torch.where(width > 0, width, spread)  # at least half of the values are equal
    return middle, torch.where(width > 0, width, 1.0)


def _quantile(values: Tensor, weights: Tensor, q: float) -> Tensor:
    """Return the smallest value of each column with at least the share q of the weight up to it."""
    ordered, order = values.sort(0)
    below = weights[order].cumsum(0)
    place = (below < q * (1.0 - 1e-12) * weights.sum()).sum(0)
    return ordered.gather(0, place[None])[0]
