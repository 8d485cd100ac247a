"""The common shape of standardised residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit
from scipy.stats import t as student

from kernelwright.storage.saved import saved

__all__ = ["ResidualShape", "weighted_quantile"]

NODES = 401  # between which the distribution function is linear
KEPT = 2000  # residuals that a smooth density is built from: their quantiles, if there are more
TAIL = 4.0  # degrees of freedom of the tails
TAIL_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)


def weighted_quantile(values: np.ndarray, weights: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return quantiles of weighted values, interpolated between the middles of their weights."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    middles = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    return np.interp(levels, middles, values)


@saved("residual-shape")
@dataclass(frozen=True)
class ResidualShape:
    """A distribution on the line, tabulated: linear between nodes, with the tails of a Student t beyond them.

    Parameters
    ----------
    nodes, below : ndarray
        Increasing points, and the distribution function there.
    centre, unit : float
        Centre and scale of the tails.
    """

    nodes: np.ndarray
    below: np.ndarray
    centre: float
    unit: float

    @classmethod
    def fit(cls, z: np.ndarray, weights: np.ndarray) -> ResidualShape:
        """Fit a smooth density to weighted residuals.

        It is a mixture of normal densities at the residuals, drawn together so that their spread is kept, and of a
        Student t whose share has the largest leave-one-out likelihood.
        """
        if len(z) > KEPT:
            z, weights = weighted_quantile(z, weights, (np.arange(KEPT) + 0.5) / KEPT), np.ones(KEPT)
        w = weights / weights.sum()
        centre = float(weighted_quantile(z, w, np.array(0.5)))
        low, high = weighted_quantile(z, w, np.array([0.25, 0.75]))
        spread = float(np.sqrt(w @ (z - w @ z) ** 2))
        unit = max(min(spread, (high - low) / 1.349) if high > low else spread, 1e-12)
        n_effective = 1.0 / float(w @ w)
        width = 0.9 * unit * n_effective**-0.2
        points = w @ z + (z - w @ z) * np.sqrt(max(1.0 - (width / max(spread, unit)) ** 2, 0.0))
        share = _tail_share(points, z, w, width, centre, unit)
        reach = student.ppf(1.0 - 0.02 / (n_effective + 10.0), TAIL) * unit
        ends = min(z.min() - 3 * width, centre - reach), max(z.max() + 3 * width, centre + reach)
        nodes = _spaced(ends, centre, unit)
        below = share * stdtr(TAIL, (nodes - centre) / unit)
        for start in range(0, len(nodes), 64):
            some = slice(start, start + 64)
            below[some] += (1.0 - share) * (ndtr((nodes[some, None] - points) / width) @ w)
        return cls(nodes, np.maximum.accumulate(below), centre, unit)

    def cdf(self, z: np.ndarray) -> np.ndarray:
        """Return the distribution function."""
        z = np.asarray(z, dtype=np.float64)
        found = np.asarray(np.interp(z, self.nodes, self.below))
        low, high = z < self.nodes[0], z > self.nodes[-1]  # few: the functions of a Student t are slow
        found[low] = self._lower_share * stdtr(TAIL, (z[low] - self.centre) / self.unit)
        found[high] = 1.0 - self._upper_share * stdtr(TAIL, (self.centre - z[high]) / self.unit)
        return found

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """Return the inverse of the distribution function; levels 0 and 1 are at infinity.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelwright.distributions.shape import ResidualShape
        >>> shape = ResidualShape.fit(np.array([-1.0, 0.0, 1.0]), np.ones(3))
        >>> shape.quantile(np.array([0.0, 1.0]))
        array([-inf,  inf])
        """
        levels = np.asarray(levels, dtype=np.float64)
        found = np.asarray(np.interp(levels, self.below, self.nodes))
        low, high = levels < self.below[0], levels > self.below[-1]
        found[low] = self.centre + self.unit * _tail_quantile(levels[low] / self._lower_share)
        found[high] = self.centre - self.unit * _tail_quantile((1.0 - levels[high]) / self._upper_share)
        return found

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return the logarithm of the density."""
        z = np.asarray(z, dtype=np.float64)
        place = np.clip(np.searchsorted(self.nodes, z, side="right") - 1, 0, len(self.nodes) - 2)
        with np.errstate(divide="ignore"):
            found = np.asarray(np.log(np.diff(self.below) / np.diff(self.nodes))[place])
        for beyond, share in ((z < self.nodes[0], self._lower_share), (z > self.nodes[-1], self._upper_share)):
            found[beyond] = student.logpdf((z[beyond] - self.centre) / self.unit, TAIL) + np.log(share / self.unit)
        return found

    @property
    def _lower_share(self) -> float:
        """The factor on the Student t below the first node."""
        return float(self.below[0] / stdtr(TAIL, (self.nodes[0] - self.centre) / self.unit))

    @property
    def _upper_share(self) -> float:
        """The factor on the Student t above the last node."""
        return float((1.0 - self.below[-1]) / stdtr(TAIL, (self.centre - self.nodes[-1]) / self.unit))


def _tail_quantile(levels: np.ndarray) -> np.ndarray:
    """Return quantiles of the Student t; SciPy returns plus infinity at level 0."""
    return np.where(levels > 0, stdtrit(TAIL, levels), -np.inf)


def _spaced(ends: tuple[float, float], centre: float, unit: float) -> np.ndarray:
    """Return nodes, close together near the centre and wider apart in the tails."""
    low, high = np.arcsinh((np.array(ends) - centre) / unit)
    return centre + unit * np.sinh(np.linspace(low, high, NODES))


def _tail_share(points: np.ndarray, z: np.ndarray, w: np.ndarray, width: float, centre: float, unit: float) -> float:
    """Return the share of the Student t with the largest likelihood of each residual given the others."""
    near = np.empty(len(z))
    for start in range(0, len(z), 256):
        some = slice(start, start + 256)
        rows = np.exp(-0.5 * np.square((z[some, None] - points) / width)) * w
        rows[np.arange(len(rows)), np.arange(start, start + len(rows))] = 0.0
        near[some] = rows.sum(1)
    near /= np.sqrt(2.0 * np.pi) * width * np.maximum(1.0 - w, 1e-12)
    tail = student.pdf((z - centre) / unit, TAIL) / unit
    scores = [w @ np.log(np.maximum((1.0 - share) * near + share * tail, 1e-300)) for share in TAIL_SHARES]
    return TAIL_SHARES[int(np.argmax(scores))]
