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
