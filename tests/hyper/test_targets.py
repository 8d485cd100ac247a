import numpy as np
import pytest
import torch

from kernelwright.hyper.targets import LabelTarget, MatrixTarget, pair_problem, target_matrix
from tests.hyper.problems import symmetric


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
    with pytest.raises(ValueError, match="finite, nonnegative"):
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
    with pytest.raises(ValueError, match="nothing can be learned"):
        MatrixTarget.checked(Y, weights, 3)


def test_centre_and_spread_of_a_matrix():
    Y = symmetric(6)
    Y[0, 1] = Y[1, 0] = np.nan
    target = MatrixTarget.checked(Y, None, 6)
    assert target.mean() == pytest.approx(np.nanmean(Y))
    assert target.spread() == pytest.approx(np.nanstd(Y, ddof=1))
    assert target.normalised(1.0, 2.0).values[2, 3] == pytest.approx((Y[2, 3] - 1.0) / 2.0)


def test_without_symmetry_both_values_of_a_pair_are_averaged_with_their_weights():
    Y = np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 6.0], [7.0, np.nan, 9.0]])
    W = np.array([[1.0, 3.0, 1.0], [1.0, 1.0, 2.0], [4.0, 1.0, 1.0]])
    target = MatrixTarget.checked(Y, W, 3, symmetric=False)
    values = [[1.0, 2.5, 7.0], [2.5, 5.0, 6.0], [7.0, 6.0, 9.0]]
    weights = [[1.0, 2.0, 2.0], [2.0, 1.0, 1.0], [2.0, 1.0, 1.0]]
    assert np.allclose(target.values, values)
    assert np.allclose(target.weights, weights)
    known = ~np.isnan(Y)
    assert target.mean() == pytest.approx((W * Y)[known].sum() / W[known].sum())


def test_without_symmetry_a_symmetric_matrix_is_the_same_target():
    Y = symmetric(5)
    Y[1, 3] = Y[3, 1] = np.nan
    one, other = (MatrixTarget.checked(Y, None, 5, symmetric=s) for s in (True, False))
    assert torch.equal(one.values.nan_to_num(9.0), other.values.nan_to_num(9.0))
    assert other.weights is None


def test_one_way_is_enough_without_symmetry():
    Y = np.triu(symmetric(4))
    Y[np.tril_indices(4, -1)] = np.nan
    target = MatrixTarget.checked(Y, None, 4, symmetric=False)
    assert torch.equal(target.values, target.values.T)
    assert np.array_equal(target.weights, np.where(np.eye(4) == 1, 1.0, 0.5))
    Y[0] = np.nan
    with pytest.raises(ValueError, match=r"no known similarity.*rows 0"):
        MatrixTarget.checked(Y, None, 4, symmetric=False)


@pytest.mark.parametrize(
    ("y", "sample_weight", "message"),
    [
        (None, None, "PairOwner requires y"),
        (np.ma.masked_array(np.eye(4)), None, "Use NaN for unknown pairs"),
        (np.eye(4), np.ones(3), r"shape \(4,\), one weight for each point"),
        (np.eye(4), -np.ones(4), "must not be negative"),
    ],
)
def test_problems_that_cannot_be_learned_from_are_refused(y, sample_weight, message):
    owner = type("PairOwner", (), {})()
    with pytest.raises(ValueError, match=message):
        pair_problem(np.eye(4), y, sample_weight, owner=owner)


def test_equal_labelled_points_are_one_point_of_more_weight():
    X = np.array([[0.0], [1.0], [0.0], [2.0]])
    problem = pair_problem(X, np.array(["a", "b", "a", "b"]))
    assert problem.points.tolist() == [[0.0], [1.0], [2.0]]
    assert problem.classes.tolist() == ["a", "b"]
    assert np.allclose(problem.weights, [1.5, 0.75, 0.75])


def test_scores_are_measured_against_what_is_learned():
    y = np.array([0, 1, 0])
    assert np.array_equal(target_matrix(y), [[1, -1, 1], [-1, 1, -1], [1, -1, 1]])
    assert np.array_equal(target_matrix(y[:, None], "indicator"), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    assert np.array_equal(target_matrix(np.eye(3)), np.eye(3))
