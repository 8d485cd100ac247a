import numpy as np
import pytest

from kernelwright.distributions import Stacked
from kernelwright.distributions.target import describe, lattice

rng = np.random.default_rng(0)


def scale_and_maps(y, **settings):
    y = np.asarray(y, dtype=float)
    scale, maps = describe(y, np.ones(len(y)), Stacked(**settings))
    return scale, [each.word for each in maps]


def test_few_values_are_discrete_with_the_whole_numbers_between():
    scale, maps = scale_and_maps(rng.choice([3, 4, 5, 8], 200))
    assert scale.values.tolist() == [3, 4, 5, 6, 7, 8]
    assert maps == ["identity"]
    assert scale_and_maps(rng.choice([3, 4, 5, 8], 200), discrete=False)[0].values is None
    assert scale_and_maps(rng.choice([0.5, 0.7], 200))[0].values.tolist() == [0.5, 0.7]


def test_prices_are_not_discrete():
    prices = rng.integers(10, 300, 2000) * 5.0
    assert scale_and_maps(prices)[0].values is None


@pytest.mark.parametrize(
    ("y", "low"),
    [(rng.exponential(size=300), 0.0), (100 + rng.normal(size=300), -np.inf), (rng.normal(size=300), -np.inf)],
    ids=["spread over zero", "far from zero", "both signs"],
)
def test_a_range_is_inferred_by_the_stated_rule(y, low):
    assert scale_and_maps(y)[0].low == low


def test_a_stated_range_is_checked():
    assert scale_and_maps([1.0, 2.0, 3.5], low=0, high=5)[0].high == 5
    with pytest.raises(ValueError, match=r"between 1 and 3\.5, outside the range from 2 to 5"):
        scale_and_maps([1.0, 2.0, 3.5], low=2, high=5)


def test_maps_that_come_into_question():
    assert scale_and_maps(rng.lognormal(size=300))[1] == ["identity", "root", "log"]
    assert scale_and_maps(rng.normal(size=300))[1] == ["identity"]
    assert scale_and_maps(rng.uniform(size=300), low=0, high=1)[1] == ["identity", "logit"]
    assert scale_and_maps(rng.lognormal(size=300), transform="log")[1] == ["log"]
    with pytest.raises(ValueError, match="needs targets of at least low=0"):
        scale_and_maps(rng.normal(size=300), transform="log")
    with pytest.raises(ValueError, match="needs both bounds"):
        scale_and_maps(rng.normal(size=300), transform="logit")


@pytest.mark.parametrize(("step", "offset"), [(1.0, 0.0), (0.1, 0.05), (25.0, 3.0), (1e-4, 0.0)])
def test_the_resolution_is_the_spacing_of_the_lattice(step, offset):
    y = np.unique(offset + step * rng.integers(0, 1000, 400))
    assert lattice(y) == pytest.approx(step, rel=1e-6)


def test_real_numbers_have_no_resolution():
    assert lattice(np.sort(rng.normal(size=300))) == 0.0


def test_scales_are_not_narrower_than_the_resolution():
    scale, _ = scale_and_maps(np.round(rng.normal(50, 20, 400)), discrete=False)
    assert scale.least_scale(np.zeros(3)) * scale.unit == pytest.approx(np.full(3, 1 / np.sqrt(12)))


def test_decoding_inverts_encoding():
    y = rng.lognormal(size=50)
    scale, _ = scale_and_maps(y)
    assert scale.decode(scale.encode(y)) == pytest.approx(y)
    whole = rng.choice([3.0, 4.0, 8.0], 100)
    scale, _ = scale_and_maps(whole)
    assert np.array_equal(scale.decode(scale.encode(whole)), whole)


def test_targets_below_zero_and_on_both_borders_have_their_maps(rng):
    below = describe(-1 - rng.random(200), np.ones(200), Stacked())[1]
    assert [found.word for found in below] == ["identity"]
    on_borders = np.repeat([0.0, 1.0], 100)
    maps = describe(on_borders, np.ones(200), Stacked(low=0.0, high=1.0, transform="logit"))[1]
    assert np.isfinite(maps[0](on_borders)).all()
