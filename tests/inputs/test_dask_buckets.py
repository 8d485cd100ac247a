"""Rows brought together on workers: the buckets, the rows in them and their order are those of an array in memory."""

import numpy as np
import pytest

from kernelwright.inputs import dask_buckets
from kernelwright.inputs.blocks import Block, SlicedRows
from kernelwright.inputs.dask_rows import DaskRows

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

N = 500


def route(block):
    """Return the buckets of rows in two trees: 0 to 6 by the first column, 7 to 11 by the second; bucket 3 is empty."""
    first = np.clip((block.X[:, 0] * 7).astype(int), 0, 6)
    return np.column_stack([np.where(first == 3, 4, first), 7 + np.clip((block.X[:, 1] * 5).astype(int), 0, 4)])


def everything(number, block, rows, given):
    return number, *block, rows, given


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.uniform(size=(N, 3)), rng.integers(0, 3, N), rng.uniform(1, 2, N)


@pytest.mark.parametrize("group_bytes", [1, 4000, 10**9])
@pytest.mark.parametrize("lengths", [(N,), (123, 0, 300, 77)])
def test_buckets_are_those_of_an_array(rows, lengths, group_bytes, monkeypatch):
    monkeypatch.setattr(dask_buckets, "GROUP_BYTES", group_bytes)
    X, y, weights = rows
    here = SlicedRows(Block(X, y, weights / weights.mean())).gathered(route, 12)
    found, *_ = DaskRows.read(da.from_array(X, chunks=(lengths, (2, 1))), y, weights, None, "a test")
    with dask.config.set(scheduler="synchronous"):
        there = found.gathered(route, 12)
        np.testing.assert_array_equal(there.sizes, here.sizes)
        answers = dict(there.map(everything, lambda number: number**2))
    for number, expected in here.map(everything, lambda number: number**2):
        if here.sizes[number]:
            for one, other in zip(answers.pop(number), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-14)
    assert not answers
    assert here.sizes[3] == 0


def test_few_tasks_are_made_at_once(rows, monkeypatch):
    """What is given to a bucket, and its result, are not held until all buckets are done."""
    monkeypatch.setattr(dask_buckets, "GROUP_BYTES", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    X, y, _ = rows
    made = []
    found = DaskRows.read(da.from_array(X, chunks=(100, 3)), y, None, None, "a test")[0].gathered(route, 12)
    for done, _ in enumerate(found.map(everything, made.append), 1):
        assert len(made) <= done + 2
    assert len(made) == 11
