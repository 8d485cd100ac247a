import copy
import pickle

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.spatial.distance import cdist

from kernelwright.numerics import sparse_rows
from kernelwright.numerics.distances import l1, median_distance_of, squared_euclidean, squared_norms
from kernelwright.numerics.sparse_rows import SparseRows


def random_matrix(n, d, seed=0, density=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    if n > 2:
        X[1] = 0.0  # a row of zeros
    return X


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (7, 20), (40, 11)])
@pytest.mark.parametrize("unit", [1.0, 2.5])
def test_numbers_between_pairs_are_those_of_dense_rows(shape, unit, monkeypatch):
    monkeypatch.setattr(sparse_rows, "BLOCK_VALUES", 50)  # several blocks
    X, Z = random_matrix(*shape), random_matrix(9, shape[1], seed=1)
    rows, others = SparseRows.of(sparse.coo_array(X)) / unit, SparseRows.of(sparse.csc_matrix(Z)) / unit
    X, Z = X / unit, Z / unit
    np.testing.assert_allclose(rows @ others.T, X @ Z.T, atol=1e-12)
    np.testing.assert_allclose(squared_euclidean(rows, others), cdist(X, Z, "sqeuclidean"), atol=1e-12)
    np.testing.assert_allclose(squared_euclidean(rows), cdist(X, X, "sqeuclidean"), atol=1e-12)
    np.testing.assert_allclose(l1(rows, others), cdist(X, Z, "cityblock"), atol=1e-12)
    np.testing.assert_allclose(l1(rows), cdist(X, X, "cityblock"), atol=1e-12)
    np.testing.assert_allclose(squared_norms(rows), (X**2).sum(1), atol=1e-12)
    assert (squared_euclidean(rows).diagonal() == 0).all()


def test_rows_are_chosen_as_from_an_array():
    X = random_matrix(8, 5)
    rows = SparseRows.of(sparse.csr_array(X)) / 2.0
    for some in (slice(2, 5), slice(0, None), [3, 3, 0], torch.tensor([7, 1]), torch.arange(8) > 5, np.array([2])):
        chosen = X[some if isinstance(some, slice) else np.asarray(some)]
        np.testing.assert_allclose(rows[some] @ rows.T, chosen @ X.T / 4, atol=1e-12)
    assert [len(block) for block in rows.split(3)] == [3, 3, 2]
    assert [len(block) for block in rows[:0].split(3)] == [0]
    assert rows[:0].inner_products(rows).shape == (0, 8)


def test_precision_of_the_rows_is_that_of_their_numbers():
    rows = SparseRows.of(sparse.csr_array(random_matrix(4, 5))).float()
    assert rows[:2].inner_products(rows).dtype == rows.squared_distances().dtype == torch.float32
    assert rows.to(torch.float64).l1_distances().dtype == torch.float64


def test_the_user_s_matrix_does_not_change():
    given = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
    rows = SparseRows.of(given)
    assert rows.values.tolist() == [5.0, 1.0]  # sorted, and equal places are summed
    assert given.indices.tolist() == [2, 0, 0]


def test_a_gradient_flows_to_the_unit():
    X = random_matrix(6, 4)
    unit = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    W = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 6)))
    (W * squared_euclidean(SparseRows.of(sparse.csr_array(X)) / unit)).sum().backward()
    assert unit.grad == pytest.approx(-2 * (W.numpy() * cdist(X, X, "sqeuclidean")).sum() / 1.3**3)


def test_known_numbers_are_computed_once_and_not_pickled(monkeypatch):
    calls = []
    product = sparse_rows._inner_products
    monkeypatch.setattr(sparse_rows, "_inner_products", lambda *parts: calls.append(1) or product(*parts))
    rows = SparseRows.of(sparse.csr_array(random_matrix(6, 4)))
    first = (rows / 2.0) @ rows.T
    for scale in (1.0, 2.0, 3.0):
        (rows / scale).squared_distances()
    assert len(calls) == 2  # one for other rows, one for the rows among themselves
    copied = pickle.loads(pickle.dumps(rows))
    assert copied._known is None
    np.testing.assert_array_equal((copied / 2.0) @ copied.T, first)
    assert copy.deepcopy(rows) is rows


def test_the_median_distance_is_that_of_dense_rows():
    X = random_matrix(30, 6)
    found, wanted = (median_distance_of(points, l1) for points in (SparseRows.of(X), torch.from_numpy(X)))
    assert found == pytest.approx(wanted, rel=1e-12)


def test_rows_of_another_width_and_length_scales_for_columns_are_refused():
    rows = SparseRows.of(sparse.csr_array(np.eye(3)))
    with pytest.raises(ValueError, match="3 features cannot be compared with points that have 2"):
        rows @ SparseRows.of(sparse.csr_array(np.eye(2))).T
    with pytest.raises(ValueError, match="one length scale"):
        rows / torch.ones(3)
