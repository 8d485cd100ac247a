"""Rows in chunks, fitted leaf by leaf: the same as in memory, and as good as in memory."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import log_loss

from kernelwright import EmbeddingClassifier, EmbeddingRegressor, learning, load, save
from kernelwright.embedding import TrainingSet
from kernelwright.embedding.tree import averaged, solve_tree
from kernelwright.errors import MemoryBudgetError
from kernelwright.inputs import blocks
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Gaussian
from kernelwright.solvers import Landmarks, Tree

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")
pd = pytest.importorskip("pandas")

N = 4000
TREE = Tree(250, trees=2)


@pytest.fixture(scope="module", autouse=True)
def small_samples():
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(blocks, "GATHERED_ROWS", 2100)
        yield


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (np.sin(2.5 * X[:, 0]) * np.sin(2.5 * X[:, 1]) > 0).astype(int) + 2 * (X[:, 2] > 1.3), rng


@pytest.fixture(scope="module")
def rows():
    return drawn(N, 0)[:2]


@pytest.fixture(scope="module")
def new():
    return drawn(2000, 1)[:2]


def in_chunks(X, *columns, size=900):
    return [da.from_array(X, chunks=(size, -1)), *(da.from_array(each, chunks=1100) for each in columns)]


def fitted_to_chunks(model, *rows, size=900):
    return model.fit(*in_chunks(*rows, size=size))


def in_memory(model, X, y, weights):
    """Return the training rows of a fitted model, and its trees solved by a plain loop over all leaves."""
    embedding = model.embedding_
    data = TrainingSet.of(
        embedding.encode(X),
        ClassTargets(len(model.classes_)).encode(np.searchsorted(model.classes_, y)),
        weights=torch.from_numpy(weights),
        prior=model.embedding_.rows.weights.mean() * embedding.prior,
    )
    return data, [solve_tree(model.kernel_, data, model.ridge_, each) for each in embedding.trees.partitions]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_partition_in_memory_has_the_same_answers(rows, new, weighted):
    X, y = rows
    weights = np.random.default_rng(2).uniform(0.5, 2.0, N) if weighted else np.ones(N)
    model = EmbeddingClassifier(solver=TREE, probability="softmax", learn=learning.Auto(max_iter=2), random_state=0)
    model = fitted_to_chunks(model, X, y, *([weights] if weighted else []))
    data, solved = in_memory(model, X, y, weights / weights.mean())
    assert len(solved) == 2
    expected = model.embedding_.trees.coefficients(solved)
    np.testing.assert_allclose(model.coefficients_, expected, atol=1e-6)
    outputs, _ = model.embedding_.trees.outputs(model.kernel_, data.points, expected, model.embedding_.encode(new[0]))
    there, _ = model.embedding_.outputs(new[0])
    np.testing.assert_allclose(there, data.prior + outputs, atol=1e-6)


@pytest.fixture(scope="module")
def learned(rows):
    return fitted_to_chunks(EmbeddingClassifier(solver=TREE, random_state=0), *rows)


def test_other_chunks_have_the_same_answers(learned, rows, new):
    one, other = learned, fitted_to_chunks(clone(learned), *rows, size=N)
    np.testing.assert_allclose(one.predict_proba(new[0]), other.predict_proba(new[0]), atol=1e-6)


def test_as_good_as_in_memory(learned, rows, new):
    (X, y), (X_new, y_new) = rows, new
    there, here = learned, clone(learned).fit(X, y)
    losses = [log_loss(y_new, each.predict_proba(X_new)) for each in (there, here)]
    assert losses[0] < 1.05 * losses[1]
    assert there.score(X_new, y_new) > 0.85
    assert there.link_.trust == 1.0
    np.testing.assert_allclose(there.class_prior_, np.bincount(y) / N, atol=1e-3)


def test_the_usual_solver_is_a_tree_in_chunks_and_few_rows_are_gathered(rows, new):
    X, y = rows
    model = fitted_to_chunks(EmbeddingClassifier(learn=None, kernel=Gaussian(0.7), ridge=1e-4), X, y)
    assert model.solver_ == "tree"
    few = fitted_to_chunks(EmbeddingClassifier(random_state=0), X[:1000], y[:1000])
    here = EmbeddingClassifier(random_state=0).fit(X[:1000], y[:1000])
    assert few.solver_ == "exact"
    np.testing.assert_allclose(few.predict_proba(new[0]), here.predict_proba(new[0]), atol=1e-8)


def test_lambda_that_is_given_is_that_of_all_rows(rows):
    model = EmbeddingClassifier(Gaussian(0.7), learn=None, ridge=1e-3, solver=TREE)
    assert fitted_to_chunks(model, *rows).ridge_ == pytest.approx(1e-3)


def test_a_fitted_model_like_any_other(learned, new, tmp_path):
    model = learned
    save(model, tmp_path / "model.kw")
    again = load(tmp_path / "model.kw")
    np.testing.assert_array_equal(again.predict_proba(new[0]), model.predict_proba(new[0]))
    lazy = model.predict_proba(in_chunks(new[0])[0])
    assert lazy.chunks[0] == (900, 900, 200)
    np.testing.assert_allclose(lazy.compute(), model.predict_proba(new[0]), atol=1e-12)
    assert model.n_features_in_ == 4
    assert {row.name for row in model.relevance().rows[:2]} == {"x0", "x1"}
    bound = model.risk_bound("leave-one-out", loss="error")
    assert abs(1 - model.score(*new) - bound.total) < 2 * bound.margin
    assert model.support(new[0]).min() >= 0


def test_rare_classes_are_learned_and_keep_their_frequency():
    X, y, rng = drawn(N, 3)
    y[y > 1] = 0
    y[:3] = 7
    X[:3] = 4.0 + 0.05 * rng.normal(size=(3, 4))
    model = fitted_to_chunks(EmbeddingClassifier(solver=TREE, random_state=0), X, y)
    assert model.classes_.tolist() == [0, 1, 7]
    assert model.class_prior_[2] < 2e-3  # of the sample it is more
    assert model.predict(np.full((1, 4), 4.0)).tolist() == [7]


def test_class_weights(rows, new):
    X, y = rows
    weights = {0: 1.0, 1: 5.0, 2: 1.0, 3: 1.0}
    model = EmbeddingClassifier(Gaussian(0.7), learn=None, ridge=1e-4, solver=TREE, class_weight=weights)
    there, here = fitted_to_chunks(clone(model), X, y), clone(model).fit(X, y)
    np.testing.assert_allclose(there.class_prior_, here.class_prior_, atol=1e-3)
    apart = np.abs(there.predict_proba(new[0]) - here.predict_proba(new[0])).mean()
    assert apart < 0.045  # other trees in memory differ by .031 from each other
    apart = np.abs(there.predict_proba(new[0], unweighted=True) - here.predict_proba(new[0], unweighted=True)).mean()
    assert apart < 0.045  # other trees in memory differ by .031 from each other


def table(n, seed):
    rng = np.random.default_rng(seed)
    size, town = rng.normal(size=n), rng.choice(["Bonn", "Rome", "Ulm"], n)
    y = np.where(size * np.where(town == "Rome", -1.0, 1.0) > 0, "high", "low")
    size[rng.uniform(size=n) < 0.1] = np.nan
    return pd.DataFrame({"size": size, "town": town, "day": pd.Categorical(rng.choice(["Mo", "Tu"], n))}), y


def test_tables_with_words_categories_and_gaps():
    frame, y = table(N, 0)
    new, y_new = table(1000, 1)
    parts = dd.from_pandas(frame, npartitions=5)
    labels = dd.from_pandas(pd.Series(y, index=frame.index), npartitions=5)
    there = EmbeddingClassifier(solver=TREE, random_state=0).fit(parts, labels)
    here = EmbeddingClassifier(solver=TREE, random_state=0).fit(frame, y)
    assert there.solver_ == "tree"
    assert [column.kind for column in there.columns_] == [column.kind for column in here.columns_]
    assert there.score(new, y_new) > here.score(new, y_new) - 0.01 > 0.9
    lazy = there.predict_proba(dd.from_pandas(new, npartitions=2)).compute()
    np.testing.assert_allclose(lazy, there.predict_proba(new), atol=1e-12)
    few = EmbeddingClassifier(random_state=0).fit(parts.partitions[0], labels.partitions[0])
    assert few.solver_ == "exact"
    assert few.columns_[1].kind == "category"


def test_gaps_in_an_array_that_the_sample_may_lack():
    X, y, _ = drawn(N, 0)
    X[1234, 0] = np.nan
    model = EmbeddingClassifier(solver=TREE, learn=learning.Auto(max_iter=2), random_state=0)
    model = fitted_to_chunks(model, X, y)
    assert np.isfinite(model.predict_proba(X[1230:1240])).all()


# Numbers ---------------------------------------------------------------------------------------------------------


def numbers(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.2 * np.exp(0.5 * X[:, 2]) * rng.normal(size=n)


def test_numbers_are_as_good_as_in_memory():
    X, y = numbers(N, 0)
    X_new, y_new = numbers(2000, 1)
    model = EmbeddingRegressor(solver=TREE, random_state=0)
    there, here = fitted_to_chunks(clone(model), X, y), clone(model).fit(X, y)
    assert there.solver_ == "tree"
    scores = [each.crps(X_new, y_new).mean() for each in (there, here)]
    assert scores[0] < 1.03 * scores[1]
    low, high = there.interval(X_new).T
    assert 0.87 < ((low <= y_new) & (y_new <= high)).mean() < 0.93
    lazy = there.predict(in_chunks(X_new)[0], return_std=True)
    np.testing.assert_allclose(da.compute(*lazy), there.predict(X_new, return_std=True), atol=1e-10)


@pytest.mark.parametrize("distribution", ["location-scale", "direct"])
def test_locations_scales_and_indicators_are_those_of_the_same_partition(distribution):
    X, y = numbers(N, 0)
    model = EmbeddingRegressor(Gaussian(0.7), learn=None, ridge=1e-4, solver=TREE, distribution=distribution)
    model = fitted_to_chunks(model, X, y)
    embedding, targets = model.embedding_, model.targets_
    partitions, prior = embedding.trees.partitions, embedding.prior
    encoded = targets.encode(y[:, None])
    data = TrainingSet.of(embedding.encode(X), encoded, prior=prior[:1])
    solved = [solve_tree(model.kernel_, data, embedding.ridge, each) for each in partitions]
    np.testing.assert_allclose(model.coefficients_[:, :1], embedding.trees.coefficients(solved), atol=1e-6)
    mean = averaged(solved)
    judged = np.abs(y[:, None] - model.left_out_[0].y).argmin(0)  # targets are standardised and back
    assert len(np.unique(judged)) == 2100
    np.testing.assert_allclose(model.left_out_[0].location, mean.left_out[judged, 0], atol=1e-6)


def test_gaps_in_numbers_and_weights():
    X, y = numbers(N, 0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
    weights[:500], y[500:900] = 0.0, np.nan
    model = EmbeddingRegressor(Gaussian(0.7), learn=None, ridge=1e-4, solver=TREE)
    with pytest.warns(UserWarning, match="400 rows have no target"):
        there = fitted_to_chunks(model, X, y, weights)
    assert len(there.embedding_.rows.weights) == N - 900
    assert there.score(*numbers(1000, 1)) > 0.6


def test_counts():
    X, _ = numbers(N, 0)
    counts = np.random.default_rng(1).poisson(np.exp(0.5 * X[:, 0])).astype(float)
    model = EmbeddingRegressor(Gaussian(0.7), learn=None, ridge=1e-3, solver=TREE)
    model = fitted_to_chunks(model, X, counts)
    assert np.isfinite(model.predict(X[:100])).all()
    assert model.score(X, counts) > 0.2


# What cannot be done ---------------------------------------------------------------------------------------------


def test_what_needs_all_rows_in_memory_is_refused(rows):
    for solver in (Landmarks(100), Tree(250, landmarks=20)):
        with pytest.raises(ValueError, match=r"use solver='auto' or Tree"):
            fitted_to_chunks(EmbeddingClassifier(solver=solver), *rows)
    with pytest.raises(ValueError, match="kernel_share"):
        fitted_to_chunks(EmbeddingClassifier(learn=learning.Auto(kernel_share=0.5)), *rows)
    with pytest.raises(ValueError, match="rows of numbers"):
        fitted_to_chunks(EmbeddingClassifier("precomputed"), *rows)


def test_a_model_larger_than_memory_is_refused_before_any_work(rows, monkeypatch):
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1e5)
    with pytest.raises(MemoryBudgetError, match="A model that keeps 4000 rows"):
        fitted_to_chunks(EmbeddingClassifier(solver=TREE), *rows)


def test_progress_is_logged(rows, caplog):
    with caplog.at_level("INFO", logger="kernelwright"):
        fitted_to_chunks(EmbeddingClassifier(Gaussian(0.7), learn=None, ridge=1e-4, solver=TREE), *rows)
    assert "4000 rows are routed" in caplog.text
    assert "rows of all trees solved, in 0:0" in caplog.text
