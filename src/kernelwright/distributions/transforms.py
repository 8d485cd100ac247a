"""Increasing maps of a target: a model learns the mapped target, and its distribution is mapped back exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from kernelwright.storage.saved import saved

SMALLEST = 1e-300  # distance from a border below which a slope stays as it is: no density is infinite

__all__ = ["IdentityMap", "LogMap", "LogitMap", "RootMap", "TargetMap"]


class TargetMap:
    """A smooth increasing map from the range of a target to the line."""

    word: str

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Return the mapped target."""
        raise NotImplementedError

    def inverse(self, u: np.ndarray) -> np.ndarray:
        """Return the target with this image."""
        raise NotImplementedError

    def log_slope(self, y: np.ndarray) -> np.ndarray:
        """Return the logarithm of the derivative, which turns densities of the image into those of the target."""
        raise NotImplementedError


@saved("identity-target-map")
@dataclass(frozen=True)
class IdentityMap(TargetMap):
    """The target itself."""

    word = "identity"

    def __call__(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        return y

    def inverse(self, u: np.ndarray) -> np.ndarray:  # noqa: D102
        return u

    def log_slope(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.zeros_like(y)


@saved("log-target-map")
@dataclass(frozen=True)
class LogMap(TargetMap):
    """``log(y - low + shift)``: for positive targets whose errors grow with their size."""

    low: float = 0.0
    shift: float = 0.0  # positive if the target can be equal to ``low``

    word = "log"

    def __call__(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(y - self.low, 0.0) + self.shift)

    def inverse(self, u: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.maximum(np.exp(np.minimum(u, 700.0)) - self.shift, 0.0) + self.low

    def log_slope(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        return -np.log(np.maximum(y - self.low, SMALLEST) + self.shift)


@saved("root-target-map")
@dataclass(frozen=True)
class RootMap(TargetMap):
    """``sqrt(y - low + shift)``, between the target itself and its logarithm."""

    low: float = 0.0
    shift: float = 0.0  # positive if the target can be equal to ``low``, where the slope would be infinite

    word = "root"

    def __call__(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.sqrt(np.maximum(y - self.low, 0.0) + self.shift)

    def inverse(self, u: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.maximum(np.square(np.maximum(u, 0.0)) - self.shift, 0.0) + self.low

    def log_slope(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        return -np.log(2.0) - 0.5 * np.log(np.maximum(y - self.low, SMALLEST) + self.shift)


@saved("logit-target-map")
@dataclass(frozen=True)
class LogitMap(TargetMap):
    """The log odds of the place between two bounds; ``margin`` keeps the bounds themselves finite."""

    low: float
    high: float
    margin: float  # as a share of the range

    word = "logit"

    def _share(self, y: np.ndarray) -> np.ndarray:
        place = np.clip((y - self.low) / (self.high - self.low), 0.0, 1.0)
        return (place + self.margin) / (1.0 + 2.0 * self.margin)

    def __call__(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        share = self._share(y)
        with np.errstate(divide="ignore"):
            return np.log(share) - np.log1p(-share)

    def inverse(self, u: np.ndarray) -> np.ndarray:  # noqa: D102
        place = expit(u) * (1.0 + 2.0 * self.margin) - self.margin
        return self.low + np.clip(place, 0.0, 1.0) * (self.high - self.low)

    def log_slope(self, y: np.ndarray) -> np.ndarray:  # noqa: D102
        share, width = self._share(y), (self.high - self.low) * (1.0 + 2.0 * self.margin)
        return -np.log(width) - np.log(np.maximum(share, SMALLEST)) - np.log(np.maximum(1.0 - share, SMALLEST))
