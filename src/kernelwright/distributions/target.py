"""What is known about one target before a fit: its values, range, map and thresholds."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np

from kernelwright.distributions.options import Distribution
from kernelwright.distributions.thresholds import Thresholds
from kernelwright.distributions.transforms import IdentityMap, LogitMap, LogMap, RootMap, StraightAbove, TargetMap
from kernelwright.storage.saved import saved

__all__ = ["TargetScale", "describe", "learned_by"]

MOST_VALUES, ROWS_OF_A_VALUE = 100, 10  # of a target that "auto" takes as discrete
SMALLEST = 1e-140  # span of a target whose squares can still be computed
SKEWED = 1.0  # skewness from which on other maps than the identity are tried


@saved("target-scale")
@dataclass(frozen=True)
class TargetScale:
    """The scale on which one target is learned, and the values that it can have.

    Parameters
    ----------
    target_map : TargetMap
    centre, unit : float
        Mean and standard deviation of the mapped target.
    low, high : float
        Range of the target, perhaps infinite.
    resolution : float
        Spacing of the lattice that all targets lie on; zero if there is none.
    values : ndarray or None
        The possible values of a discrete target.
    thresholds : Thresholds
    gaps : tuple of float
        Half of the distance between an end of the range and the next target, if targets lie at this end; else zero.
    """

    target_map: TargetMap
    centre: float
    unit: float
    low: float
    high: float
    resolution: float
    values: np.ndarray | None
    thresholds: Thresholds
    gaps: tuple[float, float] = (0.0, 0.0)

    @property
    def constant(self) -> bool:
        """Whether there is only one value."""
        return self.values is not None and len(self.values) == 1

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Return mapped targets with mean zero and deviation one."""
        return (self.target_map(y) - self.centre) / self.unit

    def decode(self, targets: np.ndarray) -> np.ndarray:
        """Return the targets with these standardised values; discrete ones exactly."""
        y = self.target_map.inverse(targets * self.unit + self.centre)
        if self.values is None:
            return y
        between = 0.5 * (self.values[:-1] + self.values[1:])
        return self.values[np.searchsorted(between, y)]

    def mapped(self, target_map: TargetMap, y: np.ndarray, weights: np.ndarray) -> TargetScale:
        """Return the scale of another map."""
        centre, unit = _moments(target_map(y), weights)
        return replace(self, target_map=target_map, centre=centre, unit=unit)

    def least_scale(self, location: np.ndarray) -> np.ndarray:
        """Return the scale below which a density would be narrower than the resolution, on the learned scale."""
        if self.resolution == 0:
            return np.full(len(location), 1e-9)
        y = self.target_map.inverse(location * self.unit + self.centre)
        with np.errstate(over="ignore"):
            slope = np.exp(np.minimum(self.target_map.log_slope(np.clip(y, self.low, self.high)), 50.0))
        return np.maximum(self.resolution / np.sqrt(12.0) * slope / self.unit, 1e-9)


