"""Estimators take data frames as they come."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.sparse import random as random_matrix
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

import kernelwright as kw
from kernelwright import ColumnWarning, features, kernels, learning, networks, solvers

N = 240


def table(seed=0, n=N):
    """Return a frame in which a town, a date and a gap decide, and the labels."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "customer": random.permutation(n) + 5000,
            "size": np.where(random.random(n) < 0.25, np.nan, random.normal(size=n)),
            "town": random.choice(["Bonn", "Ulm", "Rome", "Oslo"], n),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(random.integers(0, 700, n), unit="D"),
            "new": pd.array(random.random(n) < 0.5, dtype="boolean"),
        }
    )
    score = 2.0 * frame["town"].isin(["Bonn", "Oslo"]) - 1 + 1.5 * frame["size"].isna() - 0.8
    return frame, np.where(score + 0.1 * random.normal(size=n) > 0, "stay", "go")


CLASSIFIERS = {
    "default": kw.EmbeddingClassifier(learn=learning.Auto(max_iter=5), random_state=0),
    "kernel": kw.EmbeddingClassifier(kernels.Gaussian("median"), learn=None, random_state=0),
    "features": kw.EmbeddingClassifier(features=features.RandomFourier(100), random_state=0),
    "network": kw.EmbeddingNetworkClassifier(training=networks.Training(max_epochs=40), random_state=0),
    "machine": kw.KreinSVC(),
    "two stages": kw.LearnedKernelClassifier(),
}


@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers_learn_from_a_frame_and_keep_their_reader(model, tmp_path):
    (X, y), (new, y_new) = table(), table(1)
    with pytest.warns(ColumnWarning, match=r"Left out: customer \(a different whole number in every row\)"):
        model = clone(model).fit(X, y)
    assert model.score(new, y_new) > 0.85  # a constant is right for about half of the rows
    kw.save(model, tmp_path / "m.kw")
    other = new[new.columns[::-1]].assign(more="x")
    np.testing.assert_array_equal(kw.load(tmp_path / "m.kw").predict(other), model.predict(new))
    np.testing.assert_array_equal(model.predict(pl.from_pandas(new)), model.predict(new))
    with pytest.raises(ValueError, match="no column 'town'"):
        model.predict(new.drop(columns="town"))
    assert (model.n_features_in_, list(model.feature_names_in_)) == (5, list(X.columns))


@pytest.mark.filterwarnings("ignore::kernelwright.ColumnWarning")
def test_what_was_done_is_said_and_can_be_overruled():
    X, y = table()
    model = kw.EmbeddingClassifier(learn=None, random_state=0).fit(X, y)
    assert [(c.name, c.used) for c in model.columns_] == [
        ("customer", False),
        ("size", True),
        ("town", True),
        ("day", True),
        ("new", True),
    ]
    changed = X.assign(customer=0)
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(changed))
    kept = kw.EmbeddingClassifier(learn=None, keep=["customer"], categorical=["new"], random_state=0).fit(X, y)
    assert [column.kind for column in kept.columns_] == ["number", "number", "category", "date", "category"]
    assert not np.array_equal(kept.predict_proba(X), kept.predict_proba(changed))


@pytest.mark.filterwarnings("ignore::kernelwright.ColumnWarning")
def test_new_categories_and_new_gaps_are_answered_one_row_at_a_time():
    (X, y), (new, _) = table(), table(1)
    model = kw.EmbeddingClassifier(learn=learning.Auto(max_iter=3), random_state=0).fit(X, y)
    new.loc[:4, ["town", "day"]] = ["Mars", None]
    p = model.predict_proba(new)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(model.predict_proba(new[3:4]), p[3:4], atol=1e-10)
    array = new.to_numpy(dtype=object)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_allclose(model.predict_proba(array), p, atol=1e-10)
    with pytest.raises(ValueError, match="was fitted to a data frame with 5 columns"):
        model.predict(array[:, :3])


@pytest.mark.filterwarnings("ignore::kernelwright.ColumnWarning")
def test_numbers_are_predicted_from_a_frame_with_gaps_in_cross_validation():
    X, _ = table()
    y = 3.0 * X["town"].isin(["Bonn", "Oslo"]) + np.where(X["size"].isna(), 4.0, X["size"])
    model = kw.EmbeddingRegressor(learn=learning.Auto(max_iter=5), random_state=0)
    assert cross_val_score(model, X, y, cv=3).min() > 0.9
    fitted = kw.ConditionalMeanEmbedding(learn=learning.Auto(max_iter=5), random_state=0).fit(X[:160], y[:160])
    assert fitted.score(X[160:], y[160:]) > 0.8


