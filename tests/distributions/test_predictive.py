from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from kernelwright.distributions.predictive import ContinuousPrediction, DiscretePrediction, SmoothPart, TablePart
from kernelwright.distributions.shape import ResidualShape
from kernelwright.distributions.transforms import IdentityMap, LogMap, RootMap

scoringrules = pytest.importorskip("scoringrules")

LEVELS = np.linspace(0.02, 0.98, 25)


def prediction(share, target_map=None, low=-np.inf, high=np.inf):
    """Three rows: a smooth part with a normal shape, and a table of two modes."""
    z = stats.norm.ppf((np.arange(3000) + 0.5) / 3000)
    smooth = SmoothPart(
        np.array([0.5, 1.0, 2.0]),
        np.array([0.3, 1.0, 0.1]),
        ResidualShape.fit(z, np.ones(3000)),
        target_map or IdentityMap(),
        low,
        high,
    )
    knots = np.linspace(max(0.0, low), min(6.0, high), 61)
    below = 0.5 * stats.norm.cdf(knots, 1.5, 0.2) + 0.5 * stats.norm.cdf(knots, 4.0, 0.4)
    below = (below - below[0]) / (below[-1] - below[0])
    return ContinuousPrediction(smooth, TablePart(knots, np.tile(below, (3, 1))), np.full(3, share))


@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
@pytest.mark.parametrize("settings", [{}, {"target_map": LogMap()}, {"low": 0.4, "high": 3.0}], ids=str)
def test_quantiles_invert_the_distribution_function_and_never_cross(share, settings):
    found = prediction(share, **settings)
    levels = np.tile(LEVELS, (3, 1))
    quantiles = found.quantile(levels)
    assert found.cdf(quantiles) == pytest.approx(levels, abs=1e-6)
    assert np.all(np.diff(quantiles) > 0)


@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
@pytest.mark.parametrize("settings", [{}, {"target_map": LogMap()}, {"low": 0.4, "high": 3.0}], ids=str)
def test_the_density_integrates_to_one_and_gives_the_moments(share, settings):
    found = prediction(share, **settings)
    edges = found.quantile(np.tile(np.linspace(1e-5, 1 - 1e-5, 1501), (3, 1)))
    middles, widths = 0.5 * (edges[:, 1:] + edges[:, :-1]), np.diff(edges)
    density = np.exp([found.log_density(column) for column in middles.T]).T
    mass = density * widths
    assert mass.sum(1) == pytest.approx(np.ones(3), abs=4e-3)
    mean = (mass * middles).sum(1)
    some = [0, 2] if "target_map" in settings else [0, 1, 2]  # heavy tails of a logarithm have no mean
    std = np.sqrt((mass * (middles - mean[:, None]) ** 2).sum(1))
    assert found.mean()[some] == pytest.approx(mean[some], rel=5e-3)
    assert found.std()[some] == pytest.approx(std[some], rel=0.05)


@pytest.mark.parametrize("y", [-1.0, 0.7, 1.5, 9.0])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
def test_crps_is_that_of_its_quantiles(share, y):
    found, target = prediction(share), np.full(3, y)
    sample = found.quantile(np.tile((np.arange(4000) + 0.5) / 4000, (3, 1)))
    expected = scoringrules.crps_ensemble(target, sample, backend="numpy")
    assert found.crps(target) == pytest.approx(expected, rel=2e-3)


def test_crps_of_a_normal_shape_is_the_closed_form():
    found, y = prediction(1.0), np.array([0.1, 2.5, 2.05])
    expected = scoringrules.crps_normal(y, found.smooth.location, found.smooth.scale, backend="numpy")
    assert found.crps(y) == pytest.approx(expected, rel=0.01)


def test_a_range_is_kept():
    found = prediction(0.6, low=0.4, high=3.0)
    assert np.all(found.smooth.quantile(np.tile([1e-9, 1 - 1e-9], (3, 1))) >= 0.4)
    assert np.all(found.smooth.cdf(np.tile([0.39, 3.0], (3, 1))) == [0.0, 1.0])


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
def test_deviations_do_not_depend_on_the_place_of_the_target(share, offset):
    found = prediction(share)
    smooth = replace(found.smooth, location=found.smooth.location + offset)
    moved = ContinuousPrediction(smooth, replace(found.table, knots=found.table.knots + offset), found.share)
    assert moved.std() == pytest.approx(found.std(), rel=1e-6)
    assert moved.mean() - offset == pytest.approx(found.mean(), abs=1e-6)


def test_quantiles_of_levels_next_to_each_other_do_not_cross_by_rounding():
    """At an atom many levels have one quantile, which each finds from another bracket."""
    smooth = SmoothPart(np.ones(2), np.full(2, 2.0), prediction(1.0).smooth.shape, RootMap(), 0.0)
    table = TablePart(np.array([-1e-6, 0.0, 0.3, 6.0]), np.array([[0.0, 0.3, 0.4, 1.0], [0.0, 0.7, 0.8, 1.0]]))
    levels = np.tile(np.random.default_rng(0).permutation(np.linspace(0.0005, 0.9995, 2000)), (2, 1))
    quantiles = ContinuousPrediction(smooth, table, np.array([0.3, 0.6])).quantile(levels)
    assert np.all(np.diff(np.take_along_axis(quantiles, levels.argsort(1), 1)) >= 0)


