"""Answers as series and frames: the same numbers as the arrays, with the index of the rows."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import cross_val_score

import kernelwright as kw
from kernelwright import (
    EmbeddingClassifier,
    EmbeddingNetworkClassifier,
    EmbeddingRegressor,
    PredictionIntervals,
    PredictionSets,
)
from kernelwright.evaluation import predictions_of
from kernelwright.networks import MLP, Training

CLASSES = ["setosa", "versicolor", "virginica"]


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True, as_frame=True)
    rows = np.random.default_rng(0).permutation(150)
    X = X.set_axis([f"flower {k}" for k in range(150)]).iloc[rows]
    y = pd.Series(np.array(CLASSES)[y.iloc[rows]], X.index)
    model = EmbeddingClassifier(random_state=0).fit(X[:90], y[:90])
    return X, y, model


@pytest.fixture(scope="module")
def patients():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X, y, EmbeddingRegressor(random_state=0).fit(X[:150], y[:150])


def framed(model):
    """Return a copy of a fitted model that answers in frames."""
    return _copied(model).set_output(transform="pandas")


def _copied(model):
    twin = object.__new__(type(model))
    vars(twin).update(vars(model))
    return twin


def same(answer, array, index, columns=None):
    """Check that an answer has the numbers of the array, the index, and the names of the columns."""
    assert isinstance(array, np.ndarray)
    assert isinstance(answer, pd.Series if array.ndim == 1 else pd.DataFrame)
    assert answer.index.equals(index)
    assert np.array_equal(answer.to_numpy(), array)
    if columns is not None:
        assert list(answer.columns) == columns


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("predict", None),
        ("predict_proba", CLASSES),
        ("predict_log_proba", CLASSES),
        ("raw_outputs", CLASSES),
        ("decision_function", CLASSES),
        ("support", None),
        ("entropy", None),
    ],
)
def test_answers_of_a_classifier_keep_the_index(flowers, name, columns):
    X, _, model = flowers
    new = X[90:97]
    same(getattr(framed(model), name)(new), getattr(model, name)(new), new.index, columns)


def test_a_decision_between_two_classes_is_a_series(flowers):
    X, y, _ = flowers
    two = y != "setosa"
    model = EmbeddingClassifier(random_state=0).set_output(transform="pandas").fit(X[two][:60], y[two][:60])
    assert isinstance(model.decision_function(X[:3]), pd.Series)


@pytest.mark.parametrize(
    ("name", "arguments", "columns"),
    [
        ("predict", (), None),
        ("quantile", (0.5,), None),
        ("quantile", ([0.1, 0.9],), [0.1, 0.9]),
        ("cdf", ([100.0, 200.0],), [100.0, 200.0]),
        ("interval", (0.8,), ["low", "high"]),
        ("sample", (3, 0), [0, 1, 2]),
        ("support", (), None),
    ],
)
def test_answers_of_a_regressor_keep_the_index(patients, name, arguments, columns):
    X, _, model = patients
    new = X[::60]
    same(getattr(framed(model), name)(new, *arguments), getattr(model, name)(new, *arguments), new.index, columns)


def test_scores_and_deviations_of_rows_keep_the_index(patients):
    X, y, model = patients
    new, actual = X[::60], y[::60]
    same(framed(model).crps(new, actual), model.crps(new, actual), new.index)
    same(framed(model).log_density(new, y=actual), model.log_density(new, actual), new.index)
    for answer, array in zip(framed(model).predict(new, True), model.predict(new, return_std=True), strict=True):
        same(answer, array, new.index)


def test_several_targets_are_columns_and_three_dimensions_stay_an_array(patients):
    X, y, _ = patients
    model = EmbeddingRegressor(random_state=0).fit(X[:60], np.column_stack([y[:60], -y[:60]]))
    model.set_output(transform="pandas")
    assert model.predict(X[:4]).shape == (4, 2)
    assert isinstance(model.predict(X[:4]), pd.DataFrame)
    assert isinstance(model.interval(X[:4]), np.ndarray)


@pytest.mark.slow
def test_a_network_answers_in_frames_too(flowers):
    X, y, _ = flowers
    model = EmbeddingNetworkClassifier(MLP([8]), training=Training(max_epochs=2), random_state=0)
    model.set_output(transform="pandas").fit(X[:60], y[:60])
    assert list(model.predict_proba(X[60:63]).columns) == CLASSES
    assert model.transform(X[60:63]).index.equals(X.index[60:63])
    model.set_output(transform="polars").transform(X[60:63]).to_numpy()
    assert isinstance(model.predict_proba(X[60:63]), np.ndarray)


def test_sets_and_intervals_answer_in_frames(flowers, patients):
    X, y, model = flowers
    sets = PredictionSets(model, method="prefit").fit(X[90:130], y[90:130])
    same(framed(sets).predict_set(X[130:]), sets.predict_set(X[130:]), X.index[130:], CLASSES)
    same(framed(sets).predict_proba(X[130:]), sets.predict_proba(X[130:]), X.index[130:], CLASSES)
    X, y, model = patients
    # the regressor inside may answer in frames as well
    intervals = PredictionIntervals(framed(model), method="prefit").fit(X[150:300], y[150:300])
    plain = PredictionIntervals(model, method="prefit").fit(X[150:300], y[150:300])
    same(framed(intervals).interval(X[300:]), plain.interval(X[300:]), X.index[300:], ["low", "high"])
    assert str(framed(intervals).summary(X[300:], y[300:])) == str(plain.summary(X[300:], y[300:]))


def test_other_rows_are_answered_by_arrays(flowers):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    X, _, model = flowers
    frame = {name: X[name].to_numpy()[:5] for name in X.columns}
    for rows in (polars.DataFrame(frame), pyarrow.table(frame)):
        assert isinstance(framed(model).predict_proba(rows), np.ndarray)
    with pytest.warns(UserWarning, match="valid feature names"):
        assert isinstance(framed(model).predict(X.to_numpy()), np.ndarray)


def test_a_dask_frame_is_answered_by_a_dask_array(flowers):
    dask_frames = pytest.importorskip("dask.dataframe")
    X, _, model = flowers
    rows = dask_frames.from_pandas(X.reset_index(drop=True)[:20], npartitions=2)
    answer = framed(model).predict_proba(rows)
    assert np.allclose(answer.compute(), model.predict_proba(X[:20]))


def test_by_default_and_by_the_global_setting_answers_are_arrays(flowers):
    X, _, model = flowers
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(model.predict_proba(X), np.ndarray)
    assert isinstance(_copied(model).set_output(transform="default").predict(X), np.ndarray)
    assert isinstance(framed(model).set_output().predict(X), pd.Series)
    with pytest.raises(ValueError, match=r"transform must be one of 'default', 'pandas', or None. Got 'polars'"):
        _copied(model).set_output(transform="polars")


def test_clones_and_files_keep_the_setting(flowers, tmp_path):
    X, y, model = flowers
    kw.save(framed(model), tmp_path / "m.kw")
    assert list(kw.load(tmp_path / "m.kw").predict_proba(X[:2]).columns) == CLASSES
    assert isinstance(clone(framed(model)).fit(X[:50], y[:50]).predict(X[:2]), pd.Series)


@pytest.mark.slow
def test_what_a_model_computes_from_its_own_answers_is_the_same(flowers, patients):
    X, y, model = flowers
    assert framed(model).score(X, y) == model.score(X, y)
    assert framed(model).importance(X[90:], y[90:]).rows == model.importance(X[90:], y[90:]).rows
    bounds = [each.risk_bound("holdout", X[90:], y[90:]).total for each in (model, framed(model))]
    assert bounds[0] == bounds[1]
    X, y, model = patients
    X, y = X[150:], y[150:]
    assert framed(model).importance(X, y).rows == model.importance(X, y).rows
    assert framed(model).risk_bound("holdout", X, y).total == model.risk_bound("holdout", X, y).total
    found = [predictions_of(each, X, y.to_numpy()) for each in (framed(model), model)]
    assert all(np.array_equal(getattr(found[0], name), getattr(found[1], name)) for name in ("means", "low", "crps"))


@pytest.mark.slow
def test_scorers_of_classes_and_numbers_work_and_those_of_two_probabilities_need_arrays(flowers, patients):
    X, y, model = flowers
    given = clone(framed(model))
    assert np.array_equal(cross_val_score(given, X, y, cv=2), cross_val_score(clone(model), X, y, cv=2))
    assert cross_val_score(given, X, y, cv=2, scoring="neg_log_loss").min() > -0.5
    two = y != "setosa"
    asked = {"cv": 2, "scoring": "roc_auc"}
    assert cross_val_score(clone(model), X[two], y[two], **asked).min() > 0.9
    X, y, model = patients
    assert cross_val_score(clone(framed(model)), X[:100], y[:100], cv=2, scoring="r2").shape == (2,)
