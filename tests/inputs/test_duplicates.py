"""Equal rows are merged and counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernelwright.inputs.duplicates import merge_duplicates

tables = arrays(np.float64, st.tuples(st.integers(1, 8), st.just(2)), elements=st.sampled_from([-0.0, 0.0, 1.0, 2.5]))


@given(X=tables, seed=st.integers(0, 99))
def test_merge_duplicates_keeps_rows_labels_and_weights(X, seed):
    rng = np.random.default_rng(seed)
    y, w = rng.integers(0, 2, len(X)), rng.uniform(0.5, 2.0, len(X))
    found = merge_duplicates(X, y, w)
    distinct, labels, weights, place = found.X, found.y, found.weights, found.place
    np.testing.assert_array_equal(found.counts, np.bincount(place))
    np.testing.assert_array_equal(distinct[place], X)
    np.testing.assert_array_equal(labels[place], y)
    assert len({(*row, label) for row, label in zip((distinct + 0.0).tolist(), labels, strict=True)}) == len(distinct)
    for i in range(len(distinct)):
        same = [w[j] for j in range(len(X)) if (X[j] == distinct[i]).all() and y[j] == labels[i]]
        assert weights[i] == pytest.approx(sum(same))


@given(X=tables, seed=st.integers(0, 99))
def test_merge_duplicates_does_not_depend_on_the_order_of_the_rows(X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    y, w = np.arange(len(X)) % 2, np.ones(len(X))
    ours, theirs = merge_duplicates(X, y, w), merge_duplicates(X[order], y[order], w)
    for name in ("X", "y", "weights"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_rows_that_are_to_stay_apart_are_not_merged():
    X, y = np.zeros((4, 2)), np.zeros(4, dtype=int)
    found = merge_duplicates(X, y, np.ones(4), apart=np.array([1, 0, 1, 1]))
    assert found.weights.tolist() == [1.0, 3.0]
    assert found.apart.tolist() == [0, 1]
    assert found.place.tolist() == [1, 0, 1, 1]


def test_a_gap_equals_a_gap():
    X = np.array([[np.nan, 1.0], [np.nan, 1.0], [0.0, np.nan]])
    found = merge_duplicates(X, np.zeros(3), np.ones(3))
    assert found.counts.tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(found.X[found.place], X)
