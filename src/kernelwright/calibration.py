"""Raw outputs -> probabilities.

Each map keeps the order of the classes (only "clip" calls all negative outputs equal). Those with numbers of their
own are fitted on leave-one-out outputs, against targets smoothed by one row's worth, without which a separable set
would ask for infinite confidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from kernelwright.embedding import clip_normalise

__all__ = ["ClipMap", "PowerMap", "ProbabilityMap", "SoftmaxMap", "expected_calibration_error", "fit_map"]


class ProbabilityMap:
    """A map from rows of raw outputs to rows of probabilities."""

    def __call__(self, outputs: Tensor) -> Tensor:
        """Probabilities; each row has sum one."""
        return self.log(outputs).exp()

    def log(self, outputs: Tensor) -> Tensor:
        """Logarithms of the probabilities, without underflow where there is a formula for them."""
        raise NotImplementedError


@dataclass(frozen=True)
class ClipMap(ProbabilityMap):
    """Clip and normalise, Eq. (6) of [Hsu2018]_. Nothing to fit; under-confident."""

    def log(self, outputs: Tensor) -> Tensor:  # noqa: D102
        return clip_normalise(outputs).log()


@dataclass(frozen=True)
class SoftmaxMap(ProbabilityMap):
    """``p_k ~ exp(sharpness F_k)``."""

    sharpness: float

    def log(self, outputs: Tensor) -> Tensor:  # noqa: D102
        return torch.log_softmax(self.sharpness * outputs, 1)


@dataclass(frozen=True)
class PowerMap(ProbabilityMap):
    """``p_k ~ h(F_k)^sharpness``, ``h(F) = (F + sqrt(F^2 + 4 softness^2)) / 2``: a soft positive part."""

    sharpness: float
    softness: float

    def log(self, outputs: Tensor) -> Tensor:  # noqa: D102
        return torch.log_softmax(self.sharpness * _log_positive_part(outputs, self.softness)[0], 1)


def _log_positive_part(F: Tensor, softness: float) -> tuple[Tensor, Tensor]:
    """``log h(F)`` and its derivative in log softness, without cancellation where F is negative."""
    root = torch.hypot(F, torch.full_like(F, 2.0 * softness))
    h = torch.where(F > 0, 0.5 * (F + root), 2.0 * softness**2 / (root - F))
    return h.log(), 2.0 * softness**2 / (root * h)


def fit_map(name: str, outputs: Tensor, targets: Tensor, weights: Tensor) -> ProbabilityMap:
    """Fit the map called "power", "softmax" or "clip" to outputs at rows with one-hot targets."""
    if name not in ("power", "softmax", "clip"):
        raise ValueError(f"A probability map must be 'power', 'softmax' or 'clip'. Got {name!r} instead.")
    if name == "clip":
        return ClipMap()
    n, m = float(weights.sum()), targets.shape[1]
    smoothed = (1.0 - 1.0 / (n + 1.0)) * targets + 1.0 / ((n + 1.0) * m)
    share = (weights / weights.sum())[:, None]

    def cross_entropy(logits: Tensor) -> tuple[float, Tensor]:
        log_p = torch.log_softmax(logits, 1)
        return -float((share * smoothed * log_p).sum()), share * (log_p.exp() - smoothed)

    def power(theta: np.ndarray) -> tuple[float, np.ndarray]:
        sharpness, softness = np.exp(theta)
        log_h, d_softness = _log_positive_part(outputs, softness)
        value, slope = cross_entropy(sharpness * log_h)
        return value, sharpness * np.array([float((slope * log_h).sum()), float((slope * d_softness).sum())])

    def softmax(theta: np.ndarray) -> tuple[float, np.ndarray]:
        sharpness = float(np.exp(theta[0]))
        value, slope = cross_entropy(sharpness * outputs)
        return value, np.array([sharpness * float((slope * outputs).sum())])

    if name == "softmax":
        found = minimize(softmax, np.log([5.0]), jac=True, method="L-BFGS-B", bounds=[(-5.0, 7.0)])
        return SoftmaxMap(float(np.exp(found.x[0])))
    start, bounds = np.log([1.5, 0.05]), [(-3.0, 4.0), (-9.0, 1.0)]
    found = minimize(power, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return PowerMap(*(float(v) for v in np.exp(found.x)))


def expected_calibration_error(probabilities: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> float:
    """Mean gap between confidence and accuracy over equal-width bins of the confidence in the predicted class.

    ``labels`` are integers that number the columns of ``probabilities``.
    """
    confidence = probabilities.max(1)
    correct = probabilities.argmax(1) == labels
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, confidence - correct, n_bins)
    return float(np.abs(gaps).sum() / len(labels))
