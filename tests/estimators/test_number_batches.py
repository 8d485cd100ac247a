"""Batches of rows for a regressor: against a fit of all rows at once."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from kernelwright import EmbeddingRegressor, distributions
from kernelwright.estimators import number_batches, streaming
from kernelwright.features import RandomFourier
from kernelwright.learning import Auto, Given

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 2))
Y = 30.0 + np.sin(2 * X[:, 0]) + (0.2 + 0.1 * X[:, 1] ** 2) * RNG.normal(size=600)
W = RNG.uniform(0.5, 2.0, 600)


def explicit(**how):
    settings = {"features": RandomFourier(50, seed=0), "learn": None, "ridge": 0.03, "random_state": 0}
    return EmbeddingRegressor(**(settings | how))


def locations(model, rows=X):
    """Return the locations in units of the target."""
    outputs = model.embedding_.outputs(rows)[0].numpy()
    return np.column_stack([outputs[:, j] * link.scale.unit + link.scale.centre for j, link in enumerate(model.links_)])


@pytest.mark.parametrize("weights", [None, W], ids=["equal", "weighted"])
@pytest.mark.parametrize("y", [Y, np.column_stack([Y, np.cos(X[:, 0])])], ids=["one target", "two targets"])
def test_adding_rows_is_fitting_all_rows_at_once(weights, y):
    """With the same absolute ridge. Up to 5000 rows, this holds for the whole distribution.

    Weights have mean one in the first rows, or in all: the ridges of the scale, from a grid, are then not quite equal.
    """
    w = np.ones(600) if weights is None else weights
    added = explicit(ridge=0.03)
    for rows in (slice(0, 200), slice(200, 250), slice(250, 600)):
        added.partial_fit(X[rows], y[rows], None if weights is None else weights[rows])
    whole = explicit(ridge=0.03 * w[:200].sum() / w.sum()).fit(X, y, weights)
    np.testing.assert_allclose(locations(added), locations(whole), atol=1e-9)
    np.testing.assert_allclose(added.predict(X), whole.predict(X), atol=1e-8 if weights is None else 0.01)
    quantiles = [each.quantile(X, [0.05, 0.5, 0.95]) for each in (added, whole)]
    np.testing.assert_allclose(*quantiles, atol=1e-6 if weights is None else 0.1)


def test_a_learned_kernel_stays_and_new_rows_make_it_better():
    new = RNG.normal(size=(2600, 2))
    y = np.sin(2 * new[:, 0]) + 0.2 * RNG.normal(size=2600)
    model = explicit(learn="auto").partial_fit(new[:60], y[:60])
    scale, before = model.features_.lengthscale.detach().clone(), model.crps(new[2000:], y[2000:]).mean()
    for start in range(60, 2000, 500):
        model.partial_fit(new[start : start + 500], y[start : start + 500])
    np.testing.assert_array_equal(model.features_.lengthscale.detach(), scale)
    assert model.crps(new[2000:], y[2000:]).mean() < 0.95 * before
    limits = model.interval(new[2000:], 0.8)
    assert 0.76 < np.mean((limits[:, 0] <= y[2000:]) & (y[2000:] <= limits[:, 1])) < 0.84


def test_batches_are_collected_until_there_are_enough(monkeypatch):
    monkeypatch.setattr(number_batches, "LEFT_OUT_ROWS", 250)
    batches = [(X[start : start + 100], Y[start : start + 100]) for start in range(0, 600, 100)]
    model = explicit(learn="auto").fit_batches(iter(batches))
    by_hand = explicit(learn="auto").partial_fit(X[:300], Y[:300]).partial_fit(X[300:], Y[300:])
    np.testing.assert_allclose(locations(model), locations(by_hand), atol=1e-9)
    frames = [(pd.DataFrame(x, columns=["a", "b"]), pd.Series(y)) for x, y in batches]
    named = explicit(learn="auto").fit_batches(frames)
    assert list(named.feature_names_in_) == ["a", "b"]
    np.testing.assert_allclose(locations(named), locations(model), atol=1e-9)
    with pytest.raises(ValueError, match="no batches to fit"):
        explicit().fit_batches([])


def test_the_distribution_is_fitted_to_a_fair_sample(monkeypatch):
    monkeypatch.setattr(streaming, "LEFT_OUT_ROWS", 150)
    y = np.where(np.arange(600) < 300, 0.0, 10.0) + RNG.normal(size=600)
    model = explicit().partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    left = model.left_out_[0].y
    assert len(left) == 150
    assert (left > 5.0).mean() == pytest.approx(0.5, abs=0.12)
    assert model.quantile(X[:1], 0.95)[0] > 9.0  # thresholds reach the later rows


def test_values_of_a_discrete_target_may_come_later():
    counts = RNG.poisson(2.0, 600) * 0.1
    model = explicit().partial_fit(X[:200], np.minimum(counts[:200], 0.2))
    np.testing.assert_array_equal(model.links_[0].scale.values, [0.0, 0.1, 0.2])
    model.partial_fit(X[200:], counts[200:])
    values = model.links_[0].scale.values
    np.testing.assert_allclose(values, np.unique(np.append(counts[200:], 0.0)), rtol=1e-12)
    assert np.isin(model.quantile(X, [0.05, 0.95]), values).all()
    assert model.log_density(X[:1], [values[-1]])[0] > -20.0


def test_targets_outside_the_map_of_the_first_rows_are_refused():
    y = np.exp(X[:, 0])
    model = explicit(distribution=distributions.Stacked(transform="log")).partial_fit(X[:300], y[:300])
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"target -1 is outside .* by its log"):
        model.partial_fit(X[300:], -np.ones(300))
    np.testing.assert_array_equal(model.predict(X), before)


def test_gaps_and_rows_of_weight_zero_do_not_count():
    model = explicit().partial_fit(X[:300], Y[:300])
    gaps = np.where(np.arange(300) < 100, np.nan, Y[300:])
    plain = clone(model).partial_fit(X[:300], Y[:300]).partial_fit(X[400:], Y[400:])
    with pytest.warns(UserWarning, match="100 of 300 rows have no target"):
        model.partial_fit(X[300:], gaps)
    np.testing.assert_allclose(locations(model), locations(plain), atol=1e-10)
    before = locations(model)
    model.partial_fit(X[:5], np.full(5, np.nan)).partial_fit(X[:5], Y[:5] + 9.0, [0, 0, 0, 0, 1e-9])
    np.testing.assert_allclose(locations(model), before, atol=1e-6)


def test_the_prior_of_a_kernel_of_other_rows_stays():
    model = explicit(learn=Auto(kernel_share=0.5, max_iter=2)).partial_fit(X[:300], Y[:300])
    before = model.prior_[0]
    assert model.partial_fit(X[300:], Y[300:] + 9.0).prior_[0] == before


def test_what_cannot_take_batches_says_so():
    with pytest.raises(AttributeError, match=r"partial_fit.*EmbeddingRegressor\(features=features\.RandomFourier"):
        EmbeddingRegressor(solver="nystroem").partial_fit(X, Y)
    assert not hasattr(EmbeddingRegressor(), "fit_batches")
    grouped = explicit().fit(X, Y, groups=np.arange(600) // 2)
    with pytest.raises(ValueError, match="with 'groups'"):
        grouped.partial_fit(X, Y)
    model = explicit(learn=Given(holdout_share=0.2)).fit(X, Y)
    with pytest.raises(ValueError, match="had 1 targets"):
        model.partial_fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(X, np.full(600, np.inf))
    model.partial_fit(X, Y)
    with pytest.raises(ValueError, match="needs rows that were not fitted"):
        model.risk_bound()  # they may be among the added rows