def test_the_density_at_a_frequent_value_is_that_of_its_step():
    """The step of an atom ends at its value, and the distribution function rises before it."""
    table = TablePart(np.array([-1.0, 2.0 - 1e-6, 2.0, 3.0]), np.array([[0.0, 0.3, 0.8, 1.0]]))
    found = ContinuousPrediction(
        SmoothPart(np.zeros(1), np.ones(1), prediction(1.0).smooth.shape, IdentityMap()), table, np.zeros(1)
    )
    assert np.exp(found.log_density(np.array([2.0]))) == pytest.approx(0.5 / 1e-6, rel=1e-6)


class TestDiscrete:
    values = np.array([0.0, 1.0, 2.0, 5.0])
    masses = np.array([[0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.0, 0.0]])
    found = DiscretePrediction(values, masses.cumsum(1))

    def test_moments(self):
        mean = self.masses @ self.values
        assert self.found.mean() == pytest.approx(mean)
        assert self.found.std() == pytest.approx(np.sqrt(self.masses @ self.values**2 - mean**2))

    def test_quantiles_are_the_smallest_values_with_enough_mass(self):
        found = self.found.quantile(np.tile([0.0, 0.1, 0.11, 0.6, 1.0], (2, 1)))
        assert found.tolist() == [[0, 0, 1, 2, 5], [0, 1, 1, 1, 1]]

    def test_probabilities(self):
        assert np.exp(self.found.log_density(np.array([2.0, 1.0]))) == pytest.approx([0.3, 1.0])
        assert np.exp(self.found.log_density(np.array([3.0, 7.0]))) == pytest.approx([0.0, 0.0])
        assert self.found.cdf(np.tile([-1.0, 1.5, 9.0], (2, 1))) == pytest.approx(np.array([[0, 0.3, 1], [0, 1, 1]]))

    @pytest.mark.parametrize("y", [-2.0, 1.0, 3.5, 8.0])
    def test_crps_is_the_formula_of_pairs(self, y):
        away = self.masses @ np.abs(self.values - y)
        between = np.abs(self.values[:, None] - self.values)
        expected = away - 0.5 * np.einsum("ni,ij,nj->n", self.masses, between, self.masses)
        assert self.found.crps(np.full(2, y)) == pytest.approx(expected, abs=1e-10)

    def test_spread_pit_is_uniform_for_draws(self):
        rng = np.random.default_rng(0)
        y = rng.choice(self.values, 4000, p=self.masses[0])
        many = DiscretePrediction(self.values, np.tile(self.masses[0].cumsum(), (4000, 1)))
        assert stats.kstest(many.spread_pit(y, rng), "uniform").pvalue > 0.01


@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
def test_mass_at_a_border_is_a_censored_normal_one(share):
    gap, edge, low = 0.05, 1e-6, 0.4
    found = prediction(share, low=low)
    knots = np.append(low - edge, found.table.knots)
    below = np.column_stack([np.zeros(3), 0.3 + 0.7 * found.table.below])
    smooth = replace(found.smooth, gaps=(gap, 0.0), edge=edge)
    found = replace(found, smooth=smooth, table=TablePart(knots, below), atoms=(low,), edge=edge)
    normal = stats.norm.cdf(low + gap, found.smooth.location, found.smooth.scale)
    mass = share * 0.99 * normal + (1 - share) * 0.3
    assert found.cdf(np.tile([low - 1e-9, low], (3, 1))) == pytest.approx(np.column_stack([0 * mass, mass]), abs=2e-3)
    assert found.quantile(0.99 * mass[:, None]).tolist() == [[low]] * 3  # the border itself, not a number near it
    levels = np.tile(LEVELS, (3, 1))
    quantiles = found.quantile(levels)
    assert np.all(np.diff(quantiles) >= 0)
    above = quantiles > low
    assert found.cdf(quantiles)[above] == pytest.approx(levels[above], abs=1e-6)
    edges = np.unique(np.concatenate([[low, low + gap], np.geomspace(low + 1e-7, 12.0, 1500)]))
    middles = 0.5 * (edges[1:] + edges[:-1])
    density = np.exp([found.log_density(np.full(3, t)) for t in middles]).T
    atom = edge * np.exp(found.log_density(np.full(3, low)))
    assert atom + density @ np.diff(edges) == pytest.approx(np.ones(3), abs=5e-3)


def test_a_target_at_an_atom_is_inside_by_the_share_of_its_mass():
    table = TablePart(np.array([0.0, 1.0 - 1e-6, 1.0, 2.0]), np.array([[0.0, 0.1, 0.9, 1.0]]))
    smooth = SmoothPart(np.zeros(1), np.ones(1), prediction(0.0).smooth.shape, IdentityMap())
    found = ContinuousPrediction(smooth, table, np.zeros(1), atoms=(1.0,), edge=1e-6)
    assert found.quantile(np.array([[0.05, 0.11, 0.5, 0.9, 0.95]])) == pytest.approx(
        np.array([[0.5, 1, 1, 1, 1.5]]), abs=1e-5
    )
    assert found.share_inside(np.array([1.0]), 0.4) == pytest.approx(0.5)  # from 0.3 to 0.7 of 0.1 to 0.9
    assert [found.share_inside(np.array([t]), 0.9)[0] for t in (0.1, 0.9, 1.9)] == pytest.approx([0, 1, 0])
    random = np.random.default_rng(0)
    drawn = [found.spread_pit(np.array([1.0]), random)[0] for _ in range(200)]
    assert 0.1 <= min(drawn) < 0.15
    assert 0.85 < max(drawn) <= 0.9
