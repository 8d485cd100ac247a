"""Rows in chunks: sliced arrays and Dask collections are read alike."""

import numpy as np
import pandas as pd
import pytest

from kernelwright.inputs import blocks
from kernelwright.inputs.blocks import Block, SlicedRows
from kernelwright.inputs.dask_rows import DaskRows, dask_mean, is_dask, lazily
from kernelwright.inputs.frames.given_rows import training_rows

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(100, 3)), rng.choice(["a", "b", "c"], 100), rng.integers(0, 3, 100).astype(float)


def read(X, y, weights=None, class_weight=None):
    return DaskRows.read(X, y, weights, class_weight, "a test")


def test_dask_collections_are_known_without_dask():
    assert is_dask(da.zeros(3))
    assert is_dask(dd.from_pandas(pd.DataFrame({"a": [1]}), npartitions=1))
    assert not is_dask(np.zeros(3))
    assert not is_dask(pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize("lengths", [(100,), (50, 50), (1, 98, 1), (30, 0, 70)])
def test_rows_do_not_depend_on_their_chunks(rows, lengths, monkeypatch):
    X, y, weights = rows
    monkeypatch.setattr(blocks, "GATHERED_ROWS", 20)
    monkeypatch.setattr(blocks, "SLICE_ROWS", 30)
    found, classes, varied = read(da.from_array(X, chunks=(lengths, (2, 1))), da.from_array(y, chunks=7), weights)
    kept = weights > 0
    weights = weights * (kept.sum() / weights.sum())  # they are relative, and their mean is made one
    sliced = SlicedRows(Block(X[kept], np.searchsorted(classes, y[kept]), weights[kept]))
    assert classes.tolist() == ["a", "b", "c"]
    assert varied
    assert len(found) == len(sliced) == kept.sum()
    for each in (found, sliced):
        block = each.take(each.some_rows(np.random.default_rng(1)))
        expected = np.sort(np.random.default_rng(1).choice(kept.sum(), 20, replace=False, shuffle=False))
        np.testing.assert_array_equal(block.X, X[kept][expected])
        np.testing.assert_array_equal(classes[block.labels], y[kept][expected])
        np.testing.assert_allclose(block.weights, weights[kept][expected], rtol=1e-12)
        total = each.map_reduce(lambda block, power: (block.weights[:, None] * block.X**power).sum(0), 2)
        np.testing.assert_allclose(total, weights @ X**2)
        again, total = each.take_and_reduce(expected, lambda block: block.X.sum(0))
        np.testing.assert_array_equal(again.X, block.X)
        np.testing.assert_allclose(total, X[kept].sum(0))


def test_classes_of_weight_zero_are_not_there(rows):
    X, y, _ = rows
    found, classes, varied = read(da.from_array(X, chunks=40), y, None, {"a": 0.0, "b": 2.0, "c": 1.0})
    assert classes.tolist() == ["b", "c"]
    assert len(found) == (y != "a").sum()
    assert varied
    block = found.take(np.arange(len(found)))
    np.testing.assert_array_equal(block.X, X[y != "a"])
    expected = np.where(y[y != "a"] == "b", 2.0, 1.0)
    np.testing.assert_allclose(block.weights, expected / expected.mean(), rtol=1e-12)


def test_data_frames_of_unknown_length(rows):
    X, y, _ = rows
    table = dd.from_pandas(pd.DataFrame(X, columns=["u", "v", "w"]).assign(y=y), npartitions=4)
    table = table[table.u > 0]
    found, _, varied = read(table[["u", "v", "w"]], table["y"])
    assert not varied
    np.testing.assert_array_equal(found.take(np.arange(len(found))).X, X[X[:, 0] > 0])


def test_a_sample_says_how_all_frames_are_read_and_has_every_class(rows, monkeypatch):
    monkeypatch.setattr(blocks, "GATHERED_ROWS", 20)
    X, _, weights = rows
    frame = pd.DataFrame({"u": X[:, 0], "town": np.where(X[:, 1] > 0, "Ulm", "Bonn")}).assign(y="often")
    frame.loc[[7, 55, 81], "y"] = "seldom"
    frame.loc[55, "u"] = np.nan
    weights[7], weights[[55, 81]] = 0.0, 1.0
    table = dd.from_pandas(frame, npartitions=7)
    found, classes, _ = read(table[["u", "town"]], table["y"], dd.from_pandas(pd.Series(weights), npartitions=7))
    found.described(training_rows, np.random.default_rng(2))
    some = found.some_rows(np.random.default_rng(5))
    given = np.flatnonzero(weights)[some]
    block = found.take(some)
    assert len(some) > 20
    assert (frame.y[given] == "seldom").sum() == 2
    assert classes[block.labels].tolist() == frame.y[given].tolist()
    assert [each.kind for each in found.layout.columns] == ["number", "category"]
    words = np.array(found.layout.columns[1].words)
    assert words[block.X[:, 1].astype(int)].tolist() == frame.town[given].tolist()
    np.testing.assert_array_equal(block.X[:, 0], frame.u[given])
    summed = found.map_reduce(lambda block: block.X[:, 1].sum())
    assert summed == (words[1] == frame.town[weights > 0]).sum()
    np.testing.assert_array_equal(found.take(some[[2, 5]]).X, block.X[[2, 5]])


def test_what_does_not_fit_together_is_said(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="X has 100 rows and y has 99: the numbers must be equal"):
        read(da.from_array(X, chunks=40), y[:99])
    table = dd.from_pandas(pd.DataFrame(X), npartitions=4)
    with pytest.raises(ValueError, match="pass y as a Dask collection with the same partitions"):
        read(table, y)
    with pytest.raises(ValueError, match="X has 4 chunks and y has 2, of unknown lengths"):
        read(table, dd.from_pandas(pd.Series(y), npartitions=2))
    with pytest.raises(ValueError, match="only one class"):
        read(da.from_array(X, chunks=40), np.zeros(100))
    X[55, 1] = np.nan
    found, *_ = read(da.from_array(X, chunks=40), y)
    with pytest.raises(ValueError, match=r"In chunk 1 of the data: Input X?.*contains NaN"):
        found.take(np.arange(100))


def test_unequal_partitions_are_named(rows):
    X, y, _ = rows
    table = dd.from_pandas(pd.DataFrame(X).assign(y=y), npartitions=2)
    found, *_ = read(table[[0, 1, 2]], table.loc[:97]["y"].repartition(npartitions=2))
    with pytest.raises(ValueError, match=r"In chunk 1 of the data: .*inconsistent numbers of samples"):
        found.take(np.arange(90))


def test_lazy_answers_keep_the_chunks(rows):
    X, *_ = rows
    calls = []

    def twice(X, *, plus=0.0):
        calls.append(len(X))
        return 2.0 * np.asarray(X) + plus

    answer = lazily(twice, 0, da.from_array(X, chunks=((60, 40), (2, 1))), plus=1.0)
    assert calls == [1]  # an example, nothing else
    assert answer.chunks == ((60, 40), (3,))
    np.testing.assert_array_equal(answer.compute(), 2.0 * X + 1.0)
    frame = dd.from_pandas(pd.DataFrame(X, columns=["u", "v", "w"]), npartitions=3)
    np.testing.assert_array_equal(lazily(lambda X: X["u"].to_numpy(), 0, frame).compute(), X[:, 0])


def test_mean_is_weighted(rows):
    X, y, weights = rows
    array = da.from_array(X, chunks=30)
    values = lambda X, y: (np.asarray(y) == "a").astype(float)  # noqa: E731
    assert dask_mean(values, array, y) == pytest.approx(np.mean(y == "a"))
    assert dask_mean(values, array, y, weights) == pytest.approx(np.average(y == "a", weights=weights))
