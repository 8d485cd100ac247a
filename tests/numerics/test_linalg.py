"""Factorisations against numpy, and repairs that are reported."""

import warnings

import numpy as np
import pytest
import torch

from kernelwright.errors import NumericalError, NumericalRepairWarning
from kernelwright.numerics.linalg import (
    Factor,
    factorise,
    factorise_in_single,
    low_rank_root,
    refined_solution,
    spectrum,
)


def positive_definite(n: int, seed: int = 0) -> np.ndarray:
    B = np.random.default_rng(seed).normal(size=(n, n))
    return B @ B.T / n + 0.1 * np.eye(n)


def tensor(array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def rank_one(n: int) -> torch.Tensor:
    """Return a matrix of rank one: semidefinite, but perhaps not to working precision."""
    v = torch.linspace(1.0, 2.0, n, dtype=torch.float64)
    return torch.outer(v, v)


noises = pytest.mark.parametrize("noise", [0.0, 0.3, torch.linspace(0.1, 1.0, 6, dtype=torch.float64)], ids=str)


def total(K: np.ndarray, noise) -> np.ndarray:
    return K + np.diag(np.broadcast_to(np.asarray(noise), len(K)))


def factorised(factor: Factor) -> np.ndarray:
    return factor.triangle @ factor.triangle.T


# Against numpy -----------------------------------------------------------------------------------------------


@noises
def test_factor(noise):
    K = positive_definite(6)
    factor = factorise(tensor(K), noise)
    np.testing.assert_allclose(factorised(factor), total(K, noise), rtol=1e-12)
    np.testing.assert_array_equal(np.triu(factor.triangle, 1), 0.0)
    assert factor.jitter == 0.0


@noises
def test_solve(noise):
    K, B = positive_definite(6), np.random.default_rng(1).normal(size=(6, 3))
    for right in (tensor(B), tensor(B.T).T):
        found = factorise(tensor(K), noise).solve(right)
        np.testing.assert_allclose(found, np.linalg.solve(total(K, noise), B), rtol=1e-10)


@pytest.mark.parametrize("n", [1, 6, 300])  # more than a tile of the mirroring
def test_inverse(n):
    K, noise = positive_definite(n), torch.linspace(0.1, 1.0, n, dtype=torch.float64)
    found = factorise(tensor(K), noise).into_inverse_()
    np.testing.assert_allclose(found, np.linalg.inv(total(K, noise)), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(found, found.T)


@noises
def test_inverse_diagonal(noise):
    K = positive_definite(6)
    found = factorise(tensor(K), noise).inverse_diagonal()
    np.testing.assert_allclose(found, np.diagonal(np.linalg.inv(total(K, noise))), rtol=1e-10)


@noises
def test_log_determinant(noise):
    K = positive_definite(6)
    assert factorise(tensor(K), noise).log_determinant() == pytest.approx(np.linalg.slogdet(total(K, noise))[1])


def test_a_single_row():
    factor = factorise(torch.tensor([[3.0]], dtype=torch.float64), 1.0)
    assert float(factor.solve(torch.tensor([[8.0]], dtype=torch.float64))) == pytest.approx(2.0)
    assert float(factor.into_inverse_()) == pytest.approx(0.25)


def test_the_matrix_and_the_right_side_are_left_as_they_were():
    K, B = tensor(positive_definite(6)), torch.ones(6, 2, dtype=torch.float64)
    before = K.clone()
    factor = factorise(K, 0.5)
    factor.solve(B), factor.inverse_diagonal(), factor.log_determinant()
    assert torch.equal(K, before)
    assert torch.equal(B, torch.ones(6, 2, dtype=torch.float64))
    np.testing.assert_allclose(factorised(factor), K.numpy() + 0.5 * np.eye(6))
    factor.into_inverse_()
    assert torch.equal(K, before)


def test_views_that_are_not_contiguous_are_taken():
    K = tensor(positive_definite(8))
    some = torch.tensor([5, 1, 3])
    for view in (K[some][:, some], K[1::2, 1::2], K.T[:4, :4], torch.tensor(2.0, dtype=torch.float64).expand(1, 1)):
        factor = factorise(view)
        np.testing.assert_allclose(factorised(factor), view, rtol=1e-12)


def test_spectrum():
    K = positive_definite(6)
    np.testing.assert_allclose(spectrum(tensor(K)), np.linalg.eigvalsh(K), rtol=1e-10)


def test_low_rank_root_of_a_low_rank_matrix_is_exact_and_thin():
    B = np.random.default_rng(3).normal(size=(9, 3))
    root = low_rank_root(tensor(B @ B.T), 1e-10)
    assert root.shape == (9, 3)
    np.testing.assert_allclose(root @ root.T, B @ B.T, atol=1e-9)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-7])
def test_low_rank_root_misses_no_entry_by_more_than_its_tolerance(tol):
    x = np.linspace(0, 1, 40)[:, None]
    L = np.exp(-((x - x.T) ** 2) / 0.5)
    root = low_rank_root(tensor(L), tol)
    assert np.abs(L - (root @ root.T).numpy()).max() <= tol * (1 + 1e-6)
    assert root.shape[1] < 12


def test_low_rank_root_leaves_its_input_alone():
    K = tensor(positive_definite(5))
    before = K.clone()
    low_rank_root(K, 1e-10)
    assert torch.equal(K, before)


@pytest.mark.parametrize("K", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, np.nan], [np.nan, 1.0]]], ids=["indefinite", "nan"])
def test_low_rank_root_of_what_has_none_is_refused(K):
    with pytest.raises(NumericalError, match="not positive semidefinite"):
        low_rank_root(torch.tensor(K, dtype=torch.float64), 1e-10)


