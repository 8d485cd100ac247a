"""The default kernel for tables."""

import numpy as np
import pytest
import torch

from kernelwright.kernels import Gaussian, Laplace, Tabular
from tests import reference as naive

X = np.random.default_rng(3).normal(size=(8, 4))  # two features, two views
POINTS = torch.from_numpy(X)


@pytest.mark.parametrize(
    ("weights", "kernel", "columns"),
    [
        ([1 - 2e-9, 1e-9, 1e-9], Laplace([0.5, 2.0]), slice(0, 2)),
        ([1e-9, 1 - 2e-9, 1e-9], Gaussian([1.3 / 2**0.5, 1.3 * 2**0.5]), slice(0, 2)),
        ([1e-9, 1e-9, 1 - 2e-9], Laplace([0.5 * 0.8, 2.0 * 0.8]), slice(2, 4)),
    ],
    ids=["steps", "smooth", "ranks"],
)
def test_each_part_is_a_known_kernel_of_its_view(weights, kernel, columns):
    mixed = Tabular([0.5, 2.0], smooth=1.3, rank_scale=0.8, weights=weights)
    np.testing.assert_allclose(mixed(X), kernel(X[:, columns]), atol=1e-8)


def test_the_start_of_the_mixture_is_the_documented_one():
    logits = np.array([0.0, *Tabular.START])
    np.testing.assert_allclose(Tabular().get_params()["weights"], np.exp(logits) / np.exp(logits).sum(), rtol=1e-12)


def test_median_start_sets_both_lengths_from_the_first_view():
    kernel = Tabular()
    kernel.prepare_(POINTS)
    expected = naive.lower_median_of_distances(X[:, :2], 1)
    assert kernel.lengthscale.tolist() == pytest.approx([expected, expected])
    assert float(kernel.smooth.detach()) == pytest.approx(naive.lower_median_of_distances(X[:, :2], 2))


def test_median_start_counts_weights_as_repetitions():
    weights = np.array([1, 2, 1, 3, 1, 1, 2, 1])
    kernel = Tabular()
    kernel.prepare_(POINTS, torch.from_numpy(weights.astype(float)))
    repeated = np.repeat(X[:, :2], weights, axis=0)
    assert kernel.lengthscale.tolist() == pytest.approx([naive.lower_median_of_distances(repeated, 1)] * 2)
    assert float(kernel.smooth.detach()) == pytest.approx(naive.lower_median_of_distances(repeated, 2))


def test_given_lengths_stay():
    kernel = Tabular(0.7, smooth=2.0)
    kernel.prepare_(POINTS)
    assert kernel.lengthscale.tolist() == pytest.approx([0.7, 0.7])
    assert float(kernel.smooth.detach()) == pytest.approx(2.0)


def test_tie_and_prepare():
    kernel = Tabular([1.0, 4.0])
    kernel.tie_()
    assert float(kernel.lengthscale.detach()) == pytest.approx(2.0)
    kernel.prepare_(POINTS)
    assert kernel.lengthscale.tolist() == pytest.approx([2.0, 2.0])


def test_penalty_is_zero_at_the_start_and_naive_elsewhere():
    assert float(Tabular(1.0).penalty().detach()) == pytest.approx(0.0, abs=1e-15)
    scales, weights, rank_scale = np.array([0.5, 2.0, 3.0]), np.array([0.5, 0.2, 0.3]), 0.7
    logs, logits = np.log(scales), np.log(weights[1:] / weights[0])
    expected = 0.5 * (
        ((logs - logs.mean()) ** 2).sum() + ((logits - [-1.0, -0.5]) ** 2).sum() + np.log(rank_scale) ** 2
    )
    found = Tabular(scales, rank_scale=rank_scale, weights=weights).penalty()
    assert float(found.detach()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scales", [[1.0, 2.0, 3.0], [1.0]], ids=str)
def test_a_wrong_number_of_length_scales_is_refused(scales):
    with pytest.raises(ValueError, match=f"length scales for {len(scales)} features, but the points have 2"):
        Tabular(scales).prepare_(POINTS)


def test_points_without_two_views_are_refused():
    with pytest.raises(ValueError, match="view"):
        Tabular(1.0)(X[:, :3])


@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.25, 0.25, 0.25, 0.25], [1.0, 1.0, 1.0]], ids=str)
def test_the_mixture_has_three_weights(weights):
    with pytest.raises(ValueError, match="The 'weights' parameter of Tabular must be"):
        Tabular(weights=weights)


def test_k_of_a_point_with_itself_is_one():
    np.testing.assert_allclose(np.diagonal(Tabular(0.7)(X)), 1.0, rtol=1e-14)
    assert float(Tabular().sup_diag()) == 1.0


def test_features_of_a_group_share_a_length_scale_and_its_gradient():
    rows = torch.from_numpy(np.random.default_rng(5).normal(size=(9, 6)))  # three features, two views
    weights, each = [0.5, 0.3, 0.2], Tabular([0.5, 0.5, 2.0], smooth=1.3, rank_scale=0.8, weights=[0.5, 0.3, 0.2])
    kernel = Tabular([0.5, 2.0], smooth=1.3, rank_scale=0.8, weights=weights, groups=(0, 0, 1))
    steps, ranks = Laplace([0.5, 0.5, 2.0]), Laplace([0.4, 0.4, 1.6])
    middle = (0.5 * 2.0) ** 0.5  # of the two length scales, however many features have them
    smooth = Gaussian((1.3 * (np.array([0.5, 0.5, 2.0]) / middle) ** 0.5).tolist())
    z, q = rows[:, :3], rows[:, 3:]
    expected = 0.5 * steps(z) + 0.3 * smooth(z) + 0.2 * ranks(q)
    torch.testing.assert_close(kernel(rows), expected)
    assert not torch.allclose(each(rows), kernel(rows))  # there the middle is over features
    dK = torch.from_numpy(np.random.default_rng(6).normal(size=(9, 9)))
    _, back = kernel.vjp(rows)
    (kernel.forward(rows) * dK).sum().backward()
    for name, gradient in back(0.5 * (dK + dK.T)).items():
        torch.testing.assert_close(gradient.reshape(-1), kernel.get_parameter(name).grad.reshape(-1))


def test_a_group_needs_one_length_scale_only():
    kernel = Tabular(groups=(0, 0, 1))
    kernel.prepare_(torch.from_numpy(np.random.default_rng(5).normal(size=(9, 6))))
    assert kernel.log_lengthscale.shape == (2,)
    with pytest.raises(ValueError, match="length scales for 3 features, but the points have 2"):
        kernel.forward(POINTS)