@pytest.mark.filterwarnings("ignore::kernelwright.ColumnWarning")
def test_a_kernel_is_learned_from_standardised_numbers_and_one_column_for_each_category():
    X, y = table(n=90)
    X = X[["town", "new"]].astype({"new": bool}).assign(number=np.random.default_rng(0).normal(size=90))
    new, towns = X["new"].to_numpy(dtype=float), X["town"].to_numpy()
    one_hot = np.column_stack([towns == town for town in sorted(set(towns))]) + 0.0
    one_hot /= np.sqrt(one_hot.var(0).sum())  # as much as a number
    encoded = np.column_stack([one_hot, StandardScaler().fit_transform(np.column_stack([new, X["number"]]))])
    model = kw.HyperKernelRidge(random_state=0).fit(X, y)
    distances = pdist(model.encoder_.transform(model.reader_.codes(X)))
    assert np.corrcoef(distances, pdist(encoded))[0, 1] > 0.99
    np.testing.assert_allclose(model.predict(X[::-1]), model.predict(X)[::-1, ::-1], rtol=1e-9, atol=1e-11)


def test_frames_of_numbers_are_arrays_with_names():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(80, 3)), columns=list("abc"))
    y = X["a"] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        model = kw.EmbeddingClassifier(learn=None, random_state=0).fit(X, y)
    assert model.reader_ is None
    assert [column.treatment for column in model.columns_] == ["as it is"] * 3
    plain = kw.EmbeddingClassifier(learn=None, random_state=0).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(plain.predict_proba(X.to_numpy()), model.predict_proba(X.assign(d="extra")))
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(X[["b", "a", "c"]])


def test_gaps_in_an_array_are_missing_values_for_the_default_kernel():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    y = random.random(200) < 0.5
    X[y, 1] = np.nan  # only the gap tells the class
    model = kw.EmbeddingClassifier(learn=learning.Auto(max_iter=5), random_state=0).fit(X[:120], y[:120])
    assert model.score(X[120:], y[120:]) > 0.95
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.full((1, 2), np.inf))
    known = np.where(np.isnan(X), 0.5, X)
    for model in (kw.EmbeddingRegressor(random_state=0), kw.EmbeddingClassifier(random_state=0)):
        model.fit(known[:120], X[:120, 0] > 0)  # gaps come only with new rows, in a column that says nothing
        assert model.support(X[120:][np.isnan(X[120:, 1])]).min() > 0.5
        assert np.mean((model.predict(X[120:]) > 0.5) == (X[120:, 0] > 0)) > 0.9
    with pytest.raises(ValueError, match="NaN"):
        kw.EmbeddingClassifier(kernels.Gaussian(1.0)).fit(X, y)
    with pytest.raises(ValueError, match="pass a data frame"):
        kw.EmbeddingClassifier(categorical=[0]).fit(X, y)


@pytest.mark.filterwarnings("ignore::kernelwright.ColumnWarning")
def test_more_rows_of_a_frame_are_added():
    (X, y), (more, y_more) = table(), table(1)
    model = kw.EmbeddingClassifier(features=features.RandomFourier(100), random_state=0).partial_fit(X, y)
    model.partial_fit(more[more.columns[::-1]], y_more)
    test, y_test = table(2)
    assert model.score(test, y_test) > 0.85


def test_words_of_rows_that_are_all_equal_are_told_apart():
    words = np.repeat(list("abcdefgh"), 12)
    X, effects = pd.DataFrame({"word": words}), dict(zip("abcdefgh", [3.0, -1, 4, 1, -5, 9, 2, -6], strict=True))
    y, train = np.array([effects[word] for word in words]), np.arange(len(words)) % 3 > 0
    numbers = kw.EmbeddingRegressor(random_state=0).fit(X[train], y[train])
    assert np.abs(numbers.predict(X[~train]) - y[~train]).max() < 0.5
    classes = kw.EmbeddingClassifier(random_state=0).fit(X[train], y[train] > 1.5)
    assert classes.score(X[~train], y[~train] > 1.5) == 1.0