# Repairs and refusals ----------------------------------------------------------------------------------------


def test_a_good_matrix_is_not_repaired():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert factorise(rank_one(20), 1e-3).jitter == 0.0


def test_a_repair_is_told_with_its_size_and_kept():
    K = rank_one(30) - 1e-9 * torch.eye(30, dtype=torch.float64)
    with pytest.warns(NumericalRepairWarning) as caught:
        factor = factorise(K)
    assert factor.jitter > 1e-9
    message = str(caught[0].message)
    assert "30 x 30" in message
    assert f"{factor.jitter:.1e} was added to its diagonal" in message
    repaired = K + factor.jitter * torch.eye(30, dtype=torch.float64)
    np.testing.assert_allclose(factorised(factor), repaired, atol=1e-13)


def test_the_smallest_repair_that_helps_is_taken():
    K = rank_one(30) - 1e-9 * torch.eye(30, dtype=torch.float64)
    with pytest.warns(NumericalRepairWarning):
        jitter = factorise(K).jitter
    level = float(K.diagonal().mean())
    assert jitter / level == pytest.approx(1e-9)  # 1e-10 of the mean diagonal, 2.3, would not do


def test_repair_is_relative_to_the_size_of_the_matrix():
    for size in (1e-30, 1e30):
        with pytest.warns(NumericalRepairWarning):
            factor = factorise(size * (rank_one(30) - 1e-9 * torch.eye(30, dtype=torch.float64)))
        assert 1e-10 * size < factor.jitter < 1e-7 * size


@pytest.mark.parametrize(
    "K",
    [[[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0.0], [0.0, -1.0]], [[0.0, 0.0], [0.0, 0.0]]],
    ids=["indefinite", "negative", "zero"],
)
def test_a_matrix_past_repair_is_refused_with_likely_causes(K):
    with pytest.raises(NumericalError, match=r"2 x 2 kernel matrix is not positive definite.*\(a\).*\(b\).*\(c\)"):
        factorise(torch.tensor(K, dtype=torch.float64))


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=str)
@pytest.mark.parametrize("place", [(1, 1), (0, 2)], ids=["diagonal", "elsewhere"])
def test_entries_that_are_not_finite_are_refused(bad, place):
    K = positive_definite(3)
    K[place] = K[place[::-1]] = bad
    with pytest.raises(NumericalError, match=r"has entries that are not finite.*\(a\).*\(b\).*\(c\)"):
        factorise(tensor(K))


def test_noise_that_is_not_finite_is_refused():
    with pytest.raises(NumericalError, match="not finite"):
        factorise(tensor(positive_definite(3)), float("inf"))


# Single precision ----------------------------------------------------------------------------------------------


def test_a_factor_in_single_precision_gives_double_numbers_and_leaves_its_input_alone():
    K = tensor(positive_definite(6)).float()
    before = K.clone()
    factor = factorise_in_single(K, 0.5)
    A = before.double().numpy() + 0.5 * np.eye(6)
    assert torch.equal(K, before)
    assert factor.solve(torch.ones(6, 2, dtype=torch.float64)).dtype == torch.float64
    np.testing.assert_allclose(factor.solve(torch.eye(6, dtype=torch.float64)), np.linalg.inv(A), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.diagonal(np.linalg.inv(A)), rtol=1e-5)


def test_the_transposed_product_of_a_factor():
    factor = factorise(tensor(positive_definite(300)))  # more than one tile of the mirror
    np.testing.assert_allclose(factor.transposed_product(), factor.triangle.T @ factor.triangle, rtol=1e-10, atol=1e-12)


def test_an_inverse_from_a_factor_in_single_precision():
    K = tensor(positive_definite(7))
    inverse = factorise_in_single(K, 0.5).into_inverse_()
    assert inverse.dtype == torch.float32
    np.testing.assert_allclose(inverse, np.linalg.inv(K.numpy() + 0.5 * np.eye(7)), rtol=1e-4, atol=1e-5)


def test_a_solution_by_a_factor_in_single_precision_is_refined():
    A = tensor(positive_definite(30)).float()
    B = torch.from_numpy(np.random.default_rng(1).normal(size=(30, 2)))
    factor = factorise_in_single(A, 0.0)
    exact = np.linalg.solve(A.double().numpy(), B.numpy())
    found = refined_solution(factor.solve, lambda V: A.double() @ V, B).numpy()
    np.testing.assert_allclose(found, exact, atol=1e-7)
    assert np.abs(found - exact).max() < 0.1 * np.abs(factor.solve(B).numpy() - exact).max()


def test_a_solution_that_single_precision_cannot_give_is_refused_with_its_residual():
    x = np.linspace(0, 1, 40)[:, None]
    A = tensor(np.exp(-((x - x.T) ** 2)) + 3e-6 * np.eye(40))
    B = torch.from_numpy(np.random.default_rng(1).normal(size=(40, 2)))
    factor = factorise_in_single(A.float(), 0.0)
    with pytest.raises(NumericalError, match=r"single precision leaves a relative residual of \d"):
        refined_solution(factor.solve, lambda V: A @ V, B)


def test_a_matrix_past_single_precision_is_refused():
    with pytest.raises(NumericalError, match="not positive definite in single precision"):
        factorise_in_single((rank_one(30) - 1e-5 * torch.eye(30, dtype=torch.float64)).float(), 0.0)
