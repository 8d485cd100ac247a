"""Bounds on clipped errors of numbers: against naive formulas, and by simulation."""

import math

import numpy as np
import pytest

from kernelwright.uncertainty.bounds import share_of
from kernelwright.uncertainty.number_risk import (
    FittedLocation,
    NumberLoss,
    check_number_method,
    held_out_numbers,
    left_out_numbers,
    norm_bound,
)

RNG = np.random.default_rng(0)


def test_losses_are_clipped_at_the_limit():
    predicted, y = np.zeros(4), np.array([0.0, 1.0, -2.0, 9.0])
    assert NumberLoss.of("absolute", 4.0, 1.0).shares(predicted, y).tolist() == [0.0, 0.25, 0.5, 1.0]
    assert NumberLoss.of("squared", 4.0, 1.0).shares(predicted, y).tolist() == [0.0, 1 / 16, 0.25, 1.0]
    assert (NumberLoss.of("squared", 4.0, 1.0).largest, NumberLoss.of("absolute", None, 2.0).largest) == (16.0, 6.0)


@pytest.mark.parametrize("word", ["absolute", "squared"])
@pytest.mark.parametrize("groups", [None, np.arange(60) // 4], ids=["rows", "groups"])
def test_held_out_bounds_are_the_bernstein_formula_in_units_of_the_target(word, groups):
    predicted, y = RNG.normal(size=60), 3 * RNG.normal(size=60)
    found = held_out_numbers(NumberLoss.of(word, 2.5, 1.0), predicted, y, 0.1, groups)
    losses = np.minimum(np.abs(predicted - y), 2.5) ** (1 if word == "absolute" else 2)
    losses = losses if groups is None else np.array([losses[groups == g].mean() for g in range(15)])
    n, largest, log = len(losses), 2.5 if word == "absolute" else 6.25, math.log(2 / 0.1)
    expected = losses.mean() + math.sqrt(2 * losses.var(ddof=1) * log / n) + largest * 7 * log / (3 * (n - 1))
    assert found.total == pytest.approx(expected)
    assert (found.loss, found.largest, found.confidence) == (word, largest, 0.9)
    assert found.vacuous == (expected >= largest)
    assert "Errors beyond 2.5 count as 2.5." in found.conditions
    assert ("Each group counts once" in found.conditions) == (groups is not None)


@pytest.mark.parametrize("word", ["absolute", "squared"])
def test_held_out_bounds_hold_as_often_as_stated(word):
    """Errors of a heavy tail, whose clipped mean is known from a million draws."""
    loss = NumberLoss.of(word, 3.0, 1.0)
    truth = loss.shares(0.0, np.random.default_rng(1).standard_t(2, 1_000_000)).mean() * loss.largest
    errors = np.random.default_rng(2).standard_t(2, (400, 50))
    held = [held_out_numbers(loss, np.zeros(50), row, 0.2).total >= truth for row in errors]
    assert np.mean(held) >= 0.8 - 2 * math.sqrt(0.16 / 400)


def test_left_out_estimates_are_weighted_means_in_units_of_the_target():
    predicted, y, w = RNG.normal(size=80), 3 * RNG.normal(size=80), RNG.uniform(0.5, 2.0, 80)
    found = left_out_numbers(
        NumberLoss.of("squared", 4.0, 1.0), predicted, y, 0.05, weights=w, counts=None, groups=None
    )
    losses = np.minimum(np.abs(predicted - y), 4.0) ** 2
    assert found.total == pytest.approx(np.average(losses, weights=w))
    assert found.total < found.upper < 16.0
    assert not found.guaranteed
    assert "squared" in str(found)


def location(n=400, **changes):
    """Return a noisy line through one known feature, with its norm."""
    x = RNG.uniform(-1, 1, n)
    y = 5.0 + 2.0 * x + 0.5 * RNG.normal(size=n)
    named = {"complexity": 2.0, "offset": 5.0, "fixed_kernel": True, "faults": ()} | changes
    return FittedLocation(5.0 + 2.0 * x, y, np.ones(n), **named)


def test_bounds_by_the_norm_are_the_formula():
    fit = location()
    found = norm_bound("rademacher-fixed-kernel", NumberLoss.of("squared", 4.0, 1.0), fit, 0.05)
    loss = np.minimum(np.abs(fit.predicted - fit.y), 4.0) ** 2
    j = math.ceil(math.log(2.0 / 4.0) / math.log(1.1))
    m = round(400 * 5.0 / 4.0)
    p = share_of(j) * share_of(m)
    expected = loss.mean() + 16.0 * (4 * 1.1**j / 20.0 + 2 / 400 + math.sqrt(math.log(1 / (0.05 * p)) / 800))
    assert found.total == pytest.approx(expected)
    learned = norm_bound("rademacher", NumberLoss.of("squared", 4.0, 1.0), fit, 0.05)
    assert learned.total - found.total == pytest.approx(16.0 * 4 * 1.1**j * (1 - 1 / 20.0))
    rounded = norm_bound("rademacher", NumberLoss.of("squared", None, 1.2), fit, 0.05)
    assert rounded.largest == 16.0  # 3.6 becomes 4
    assert rounded.total > learned.total


def test_the_location_of_a_target_costs_only_a_logarithm():
    near, far = (
        norm_bound("rademacher-fixed-kernel", NumberLoss.of("squared", 4.0, 1.0), location(offset=b), 0.05).parts
        for b in (0.0, 1e6)
    )
    assert far["sample size"] < 2.5 * near["sample size"]


def test_bounds_by_the_norm_hold_for_the_worst_fit_of_a_norm():
    """Least squares in 20 columns with nothing to learn: the training loss is too good, but the bound still holds."""
    loss, failed = NumberLoss.of("squared", 3.0, 1.0), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(60, 20))
        Z /= np.linalg.norm(Z, axis=1)[:, None]
        y = rng.normal(size=60)
        w = np.linalg.solve(Z.T @ Z + 1e-6 * np.eye(20), Z.T @ y)
        fit = FittedLocation(Z @ w, y, np.ones(60), 0.0, float(np.linalg.norm(w)), fixed_kernel=True, faults=())
        new = rng.normal(size=(2000, 20))
        new /= np.linalg.norm(new, axis=1)[:, None]
        truth = loss.shares(new @ w, rng.normal(size=2000)).mean() * 9.0
        found = norm_bound("rademacher-fixed-kernel", loss, fit, 0.2)
        assert found.parts["training loss"] < truth
        failed += found.total < truth
    assert failed <= 0.2 * 200


def test_what_is_not_bounded_is_refused():
    with pytest.raises(ValueError, match=r"must be one of .* Got 'huber'"):
        NumberLoss.of("huber", None, 1.0)
    for limit in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="must be a positive number"):
            NumberLoss.of("squared", limit, 1.0)
    with pytest.raises(ValueError, match="bounds the squared loss only"):
        norm_bound("rademacher", NumberLoss.of("absolute", None, 1.0), location(), 0.05)
    with pytest.raises(ValueError, match=r"kernel_share=0\.5"):
        norm_bound("rademacher-fixed-kernel", NumberLoss.of("squared", None, 1.0), location(fixed_kernel=False), 0.05)
    with pytest.raises(ValueError, match="'beta'"):
        norm_bound("rademacher", NumberLoss.of("squared", None, 1.0), location(), 1.5)
    with pytest.raises(ValueError, match="must be one of"):
        check_number_method("bayes")
    faulty = norm_bound("rademacher", NumberLoss.of("squared", None, 1.0), location(faults=("But no.",)), 0.05)
    assert (faulty.guaranteed, faulty.conditions.endswith("But no.")) == (False, True)


def test_a_target_of_one_value_has_a_limit():
    assert NumberLoss.of("absolute", None, 0.0).limit == 1.0