@pytest.mark.filterwarnings("ignore::kernelwright.ColumnWarning")
def test_fourier_features_stand_for_the_kernel_of_a_frame():
    (X, y), (new, y_new) = table(), table(1)
    exact = kw.EmbeddingClassifier(learn=None, random_state=0).fit(X, y)
    model = kw.EmbeddingClassifier(learn=None, solver=solvers.Fourier(4000), random_state=0).fit(X, y)
    points = torch.from_numpy(exact.scaler_.transform(exact.reader_.codes(new)))
    features = model.embedding_.features(points).detach()
    np.testing.assert_allclose(features @ features.T, exact.kernel_(points).detach(), atol=0.1)
    assert model.score(new, y_new) > 0.85


@pytest.mark.parametrize("names", [["id", "a", "b"], [0, 1, 2]])
@pytest.mark.filterwarnings("ignore::kernelwright.ColumnWarning")
def test_importances_have_an_entry_for_each_column_of_the_frame(names):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"id": np.arange(80), "a": random.choice(["u", "v", "w"], 80), "b": random.normal(size=80)})
    model = kw.EmbeddingClassifier(learn=None, keep=[], random_state=0).fit(X.set_axis(names, axis=1), X["b"] > 0)
    found = model.feature_importances_
    assert len(found) == model.n_features_in_ == 3
    assert found[0] == 0.0 < found[1:].min()
    assert found.sum() == pytest.approx(1.0)


GAPLESS = {
    "kernel": kw.EmbeddingClassifier(kernels.Gaussian("median"), learn=None, random_state=0),
    "network": kw.EmbeddingNetworkClassifier(training=networks.Training(max_epochs=5), random_state=0),
    "machine": kw.KreinSVC(),
    "two stages": kw.LearnedKernelClassifier(),
    "learned": kw.HyperKernelRidge(random_state=0),
    "support vectors": kw.HyperKernelSVR(C=1.0, random_state=0),
}


@pytest.mark.parametrize("model", GAPLESS.values(), ids=GAPLESS)
def test_new_gaps_in_a_frame_of_numbers_lie_at_the_mean_of_their_column(model, tmp_path):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=50), "b": random.integers(0, 9, 50)})
    kw.save(clone(model).fit(X, X["a"] + 0.2 * X["b"] > 0.8), tmp_path / "m.kw")
    model = kw.load(tmp_path / "m.kw")
    filled = X[:4].assign(b=X["b"].mean())
    for gaps in (
        X[:4].assign(b=np.nan),
        X[:4].assign(b=pd.NA),
        X[:4].astype(object).assign(b=["NA", None, np.nan, ""]),
    ):
        np.testing.assert_allclose(model.predict(gaps), model.predict(filled))
    with pytest.raises(ValueError, match="'b' held numbers in training, but the table has 'many' in row 2"):
        model.predict(X[:4].astype(object).assign(b=[1, "many", 2, 3]))
    with pytest.raises(ValueError, match="dates or durations"):
        model.predict(X[:4].assign(b=pd.Timestamp("2020-01-01")))
    with pytest.warns(UserWarning, match="feature names"), pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((4, 2), np.nan))


def test_frames_of_sparse_numbers_without_names():
    X = pd.DataFrame.sparse.from_spmatrix(random_matrix(60, 4, density=0.5, format="csr", random_state=0))
    y = X.to_numpy().sum(axis=1) > 1
    dense = kw.EmbeddingClassifier(learn=None, random_state=0).fit(X.to_numpy(), y)
    model = kw.EmbeddingClassifier(learn=None, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), dense.predict_proba(X.to_numpy()))


LEARNERS = (kw.HyperKernelRidge(), kw.HyperKernelSVR(C=1.0), kw.KreinSVC(), kw.LearnedKernelClassifier())


@pytest.mark.parametrize("model", [*LEARNERS, kw.ConditionalMeanEmbedding()], ids=lambda model: type(model).__name__)
def test_every_learner_says_what_was_done_and_can_be_overruled(model):
    X, y = table(n=60)
    X = X[["customer", "new", "town"]].assign(code=np.arange(60) % 3)
    with pytest.warns(ColumnWarning, match="customer .* uses them anyway"):
        assert [column.used for column in clone(model).fit(X, y).columns_] == [False, True, True, True]
    found = clone(model).set_params(keep=["customer"], categorical=["code"]).fit(X, y).columns_
    assert [column.kind for column in found] == ["number", "boolean", "category", "category"]
