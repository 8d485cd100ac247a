"""Regressors on Dask collections, with Dask's threads; tests/estimators/test_cluster.py has processes."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from kernelwright import EmbeddingRegressor
from kernelwright.features import Nystroem, Polynomial, RandomFourier
from kernelwright.inputs import blocks
from kernelwright.kernels import Gaussian

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 3))
Y = 5.0 + np.sin(2 * X[:, 0]) * X[:, 1] + 0.2 * RNG.normal(size=2000)


@pytest.fixture
def few_gathered(monkeypatch):
    """Lower the limit of rows that may be gathered in one process."""
    monkeypatch.setattr(blocks, "GATHERED_ROWS", 300)
    monkeypatch.setattr(blocks, "SLICE_ROWS", 777)


def explicit(features=None, **how):
    return EmbeddingRegressor(features=features or RandomFourier(40), random_state=0, **how)


MODELS = {
    "learned": explicit(),
    "as given": explicit(learn=None, ridge=0.01),
    "scaled": explicit(scale="standard"),
    "landmarks": explicit(Nystroem(Gaussian("median"), 40)),
    "polynomial": explicit(Polynomial(2)),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_from_arrays_and_from_any_chunks(few_gathered, name):
    here = clone(MODELS[name]).fit(X, Y)
    for cut in (((1, 1200, 799), (2, 1)), ((123,) * 16 + (32,), (3,))):
        there = clone(MODELS[name]).fit(da.from_array(X, chunks=cut), da.from_array(Y, chunks=400))
        np.testing.assert_allclose(there.predict(X[:200]), here.predict(X[:200]), atol=1e-8)
        np.testing.assert_allclose(there.quantile(X[:200], [0.1, 0.9]), here.quantile(X[:200], [0.1, 0.9]), atol=1e-6)
        assert there.ridge_ == pytest.approx(here.ridge_)


def test_rows_are_summed_up_as_the_formula_says(few_gathered):
    model = clone(MODELS["as given"]).fit(da.from_array(X, chunks=(300, 3)), Y)
    Z, scale = model.features_(torch.from_numpy(X)).detach().numpy(), model.links_[0].scale
    W = np.linalg.solve(Z.T @ Z + 0.01 * 2000 * np.eye(40), Z.T @ ((Y - scale.centre) / scale.unit))
    np.testing.assert_allclose(model.coefficients_[:, 0], W, atol=1e-10)
    assert len(model.left_out_[0].y) == 300  # the distribution is fitted to a sample


def test_predictions_of_chunks_are_lazy():
    model = clone(MODELS["as given"]).fit(X, Y)
    chunks = da.from_array(X, chunks=(300, 3))
    for ask in (
        lambda rows: model.predict(rows),
        lambda rows: model.quantile(rows, [0.1, 0.9]),
        lambda rows: model.interval(rows, 0.8),
        lambda rows: model.cdf(rows, [4.0, 5.0]),
        lambda rows: model.support(rows),
    ):
        lazy = ask(chunks)
        assert isinstance(lazy, da.Array)
        np.testing.assert_allclose(lazy.compute(), ask(X), atol=1e-12)


def test_data_frames_weights_and_gaps(few_gathered):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    y, weights = Y.copy(), np.random.default_rng(1).integers(0, 3, 2000).astype(float)
    y[::10] = np.nan
    frames = dd.from_pandas(frame, npartitions=4)
    given = [dd.from_pandas(pd.Series(each), npartitions=4) for each in (y, weights)]
    with pytest.warns(UserWarning, match="200 rows have no target"):
        there = clone(MODELS["as given"]).fit(frames, *given)
    with pytest.warns(UserWarning, match="200 of 2000 rows have no target"):
        here = clone(MODELS["as given"]).fit(frame, y, weights)
    assert list(there.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(there.predict(frame), here.predict(frame), atol=1e-8)
    more = [each.partial_fit(frame, Y, weights).predict(frame) for each in (here, there)]
    np.testing.assert_allclose(*more, atol=1e-6)  # a weight of one counts the same


def test_what_chunks_cannot_do_is_refused():
    chunks = da.from_array(X, chunks=(500, 3))
    with pytest.raises(ValueError, match="'groups' is not supported"):
        explicit().fit(chunks, Y, groups=np.arange(2000))
    text = Y.astype(object)
    text[1700] = "dear"
    with pytest.raises(ValueError, match=r"Targets must be numbers. Got 'dear'"):
        explicit().fit(chunks, da.from_array(text, chunks=500))
    with pytest.raises(ValueError, match="No row of the Dask collection has a target"):
        explicit().fit(chunks, np.full(2000, np.nan))
