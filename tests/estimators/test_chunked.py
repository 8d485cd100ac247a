"""Estimators on Dask collections, with Dask's threads; tests/estimators/test_cluster.py has processes."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

import kernelwright
from kernelwright import EmbeddingClassifier, EmbeddingNetworkClassifier, learning
from kernelwright.features import Nystroem, Polynomial, RandomFourier
from kernelwright.inputs import blocks
from kernelwright.kernels import Gaussian
from kernelwright.learning import LBFGS, Adam, LeaveOneOut, Rademacher

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")
    y[X[:, 2] > 1.5] = "c"
    return X, y


@pytest.fixture
def few_gathered(monkeypatch):
    """Lower the limit of rows that may be gathered in one process."""
    monkeypatch.setattr(blocks, "GATHERED_ROWS", 300)
    monkeypatch.setattr(blocks, "SLICE_ROWS", 777)


def explicit(features=None, **how):
    return EmbeddingClassifier(features=features or RandomFourier(40), random_state=0, **how)


TRAINING = kernelwright.networks.Training(max_epochs=5)


def network(**how):
    return EmbeddingNetworkClassifier(hidden=(16, 8), training=TRAINING, random_state=0, **how)


MODELS = {
    "learned": explicit(),
    "as given": explicit(learn=None, ridge=0.01),
    "the bound": explicit(learn=Rademacher(optimizer=LBFGS(5))),
    "mini-batches": explicit(learn=LeaveOneOut(batch_size=100, optimizer=Adam(max_iter=5))),
    "balanced, scaled": explicit(class_weight="balanced", scale="standard"),
    "landmarks": explicit(Nystroem(Gaussian("median"), 40)),
    "polynomial": explicit(Polynomial(2)),
}
CUTS = (((500,) * 4, (3,)), ((1, 1200, 799), (2, 1)), ((123,) * 16 + (32,), (3,)))


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_from_arrays_and_from_any_chunks(data, few_gathered, name):
    X, y = data
    here = clone(MODELS[name]).fit(X, y)
    for cut in CUTS:
        there = clone(MODELS[name]).fit(da.from_array(X, chunks=cut), da.from_array(y, chunks=400))
        np.testing.assert_allclose(there.predict_proba(X[:200]), here.predict_proba(X[:200]), atol=1e-8)
        assert there.ridge_ == pytest.approx(here.ridge_)
        assert there.complexity_ == pytest.approx(here.complexity_)


def test_rows_are_summed_up_as_the_formula_says(data, few_gathered):
    X, y = data
    model = MODELS["as given"].fit(da.from_array(X, chunks=(300, 3)), y)
    Z = model.features_(torch.from_numpy(X)).detach().numpy()
    Y = (y[:, None] == model.classes_).astype(float)
    W = np.linalg.solve(Z.T @ Z + 0.01 * len(X) * np.eye(40), Z.T @ Y)
    np.testing.assert_allclose(model.coefficients_, W, atol=1e-10)


@pytest.mark.parametrize(("name", "passes"), [("as given", 1), ("learned", 2), ("landmarks", 2)])
def test_rows_are_read_once_where_nothing_is_learned_from_them(data, few_gathered, name, passes):
    X, y = data
    read = []

    def seen(block):
        read.append(len(block))
        return block

    array = da.from_array(X, chunks=(500, 3)).map_blocks(seen, meta=np.empty((0, 3)))
    clone(MODELS[name]).fit(array, y)
    assert sum(read) == passes * len(X)


def test_what_a_sample_says_of_all_rows_is_n_lambda(data, few_gathered, monkeypatch):
    X, y = data
    how = {"learn": Rademacher(optimizer=LBFGS(10))}
    taken = []
    take = blocks.SlicedRows.take
    monkeypatch.setattr(blocks.SlicedRows, "take", lambda self, rows: taken.append(rows) or take(self, rows))
    model = explicit(**how).fit(X, y)
    (rows,) = taken
    assert len(rows) == 300
    sample = explicit(**how).fit(X[rows], y[rows])
    assert model.ridge_ * 2000 == pytest.approx(sample.ridge_ * 300)
    np.testing.assert_allclose(model.features_.lengthscale.detach(), sample.features_.lengthscale.detach())


@pytest.mark.parametrize("model", [explicit(), network()])
def test_small_collections_are_the_same_as_arrays(data, model):
    X, y = data
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    here = clone(model).fit(X, y, weights)
    there = clone(model).fit(da.from_array(X, chunks=(600, 3)), y, da.from_array(weights, chunks=300))
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-12)


def test_a_network_of_a_sample_is_solved_on_all_rows(data, few_gathered):
    X, y = data
    model = network().fit(da.from_array(X, chunks=(300, 3)), da.from_array(y, chunks=300))
    Z = np.column_stack([model.transform(X), np.ones(len(X))])
    Y = (y[:, None] == model.classes_).astype(float)
    W = np.linalg.solve(Z.T @ Z + model.ridge_ * len(X) * np.eye(9), Z.T @ Y)
    np.testing.assert_allclose(model.coefficients_, W, atol=1e-8)
    again = network().fit(da.from_array(X, chunks=(1700, 3)), da.from_array(y, chunks=300))
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-8)
    assert model.transform(da.from_array(X, chunks=(300, 3))).chunks == ((300,) * 6 + (200,), (8,))


def test_images(data, few_gathered):
    X, y = data
    images = np.repeat(X, 3, axis=1).reshape(-1, 3, 3)
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(9, 8), torch.nn.Tanh())
    model = EmbeddingNetworkClassifier(module, training=TRAINING, random_state=0)
    model.fit(da.from_array(images, chunks=(500, 2, 2)), y)
    lazy = model.predict_proba(da.from_array(images, chunks=(500, 2, 2)))
    np.testing.assert_allclose(lazy.compute(), model.predict_proba(images), atol=1e-5)


def test_data_frames_keep_their_names_and_predictions_are_lazy(data, few_gathered):
    X, y = data
    table = dd.from_pandas(pd.DataFrame(X, columns=["u", "v", "w"]).assign(y=y), npartitions=5)
    table = table[table.u > -1.0]  # now nobody knows how long a partition is
    inputs, labels = table[["u", "v", "w"]], table["y"]
    model = explicit().fit(inputs, labels)
    kept = X[:, 0] > -1.0
    here = explicit().fit(pd.DataFrame(X[kept], columns=["u", "v", "w"]), y[kept])
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "support", "entropy"):
        lazy = getattr(model, method)(inputs)
        assert isinstance(lazy, da.Array)
        assert lazy.npartitions == 5
        expected = getattr(here, method)(pd.DataFrame(X[kept], columns=["u", "v", "w"]))
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(lazy.compute(), expected, atol=1e-7)
        else:
            assert (lazy.compute() == expected).all()
    assert model.score(inputs, labels) == pytest.approx(here.score(inputs.compute(), y[kept]))


def test_partitions_that_a_filter_has_emptied(data, few_gathered):
    X, y = data
    table = dd.from_pandas(pd.DataFrame(X, columns=["u", "v", "w"]).assign(y=y, row=range(len(X))), npartitions=4)
    table = table[(table.row < 500) | (table.row >= 1000)]
    inputs, labels = table[["u", "v", "w"]], table["y"]
    kept = np.r_[0:500, 1000:2000]
    model = explicit().fit(inputs, labels)
    frame = pd.DataFrame(X[kept], columns=["u", "v", "w"])
    np.testing.assert_allclose(model.predict_proba(inputs).compute(), model.predict_proba(frame), atol=1e-12)
    assert (model.predict(inputs).compute() == model.predict(frame)).all()
    assert model.score(inputs, labels) == pytest.approx(model.score(frame, y[kept]))


def test_a_kernel_model_predicts_lazily_too(data):
    X, y = data
    model = EmbeddingClassifier(random_state=0).fit(X[:200], y[:200])
    lazy = model.predict_proba(da.from_array(X, chunks=(600, 3)))
    np.testing.assert_allclose(lazy.compute(), model.predict_proba(X), rtol=1e-12)


def test_a_model_of_chunks_is_saved_and_goes_on(data, few_gathered, tmp_path):
    X, y = data
    model = explicit().fit(da.from_array(X[:1500], chunks=(400, 3)), y[:1500])
    kernelwright.save(model, tmp_path / "model.kw")
    loaded = kernelwright.load(tmp_path / "model.kw")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    loaded.partial_fit(X[1500:], y[1500:])
    assert loaded.score(X[1500:], y[1500:]) > 0.8
    assert loaded.embedding_.sums.moments.total == 2000


def test_what_cannot_be_done_in_chunks_is_said(data, few_gathered):
    X, y = data
    array = da.from_array(X, chunks=(400, 3))
    with pytest.raises(ValueError, match="kernel_share and holdout_share divide rows"):
        explicit(learn=learning.Auto(holdout_share=0.1)).fit(array, y)
    with pytest.raises(ValueError, match="A kernel on top of the network needs all 2000 rows in one place"):
        network(kernel=Gaussian("median")).fit(array, y)
    with pytest.raises(ValueError, match="X has 2 features, but"):
        explicit().fit(array, y).predict(array[:, :2])
    with pytest.raises(ValueError, match="Unknown label type"):
        explicit().fit(array, X[:, 0])
