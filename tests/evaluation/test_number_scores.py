"""Scores of predicted numbers: against scikit-learn, brute force, and the truth of made-up tables."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import metrics

from kernelwright.evaluation import NumberPredictions, around_residuals, score_numbers


def normal_predictions(means, scale, y):
    """Return normal distributions with these means; their CRPS is known in closed form."""
    z = (y - means) / scale
    crps = scale * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    half = norm.ppf(0.95) * scale
    return NumberPredictions(means, means - half, means + half, crps, norm.cdf(z))


def test_scores_are_those_of_scikit_learn(rng):
    y = rng.normal(size=100)
    found = normal_predictions(y + rng.normal(size=100), 1.0, y)
    scores = score_numbers(found, y)
    assert scores.r2.value == pytest.approx(metrics.r2_score(y, found.means))
    assert scores.rmse.value == pytest.approx(metrics.root_mean_squared_error(y, found.means))
    assert scores.mae.value == pytest.approx(metrics.mean_absolute_error(y, found.means))
    assert scores.coverage.value == np.mean(
        [low <= t <= high for low, t, high in zip(found.low, y, found.high, strict=True)]
    )
    for each in vars(scores).values():
        assert each.low <= each.value <= each.high


def test_the_intervals_hold_the_truth_about_as_often_as_they_say(rng):
    """The truth is known: y = x + noise, predicted by x with the right distribution."""
    scale, times, inside = 0.6, 200, np.zeros(6)
    truth = [
        1 / (1 + scale**2),
        scale,
        scale * np.sqrt(2 / np.pi),
        scale / np.sqrt(np.pi),
        0.9,
        2 * norm.ppf(0.95) * scale,
    ]
    for _ in range(times):
        x = rng.normal(size=150)
        y = x + scale * rng.normal(size=150)
        scores = vars(score_numbers(normal_predictions(x, scale, y), y)).values()
        inside += [each.low - 1e-9 <= true <= each.high + 1e-9 for each, true in zip(scores, truth, strict=True)]
    assert np.all(inside / times > 0.9)
    assert np.all(inside[:4] / times < 0.99)  # and they are not much too wide


def test_a_table_of_one_number_has_no_share_of_explained_variance():
    y = np.full(5, 3.0)
    scores = score_numbers(around_residuals(np.full(5, 2.0), np.array([0.0, 1.0]), y), y)
    assert np.isnan(scores.r2.value)
    assert scores.rmse.value == 1.0


def test_the_distribution_of_residuals_is_scored_as_by_brute_force(rng):
    means, residuals = rng.normal(size=30), rng.choice([-1.0, 0.0, 0.25, 2.0], size=17)  # with ties
    y = means + rng.choice([-1.5, 0.0, 0.25, 3.0], size=30)
    found = around_residuals(means, residuals, y)
    for i in range(30):
        draws = means[i] + residuals
        expected = np.abs(draws - y[i]).mean() - 0.5 * np.abs(draws[:, None] - draws).mean()
        assert found.crps[i] == pytest.approx(expected, abs=1e-12)
        assert (draws < y[i]).mean() - 1e-9 <= found.pit[i] <= (draws <= y[i]).mean() + 1e-9
    assert found.high - found.low == pytest.approx(np.ptp(np.quantile(residuals, [0.05, 0.95])))
