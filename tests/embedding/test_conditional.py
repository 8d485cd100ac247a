import numpy as np
import pytest
import torch

from kernelwright.embedding.conditional import (
    FactorisedEmbedding,
    distribution_function,
    merge_rows,
    quantile_places,
    whole,
)
from kernelwright.embedding.dual import embed
from kernelwright.kernels import Gaussian, Precomputed, Spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 2))[[0, 1, 2, 3, 0, 0, 4, 1]]
NUMBER = np.array([0, 1, 2, 0, 0, 1, 2, 1])  # rows 0 and 4 are equal, and rows 1 and 7; row 5 differs in its target
NEW = torch.from_numpy(RNG.normal(size=(5, 2)))
RIDGE = 0.05


def factorised(fills):
    kernel = Gaussian(0.9)
    rows = merge_rows(X, NUMBER, kernel, None)
    data = rows.training_set(torch.eye(3, dtype=torch.float64), centred=fills, classes=True)
    with torch.no_grad():
        return FactorisedEmbedding(kernel, RIDGE, rows, embed(kernel.matrix(rows.points), data, RIDGE).factor, fills)


def kernel_rows(embedding):
    with torch.no_grad():
        return embedding.kernel.forward(NEW, embedding.points)


def naive_weights(fills):
    """Compute Eq. (2) on all rows, without merging any."""
    k = lambda A, B: np.exp(-((A[:, None] - B) ** 2).sum(2) / (2 * 0.9**2))  # noqa: E731
    weights = np.linalg.solve(k(X, X) + len(X) * RIDGE * np.eye(len(X)), k(X, NEW.numpy())).T
    return weights + fills * (1 - weights.sum(1, keepdims=True)) / len(X)


def test_equal_rows_of_equal_targets_are_merged():
    rows = merge_rows(X, NUMBER, Gaussian(), None)
    assert len(rows.points) == 6
    np.testing.assert_array_equal(rows.points.numpy()[rows.place], X)
    np.testing.assert_array_equal(rows.number[rows.place], NUMBER)
    np.testing.assert_array_equal(rows.counts, np.bincount(rows.place))
    assert merge_rows(X, NUMBER, Gaussian(), "standard").scaler.mean_ == pytest.approx(X.mean(0))


@pytest.mark.parametrize("kernel", [Spectrum(1), Precomputed()])
def test_what_is_no_vector_is_not_merged(kernel):
    inputs = np.array(["ab", "ab", "b"], dtype=object) if isinstance(kernel, Spectrum) else np.eye(3)
    rows = merge_rows(inputs, np.array([0, 0, 1]), kernel, None)
    assert len(rows.points) == 3
    np.testing.assert_array_equal(rows.counts, 1.0)


def test_training_sets_have_a_row_of_features_for_each_point():
    rows, table = merge_rows(X, NUMBER, Gaussian(), None), torch.from_numpy(RNG.normal(size=(3, 2)))
    data = rows.training_set(table, centred=True, classes=True)
    np.testing.assert_allclose(data.prior, table.numpy()[NUMBER].mean(0))
    np.testing.assert_array_equal(data.targets, table[rows.number])
    np.testing.assert_array_equal(data.strata, rows.number)
    plain = rows.training_set(table, centred=False, classes=False)
    assert not plain.prior.any()
    assert not plain.strata.any()


@pytest.mark.parametrize("fills", [False, True])
def test_weights_are_those_of_all_rows(fills):
    embedding = factorised(fills)
    K, expected = kernel_rows(embedding), naive_weights(fills)
    np.testing.assert_allclose(embedding.row_weights(K), expected, atol=1e-12)
    np.testing.assert_allclose(embedding.masses(K), expected @ np.eye(3)[NUMBER], atol=1e-12)


@pytest.mark.parametrize("fills", [False, True])
def test_a_function_of_rows_is_summed_by_their_weights(fills):
    embedding = factorised(fills)
    values = RNG.normal(size=(8, 2))  # of each given row: copies may differ
    means, coefficients = embedding.solve(values)
    found = means + kernel_rows(embedding) @ coefficients
    np.testing.assert_allclose(found, naive_weights(fills) @ values, atol=1e-12)


def test_whole_weights_have_sum_one():
    weights = torch.from_numpy(RNG.normal(size=(6, 4)))
    shares = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    found = whole(weights, shares)
    torch.testing.assert_close(found.sum(1), torch.ones(6, dtype=torch.float64))
    spread = (found - weights) / shares
    torch.testing.assert_close(spread, spread[:, :1].expand(-1, 4))


@pytest.mark.parametrize("method", ["rearrange", "clip"])
def test_distribution_functions_rise_to_one(method):
    masses = torch.from_numpy(np.array([[0.5, -0.2, 0.4], [0.2, 0.3, 0.5], [-1.0, -2.0, 0.0]]))
    marginal = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    below = distribution_function(masses, marginal, method)
    assert (below.diff(dim=1) >= 0).all()
    torch.testing.assert_close(below[1], torch.tensor([0.2, 0.5, 1.0], dtype=torch.float64))
    expected = [0.5 / 0.9, 0.5 / 0.9, 1.0] if method == "clip" else [0.65, 0.525, 1.0]
    np.testing.assert_allclose(below[0], np.sort(expected))
    if method == "clip":  # no mass is positive
        torch.testing.assert_close(below[2], marginal.cumsum(0))


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="'clip' or 'rearrange'"):
        distribution_function(torch.ones(1, 2), torch.ones(2) / 2, "sort")


def test_quantiles_are_the_first_targets_with_enough_mass():
    below = torch.tensor([[0.0, 0.3, 0.3, 1.0], [0.1, 0.2, 0.9, 0.999]], dtype=torch.float64)
    found = quantile_places(below, np.array([0.0, 0.3, 0.3 + 1e-9, 1.0]))
    np.testing.assert_array_equal(found, [[1, 1, 3, 3], [0, 2, 2, 3]])
