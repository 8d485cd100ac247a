import numpy as np
import pytest

from kernelwright.distributions.transforms import IdentityMap, LogitMap, LogMap, RootMap

MAPS = [
    IdentityMap(),
    LogMap(),
    LogMap(2.0, 0.5),
    RootMap(),
    RootMap(1.0),
    RootMap(1.0, 0.2),
    LogMap(0.0, 0.0, 9.0),
    LogMap(1.0, 0.5, 3.0),
    RootMap(0.0, 0.0, 9.0),
    RootMap(1.0, 0.2, 30.0),
    LogitMap(0.0, 50.0, 0.0),
    LogitMap(0, 50, 0.01),
]


@pytest.mark.parametrize("target_map", MAPS, ids=repr)
def test_inverse_and_slope(target_map):
    y = np.array([2.1, 3.0, 10.0, 49.0])
    u = target_map(y)
    assert np.all(np.diff(u) > 0)
    assert target_map.inverse(u) == pytest.approx(y, rel=1e-10)
    step = 1e-6 * y
    numeric = (target_map(y + step) - target_map(y - step)) / (2 * step)
    assert np.exp(target_map.log_slope(y)) == pytest.approx(numeric, rel=1e-6)


@pytest.mark.parametrize("target_map", MAPS[1:], ids=repr)
def test_no_prediction_leaves_the_range(target_map):
    y = target_map.inverse(np.array([-1e3, -5.0, 0.0, 5.0, 600.0]))
    assert np.isfinite(y).all()
    assert y.min() >= target_map.low
    assert y.max() <= getattr(target_map, "high", np.inf)


@pytest.mark.parametrize("target_map", MAPS, ids=repr)
def test_slopes_at_the_borders_are_finite(target_map):
    assert np.isfinite(target_map.log_slope(np.array([getattr(target_map, "low", 0.0), 50.0]))).all()


@pytest.mark.parametrize("kind", [LogMap, RootMap])
def test_above_the_largest_target_a_map_is_its_tangent(kind):
    curved, straight = kind(1.0, 0.3), kind(1.0, 0.3, 7.0)
    below, above = np.array([1.5, 4.0, 7.0]), np.array([8.0, 20.0, 1e6])
    assert straight(below) == pytest.approx(curved(below), rel=1e-12)
    step = 1e-5
    slope = (curved(np.array([7.0 + step])) - curved(np.array([7.0 - step])))[0] / (2 * step)
    assert straight(above) == pytest.approx(curved(np.array([7.0]))[0] + slope * (above - 7.0), rel=1e-8)
    assert straight.inverse(straight(above)) == pytest.approx(above, rel=1e-12)
