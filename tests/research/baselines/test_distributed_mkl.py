"""Bayesian multiple kernel learning by parts: one part is the plain method, and several stay close to it."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import minmax_scale
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelwright.kernels import Gaussian, Linear
from kernelwright.research.baselines import BayesianMKL, DistributedBayesianMKL

KERNELS = [Gaussian(0.5), Gaussian(2.0), Linear()]


def quick(**settings):
    return BayesianMKL(KERNELS, **{"max_iter": 30} | settings)


@pytest.fixture(scope="module", params=[load_breast_cancer, load_wine], ids=["two-classes", "three-classes"])
def rows(request):
    X, y = request.param(return_X_y=True)
    return minmax_scale(X), y


@parametrize_with_checks([DistributedBayesianMKL(BayesianMKL(max_iter=10), n_parts=2, random_state=0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_one_part_is_the_plain_method(rows):
    X, y = rows
    plain, alone = (model.fit(X[::2], y[::2]) for model in (quick(), DistributedBayesianMKL(quick(), n_parts=1)))
    np.testing.assert_array_equal(alone.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(alone.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(alone.predict(X), plain.predict(X))


def test_answers_are_the_mean_log_odds_of_plain_fits_to_the_parts(rows):
    X, y = rows
    model = DistributedBayesianMKL(quick(), n_parts=3, random_state=0).fit(X, y)
    assert sorted(np.concatenate(model.parts_)) == list(range(len(y)))
    odds = sum(quick().fit(X[part], y[part]).decision_function(X) for part in model.parts_) / 3
    np.testing.assert_allclose(model.decision_function(X), odds, rtol=1e-12)
    sigmoid = 1 / (1 + np.exp(-odds))
    expected = np.c_[1 - sigmoid, sigmoid] if odds.ndim == 1 else sigmoid / sigmoid.sum(1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    frequencies = np.bincount(y) / len(y)
    for part in model.parts_:
        np.testing.assert_allclose(np.bincount(y[part]) / len(part), frequencies, atol=0.03)


def test_parts_stay_close_to_the_plain_method_on_rows_that_were_not_fitted(rows):
    X, y = rows
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    plain = quick().fit(X[train], y[train])
    for n_parts in (2, 4):
        parts = DistributedBayesianMKL(quick(), n_parts=n_parts, random_state=0).fit(X[train], y[train])
        assert parts.score(X[test], y[test]) > plain.score(X[test], y[test]) - 0.05  # with 22 rows a part
        assert np.abs(parts.predict_proba(X[test]) - plain.predict_proba(X[test])).mean() < 0.1


def test_parts_may_be_fitted_in_parallel_and_are_repeatable(rows):
    X, y = rows
    alone = DistributedBayesianMKL(quick(max_iter=5), n_parts=3, random_state=1).fit(X, y)
    with parallel_config("threading"):
        together = DistributedBayesianMKL(quick(max_iter=5), n_parts=3, n_jobs=2, random_state=1).fit(X, y)
        odds = together.decision_function(X)
    np.testing.assert_array_equal(odds, alone.decision_function(X))
    other = DistributedBayesianMKL(quick(max_iter=5), n_parts=3, random_state=2).fit(X, y)
    assert not np.array_equal(other.parts_[0], alone.parts_[0])


def test_every_part_has_every_class():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.r_[np.zeros(37), np.ones(3)]
    model = DistributedBayesianMKL(quick(max_iter=2), n_parts=10, random_state=0).fit(X, y)
    assert len(model.estimators_) == 3
    assert all(len(each.classes_) == 2 for each in model.estimators_)


@pytest.mark.parametrize("settings", [{"n_parts": 0}, {"estimator": Linear()}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(InvalidParameterError):
        DistributedBayesianMKL(**settings).fit(np.eye(4), [0, 1, 0, 1])
