"""Arrays in blocks: sums do not depend on the block boundaries."""

import numpy as np
import pytest

from kernelwright.inputs import blocks
from kernelwright.inputs.blocks import Block, SlicedRows


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return Block(rng.normal(size=(100, 3)), rng.integers(0, 3, 100), rng.uniform(0.5, 2.0, 100))


@pytest.mark.parametrize("size", [1, 30, 100, 1000])
def test_what_is_added_up_does_not_depend_on_the_slices(rows, size, monkeypatch):
    monkeypatch.setattr(blocks, "SLICE_ROWS", size)
    sliced, seen = SlicedRows(rows), []

    def weighted_sum(block, power):
        seen.append(len(block.labels))
        return block.weights @ block.X**power

    np.testing.assert_allclose(sliced.map_reduce(weighted_sum, 2), rows.weights @ rows.X**2)
    assert seen == list(sliced.lengths)
    assert max(seen) <= size
    assert len(sliced) == 100


def test_rows_are_taken_by_their_numbers(rows):
    some = np.array([3, 40, 99])
    block, total = SlicedRows(rows).take_and_reduce(some, lambda block: block.X.sum(0))
    for found, column in zip(block, rows, strict=True):
        np.testing.assert_array_equal(found, column[some])
    np.testing.assert_allclose(total, rows.X.sum(0))


@pytest.mark.parametrize(
    ("most_rows", "most_bytes", "expected"), [(20, 10**9, 20), (10**6, 24 * 7, 7), (500, 10**9, 100)]
)
def test_no_more_rows_are_gathered_than_fit(rows, most_rows, most_bytes, expected, monkeypatch):
    monkeypatch.setattr(blocks, "GATHERED_ROWS", most_rows)
    monkeypatch.setattr(blocks, "GATHERED_BYTES", most_bytes)
    some = SlicedRows(rows).some_rows(np.random.default_rng(1))
    assert len(some) == len(set(some.tolist())) == expected
    assert (np.diff(some) > 0).all()
