"""Products of large and thin matrices, against plain ones."""

import numpy as np
import pytest
import torch

from kernelwright.numerics.products import (
    Outer,
    mirror_upper_,
    symmetric_outer,
    symmetric_product,
    thin_product,
    weighted_gram,
)


def positive_definite(n: int, seed: int = 0) -> np.ndarray:
    B = np.random.default_rng(seed).normal(size=(n, n))
    return B @ B.T / n + 0.1 * np.eye(n)


def tensor(array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_symmetric_outer_has_the_right_inner_products_with_symmetric_matrices(scale):
    rng = np.random.default_rng(2)
    B, S = rng.normal(size=(5, 3)), rng.normal(size=(5, 5))
    S = S + S.T
    M = symmetric_outer(tensor(B), scale).numpy()
    assert (M * S).sum() == pytest.approx((scale * B @ B.T * S).sum(), rel=1e-12)


def test_symmetric_outer_of_a_strided_matrix():
    B, S = np.random.default_rng(2).normal(size=(3, 5)), np.ones((5, 5)) + np.eye(5)
    M = symmetric_outer(tensor(B).T).numpy()
    assert (M * S).sum() == pytest.approx((B.T @ B * S).sum(), rel=1e-12)


@pytest.mark.parametrize("transposed", [False, True])
def test_thin_product(transposed):
    rng = np.random.default_rng(4)
    A, B = rng.normal(size=(7, 5)), rng.normal(size=(5, 2))
    left, right = (tensor(A.T).T, tensor(B.T).T) if transposed else (tensor(A), tensor(B))
    np.testing.assert_allclose(thin_product(left, right), A @ B, rtol=1e-12)


@pytest.mark.parametrize("n_columns", [0, 1, 3, 30])
def test_a_symmetric_product_is_a_product(n_columns):
    A = tensor(positive_definite(9))
    B = torch.from_numpy(np.random.default_rng(1).normal(size=(9, n_columns)))
    np.testing.assert_allclose(symmetric_product(A, B), A.numpy() @ B.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("dtype", "tol"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_weighted_gram(whole, weighted, dtype, tol):
    rng = np.random.default_rng(0)
    Z, w = rng.normal(size=(30, 7)), rng.uniform(0.0, 2.0, (30, 1)) if weighted else np.ones((30, 1))
    before = Z.copy()
    given = torch.from_numpy(w).to(dtype) if weighted else None
    found = weighted_gram(torch.from_numpy(Z).to(dtype), given, whole=whole)
    expected = Z.T @ np.diag(w[:, 0]) @ Z
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, expected if whole else np.triu(expected), rtol=tol, atol=tol)
    np.testing.assert_array_equal(Z, before)


def test_an_outer_product_is_made_in_the_memory_that_it_is_given():
    rng = np.random.default_rng(0)
    B, C = rng.normal(size=(2, 6, 2))
    outer, memory = Outer(torch.from_numpy(B), torch.from_numpy(C)), torch.empty(6, 6, dtype=torch.float64)
    np.testing.assert_allclose(outer.dense(), B @ C.T, rtol=1e-14)
    assert outer.dense(memory).data_ptr() == memory.data_ptr()
    np.testing.assert_allclose(memory, B @ C.T, rtol=1e-14)


@pytest.mark.parametrize("n", [1, 5, 300])  # more than a tile
def test_mirroring_changes_the_matrix_itself(n):
    A = torch.from_numpy(np.random.default_rng(n).normal(size=(n, n)))
    expected = A.triu() + A.triu(1).T
    found = mirror_upper_(A)
    assert found is A
    assert torch.equal(A, expected)
