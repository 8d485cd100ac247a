"""A given Gram matrix as a kernel."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from kernelwright.kernels import ConvexSum, Precomputed
from kernelwright.kernels.precomputed import looks_like_distances
from kernelwright.objectives import value_and_gradient
from tests import reference as naive
from tests.cases import precomputed


def test_training_points_have_the_given_values():
    kernel, points, K = precomputed(5)
    np.testing.assert_array_equal(kernel(points), K)
    np.testing.assert_array_equal(kernel(points, points), K)
    np.testing.assert_array_equal(kernel.diag(points), np.diagonal(K))


def test_a_subset_of_training_points_knows_its_columns():
    kernel, points, K = precomputed(6)
    some, others = [4, 1, 3], [0, 5]
    np.testing.assert_array_equal(kernel(points[some]), K[np.ix_(some, some)])
    np.testing.assert_array_equal(kernel(points[some], points[others]), K[np.ix_(some, others)])
    np.testing.assert_array_equal(kernel.diag(points[some]), np.diagonal(K)[some])


def test_new_objects_are_compared_with_training_objects():
    kernel, points, _ = precomputed(4)
    rows = np.arange(8.0).reshape(2, 4)
    np.testing.assert_array_equal(kernel(kernel.encode(rows), points), rows)
    np.testing.assert_array_equal(kernel(kernel.encode(rows), points[[2, 0]]), rows[:, [2, 0]])


def test_two_new_objects_cannot_be_compared():
    kernel = Precomputed()
    with pytest.raises(ValueError, match="The kernel between two new objects is not among the precomputed values"):
        kernel([[1.0, 2.0]])


def test_sup_diag_is_empirical():
    kernel, points, K = precomputed(5)
    assert not kernel.bounded
    assert float(kernel.sup_diag(points)) == np.diagonal(K).max()
    with pytest.raises(ValueError, match="no known upper bound"):
        kernel.sup_diag()


def test_a_matrix_that_is_not_square_is_refused():
    with pytest.raises(ValueError, match=r"must be square at fit.*Got shape \(2, 3\)"):
        Precomputed().encode_training(np.ones((2, 3)))


def test_a_matrix_that_is_not_symmetric_is_refused_with_the_gap():
    with pytest.raises(ValueError, match=r"must be symmetric. Entries differ from their mirror by 0\.5"):
        Precomputed().encode_training([[1.0, 0.5], [0.0, 1.0]])


@pytest.mark.parametrize(("value", "said"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_value_that_is_not_finite_is_named_with_its_place(value, said):
    _, _, K = precomputed(4)
    K[1, 2] = K[2, 1] = value
    with pytest.raises(ValueError, match=f"row 1 and column 2 is {said} .*: 2"):
        Precomputed().encode_training(K)
    with pytest.raises(ValueError, match=f"row 0 and column 2 is {said} .*: 1"):
        Precomputed().encode(K[1:2])


def noisy_zeros(D):
    """Return zeros with the rounding errors of |x|^2 - 2 x z + |z|^2."""
    return D + 1e-9 * np.eye(len(D))


@pytest.mark.parametrize(
    "make",
    [
        lambda X: cdist(X, X),
        lambda X: cdist(X, X, "sqeuclidean"),
        lambda X: noisy_zeros(cdist(X, X)),
        lambda X: 1.0 - np.exp(-cdist(X, X)),
        lambda X: 3.0 + cdist(X, X, "hamming"),
        lambda X: np.kron(cdist(X, X), np.ones((2, 2))),
        lambda X: 1e-12 * cdist(X, X),
        lambda X: -np.exp(-cdist(X, X)),
    ],
    ids=["distances", "squared", "rounded", "one less", "shifted", "duplicates", "small", "negated kernel"],
)
def test_distances_are_no_kernel(make, rng):
    with pytest.raises(ValueError, match=r"If the values are distances, .* np\.exp\(-D / D_train\.mean\(\)\)"):
        Precomputed().encode_training(make(rng.normal(size=(9, 2))))


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.integers(-3, 3)))
def test_no_positive_semidefinite_matrix_looks_like_distances(F):
    """Also where rows are equal or zero, and with the rounding of a product."""
    for K in (F @ F.T, (F / 3.0) @ (F / 3.0).T, np.exp(-cdist(F, F)), np.ones((len(F), len(F)))):
        assert not looks_like_distances(torch.from_numpy(K))


def test_vjp_has_nothing_to_learn():
    kernel, points, K = precomputed(4)
    found, pullback = kernel.vjp(points)
    np.testing.assert_array_equal(found, K)
    assert pullback(torch.ones(4, 4, dtype=torch.float64)) == {}


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda kernel: pickle.loads(pickle.dumps(kernel))])
def test_copies(duplicate):
    kernel, points, K = precomputed(4)
    np.testing.assert_array_equal(duplicate(kernel)(points), K)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda k: 2.0 * k, lambda K: 2 * K),
        (lambda k: k + 0.5, lambda K: K + 0.5),
        (lambda k: 0.5 + k, lambda K: K + 0.5),
        (lambda k: k * k, lambda K: K * K),
        (lambda k: ConvexSum([k, 3.0 * k]), lambda K: 2 * K),
    ],
    ids=["scaled", "sum", "constant-first", "product", "convex-sum"],
)
def test_composites_encode_training_objects_as_the_kernel_itself_does(make, expected):
    _, _, K = precomputed(4)
    kernel = make(Precomputed())
    points = kernel.encode_training(K)
    np.testing.assert_allclose(kernel(points).detach(), expected(K), rtol=1e-12)
    assert float(kernel.sup_diag(points).detach()) == pytest.approx(np.diagonal(expected(K)).max())


@pytest.mark.parametrize("name", ["rademacher", "leave-one-out"])
def test_objectives_take_a_gram_matrix(name):
    _, _, K = precomputed(8)
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1])
    value, gradient = value_and_gradient(name, Precomputed(), K, y, ridge=0.3, complexity_weight=0.1, loss="brier")
    expected = naive.objective(
        name,
        K,
        np.eye(3)[y],
        np.ones(8),
        0.3,
        tau=0.1,
        sup=np.diagonal(K).max(),
        loss="brier",
        epsilon=0.0,
        folds=np.zeros(8),
    )
    assert value == pytest.approx(expected, rel=1e-9)
    assert list(gradient) == ["ridge"]
