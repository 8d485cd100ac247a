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
