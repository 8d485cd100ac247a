"""Bad input of a regressor: a clear error, or it works and warns."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from kernelwright import EmbeddingRegressor, distributions, kernels, learning
from kernelwright.features import RandomFourier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)


def quick(**how):
    return EmbeddingRegressor(**({"learn": learning.Auto(max_iter=3), "random_state": 0} | how))


def all_answers(model, rows):
    """Ask for everything, and require finite and ordered answers."""
    mean, std = model.predict(rows, return_std=True)
    quantiles = model.quantile(rows, [0.01, 0.5, 0.99])
    for each in (
        mean,
        std,
        quantiles,
        model.cdf(rows, [mean.min(), mean.max()]),
        model.sample(rows, 3),
        model.support(rows),
    ):
        assert np.isfinite(each).all()
    assert (np.diff(quantiles) >= 0).all()
    assert (std >= 0).all()
    return mean


# Targets that are refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.r_[Y[:59], np.inf], "infinity, first at row 59"),
        (np.r_[-np.inf, Y[1:]], "infinity, first at row 0"),
        (1e300 * Y, "Divide the target by a constant"),
        (1e-200 * Y, "Multiply the target by a constant"),
        (pd.date_range("2020-01-01", periods=60), "dates or durations"),
        (pd.Series(pd.date_range("2020-01-01", periods=60)) - pd.Timestamp("2020-01-01"), "dates or durations"),
        ([*Y[:59], "about 3"], "Got 'about 3' at row 59. For classes use EmbeddingClassifier"),
        ([*Y[:59], "1,5"], "Got '1,5' at row 59"),
        ([*Y[:59], [1.0]], "at row 59|inhomogeneous"),
        (Y + 1j, "Complex data"),
        (np.full(60, np.nan), "no row has a target"),
        (None, "y is None"),
        (Y[:59], "inconsistent numbers of samples"),
        (np.zeros((60, 0)), r"of shape \(n,\) or \(n, k\)"),
        (np.zeros((60, 2, 2)), r"of shape \(n,\) or \(n, k\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "y",
)
def test_targets_that_no_number_can_be_made_of(y, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(60), "zero"),
        (-np.ones(60), "[Nn]egative"),
        (np.full(60, np.nan), "NaN"),
        (np.r_[np.inf, np.ones(59)], "infinity|too large"),
        (np.ones(5), "60"),
    ],
    ids=["zero", "negative", "missing", "infinite", "few"],
)
def test_weights_that_say_nothing(weights, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(X, Y, sample_weight=weights)


def test_no_rows_and_one_row():
    with pytest.raises(ValueError, match="0 sample"):
        quick().fit(X[:0], Y[:0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert all_answers(quick().fit(X[:1], Y[:1]), X) == pytest.approx(np.full(60, Y[0]))


# Targets that are numbers in disguise ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        [f"{value:.17g}" for value in Y],
        [Decimal(value) for value in Y],
        pd.Series(Y, dtype="Float64"),
        pd.Series(Y).astype(object),
        Y.astype(np.longdouble),
        pd.DataFrame({"price": Y})["price"],
    ],
    ids=["text of numbers", "decimals", "nullable", "objects", "long doubles", "a column"],
)
def test_numbers_of_other_types_are_the_same_numbers(y):
    np.testing.assert_allclose(quick().fit(X, y).predict(X), quick().fit(X, Y).predict(X), atol=1e-9)


@pytest.mark.parametrize("gap", [np.nan, None, pd.NA])
def test_gaps_of_any_kind_are_left_out_with_a_warning(gap):
    y = pd.Series(Y).astype(object)
    y[[2, 5]] = gap
    weights, groups = np.linspace(1, 2, 60), np.arange(60) // 2
    there = ~np.isin(np.arange(60), [2, 5])
    with pytest.warns(UserWarning, match=r"2 of 60 rows have no target .* first is row 2"):
        found = quick().fit(X, y, weights, groups).predict(X)
    np.testing.assert_allclose(found, quick().fit(X[there], Y[there], weights[there], groups[there]).predict(X))


def test_a_gap_in_one_of_several_targets_leaves_the_row_out():
    y = np.column_stack([Y, -Y])
    y[7, 1] = np.nan
    with pytest.warns(UserWarning, match="1 of 60 rows"):
        model = quick().fit(X, y)
    assert model.predict(X).shape == (60, 2)


def test_booleans_and_two_values_get_mass_there():
    model = quick().fit(X, Y > 0)
    assert set(np.unique(model.quantile(X, [0.05, 0.5, 0.95]))) <= {0.0, 1.0}
    all_answers(model, X)


# Targets of odd sizes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-130, 1e-12, 1e12, 1e140])
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_units_do_not_matter(factor, shift):
    plain, scaled = all_answers(quick().fit(X, Y + shift), X), quick().fit(X, factor * (Y + shift)).predict(X)
    np.testing.assert_allclose(scaled / factor, plain, atol=1e-5)


@pytest.mark.parametrize(
    ("how", "factor"), [("stacked", -4.0), ("location-scale", -4.0), ("direct", 4e5), ("stacked", 4e5)]
)
def test_a_target_in_other_units_has_the_same_distribution_there(how, factor):
    """Also mirrored, and far from zero."""
    plain, other = quick(distribution=how).fit(X, Y), quick(distribution=how).fit(X, 1e6 + factor * Y)
    levels = np.array([0.05, 0.5, 0.8])
    quantiles = (other.quantile(X, levels if factor > 0 else 1 - levels) - 1e6) / factor
    np.testing.assert_allclose(quantiles, plain.quantile(X, levels), rtol=0, atol=1e-5)
    np.testing.assert_allclose(other.predict(X, True)[1] / abs(factor), plain.predict(X, True)[1], atol=1e-5)
    np.testing.assert_allclose(other.crps(X, 1e6 + factor * Y) / abs(factor), plain.crps(X, Y), atol=1e-5)


def test_a_large_constant_does_not_drown_the_signal():
    mean = all_answers(quick().fit(X, 1e9 + Y), X)
    assert np.corrcoef(mean, Y)[0, 1] > 0.95


@pytest.mark.parametrize("value", [0.0, -3.5, 1e100])
@pytest.mark.parametrize("how", [{}, {"distribution": "direct"}, {"features": RandomFourier(20)}], ids=str)
def test_one_value_is_predicted_with_certainty(value, how):
    model = quick(**how).fit(X, np.full(60, value))
    mean, std = model.predict(X + 100.0, return_std=True)
    np.testing.assert_array_equal(mean, value)
    np.testing.assert_array_equal(std, 0.0)
    np.testing.assert_array_equal(model.quantile(X, [0.0, 0.5, 1.0]), value)


def test_one_outlier_leaves_the_others_predictable():
    """A thousand standard deviations away: the median of the others is still found."""
    y = Y.copy()
    y[0] = 1000.0
    model = quick().fit(X, y)
    all_answers(model, X)
    assert np.abs(model.quantile(X[1:], 0.5) - Y[1:]).mean() < 3.0


@pytest.mark.parametrize("n", [2, 3, 4, 7])
@pytest.mark.parametrize("how", [{}, {"distribution": "location-scale"}, {"distribution": "direct"}], ids=str)
def test_a_handful_of_rows(n, how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean = all_answers(EmbeddingRegressor(random_state=0, **how).fit(X[:n], Y[:n]), X)
    assert np.all(np.abs(mean - Y[:n].mean()) <= 2 * np.ptp(Y[:n]))


def test_two_rows_of_one_point():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = quick().fit(np.zeros((2, 1)), [1.0, 3.0])
    assert model.predict([[0.0]])[0] == pytest.approx(2.0, abs=0.01)


def test_weights_of_zero_but_for_two_rows():
    weights = np.r_[np.zeros(58), 1.0, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean = all_answers(quick().fit(X, Y, sample_weight=weights), X)
    assert np.all(np.abs(mean - Y[58:].mean()) <= 2 * np.ptp(Y[58:]))


# Settings and inputs -----------------------------------------------------------------------------------------------


def test_a_range_that_the_targets_leave_is_refused():
    with pytest.raises(ValueError, match="outside the range from 0 to inf"):
        quick(distribution=distributions.Stacked(low=0.0)).fit(X, Y)
    with pytest.raises(ValueError, match="needs both bounds"):
        quick(distribution=distributions.Stacked(transform="logit")).fit(X, Y)
    with pytest.raises(ValueError, match="distribution"):
        quick(distribution="normal").fit(X, Y)


def test_inputs_are_checked_as_those_of_a_classifier():
    for bad, message in ((np.where(X > 1, np.nan, X), "NaN"), (np.where(X > 1, np.inf, X), "infinity"), (X[0], "2D")):
        with pytest.raises(ValueError, match=message):
            quick(kernel=kernels.Gaussian()).fit(bad, Y)
    model = quick(kernel=kernels.Gaussian()).fit(X, Y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        model.quantile(np.full((1, 2), np.nan), 0.5)


def test_gaps_of_an_array_are_values_for_the_default_kernel():
    gaps = np.where(X > 1, np.nan, X)
    assert np.isnan(gaps).any()
    model = quick().fit(gaps, Y)
    assert model.score(gaps, Y) > 0.5 * quick().fit(X, Y).score(X, Y)
    lone = quick().fit(X, Y).quantile(np.full((1, 2), np.nan), [0.1, 0.9])  # of no training row: at the centre
    assert np.isfinite(lone).all()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.quantile(X, 1.5), "between 0 and 1|in \\[0, 1\\]"),
        (lambda m: m.interval(X, 0.0), "coverage"),
        (lambda m: m.cdf(X, [np.nan]), "'t' parameter"),
        (lambda m: m.sample(X, 0), "size"),
        (lambda m: m.crps(X, Y[:5]), "shape"),
        (lambda m: m.log_density(X, np.full(60, np.nan)), "without gaps"),
    ],
    ids=["quantile", "interval", "cdf", "sample", "crps", "density"],
)
def test_questions_without_an_answer(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(quick(learn=None).fit(X, Y))


def test_noise_on_small_tables_costs_almost_nothing():
    """The goal "noisy-numbers" of robustness/numbers.py, with few tables: at most .02 of R^2 is lost."""
    lost = []
    for number in range(12):
        rng = np.random.default_rng(number)
        n = (15, 30, 60)[number % 3]
        X, y = rng.normal(size=(n + 500, 1 + number % 4)), rng.normal(size=n + 500)
        predicted = EmbeddingRegressor(random_state=0).fit(X[:n], y[:n]).predict(X[n:])
        lost.append(np.mean((y[n:] - predicted) ** 2 - (y[n:] - y[:n].mean()) ** 2) / y[n:].var())
    assert np.mean(lost) < 0.02


def test_a_target_that_drowns_all_others_and_very_few_rows_are_reported():
    X, y = np.random.default_rng(0).normal(size=(2, 60, 1))
    drowned = y[:, 0].copy()
    drowned[7] = 1e9
    with pytest.warns(UserWarning, match="The target 1e\\+09 is far from all others"):
        EmbeddingRegressor(learn=None).fit(X, drowned)
    with pytest.warns(UserWarning, match="All targets are equal: 3 is predicted"):
        EmbeddingRegressor(learn=None).fit(X, np.full(60, 3.0))
    with pytest.warns(UserWarning, match="only one row with a target: 2 is predicted"):
        EmbeddingRegressor(learn=None).fit(X[:1], [2.0])
    with pytest.warns(UserWarning, match="only 2 rows with a target"):
        EmbeddingRegressor(learn=None).fit(X[:2], y[:2, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EmbeddingRegressor(learn=None).fit(X, y[:, 0])
