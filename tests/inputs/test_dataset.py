"""Checked training rows as one record."""

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator

from kernelwright.inputs.blocks import Block
from kernelwright.inputs.dataset import Dataset, check_classes, check_rows, counted_groups, given_weights

X = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [0.0, 1.0], [2.0, 3.0], [0.0, 1.0]])
Y = np.array([0, 1, 0, 1, 1, 0])
W = np.array([1.0, 2.0, 1.0, 1.0, 2.0, 4.0])
GROUPS = np.array([0, 1, 1, 0, 1, 0])


def dataset(**changes) -> Dataset:
    return Dataset(**{"X": X, "points": None, "y": Y, "weights": W} | changes)


def test_a_dataset_of_a_block_has_its_columns():
    found = Dataset.of(Block(X, Y, W), GROUPS)
    for name, column in (("X", X), ("y", Y), ("weights", W), ("groups", GROUPS)):
        assert getattr(found, name) is column
    assert len(found) == 6
    assert found.points is found.counts is None


# Some of the rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [False, True], ids=["numbers", "mask"])
def test_a_subset_has_the_chosen_rows_of_every_column(mask):
    whole = dataset(points=torch.arange(12.0).reshape(6, 2), groups=GROUPS, counts=np.arange(1.0, 7.0))
    rows = np.array([1, 2, 5])
    found = whole.subset(np.isin(np.arange(6), rows) if mask else rows)
    for name in ("X", "y", "weights", "groups", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name)[rows])
    assert found.points.tolist() == whole.points[[1, 2, 5]].tolist()


def test_all_rows_in_their_order_are_not_copied():
    whole = dataset()
    assert whole.subset(np.arange(6)) is whole
    np.testing.assert_array_equal(whole.subset(np.arange(6)[::-1].copy()).y, Y[::-1])
    np.testing.assert_array_equal(whole.subset(np.array([0, 0, 1, 1, 2, 2])).X, X[[0, 0, 1, 1, 2, 2]])
    assert len(whole.subset(np.array([True, False, True, False, False, False]))) == 2


def test_points_of_other_objects_have_no_vectors():
    found = dataset(X=None, points=torch.arange(6.0)[:, None]).subset(np.array([4, 5]))
    assert found.X is None
    assert found.points.tolist() == [[4.0], [5.0]]


# Weights --------------------------------------------------------------------------------------------------------


def test_weights_have_the_sum_of_the_rows_or_groups():
    np.testing.assert_allclose(dataset().with_mean_weight_one().weights, W * 6 / W.sum())
    np.testing.assert_allclose(dataset(groups=GROUPS).with_mean_weight_one().weights, W * 2 / W.sum())


# Equal rows -----------------------------------------------------------------------------------------------------


def naive_merge(keys: list[tuple]) -> dict[tuple, list[int]]:
    found: dict[tuple, list[int]] = {}
    for i, key in enumerate(keys):
        found.setdefault(key, []).append(i)
    return found


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_are_merged_if_they_are_left_out_alike(groups, seed):
    order = np.random.default_rng(seed).permutation(6)
    given = dataset(X=X[order], y=Y[order], weights=W[order], groups=None if groups is None else groups[order])
    merged, place = given.merged()
    apart = given.weights if groups is None else given.groups
    expected = naive_merge([(*x, y, a) for x, y, a in zip(given.X.tolist(), given.y, apart, strict=True)])
    assert len(merged) == len(expected)
    for rows in expected.values():
        point = place[rows[0]]
        assert (place[rows] == point).all()
        np.testing.assert_array_equal(merged.X[point], given.X[rows[0]])
        assert merged.y[point] == given.y[rows[0]]
        assert merged.weights[point] == pytest.approx(given.weights[rows].sum())
        if groups is None:
            assert merged.counts[point] == len(rows)
        else:
            assert merged.groups[point] == given.groups[rows[0]]
    assert (merged.counts is None) == (groups is not None)
    assert (merged.groups is None) == (groups is None)


def test_merging_leaves_the_given_rows_as_they_were():
    given = dataset(X=X.copy(), weights=W.copy())
    given.merged()
    np.testing.assert_array_equal(given.X, X)
    np.testing.assert_array_equal(given.weights, W)
    assert given.counts is None


# Checks ---------------------------------------------------------------------------------------------------------


def test_classes_and_weights_of_the_rows_that_count():
    y, weights = np.array(["a", "b", "c", "b"]), np.array([1.0, 2.0, 0.0, 3.0])
    info, labels, found, kept = check_classes(y, weights, {"b": 2.0}, object())
    assert info.classes.tolist() == ["a", "b"]
    assert kept.tolist() == [True, True, False, True]
    assert labels.tolist() == [0, 1, 1]
    np.testing.assert_allclose(found, np.array([1.0, 4.0, 6.0]) * 3 / 11)
    assert info.class_weight[1] / info.class_weight[0] == pytest.approx(2.0)
    assert info.weighted
    assert info.unit == pytest.approx(3 / 11)  # a weight of one counts so much
    np.testing.assert_allclose(found, info.unit * given_weights(y, weights, {"b": 2.0})[kept])


def test_equal_weights_are_no_weights():
    assert not check_classes(np.array([0, 1]), [3.0, 3.0], None, object())[0].weighted
    with pytest.raises(ValueError, match="needs rows of at least 2 classes"):
        check_classes(np.array([0, 1]), [3.0, 0.0], None, object())


def test_vectors_and_other_objects_are_checked():
    vectors, y = check_rows(BaseEstimator(), [[1, 2], [3, 4]], ["a", "b"], vectors=True)
    assert vectors.dtype == np.float64
    assert y.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="NaN"):
        check_rows(BaseEstimator(), [[1.0], [np.nan]], [0, 1], vectors=True)
    assert np.isnan(check_rows(BaseEstimator(), [[1.0], [np.nan]], [0, 1], vectors=True, finite=False)[0]).any()
    objects, _ = check_rows(BaseEstimator(), ["AC", "G"], [0, 1], vectors=False)
    assert objects.tolist() == ["AC", "G"]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        check_rows(BaseEstimator(), ["AC"], [0, 1], vectors=False)


def test_one_group_cannot_be_left_out():
    kept = np.array([True, True, False])
    assert counted_groups(None, kept) is None
    assert counted_groups(["b", "a", "c"], kept).tolist() == [1, 0]
    with pytest.raises(ValueError, match="at least 2 different groups among rows of positive weight"):
        counted_groups(["a", "a", "b"], kept)
