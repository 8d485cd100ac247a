"""Thresholds of a target, whose weighted indicators turn the squared loss into the CRPS.

``CRPS(F, y) = integral (F(t) - 1{y <= t})^2 dt``. If F and the indicator are constant between neighbouring thresholds
``t_1 < ... < t_m``, this is ``sum_k (t_{k+1} - t_k) (F(t_k) - 1{y <= t_k})^2``: the squared loss of the columns
``sqrt(t_{k+1} - t_k) 1{y <= t_k}`` (``docs/theory/numbers.md``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelwright.distributions.shape import weighted_quantile
from kernelwright.storage.saved import saved

__all__ = ["Thresholds"]

ATOM = 0.02  # share of rows with one value, from which on the value gets a step of its own


@saved("thresholds")
@dataclass(frozen=True)
class Thresholds:
    """Increasing values of a target, and the weight of the indicator of each.

    Parameters
    ----------
    values : ndarray of shape (m + 1,)
        The last one is never exceeded, so it has no column.
    start : float
        Value below which there is no mass.
    atoms : tuple of float
        Thresholds that have mass, which their step stands for.
    edge : float
        Width of these steps.
    """

    values: np.ndarray
    start: float
    atoms: tuple[float, ...] = ()
    edge: float = 0.0

    @classmethod
    def exact(cls, y: np.ndarray) -> Thresholds:
        """Return all distinct targets: sums over them are the exact CRPS of distributions on these values."""
        values = np.unique(y)
        return cls(values, float(values[0]))

    @classmethod
    def grid(
        cls,
        y: np.ndarray,
        weights: np.ndarray,
        size: int,
        resolution: float,
        limits: tuple[float, float] = (-np.inf, np.inf),
    ) -> Thresholds:
        """Return about ``size`` thresholds between quantiles of the targets, and steps for frequent values.

        Between neighbours the distribution function is taken as linear. Thresholds lie in the middle between two
        targets, so that the mass of each lies around it: the grid of ``-y`` is the mirror image. Beyond the ends, a
        tail as long as the outer hundredth of the targets is added, unless the range of the target ends before it:
        mass beyond a limit would be an atom at the limit.
        """
        distinct, place, counts = np.unique(y, return_inverse=True, return_counts=True)
        between = 0.5 * (distinct[:-1] + distinct[1:])
        if len(distinct) > size:
            levels = weighted_quantile(y, weights, np.linspace(0.0, 1.0, size + 1)[1:-1])
            near = 1e-9 * np.ptp(distinct)  # a level that is a target up to rounding has thresholds on both sides
            both = np.searchsorted(distinct, np.concatenate([levels - near, levels + near])) - 1
            between = between[np.unique(both.clip(0, len(between) - 1))]
        share = np.bincount(place.reshape(-1), weights, len(distinct)) / weights.sum()
        atoms = distinct[(share >= ATOM) & (counts > 1) | (len(distinct) == 1)]
        edge = max(1e-6 * float(np.ptp(y)), 4.0 * float(np.spacing(np.abs(y).max())))  # width of the step of an atom
        step, above = (resolution, 0.5 * resolution) if resolution > 0 else (edge, 0.0)
        values = np.concatenate([between, atoms + above, atoms + above - step])
        values = np.unique(np.concatenate([values, *_borders(distinct, limits, edge)]).clip(*limits))
        values = values[np.append(True, np.diff(values) > 1e-9 * max(np.ptp(values), 1e-300))]
        ends = _with_ends(values, distinct, weighted_quantile(y, weights, np.array([0.01, 0.99])), limits, edge)
        exact = set(distinct[[0, -1]]) & set(limits) | set(atoms if resolution == 0 else [])
        return cls(*ends, tuple(sorted(map(float, exact))), edge)

    @property
    def roots(self) -> np.ndarray:
        """The weights ``sqrt(t_{k+1} - t_k)`` of the columns."""
        return np.sqrt(np.diff(self.values))

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Return the weighted indicators of targets, a row for each."""
        return self.below(y) * self.roots

    def below(self, y: np.ndarray) -> np.ndarray:
        """Return whether targets are at most the values, a row for each; targets at a value are, despite rounding."""
        return y[:, None] <= self.values[:-1] + 1e-12 * max(abs(self.values[0]), abs(self.values[-1]))

    def distribution(self, outputs: np.ndarray) -> np.ndarray:
        """Return the distribution function at all values from raw outputs: in [0, 1], sorted, one at the last."""
        below = np.sort(np.clip(outputs / self.roots, 0.0, 1.0), axis=1)
        return np.column_stack([below, np.ones(len(below))])


def _borders(distinct: np.ndarray, limits: tuple[float, float], edge: float) -> list[list[float]]:
    """Return thresholds that make atoms of targets on the borders of their range, around which no mass can lie."""
    low, high = limits
    return [[low]] * bool(distinct[0] == low) + [[high - edge, high]] * bool(distinct[-1] == high)


def _with_ends(
    values: np.ndarray, distinct: np.ndarray, inner: np.ndarray, limits: tuple[float, float], edge: float
) -> tuple[np.ndarray, float]:
    """Return the thresholds with the end of the upper tail, and the start of the lower one."""
    low, high = limits
    start = min(2 * distinct[0] - max(inner[0], values[0]), values[0] - edge)  # as far outside as inside
    end = max(2 * distinct[-1] - min(inner[1], values[-1]), values[-1] + edge)
    start = max(start, low) if low < values[0] else values[0] - edge
    end = min(end, high) if values[-1] < high else values[-1] + edge
    return np.append(values, end), float(start)
