import numpy as np
import pytest

from kernelwright.distributions.thresholds import Thresholds


def brute_force_crps(values, masses, y):
    """``E|Y - y| - E|Y - Y'| / 2`` over all pairs."""
    first = masses @ np.abs(values - y)
    return first - 0.5 * masses @ np.abs(values[:, None] - values) @ masses


@pytest.mark.parametrize("seed", range(5))
def test_squared_loss_of_indicators_is_the_crps_of_weights_on_training_targets(seed):
    rng = np.random.default_rng(seed)
    y = np.round(rng.gamma(1.0, 5.0, 60), 1)  # with ties
    thresholds = Thresholds.exact(y)
    weights = rng.dirichlet(np.ones(60), 20)
    outputs = weights @ thresholds.encode(y)  # what an embedding with these weights predicts
    new = rng.choice(y, 20)
    losses = ((outputs - thresholds.encode(new)) ** 2).sum(1)
    expected = [brute_force_crps(y, w, target) for w, target in zip(weights, new, strict=True)]
    assert losses == pytest.approx(np.array(expected), abs=1e-10)


def test_the_grid_states_its_error():
    """A hundred quantiles instead of all targets, with heavy tails: the CRPS changes by a few hundredths at most."""
    rng = np.random.default_rng(0)
    y = rng.standard_t(3, 2000)
    exact, grid = Thresholds.exact(y), Thresholds.grid(y, np.ones(2000), 100, 0.0)
    weights, new = rng.dirichlet(np.ones(2000), 50), rng.choice(y, 50)
    scores = [((weights @ t.encode(y) - t.encode(new)) ** 2).sum(1).mean() for t in (exact, grid)]
    assert scores[1] == pytest.approx(scores[0], rel=0.03)


def test_the_grid_has_tails_beyond_the_targets():
    y = np.random.default_rng(0).normal(size=500)
    grid = Thresholds.grid(y, np.ones(500), 100, 0.0)
    assert grid.start < y.min()
    assert grid.values[-1] > y.max()
    assert np.all(np.diff(grid.values) > 0)


def test_a_frequent_value_gets_a_step():
    y = np.concatenate([np.zeros(300), np.random.default_rng(0).exponential(size=700)])
    grid = Thresholds.grid(y, np.ones(1000), 50, 0.0)
    before = grid.values[np.searchsorted(grid.values, 0.0) - 1]
    assert 0.0 in grid.values
    assert -1e-4 < before < 0.0


def test_outputs_become_distribution_functions():
    grid = Thresholds.exact(np.array([0.0, 1.0, 5.0]))
    below = grid.distribution(np.array([[0.7, 0.4], [-1.0, 9.0]]) * grid.roots)
    assert below == pytest.approx(np.array([[0.4, 0.7, 1.0], [0.0, 1.0, 1.0]]))


def test_the_grid_ends_where_the_range_does():
    y = np.random.default_rng(0).uniform(0.001, 0.999, 500)
    grid = Thresholds.grid(y, np.ones(500), 100, 0.0, (0.0, 1.0))
    assert (grid.start, grid.values[-1]) == (0.0, 1.0)
    on_the_border = Thresholds.grid(np.append(y, [0.0] * 50), np.ones(550), 100, 0.0, (0.0, 1.0))
    assert on_the_border.start < 0.0  # so that there is a step at zero


def test_whole_numbers_on_a_border_are_atoms_there():
    """A count of zero is zero, and not somewhere between -1/2 and 1/2, of which the range would cut a half."""
    y = np.random.default_rng(0).poisson(1.0, 400).astype(float)
    grid = Thresholds.grid(y, np.ones(400), 100, 1.0, (0.0, y.max()))
    shares = np.diff(np.append(0.0, grid.below(y).mean(0)))
    at_zero, at_most = np.searchsorted(grid.values, 0.0), np.searchsorted(grid.values, y.max())
    assert shares[at_zero] == pytest.approx(np.mean(y == 0))
    assert shares[at_most] == pytest.approx(np.mean(y == y.max()))
    widths = np.diff(np.append(grid.start, grid.values))
    assert np.all(widths > 0)
    assert max(widths[at_zero], widths[at_most]) < 1e-4


@pytest.mark.parametrize("resolution", [0.0, 1.0])
@pytest.mark.parametrize("n", [30, 80, 500])
def test_the_grid_of_negative_targets_is_the_mirror_image(n, resolution):
    y = np.random.default_rng(n).gamma(2.0, 20.0, n)
    y = np.round(y) if resolution else y
    grid, mirrored = (Thresholds.grid(each, np.ones(n), 100, resolution) for each in (y, -y))
    knots, others = (np.append(each.start, each.values) for each in (grid, mirrored))
    assert knots == pytest.approx(-others[::-1], abs=1e-4)
    mass, other = (
        np.diff(np.append(each.below(t).mean(0), 1.0), prepend=0.0) for each, t in ((grid, y), (mirrored, -y))
    )
    assert mass == pytest.approx(other[::-1])


def test_one_row_is_no_frequent_value():
    """In forty rows each value has more than two percent of the weight."""
    y = np.random.default_rng(0).normal(size=40)
    grid = Thresholds.grid(y, np.ones(40), 100, 0.0)
    assert np.diff(grid.values).min() > 1e-5


def test_rounding_of_weights_changes_no_threshold():
    """Levels of whole weights are targets themselves, up to rounding."""
    rng = np.random.default_rng(0)
    y, weights = rng.normal(size=300), rng.integers(1, 3, 300).astype(float)
    found = [Thresholds.grid(y, factor * weights, 100, 0.0).values for factor in (1.0, 1 / 3, 0.7, 1.1, 7.3)]
    for values in found[1:]:
        assert values == pytest.approx(found[0], abs=1e-12)
