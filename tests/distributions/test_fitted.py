from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from kernelwright.distributions import Stacked
from kernelwright.distributions.fitted import NARROWED, LeftOutTarget, fit_distribution, log_residuals
from kernelwright.distributions.target import describe


def left_out(n=400, seed=0, discrete=False, off=0.0):
    """Outputs that are right about the scale, off in the location, and a direct estimate that is right with noise."""
    rng = np.random.default_rng(seed)
    location, spread = rng.normal(size=n), rng.uniform(0.2, 1.0, n)
    y = location + spread * rng.normal(size=n)
    y = np.round(y) if discrete else y
    scale, _ = describe(y, np.ones(n), Stacked())
    t = scale.thresholds
    ends = t.values[:-1] + 0.5 * discrete
    exact = np.clip((ends - location[:, None]) / (2 * spread[:, None]) + 0.5, 0, 1)
    direct = (exact + 0.1 * rng.normal(size=exact.shape)) * t.roots
    encoded = (location + off * rng.normal(size=n) - scale.centre) / scale.unit
    rows = LeftOutTarget(y, np.ones(n), encoded, np.log(spread / scale.unit), direct, np.ones(n))
    marginal = np.append((y[:, None] <= t.values[:-1]).mean(0), 1.0)
    return scale, rows, marginal


@pytest.mark.parametrize("discrete", [False, True])
def test_the_weight_has_the_least_crps_of_a_fine_grid(discrete):
    scale, rows, marginal = left_out(150, discrete=discrete, off=1.0)
    link = fit_distribution(scale, rows, marginal, None)
    assert 0 < link.direct < 1

    def crps(weight, narrowed):
        other = replace(link, direct=weight, narrowed=narrowed)
        return other(rows.location, rows.log_scale, rows.direct, rows.support).crps(rows.y).mean()

    best = min(crps(weight, narrowed) for weight in np.linspace(0, 0.99, 15) for narrowed in NARROWED)
    assert crps(link.direct, link.narrowed) <= best * 1.01


def test_without_support_the_prediction_is_the_marginal_distribution():
    scale, rows, marginal = left_out()
    link = fit_distribution(scale, rows, marginal, None)
    far = link(rows.location, rows.log_scale, rows.direct, np.zeros(len(rows.y)))
    levels = np.tile([0.1, 0.5, 0.9], (len(rows.y), 1))
    assert far.quantile(levels)[0] == pytest.approx(np.quantile(rows.y, [0.1, 0.5, 0.9]), abs=0.05)
    assert far.mean()[0] == pytest.approx(rows.y.mean(), abs=0.05)
    assert far.std()[0] == pytest.approx(rows.y.std(), rel=0.05)


def test_intervals_of_a_location_and_scale_cover_what_they_state():
    scale, rows, marginal = left_out(2000, seed=1)
    link = fit_distribution(scale, rows, marginal, 0.0)
    _, new, _ = left_out(2000, seed=2)
    found = link(new.location, new.log_scale, None, np.ones(2000))
    low, high = found.quantile(np.tile([0.05, 0.95], (2000, 1))).T
    covered = (new.y >= low) & (new.y <= high)
    assert covered.mean() == pytest.approx(0.9, abs=0.03)


def test_intervals_beside_a_broad_direct_estimate_cover_what_they_state():
    n, off, broad = 2500, 0.2, 2.0
    scale, rows, marginal = left_out(n, seed=1, off=off)

    def with_broad(rows, seed):
        rng = np.random.default_rng(seed)
        location, spread = rng.normal(size=(n, 1)), broad * rng.uniform(0.2, 1.0, (n, 1))
        t = scale.thresholds
        return replace(rows, direct=stats.norm.cdf(t.values[:-1], location, spread) * t.roots)

    link = fit_distribution(scale, with_broad(rows, 1), marginal, None)
    assert link.direct > 0.1
    new = with_broad(left_out(n, seed=2, off=off)[1], 2)
    low, high = link(new.location, new.log_scale, new.direct, np.ones(n)).quantile(np.tile([0.05, 0.95], (n, 1))).T
    assert np.mean((low <= new.y) & (new.y <= high)) == pytest.approx(0.9, abs=0.03)


def test_zero_residuals_do_not_rule_the_scale():
    residuals = np.concatenate([np.zeros(50), np.ones(50)])
    logs = log_residuals(residuals, np.ones(100))
    assert np.isfinite(logs).all()
    assert logs.min() > np.log(1e-4)


def test_the_scale_beside_the_largest_weight_is_chosen_by_the_score_and_not_by_rounding():
    """The location errs as the direct estimate does, but by more, so it deserves no weight."""
    rng = np.random.default_rng(0)
    y, error = rng.normal(size=300), rng.normal(size=300)
    scale, _ = describe(y, np.ones(300), Stacked())
    direct = 0.5 * (scale.thresholds.encode(y) + scale.thresholds.encode(y + error))
    marginal = np.append(scale.thresholds.below(y).mean(0), 1.0)
    found = []
    for factor in np.linspace(0.1, 3.0, 25):
        rows = LeftOutTarget(
            y, np.full(300, factor), scale.encode(y) + 2.0 * error, np.full(300, -9.0), direct, np.ones(300)
        )
        link = fit_distribution(scale, rows, marginal, None)
        assert link.direct == 0.99
        found.append(link.narrowed)
    assert len(set(found)) == 1
