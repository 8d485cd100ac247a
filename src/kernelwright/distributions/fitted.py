"""The link from raw outputs to the distribution of one target, fitted to left-out rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from kernelwright.distributions.predictive import (
    ContinuousPrediction,
    DiscretePrediction,
    Prediction,
    SmoothPart,
    TablePart,
    crps_grid,
    squared_integral,
)
from kernelwright.distributions.shape import ResidualShape
from kernelwright.distributions.target import TargetScale
from kernelwright.storage.saved import saved

__all__ = ["LARGEST_WEIGHT", "DistributionLink", "LeftOutTarget", "fit_distribution", "log_residuals", "residual_floor"]

JUDGED = 2000  # left-out rows that are enough to weigh the two parts
MANY = 1000  # left-out rows whose coverage says what that of new rows will be
NARROWED = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
# One hundredth of coverage counts as much as this share of a hundredth of the CRPS: for few rows, and for many.
MISCOVERED, MISCOVERED_OF_MANY = 0.25, 0.5
LARGEST_WEIGHT = 0.99  # of a table of thresholds, which has no tails: no target may have the density zero
WIDEST = 1.0  # the log of a scale that follows a trend, in deviations of the target
SMALLEST_WEIGHT = 0.02  # of a part that is worth its columns
# Of the weight with the least CRPS. The tails of that mixture are too broad, which makes up for what leave-one-out
# errors do not see, the learning of the kernel. From MANY rows on, that matters less, and smaller weights are tried.
SHARES_OF_BEST = (1.0, 0.75, 0.5, 0.25)


@saved("distribution-link")
@dataclass(frozen=True)
class DistributionLink:
    """The map from outputs and support of rows to distributions of one target.

    Parameters
    ----------
    scale : TargetScale
    shape : ResidualShape
        Shape of the residuals over their scale.
    direct : float
        Weight of the direct estimate.
    marginal : ndarray
        Distribution function of the target at its thresholds, over all rows.
    trust : float
        Weight of the model against the marginal distribution.
    narrowed : float
        Factor on the scale: beside a broad direct estimate, a narrower one has the least CRPS.
    trend : bool
        Whether the location follows a linear trend where there is no support. Its scale is then at least the marginal
        one. Otherwise the distribution is the marginal one there.
    """

    scale: TargetScale
    shape: ResidualShape
    direct: float
    marginal: np.ndarray
    trust: float = 1.0
    narrowed: float = 1.0
    trend: bool = False

    def __call__(
        self, location: np.ndarray, log_scale: np.ndarray, direct: np.ndarray | None, support: np.ndarray
    ) -> Prediction:
        """Return the distributions; without support they are the marginal one."""
        supported = np.clip(support, 0.0, 1.0)
        if self.trend:
            log_scale = _widened(log_scale, supported)
        near = self.trust * (np.ones_like(supported) if self.trend else supported)
        by_table = self.trust * supported * self.direct
        share = near - by_table
        table = (1.0 - near)[:, None] * self.marginal
        if self.direct > 0:
            assert direct is not None
            table = table + by_table[:, None] * self.scale.thresholds.distribution(direct)
        table = table / np.maximum(1.0 - share, 1e-12)[:, None]
        table[share >= 1.0] = self.marginal
        return self._mixture(self._smooth(location, log_scale), table, share)

    def _smooth(self, location: np.ndarray, log_scale: np.ndarray) -> SmoothPart:
        scale = self.scale
        spread = self.narrowed * np.exp(np.clip(log_scale, -50.0, 50.0))
        spread = np.maximum(spread, scale.least_scale(location))
        return SmoothPart(
            location * scale.unit + scale.centre,
            spread * scale.unit,
            self.shape,
            scale.target_map,
            scale.low,
            scale.high,
            scale.gaps,
            scale.thresholds.edge,
        )

    def _mixture(self, smooth: SmoothPart, table: np.ndarray, share: np.ndarray) -> Prediction:
        scale = self.scale
        if scale.values is None:
            knots = np.append(scale.thresholds.start, scale.thresholds.values)
            below = TablePart(knots, np.hstack([np.zeros((len(table), 1)), table]))
            return ContinuousPrediction(smooth, below, share, scale.thresholds.atoms, scale.thresholds.edge)
        between = 0.5 * (scale.values[:-1] + scale.values[1:])
        rounded = smooth.cdf(np.broadcast_to(between, (len(share), len(between))))
        below = share[:, None] * np.hstack([rounded, np.ones((len(share), 1))]) + (1.0 - share)[:, None] * table
        return DiscretePrediction(scale.values, below)


def _widened(log_scale: np.ndarray, supported: np.ndarray) -> np.ndarray:
    """Return scales that grow to the marginal one, which is one, as support falls to zero."""
    known = np.minimum(log_scale, WIDEST)
    return supported * known + (1.0 - supported) * np.maximum(known, 0.0)


@saved("left-out-target")
@dataclass(frozen=True)
class LeftOutTarget:
    """Targets and outputs of rows by embeddings that have not seen them."""

    y: np.ndarray
    weights: np.ndarray
    location: np.ndarray
    log_scale: np.ndarray
    direct: np.ndarray | None
    support: np.ndarray

    def some(self, size: int) -> LeftOutTarget:
        """Return at most ``size`` rows, evenly spaced."""
        chosen = np.linspace(0, len(self.y) - 1, min(size, len(self.y))).astype(int)
        return LeftOutTarget(
            self.y[chosen],
            self.weights[chosen],
            self.location[chosen],
            self.log_scale[chosen],
            None if self.direct is None else self.direct[chosen],
            self.support[chosen],
        )


def log_residuals(residuals: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return ``log(|r| + floor)``; the floor keeps zeros from ruling the mean."""
    return np.log(np.abs(residuals) + residual_floor(residuals, weights))


