import numpy as np
import pytest
import torch

from kernelwright.hyper.pairs import LabelTarget, MatrixTarget, sample_pairs, unique_pairs


def generator():
    return torch.Generator().manual_seed(0)


def symmetric(m, seed=0):
    A = np.random.default_rng(seed).normal(size=(m, m))
    return A + A.T


def test_unique_pairs_are_the_upper_triangle_with_mirror_weights():
    Y = symmetric(5)
    pairs = unique_pairs(MatrixTarget.checked(Y, None, 5))
    assert len(pairs) == 15
    assert float(pairs.weights.sum()) == 25.0
    assert torch.equal(pairs.targets, torch.from_numpy(Y)[pairs.first, pairs.second])
    assert bool((pairs.first <= pairs.second).all())


def test_unknown_pairs_are_left_out():
    Y = symmetric(5)
    Y[1, 3] = Y[3, 1] = Y[0, 0] = np.nan
    pairs = unique_pairs(MatrixTarget.checked(Y, None, 5))
    assert len(pairs) == 13
    assert not bool(pairs.targets.isnan().any())


def test_pairs_of_weight_zero_are_left_out():
    weights = np.ones((4, 4))
    weights[0, 1] = weights[1, 0] = 0.0
    assert len(unique_pairs(MatrixTarget.checked(symmetric(4), weights, 4))) == 9


@pytest.mark.parametrize("low", [-1.0, 0.0, 0.3])
def test_ideal_kernel_of_labels_and_its_low_rank_form(low):
    labels = np.array([0, 1, 2, 1, 0])
    target = LabelTarget(torch.from_numpy(labels), low)
    expected = np.where(labels[:, None] == labels, 1.0, low)
    assert target.mean() == pytest.approx(expected.mean())
    centred = target.normalised(target.mean(), 2.0)
    assert centred.mean() == pytest.approx(0.0, abs=1e-12)
    assert centred.same - centred.other == pytest.approx((1.0 - low) / 2)
    i, j = torch.meshgrid(torch.arange(5), torch.arange(5), indexing="ij")
    assert np.array_equal(target.at(i.reshape(-1), j.reshape(-1)).reshape(5, 5).numpy(), expected)
    root, signs = target.low_rank()
    assert np.allclose(((root * signs) @ root.T).numpy(), expected)


def test_two_classes_give_y_times_y():
    y = np.array([1, -1, -1, 1])
    pairs = unique_pairs(LabelTarget(torch.from_numpy((y > 0).astype(np.int64))))
    assert np.array_equal(pairs.targets.numpy(), y[pairs.first.numpy()] * y[pairs.second.numpy()])


def test_a_sample_keeps_the_diagonal_and_near_neighbours_and_is_unbiased():
    random = np.random.default_rng(0)
    X = torch.from_numpy(random.normal(size=(300, 2)))
    target = LabelTarget(torch.from_numpy(random.integers(0, 2, 300)))
    pairs = sample_pairs(target, X, 8000, generator=generator())
    codes = set((pairs.first * 300 + pairs.second).tolist())
    assert len(codes) == len(pairs)
    assert {i * 300 + i for i in range(300)} <= codes
    D = torch.cdist(X, X).fill_diagonal_(torch.inf)
    nearest = D.argmin(1)
    assert all(min(i, int(j)) * 300 + max(i, int(j)) in codes for i, j in enumerate(nearest))
    assert float(pairs.weights.sum()) == pytest.approx(300**2)
    everything = unique_pairs(target)
    whole = float((everything.weights * everything.targets).sum())
    assert float((pairs.weights * pairs.targets).sum()) == pytest.approx(whole, abs=0.05 * 300**2)


def test_a_sample_of_mostly_missing_pairs_is_still_large():
    random = np.random.default_rng(0)
    Y = symmetric(400)
    missing = np.triu(random.random((400, 400)) < 0.9, 1)
    Y[missing | missing.T] = np.nan
    X = torch.from_numpy(random.normal(size=(400, 3)))
    pairs = sample_pairs(MatrixTarget.checked(Y, None, 400), X, 4000, generator=generator())
    assert 2500 < len(pairs) < 6000


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.ones((3, 4)), r"a row and a column for each of the 3 points. Got shape \(3, 4\)"),
        (np.array([[0, 1.0, 2], [1.5, 0, 3], [2, 3, 0]]), r"Entries \(0, 1\) and \(1, 0\) differ by 0.5"),
        (np.array([[0, np.nan, 2], [1.0, 0, 3], [2, 3, 0]]), "1 pairs are known one way only"),
        (np.array([[np.nan, np.nan, np.nan], [np.nan, 0, 3], [np.nan, 3, 0]]), "no known similarity.*rows 0"),
        (np.array([[0, np.inf, 2], [np.inf, 0, 3], [2, 3, 0]]), "infinite"),
    ],
)
def test_bad_matrices_say_what_is_wrong(Y, message):
    with pytest.raises(ValueError, match=message):
        MatrixTarget.checked(Y, None, 3)


def test_negative_weights_are_refused():
    with pytest.raises(ValueError, match="not negative"):
        MatrixTarget.checked(symmetric(3), -np.ones((3, 3)), 3)


def test_single_precision_may_be_a_little_asymmetric():
    Y = symmetric(5).astype(np.float32)
    Y[0, 1] += 1e-5 * np.abs(Y).max()
    assert len(MatrixTarget.checked(Y, None, 5)) == 5
    with pytest.raises(ValueError, match="differ by"):
        MatrixTarget.checked(Y.astype(np.float64), None, 5)


def test_weights_only_where_nothing_is_known_are_refused():
    Y, weights = symmetric(3), np.zeros((3, 3))
    Y[0, 1] = Y[1, 0] = np.nan
    weights[0, 1] = weights[1, 0] = 1.0
    with pytest.raises(ValueError, match="nothing to learn"):
        MatrixTarget.checked(Y, weights, 3)


def test_centre_and_spread_of_a_matrix():
    Y = symmetric(6)
    Y[0, 1] = Y[1, 0] = np.nan
    target = MatrixTarget.checked(Y, None, 6)
    assert target.mean() == pytest.approx(np.nanmean(Y))
    assert target.spread() == pytest.approx(np.nanstd(Y, ddof=1))
    assert target.normalised(1.0, 2.0).values[2, 3] == pytest.approx((Y[2, 3] - 1.0) / 2.0)
