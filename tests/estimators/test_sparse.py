"""Sparse matrices as inputs of the classifier and the regressor."""

import ast
import inspect
import pickle
import sysconfig
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import kernelwright as kw
from kernelwright import ConditionalMeanEmbedding, EmbeddingClassifier, EmbeddingRegressor
from kernelwright.features import RandomFourier
from kernelwright.kernels import Angular, Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, RationalQuadratic
from kernelwright.learning import Auto
from kernelwright.solvers import Exact, Landmarks


def topics(n, n_words, n_topics=3, seed=0, own=0.1):
    """Count words: a share of them is of the row's topic, the others are common to all. Few words are frequent."""
    rng = np.random.default_rng(seed)
    usual = 1.0 / np.arange(1, n_words + 1)
    usual /= usual.sum()
    of_topic = [np.random.default_rng(100 + t).permutation(usual) for t in range(n_topics)]
    y, lengths = rng.integers(n_topics, size=n), rng.poisson(60, n) + 1
    words = [rng.choice(n_words, k, p=own * of_topic[t] + (1 - own) * usual) for t, k in zip(y, lengths, strict=True)]
    rows = np.repeat(np.arange(n), lengths)
    return sparse.csr_array((np.ones(len(rows)), (rows, np.concatenate(words))), shape=(n, n_words)), y


@pytest.fixture(scope="module")
def counts():
    X, y = topics(160, 300)
    X = X.tolil()
    X[3] = 0.0  # a row of zeros
    X[5] = X[4]  # equal rows
    X[6, 7] = -2.0
    return X.tocsr(), y


