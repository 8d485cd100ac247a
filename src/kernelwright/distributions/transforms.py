"""Increasing maps of a target: a model learns the mapped target, and its distribution is mapped back exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from kernelwright.storage.saved import saved

SMALLEST = 1e-300  # distance from a border below which a slope stays as it is: no density is infinite
NEAR = 1e-9  # the same, as a share of the known range
LARGEST = float(np.finfo(np.float64).max)
MOST = 709.0  # exponents that can be computed

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


class StraightAbove(TargetMap):
    """A map of positive targets that continues as a straight line from ``top`` on, which lies above all known targets.

    The inverse of a logarithm would turn a wide distribution, or a location far beyond all targets, into numbers of any
    size: the exponential of a heavy-tailed variable has no mean.
    """

    low: float
    shift: float
    top: float

    def _curve(self, away: np.ndarray) -> np.ndarray:
        """Return the map of shifted distances from the lower end."""
        raise NotImplementedError

    def _uncurve(self, u: np.ndarray) -> np.ndarray:
        """Return the shifted distance with this image."""
        raise NotImplementedError

    def _log_slope(self, away: np.ndarray) -> np.ndarray:
        """Return the logarithm of the derivative."""
        raise NotImplementedError

    @property
    def _end(self) -> np.ndarray:
        return np.asarray(self.top - self.low + self.shift)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        curved = np.maximum(np.minimum(y, self.top) - self.low, 0.0) + self.shift
        with np.errstate(divide="ignore"):
            return self._curve(curved) + np.maximum(y - self.top, 0.0) * np.exp(self._log_slope(self._end))

    def inverse(self, u: np.ndarray) -> np.ndarray:
        last = self._curve(self._end)
        with np.errstate(over="ignore"):
            above = np.maximum(u - last, 0.0) * np.exp(np.minimum(-self._log_slope(self._end), MOST))
            return np.maximum(self._uncurve(np.minimum(u, last)) - self.shift, 0.0) + self.low + above

    def log_slope(self, y: np.ndarray) -> np.ndarray:
        least = max(NEAR * (self.top - self.low), SMALLEST) if self.top < LARGEST else SMALLEST
        return self._log_slope(np.maximum(np.minimum(y, self.top) - self.low, least) + self.shift)


@saved("log-target-map")
@dataclass(frozen=True)
class LogMap(StraightAbove):
    """``log(y - low + shift)`` up to ``top``: for positive targets whose errors grow with their size."""

    low: float = 0.0
    shift: float = 0.0  # positive if the target can be equal to ``low``
    top: float = LARGEST

    word = "log"

    def _curve(self, away: np.ndarray) -> np.ndarray:
        return np.log(away)

    def _uncurve(self, u: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(u, MOST))

    def _log_slope(self, away: np.ndarray) -> np.ndarray:
        return -np.log(away)


@saved("root-target-map")
@dataclass(frozen=True)
class RootMap(StraightAbove):
    """``sqrt(y - low + shift)`` up to ``top``, between the target itself and its logarithm."""

    low: float = 0.0
    shift: float = 0.0  # positive if the target can be equal to ``low``, where the slope would be infinite
    top: float = LARGEST

    word = "root"

    def _curve(self, away: np.ndarray) -> np.ndarray:
        return np.sqrt(away)

    def _uncurve(self, u: np.ndarray) -> np.ndarray:
        return np.square(np.maximum(u, 0.0))

    def _log_slope(self, away: np.ndarray) -> np.ndarray:
        return -np.log(2.0) - 0.5 * np.log(away)


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