def residual_floor(residuals: np.ndarray, weights: np.ndarray) -> float:
    """Return half of a small quantile of ``|r|``, or a small part of its root mean square."""
    size = np.abs(residuals)
    floor = 0.5 * np.quantile(size, 0.05) if len(size) else 0.0
    return max(float(floor), 1e-3 * float(np.sqrt(np.average(size**2, weights=weights))), 1e-9)


def fit_distribution(
    scale: TargetScale,
    rows: LeftOutTarget,
    marginal: np.ndarray,
    direct: float | None,
    trust: float = 1.0,
    *,
    trend: bool = False,
) -> DistributionLink:
    """Fit the shape of the residuals, and the weight of the direct estimate unless it is given."""
    residuals = scale.encode(rows.y) - rows.location
    spread = np.maximum(np.exp(np.clip(rows.log_scale, -50.0, 50.0)), scale.least_scale(rows.location))
    shape = ResidualShape.fit(residuals / spread, rows.weights)
    link = DistributionLink(scale, shape, 0.0 if direct is None else direct, marginal, trust, trend=trend)
    if direct is not None or rows.direct is None:
        return link
    _, weight, narrowed = min((each for n in NARROWED for each in _stacked(link, rows, n)), key=itemgetter(0))
    return replace(link, direct=weight, narrowed=narrowed) if weight >= SMALLEST_WEIGHT else link


def _stacked(link: DistributionLink, rows: LeftOutTarget, narrowed: float) -> list[tuple[float, float, float]]:
    """Return the score, the weight of the direct estimate and ``narrowed``, for shares of the weight of least CRPS.

    The CRPS is quadratic in the weight.
    """
    link, many = replace(link, narrowed=narrowed), len(rows.y) >= MANY and link.scale.values is None
    rows = rows.some(JUDGED)
    smooth_score, direct_score, both_score = _quadratic(link, rows)
    curvature = smooth_score + direct_score - 2.0 * both_score
    # With all weight on the direct estimate, scales beside it would differ by rounding only.
    largest = 1.0 if link.scale.values is not None else LARGEST_WEIGHT
    best = min(max((smooth_score - both_score) / curvature, 0.0), largest) if curvature > 0 else 0.0
    found = []
    for w in best * np.array(SHARES_OF_BEST if many else SHARES_OF_BEST[:1]):
        value = w * w * direct_score + (1 - w) ** 2 * smooth_score + 2 * w * (1 - w) * both_score
        missed = _miscoverage(replace(link, direct=float(w)), rows)
        price = 1.0 + (MISCOVERED_OF_MANY if many else MISCOVERED) * missed
        found.append((value * price, float(w), narrowed))
    return found


def _quadratic(link: DistributionLink, rows: LeftOutTarget) -> tuple[float, float, float]:
    """Return the CRPS of the smooth part, of the direct estimate, and their mixed term."""
    smooth, table, scale = link._smooth(rows.location, rows.log_scale), link.scale.thresholds, link.scale
    assert rows.direct is not None
    direct = table.distribution(rows.direct)
    if scale.values is None:
        both = link._mixture(smooth, direct, np.full(len(rows.y), 0.5))
        assert isinstance(both, ContinuousPrediction)
        t = crps_grid(both, rows.y)
        first, second = both.smooth.cdf(t), both.table.cdf(t)
        a, b = squared_integral(t, first, rows.y), squared_integral(t, second, rows.y)
        c = squared_integral(t, first, rows.y, second)
    else:
        parts = [link._mixture(smooth, direct, np.full(len(rows.y), share)) for share in (1.0, 0.0)]
        assert all(isinstance(part, DiscretePrediction) for part in parts)
        after, widths = scale.values >= rows.y[:, None], np.append(np.diff(scale.values), 0.0)
        first, second = (part.below - after for part in parts)  # type: ignore[attr-defined]
        a, b, c = (first**2) @ widths, (second**2) @ widths, (first * second) @ widths
    return float(rows.weights @ a), float(rows.weights @ b), float(rows.weights @ c)


def _miscoverage(link: DistributionLink, rows: LeftOutTarget) -> float:
    """Return by how much the coverage of central 90 % intervals differs from that, if targets are continuous."""
    if link.scale.values is not None:
        return 0.0
    found = link(rows.location, rows.log_scale, rows.direct, rows.support)
    assert isinstance(found, ContinuousPrediction)
    return abs(float(np.average(found.share_inside(rows.y, 0.9), weights=rows.weights)) - 0.9)
