"""Predicted distributions of numbers, and how good they are.

A forecast holds what a method says about the test rows: a point, a normal distribution, or quantiles. The CRPS of a
normal distribution has a closed form; quantiles count as a sample of equal weights, whose CRPS is exact. A point has
neither a CRPS nor an interval.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from tools.tables import Row

COVERAGE = 0.9
TAIL = (1.0 - COVERAGE) / 2.0


def levels(n: int) -> np.ndarray:
    """Return the n levels (k - 1/2) / n, at which quantiles are a sample of equal weights.

    If n is 10 times an odd number, the ends of the 90 % interval are among them.
    """
    return (np.arange(n) + 0.5) / n


class Forecast(ABC):
    """What a method says about each test row. NaN stands for what it does not say."""

    mean: np.ndarray

    @property
    @abstractmethod
    def median(self) -> np.ndarray:
        """The point for the absolute error; the mean of a method that has no distribution."""

    @abstractmethod
    def crps(self, y: np.ndarray) -> np.ndarray:
        """Score each row by the integral of (F(t) - 1{y <= t})^2."""

    @abstractmethod
    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the logarithm of the density at each target."""

    @abstractmethod
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the central 90 % interval of each row."""


@dataclass(frozen=True)
class PointForecast(Forecast):
    """A number for each row, and nothing about its error."""

    mean: np.ndarray

    @property
    def median(self) -> np.ndarray:
        return self.mean

    def crps(self, y: np.ndarray) -> np.ndarray:
        return np.full(len(y), np.nan)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        return np.full(len(y), np.nan)

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        nothing = np.full(len(self.mean), np.nan)
        return nothing, nothing


@dataclass(frozen=True)
class NormalForecast(Forecast):
    """A normal distribution for each row."""

    mean: np.ndarray
    deviation: np.ndarray

    @property
    def median(self) -> np.ndarray:
        return self.mean

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return s (z (2 Phi(z) - 1) + 2 phi(z) - 1/sqrt(pi)), where z = (y - m) / s."""
        z = (y - self.mean) / self.deviation
        return self.deviation * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi))

    def log_density(self, y: np.ndarray) -> np.ndarray:
        return norm.logpdf(y, self.mean, self.deviation)

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        half = norm.ppf(1.0 - TAIL) * self.deviation
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class QuantileForecast(Forecast):
    """Quantiles at the levels (k - 1/2) / n, rows x levels; they have no density."""

    mean: np.ndarray
    quantiles: np.ndarray

    @property
    def median(self) -> np.ndarray:
        return np.median(self.quantiles, axis=1)

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return twice the mean pinball loss, the CRPS of the quantiles as a sample of equal weights."""
        ordered = np.sort(self.quantiles, axis=1)
        above = y[:, None] - ordered
        q = levels(ordered.shape[1])
        return 2.0 * np.maximum(q * above, (q - 1.0) * above).mean(1)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        return np.full(len(y), np.nan)

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        ordered = np.sort(self.quantiles, axis=1)
        q = levels(ordered.shape[1])
        low, high = (np.array([np.interp(level, q, row) for row in ordered]) for level in (TAIL, 1.0 - TAIL))
        return low, high


class ResidualForecast(PointForecast):
    """A number for each row with residuals around it, all of them equally probable."""

    def __init__(self, mean: np.ndarray, residuals: np.ndarray) -> None:
        super().__init__(mean)
        self.residuals = residuals

    @property
    def median(self) -> np.ndarray:
        return self.mean + np.median(self.residuals)

    def crps(self, y: np.ndarray) -> np.ndarray:
        from kernelwright.evaluation import around_residuals

        return around_residuals(self.mean, self.residuals, y).crps

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.quantile(self.residuals, [TAIL, 1.0 - TAIL])
        return self.mean + low, self.mean + high


class ModelForecast(Forecast):
    """What an ``EmbeddingRegressor`` says about rows; its scores are its own."""

    def __init__(self, model: Any, X: np.ndarray) -> None:
        self.model, self.X = model, X
        self.mean = model.predict(X)
        self.quantiles = model.quantile(X, [TAIL, 0.5, 1.0 - TAIL])

    @property
    def median(self) -> np.ndarray:
        return self.quantiles[:, 1]

    def crps(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.crps(self.X, y))

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return log densities; the probability of a discrete value is spread over the cell around it.

        Otherwise a probability would be compared with the densities of other methods.
        """
        found, values = np.asarray(self.model.log_density(self.X, y)), self.model.links_[0].scale.values
        return found if values is None or len(values) < 2 else found - np.log(cell_widths(values, y))

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        return self.quantiles[:, 0], self.quantiles[:, 2]


def cell_widths(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the width of the cell of each y: half the way to the value on either side, and as far at the ends."""
    gaps = np.diff(values)
    widths = 0.5 * (np.append(gaps[0], gaps) + np.append(gaps, gaps[-1]))
    return widths[np.searchsorted(0.5 * (values[:-1] + values[1:]), y)]


def forecast_scores(forecast: Forecast, y: np.ndarray) -> Row:
    """Average the scores over test rows: errors, CRPS, negative log density, coverage and width of 90 % intervals."""
    low, high = forecast.interval()
    covered = np.where(np.isnan(low), np.nan, (low <= y) & (y <= high))
    return {
        "RMSE": float(np.sqrt(np.mean((y - forecast.mean) ** 2))),
        "MAE": float(np.mean(np.abs(y - forecast.median))),
        "CRPS": float(np.mean(forecast.crps(y))),
        "NLL": float(-np.mean(forecast.log_density(y))),
        "coverage": float(np.mean(covered)),
        "width": float(np.mean(high - low)),
    }
