import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from kernelwright import EmbeddingClassifier
from kernelwright.inputs.duplicates import merge_duplicates
from kernelwright.inputs.sparse_tables import check_sparse, row_ranks

SHAPES = st.tuples(st.integers(1, 8), st.integers(1, 4))


@given(arrays(np.float64, SHAPES, elements=st.sampled_from([-2.5, -1.0, 0.0, 1e-3, 3.0])))
def test_ranks_are_those_of_dense_rows(X):
    _, ranks = np.unique(X, axis=0, return_inverse=True)
    assert row_ranks(sparse.csr_array(X)).tolist() == ranks.reshape(-1).tolist()


def test_equal_rows_are_merged_as_dense_ones_are():
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (60, 3)).astype(float)
    y, weights = rng.integers(0, 2, 60), rng.random(60)
    found, wanted = (merge_duplicates(rows, y, weights) for rows in (sparse.csr_array(X), X))
    np.testing.assert_array_equal(found.X.toarray(), wanted.X)
    for name in ("y", "weights", "place", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_rows_are_made_canonical_in_a_copy():
    columns, starts = np.array([2, 0, 1, 1], dtype=np.int64), np.array([0, 2, 4], dtype=np.int64)
    wild = sparse.csr_matrix((np.array([1, 0, 2, 4]), columns, starts), shape=(2, 3))
    found = check_sparse(EmbeddingClassifier(), wild)
    assert (found.data.tolist(), found.indices.tolist(), found.indptr.tolist()) == ([1.0, 6.0], [2, 1], [0, 1, 2])
    assert wild.data.tolist() == [1, 0, 2, 4]


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_the_first_value_that_is_not_finite_is_named(value, word):
    X = sparse.lil_array((5, 4))
    X[0, 0], X[3, 2], X[4, 1] = 1.0, value, value
    with pytest.raises(ValueError, match=f"{word}, first at row 3, column 2 .2 values"):
        check_sparse(EmbeddingClassifier(), X.tocsr())