def describe(y: np.ndarray, weights: np.ndarray, how: Distribution) -> tuple[TargetScale, list[TargetMap]]:
    """Return the scale of one target with the identity as its map, and the maps that come into question."""
    distinct = np.unique(y)
    if 0 < distinct[-1] - distinct[0] < SMALLEST:
        raise ValueError(f"The targets span less than {SMALLEST:g}. Multiply the target by a constant first.")
    low, high = _range(y, weights, how)
    discrete = (
        how.discrete if how.discrete != "auto" else len(distinct) <= max(1, min(MOST_VALUES, len(y) // ROWS_OF_A_VALUE))
    )
    resolution = lattice(distinct)
    values = _possible(distinct, resolution) if discrete else None
    thresholds = (
        Thresholds.exact(values)
        if values is not None
        else Thresholds.grid(y, weights, how.n_thresholds, resolution, (low, high))
    )
    identity = IdentityMap()
    gaps = (0.0, 0.0) if values is not None else (_gap(distinct - low), _gap(high - distinct))
    scale = TargetScale(identity, *_moments(y, weights), low, high, resolution, values, thresholds, gaps)
    return scale, _maps(y, weights, scale, how.transform)


def learned_by(
    target_map: TargetMap, scale: TargetScale, y: np.ndarray, weights: np.ndarray, how: Distribution
) -> TargetScale:
    """Return the scale of a map; what is learned by a root or a logarithm never falls below its lower end."""
    if isinstance(target_map, StraightAbove) and target_map.low > scale.low:
        limited = copy.copy(how).set_params(low=target_map.low)
        scale, _ = describe(y, weights, limited)
    return scale.mapped(target_map, y, weights)


def _moments(u: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    centre = float(np.average(u, weights=weights))
    unit = float(np.sqrt(np.average(np.square(u - centre), weights=weights)))
    return centre, unit if unit > 0 else 1.0


def _range(y: np.ndarray, weights: np.ndarray, how: Distribution) -> tuple[float, float]:
    if how.low is not None or how.high is not None:
        low = -np.inf if how.low is None else float(how.low)
        high = np.inf if how.high is None else float(how.high)
        if not low <= y.min() <= y.max() <= high:
            raise ValueError(
                f"The targets lie between {y.min():g} and {y.max():g}, outside the range from {low:g} to {high:g} that "
                "'distribution' states. Correct low and high, or leave out these rows."
            )
        return low, high
    mean, spread = _moments(y, weights)
    return (0.0 if y.min() >= 0 and spread > 0.5 * mean else -np.inf), np.inf


def _gap(distances: np.ndarray) -> float:
    """Return half the least distance of other targets from the end of a range at which targets lie; else zero."""
    return 0.5 * float(distances[distances > 0].min()) if distances.min() == 0 and distances.max() > 0 else 0.0


def lattice(distinct: np.ndarray) -> float:
    """Return the spacing of the lattice that sorted distinct values lie on, or zero.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.distributions.target import lattice
    >>> lattice(np.array([0.5, 1.0, 3.0])), lattice(np.array([0.1, 0.2, 0.25478]))
    (0.5, 0.0)
    """
    if len(distinct) < 2:
        return 0.0
    gap = float(np.diff(distinct).min())
    steps = (distinct - distinct[0]) / gap
    on_it = np.ptp(distinct) < 1e7 * gap and np.abs(steps - np.round(steps)).max() < 1e-3
    return gap if on_it else 0.0


def _possible(distinct: np.ndarray, resolution: float) -> np.ndarray:
    """Return the observed values, with whole numbers between them."""
    whole = resolution >= 1 and np.all(distinct == np.round(distinct)) and np.ptp(distinct) <= MOST_VALUES
    return np.arange(distinct[0], distinct[-1] + 1.0) if whole and resolution == 1 else distinct


def _maps(y: np.ndarray, weights: np.ndarray, scale: TargetScale, transform: str) -> list[TargetMap]:
    if transform == "identity" or np.ptp(y) == 0:
        return [IdentityMap()]
    low = scale.low if np.isfinite(scale.low) else 0.0
    positive = y.min() >= low
    if transform in ("root", "log") and not positive:
        raise ValueError(
            f"transform={transform!r} needs targets of at least low={low:g}; the smallest is {y.min():g}. Set "
            "'low', or use transform='auto'."
        )
    bounded = np.isfinite(scale.low) and np.isfinite(scale.high)
    if transform == "logit" and not bounded:
        raise ValueError("transform='logit' needs both bounds of the target: set 'low' and 'high'.")
    made: dict[str, TargetMap] = {}
    if positive:
        shift = _shift(y - low)
        made = {"root": _up_to_top(RootMap(low, shift), y, weights), "log": _up_to_top(LogMap(low, shift), y, weights)}
    if bounded:
        inside = np.minimum(y - scale.low, scale.high - y) / (scale.high - scale.low)
        made["logit"] = LogitMap(scale.low, scale.high, _shift(inside))
    if transform != "auto":
        return [made[transform]]
    if scale.values is not None:
        return [IdentityMap()]
    skewness = float(np.average(((y - scale.centre) / scale.unit) ** 3, weights=weights))
    tried = [made[name] for name in ("root", "log") if positive and skewness > SKEWED and name in made]
    return [IdentityMap(), *tried, *([made["logit"]] if bounded else [])]


def _up_to_top(curve: RootMap | LogMap, y: np.ndarray, weights: np.ndarray) -> TargetMap:
    """Return the map that becomes straight one deviation above the largest target, both mapped."""
    mapped = curve(y)
    top = curve.inverse(np.array([mapped.max() + _moments(mapped, weights)[1]]))
    return replace(curve, top=float(top[0]))


def _shift(distances: np.ndarray) -> float:
    """Return what keeps targets on the border of their range finite: half the least distance of the others from it."""
    if distances.min() > 0:
        return 0.0
    inside = distances[distances > 0]
    return 0.5 * float(inside.min()) if len(inside) else 0.5
