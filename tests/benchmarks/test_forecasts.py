"""Scores of forecasts against integrals, sums over pairs, and plain counts."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks.forecasts import (
    ModelForecast,
    NormalForecast,
    PointForecast,
    QuantileForecast,
    cell_widths,
    forecast_scores,
    levels,
)


def integral(cdf, y):
    """Integrate (F(t) - 1{y <= t})^2, the definition of the CRPS."""
    below = quad(lambda t: cdf(t) ** 2, y - 60.0, y, limit=500)[0]
    return below + quad(lambda t: (1.0 - cdf(t)) ** 2, y, y + 60.0, limit=500)[0]


class TestNormal:
    mean, deviation, y = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 3.0]), np.array([0.3, 3.0, -2.0])

    def test_crps_is_the_integral(self):
        expected = [
            integral(lambda t, m=m, s=s: norm.cdf(t, m, s), y)
            for m, s, y in zip(self.mean, self.deviation, self.y, strict=True)
        ]
        np.testing.assert_allclose(NormalForecast(self.mean, self.deviation).crps(self.y), expected, rtol=1e-7)

    def test_log_density_and_interval(self):
        forecast = NormalForecast(self.mean, self.deviation)
        z = (self.y - self.mean) / self.deviation
        expected = -0.5 * z**2 - np.log(self.deviation * np.sqrt(2 * np.pi))
        np.testing.assert_allclose(forecast.log_density(self.y), expected)
        low, high = forecast.interval()
        np.testing.assert_allclose((high - low) / self.deviation, 2 * 1.6448536, rtol=1e-6)


class TestQuantiles:
    def test_crps_is_that_of_a_sample(self):
        """Compare with E|X - y| - E|X - X'| / 2 over all pairs of a sample of equal weights."""
        random = np.random.default_rng(0)
        sample, y = random.normal(size=(5, 30)), random.normal(size=5)
        pairs = np.abs(sample[:, :, None] - sample[:, None, :]).mean((1, 2))
        expected = np.abs(sample - y[:, None]).mean(1) - 0.5 * pairs
        np.testing.assert_allclose(QuantileForecast(sample.mean(1), sample).crps(y), expected, rtol=1e-12)

    def test_thirty_levels_are_within_half_a_percent_of_a_normal(self):
        y = np.random.default_rng(0).normal(size=4000)
        quantiles = np.tile(norm.ppf(levels(30)), (len(y), 1))
        exact = NormalForecast(np.zeros(len(y)), np.ones(len(y))).crps(y).mean()
        assert QuantileForecast(np.zeros(len(y)), quantiles).crps(y).mean() == pytest.approx(exact, rel=5e-3)

    @pytest.mark.parametrize("n", [10, 30, 90])
    def test_the_ends_of_the_interval_are_levels(self, n):
        assert np.isclose(levels(n), 0.05).any()
        quantiles = norm.ppf(levels(n))[None]
        low, high = QuantileForecast(np.zeros(1), quantiles).interval()
        np.testing.assert_allclose([low[0], high[0]], norm.ppf([0.05, 0.95]))


def test_scores_by_hand():
    """Use two rows, one inside its interval; the errors of the means are 1 and 3, those of the medians 1 and 2."""
    quantiles = np.array([[-2.0] * 5 + [0.0] + [2.0] * 4, [0.0] * 4 + [1.0] * 2 + [1.5] * 4])
    found = forecast_scores(QuantileForecast(np.array([0.0, 0.0]), quantiles), np.array([1.0, 3.0]))
    assert found["RMSE"] == pytest.approx(np.sqrt(5.0))
    assert found["MAE"] == pytest.approx((np.abs(1.0 - np.median(quantiles[0])) + 2.0) / 2)
    assert found["coverage"] == 0.5
    assert found["width"] == pytest.approx((4.0 + 1.5) / 2)
    assert np.isnan(found["NLL"])


def test_a_point_has_errors_only():
    found = forecast_scores(PointForecast(np.array([1.0, 2.0])), np.array([1.0, 4.0]))
    assert found["RMSE"] == pytest.approx(np.sqrt(2.0))
    assert found["MAE"] == 1.0
    assert all(np.isnan(found[name]) for name in ("CRPS", "NLL", "coverage", "width"))


class Known:
    """A model that knows the distribution."""

    def __init__(self, values=None):
        self.links_ = [SimpleNamespace(scale=SimpleNamespace(values=values))]

    def predict(self, X):
        return X[:, 0]

    def quantile(self, X, q):
        return X[:, :1] + norm.ppf(q)

    def crps(self, X, y):
        return NormalForecast(X[:, 0], np.ones(len(X))).crps(y)

    def log_density(self, X, y):
        return norm.logpdf(y, X[:, 0])


def test_a_model_is_asked_for_its_own_scores():
    X, y = np.array([[0.0], [1.0]]), np.array([0.5, 4.0])
    expected = forecast_scores(NormalForecast(X[:, 0], np.ones(2)), y)
    assert forecast_scores(ModelForecast(Known(), X), y) == pytest.approx(expected)


def test_probabilities_of_values_are_spread_over_their_cells():
    """Expect a density of p over the width, so that the density of all cells together integrates to one."""
    values = np.array([0.0, 1.0, 1.5, 2.0])
    widths = cell_widths(values, values)
    np.testing.assert_array_equal(widths, [1.0, 0.75, 0.5, 0.5])
    X = np.zeros((4, 1))
    plain, spread = Known().log_density(X, values), ModelForecast(Known(values), X).log_density(values)
    np.testing.assert_allclose((np.exp(spread) * widths).sum(), np.exp(plain).sum())
    np.testing.assert_array_equal(cell_widths(values, np.array([1.0 + 1e-12])), [0.75])
