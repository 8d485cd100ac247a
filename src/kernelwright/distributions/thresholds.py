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
    """

    values: np.ndarray
    start: float

    @classmethod
    def exact(cls, y: np.ndarray) -> Thresholds:
        """Return all distinct targets: sums over them are the exact CRPS of distributions on these values."""
        values = np.unique(y)
        return cls(values, float(values[0]))

    @classmethod
    def grid(cls, y: np.ndarray, weights: np.ndarray, size: int, resolution: float) -> Thresholds:
        """Return about ``size`` quantiles from the smallest to the largest target, and steps for frequent values.

        Between neighbours the distribution function is taken as linear. Beyond the ends, a tail as long as the outer
        hundredth of the targets is added.
        """
        distinct, place = np.unique(y, return_inverse=True)
        if len(distinct) <= size:
            chosen = distinct
        else:
            levels = np.linspace(0.0, 1.0, size)
            chosen = distinct[
                np.searchsorted(distinct, weighted_quantile(y, weights, levels)).clip(max=len(distinct) - 1)
            ]
        share = np.bincount(place.reshape(-1), weights, len(distinct)) / weights.sum()
        atoms = distinct[share >= ATOM]
        step = resolution if resolution > 0 else 1e-6 * float(np.ptp(y))
        above = 0.5 * resolution  # on a lattice, mass lies around a value and not only below it
        values = np.unique(np.concatenate([chosen, atoms, atoms - step])) + above
        values = values[np.append(True, np.diff(values) > 1e-9 * max(np.ptp(values), 1e-300))]
        inner = weighted_quantile(y, weights, np.array([0.01, 0.99]))
        start = min(2 * values[0] - inner[0], values[0] - step)
        end = max(2 * values[-1] - inner[1], values[-1] + step)
        return cls(np.append(values, end), float(start))

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
