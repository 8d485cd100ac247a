import numpy as np
import pytest
import torch

from kernelwright.errors import NumericalError
from kernelwright.similarity.indefinite import CORRECTIONS, correct, signature


@pytest.fixture
def K(rng):
    A = rng.normal(size=(12, 12))
    return A + A.T


def naive(K, K_new, how):
    """Apply the formula of each correction to the whole spectrum."""
    values, U = np.linalg.eigh(K)
    if how == "clip":
        return U @ np.diag(np.maximum(values, 0)) @ U.T, K_new @ U @ np.diag((values > 0) * 1.0) @ U.T
    if how == "flip":
        return U @ np.diag(np.abs(values)) @ U.T, K_new @ U @ np.diag(np.sign(values)) @ U.T
    if how == "shift":
        return K - values.min() * np.eye(len(K)), K_new
    return K, K_new


@pytest.mark.parametrize("how", CORRECTIONS)
def test_corrections_are_their_formulas(K, rng, how):
    K_new = rng.normal(size=(5, 12))
    matrix, rows = naive(K, K_new, how)
    found = correct(torch.from_numpy(K), how)
    np.testing.assert_allclose(found.matrix, matrix, atol=1e-12)
    np.testing.assert_allclose(found.transform(torch.from_numpy(K_new)), rows, atol=1e-12)


@pytest.mark.parametrize("how", ["clip", "flip"])
def test_training_rows_are_transformed_to_the_corrected_matrix(K, how):
    found = correct(torch.from_numpy(K), how)
    np.testing.assert_allclose(found.transform(torch.from_numpy(K)), found.matrix, atol=1e-12)


@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
def test_no_eigenvalue_is_negative_afterwards(K, how):
    values = np.linalg.eigvalsh(correct(torch.from_numpy(K), how).matrix)
    assert values.min() > -1e-12
    if how != "flip":
        assert abs(values.min()) < 1e-12


@pytest.mark.parametrize("how", CORRECTIONS)
def test_a_semidefinite_matrix_is_left_alone(rng, how):
    A = torch.from_numpy(rng.normal(size=(12, 4)))
    K, K_new = A @ A.T, torch.from_numpy(rng.normal(size=(3, 12)))
    found = correct(K, how)
    assert found.matrix is K
    assert found.transform(K_new) is K_new
    assert found.signature.definite


def test_signature_counts_signs():
    U, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    found = signature(torch.from_numpy(U @ np.diag([4.0, 1.0, 0.0, -2.0, -3.0]) @ U.T))
    assert (found.positive, found.negative, found.zero) == (2, 2, 1)
    np.testing.assert_allclose([found.smallest, found.largest, found.negative_share], [-3.0, 4.0, 0.5])
    assert "2 negative (50.0%" in str(found)


def test_signature_of_nothing_but_zeros():
    found = signature(torch.zeros(3, 3, dtype=torch.float64))
    assert (found.zero, found.negative_share) == (3, 0.0)


def test_bad_input_is_refused(K):
    with pytest.raises(ValueError, match="must be one of"):
        correct(torch.from_numpy(K), "square")
    with pytest.raises(NumericalError, match="not finite"):
        signature(torch.full((2, 2), torch.nan))
