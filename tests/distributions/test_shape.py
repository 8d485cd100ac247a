import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from kernelwright.distributions.shape import ResidualShape, weighted_quantile


@pytest.fixture(scope="module")
def shape():
    z = stats.t.rvs(5, size=800, random_state=0)
    return ResidualShape.fit(z, np.ones(len(z)))


def test_weighted_quantiles_are_those_of_repeated_values():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])
    order = np.sort(np.repeat(values, (1000 * weights).astype(int)))
    levels = np.array([0.25, 0.5, 0.95])
    assert weighted_quantile(values, weights, levels) == pytest.approx(np.quantile(order, levels), abs=0.51)
    assert weighted_quantile(values, weights, np.array([0.25])) == 1.0  # the middle of the first value's mass


def test_quantiles_invert_the_distribution_function(shape):
    levels = np.concatenate([[1e-9, 1e-4], np.linspace(0.01, 0.99, 99), [1 - 1e-4, 1 - 1e-9]])
    assert shape.cdf(shape.quantile(levels)) == pytest.approx(levels, rel=1e-6)


def test_the_density_integrates_to_the_distribution_function(shape):
    inside = np.linspace(shape.nodes[0], shape.nodes[-1], 400_001)
    middle = 0.5 * (inside[1:] + inside[:-1])
    mass = np.sum(np.exp(shape.log_density(middle))) * (inside[1] - inside[0])
    assert mass == pytest.approx(shape.below[-1] - shape.below[0], abs=1e-5)
    lower = quad(lambda z: float(np.exp(shape.log_density(np.array(z)))), -np.inf, shape.nodes[0] - 1e-9)[0]
    assert lower == pytest.approx(shape.below[0], rel=1e-4)


def test_it_is_close_to_the_distribution_that_was_drawn_from(shape):
    z = np.linspace(-3, 3, 61)
    assert np.abs(shape.cdf(z) - stats.t.cdf(z, 5)).max() < 0.04
    new = stats.t.rvs(5, size=5000, random_state=1)
    loss, ideal = -shape.log_density(new).mean(), -stats.t.logpdf(new, 5).mean()
    normal = -stats.norm.logpdf(new, *stats.norm.fit(stats.t.rvs(5, size=800, random_state=0))).mean()
    assert ideal < loss < ideal + 0.5 * (normal - ideal)


def test_weights_are_relative_and_shift_the_mass():
    z, grid = stats.norm.rvs(size=150, random_state=2), np.linspace(-2, 2, 21)
    weights = np.where(z > 0, 3.0, 1.0)
    heavy, same = ResidualShape.fit(z, weights), ResidualShape.fit(z, 7 * weights)
    assert heavy.cdf(grid) == pytest.approx(same.cdf(grid), abs=1e-12)
    share = weights[z <= 0].sum() / weights.sum()
    assert heavy.cdf(np.array([0.0])) == pytest.approx(share, abs=0.07)


@pytest.mark.parametrize("z", [[0.0, 0.0], [1.0, 2.0], [0.0] * 50 + [1e6]])
def test_few_or_equal_residuals_give_a_distribution(z):
    shape = ResidualShape.fit(np.array(z), np.ones(len(z)))
    assert np.all(np.diff(shape.quantile(np.linspace(0.01, 0.99, 50))) >= 0)
    assert np.isfinite(shape.log_density(np.array([0.0, 5.0, -1e8]))).all()