KERNELS = [
    Linear(),
    Gaussian("median"),
    Laplace("median"),
    Gaussian("median") + 0.5 * Linear(),
    RationalQuadratic(5.0) * Gaussian(8.0),
    Polynomial(2, lengthscale=8.0),
    Angular(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_classes_are_those_of_dense_rows(kernel, counts):
    X, y = counts
    models = [EmbeddingClassifier(kernel, random_state=0).fit(rows[:120], y[:120]) for rows in (X, X.toarray())]
    for method in ("predict_proba", "support", "entropy", "raw_outputs"):
        found, wanted = (getattr(m, method)(rows[120:]) for m, rows in zip(models, (X, X.toarray()), strict=True))
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(models[0].kernel_(X), models[1].kernel_(X.toarray()), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(models[0].points_.toarray(), models[1].points_)


@pytest.mark.parametrize("kernel", [Gaussian("median"), Laplace("median"), Linear()], ids=str)
def test_distributions_are_those_of_dense_rows(kernel, counts):
    X, _ = counts
    y = np.asarray(X[:, :30].sum(1)).ravel() + np.random.default_rng(0).normal(size=160)
    models = [EmbeddingRegressor(kernel, random_state=0).fit(rows[:120], y[:120]) for rows in (X, X.toarray())]
    found, wanted = (m.quantile(rows[120:], [0.1, 0.9]) for m, rows in zip(models, (X, X.toarray()), strict=True))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    found, wanted = (m.predict(rows[120:]) for m, rows in zip(models, (X, X.toarray()), strict=True))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("solver", [Landmarks(40), Exact("single")], ids=["landmarks", "single"])
def test_solvers_do_as_with_dense_rows(solver, counts):
    X, y = counts
    models = [
        EmbeddingClassifier(Gaussian(6.0), learn=None, ridge=1e-3, solver=solver, random_state=0).fit(
            rows[:120], y[:120]
        )
        for rows in (X, X.toarray())
    ]
    found, wanted = (m.predict_proba(rows[120:]) for m, rows in zip(models, (X, X.toarray()), strict=True))
    np.testing.assert_allclose(found, wanted, atol=1e-4 if isinstance(solver, Exact) else 1e-8)


@pytest.mark.parametrize("learn", ["rademacher", "held-out", "folds", "cross-validation", Auto(polish=True)], ids=str)
def test_ways_to_learn_do_as_with_dense_rows(learn, counts):
    X, y = counts
    models = [EmbeddingClassifier(Angular(), learn=learn, random_state=0).fit(rows, y) for rows in (X, X.toarray())]
    assert models[0].kernel_.lengthscale.item() == pytest.approx(models[1].kernel_.lengthscale.item(), rel=1e-6)
    assert models[0].ridge_ == pytest.approx(models[1].ridge_, rel=1e-6)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.lil_array])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_all_forms_and_types_give_the_same(form, dtype, counts):
    X, y = counts
    wanted = EmbeddingClassifier(random_state=0).fit(X, y).predict_proba(X)
    given = form(X.astype(dtype))
    np.testing.assert_allclose(
        EmbeddingClassifier(random_state=0).fit(given, y).predict_proba(given), wanted, atol=1e-12
    )


def test_zeros_order_and_index_types_do_not_matter(counts):
    X, y = counts
    wanted = EmbeddingClassifier(random_state=0).fit(X, y).predict_proba(X)
    wild = sparse.csr_array((X.data.copy(), X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    for start, stop in zip(wild.indptr, wild.indptr[1:], strict=False):
        wild.indices[start:stop], wild.data[start:stop] = wild.indices[start:stop][::-1], wild.data[start:stop][::-1]
    wild.data[np.flatnonzero(wild.indices == 2)] = 0.0  # stored zeros
    dense = X.toarray()
    dense[:, 2] = 0.0
    wild.has_sorted_indices = False
    found = EmbeddingClassifier(random_state=0).fit(wild, y).predict_proba(wild)
    plain = sparse.csr_array(dense)
    np.testing.assert_array_equal(found, EmbeddingClassifier(random_state=0).fit(plain, y).predict_proba(plain))
    assert abs(found - wanted).max() < 0.2  # one word less


def test_the_default_looks_at_directions_only(counts):
    X, y = counts
    model = EmbeddingClassifier(random_state=0).fit(X, y)
    assert isinstance(model.kernel_, Angular)
    assert model.scaler_ is None
    np.testing.assert_allclose(model.predict_proba(5.0 * X), model.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X.toarray()), model.predict_proba(X), atol=1e-12)  # dense new rows


def test_one_column_and_rows_of_zeros():
    X = sparse.csr_array(np.array([[0.0], [1.0]] * 20))
    y = np.array([0, 1] * 20)
    model = EmbeddingClassifier(random_state=0).fit(X, y)
    assert model.predict(sparse.csr_array([[0.0], [2.0]])).tolist() == [0, 1]
    assert model.points_.shape == (2, 1)  # equal rows are merged
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        EmbeddingClassifier().fit(X[:, :0], y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        EmbeddingClassifier().fit(X[:0], y[:0])
    assert model.predict_proba(X[:1]).shape == (1, 2)


def test_weights_and_groups_do_as_with_dense_rows(counts):
    X, y = counts
    weights, groups = np.arange(160) % 3.0, np.arange(160) // 4
    models = [
        EmbeddingClassifier(Linear(), random_state=0).fit(rows, y, sample_weight=weights, groups=groups)
        for rows in (X, X.toarray())
    ]
    np.testing.assert_allclose(models[0].predict_proba(X), models[1].predict_proba(X.toarray()), atol=1e-8)


def docstrings(packages=("email", "asyncio", "unittest", "logging", "xml", "http", "importlib", "json", "urllib")):
    """Return docstrings of Python's own library, and the package of each."""
    folder, texts, labels = Path(sysconfig.get_paths()["stdlib"]), [], []
    for package in packages:
        for path in sorted((folder / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and (text := ast.get_docstring(node)):
                    texts.append(inspect.cleandoc(text))
                    labels.append(package)
    return np.array(texts, dtype=object), np.array(labels)


@pytest.mark.slow
def test_texts_are_classified_as_well_as_by_linear_models():
    texts, labels = docstrings()
    _, first = np.unique(texts.astype(str), return_index=True)
    texts, labels = texts[first], labels[first]
    old, new, y_old, y_new = train_test_split(texts, labels, test_size=0.4, random_state=0, stratify=labels)
    found = make_pipeline(TfidfVectorizer(sublinear_tf=True), EmbeddingClassifier(random_state=0)).fit(old, y_old)
    accuracy, loss = found.score(new, y_new), log_loss(y_new, found.predict_proba(new))
    for rival in (LogisticRegression(C=10.0, max_iter=300), LinearSVC(), MultinomialNB(alpha=0.1)):
        other = make_pipeline(TfidfVectorizer(sublinear_tf=True), rival).fit(old, y_old)
        assert accuracy > other.score(new, y_new) - 0.01
        if hasattr(other, "predict_proba"):
            assert loss < log_loss(y_new, other.predict_proba(new))


def test_topics_are_found_and_probabilities_are_calibrated():
    X, y = topics(900, 2000)
    model = EmbeddingClassifier(random_state=0).fit(X[:400], y[:400])
    tf = TfidfTransformer(use_idf=False, norm="l2").fit(X[:400])
    rival = LogisticRegression(C=10.0, max_iter=300).fit(tf.transform(X[:400]), y[:400])
    assert model.score(X[400:], y[400:]) > rival.score(tf.transform(X[400:]), y[400:]) - 0.01
    proba = model.predict_proba(X[400:])
    assert log_loss(y[400:], proba) < log_loss(y[400:], rival.predict_proba(tf.transform(X[400:])))
    assert proba.max(1).mean() == pytest.approx(model.score(X[400:], y[400:]), abs=0.05)


def test_numbers_are_predicted_as_well_as_by_ridge_regression():
    rng = np.random.default_rng(0)
    X, _ = topics(900, 2000, seed=1)
    X = TfidfTransformer().fit_transform(X)
    y = X @ rng.normal(size=2000) + 0.1 * rng.normal(size=900)
    model = EmbeddingRegressor(Linear() + 1.0, random_state=0).fit(X[:500], y[:500])
    best = max(Ridge(alpha).fit(X[:500], y[:500]).score(X[500:], y[500:]) for alpha in (0.01, 0.1, 1.0))
    assert model.score(X[500:], y[500:]) > best - 0.02
    model = EmbeddingRegressor(random_state=0).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > best - 0.06  # the default has to find out that the truth is linear
    low, high = model.quantile(X[500:], [0.05, 0.95]).T
    assert 0.85 < np.mean((low <= y[500:]) & (y[500:] <= high)) < 0.95


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["exact", Landmarks(200)], ids=["exact", "landmarks"])
def test_rows_of_millions_of_columns_are_never_dense(solver):
    X, y = topics(600, 2000)
    wide = sparse.csr_array((X.data, X.indices * 1000, X.indptr), shape=(600, 2_000_000))
    wanted = EmbeddingClassifier(solver=solver, random_state=0).fit(X[:500], y[:500]).predict_proba(X[500:])
    tracemalloc.start()
    found = EmbeddingClassifier(solver=solver, random_state=0).fit(wide[:500], y[:500]).predict_proba(wide[500:])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(found, wanted, atol=1e-8)
    assert most < 100e6  # dense rows would take 8 GB


@pytest.mark.slow
def test_more_rows_than_are_kept_take_blocks():
    X, y = topics(2300, 50)
    model = EmbeddingClassifier(Linear(), learn=None, ridge=1e-3, solver=Exact(), random_state=0).fit(X, y)
    dense = EmbeddingClassifier(Linear(), learn=None, ridge=1e-3, solver=Exact(), random_state=0).fit(X.toarray(), y)
    np.testing.assert_allclose(model.raw_outputs(X[:50]), dense.raw_outputs(X[:50].toarray()), atol=1e-7)


def test_pipelines_grids_copies_and_files(tmp_path, counts):
    X, y = counts
    texts = [" ".join(f"w{c}" for c in row.nonzero()[-1]) or "none" for row in (X[[i]] for i in range(160))]
    pipeline = make_pipeline(TfidfVectorizer(), EmbeddingClassifier(random_state=0)).fit(texts[:120], y[:120])
    wanted = pipeline.predict_proba(texts[120:])
    kw.save(pipeline, tmp_path / "texts.kw")
    np.testing.assert_array_equal(kw.load(tmp_path / "texts.kw").predict_proba(texts[120:]), wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pipeline)).predict_proba(texts[120:]), wanted)
    np.testing.assert_array_equal(clone(pipeline).fit(texts[:120], y[:120]).predict_proba(texts[120:]), wanted)
    grid = GridSearchCV(EmbeddingClassifier(learn=None), {"kernel": [Angular(0.01), Angular(1.0)]}, cv=3).fit(X, y)
    assert grid.best_params_["kernel"].lengthscale.item() == pytest.approx(1.0)


def test_a_warm_start_needs_rows_of_the_same_kind(counts):
    X, y = counts
    model = EmbeddingClassifier(warm_start=True, random_state=0).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold
    assert type(model.fit(X[:, :4].toarray(), y).kernel_) is not Angular
    assert isinstance(model.fit(X, y).kernel_, Angular)


class Own(Kernel):
    """A kernel of one's own."""

    takes_sparse = True

    def forward(self, X, Z=None):
        return (X @ (X if Z is None else Z).T) ** 2


def test_a_kernel_of_one_s_own_can_opt_in(counts):
    X, y = counts
    found, wanted = (
        EmbeddingClassifier(Own(), learn=None, ridge=0.1).fit(rows, y).raw_outputs(rows) for rows in (X, X.toarray())
    )
    np.testing.assert_allclose(found, wanted, atol=1e-8)


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"scale": "standard"}, "MaxAbsScaler"),
        ({"scale": "unit", "kernel": Gaussian()}, "MaxAbsScaler"),
        ({"features": RandomFourier(10)}, "landmarks"),
        ({"solver": "fourier"}, "landmarks"),
        ({"kernel": Gaussian(ard=True)}, "lengthscale='median'"),
        ({"kernel": Linear() + Gaussian([1.0] * 300)}, "one length scale for all columns"),
        ({"kernel": 2.0 * Matern()}, "Matern does not work on sparse rows"),
    ],
)
@pytest.mark.parametrize("model", [EmbeddingClassifier(), EmbeddingRegressor()], ids=["classes", "numbers"])
def test_what_cannot_work_says_what_to_do(model, settings, advice, counts):
    with pytest.raises(ValueError, match=advice):
        clone(model).set_params(**settings).fit(*counts)


def test_what_needs_dense_rows_says_so(counts):
    X, y = counts
    model = EmbeddingClassifier(learn=None).fit(X, y)
    with pytest.raises(ValueError, match="do not rank the columns"):
        model.relevance()
    with pytest.raises(ValueError, match="300 features"):
        model.predict(X[:, :7])
    for refused in (ConditionalMeanEmbedding(), EmbeddingClassifier("precomputed")):
        with pytest.raises(TypeError, match="toarray"):
            refused.fit(X, y)
    dense, labels = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="toarray"):
        EmbeddingClassifier(learn=None).fit(dense, labels).predict(sparse.csr_array(dense))
    X = X.copy()
    X.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN, first at row 0, column"):
        EmbeddingRegressor().fit(X, y)
