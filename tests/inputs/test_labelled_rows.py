import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from kernelwright.inputs.labelled_rows import LabelledRows

X = np.arange(40.0).reshape(20, 2)
Y = np.arange(20) % 3
GROUPS = np.repeat(list("vwxyz"), 4)


class Recorder(BaseEstimator):
    """Keeps its training data."""

    def fit(self, X, y, sample_weight=None, groups=None):
        self.seen_ = X, y, sample_weight, groups
        return self


def test_rows_of_weight_zero_do_not_exist():
    rows = LabelledRows.of(X, Y, sample_weight=np.arange(20) % 2)
    np.testing.assert_array_equal(rows.X, X[1::2])
    np.testing.assert_array_equal(rows.y, Y[1::2])
    np.testing.assert_array_equal(rows.weights, 1.0)


def test_frames_stay_frames():
    frame = pd.DataFrame(X, columns=["a", "b"])
    some = LabelledRows.of(frame, Y).subset(np.array([3, 1]))
    assert list(some.X.columns) == ["a", "b"]
    assert some.y.tolist() == [0, 1]


def test_a_copy_is_fitted_with_all_that_it_takes():
    weights = np.linspace(1, 2, 20)
    rows, given = LabelledRows.of(X, Y, weights, GROUPS), Recorder()
    fitted = rows.fit(given)
    assert not hasattr(given, "seen_")
    for found, expected in zip(fitted.seen_, (X, Y, weights, np.arange(20) // 4), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert rows.fit(LogisticRegression()).classes_.tolist() == [0, 1, 2]  # it takes no groups
    assert LabelledRows.of(X, Y).fit(given).seen_[2:] == (None, None)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_a_division_loses_no_row_and_no_group(groups):
    rows = LabelledRows.of(X, Y, groups=groups)
    fitted, held = rows.divided(0.4, 0)
    assert len(held) == 8
    np.testing.assert_array_equal(np.sort(np.append(fitted.X[:, 0], held.X[:, 0])), X[:, 0])
    if groups is not None:
        assert not set(fitted.groups) & set(held.groups)


@pytest.mark.parametrize("seed", range(8))
def test_each_class_has_a_row_to_fit_to(seed):
    y = Y.copy()
    y[7] = 9
    fitted, held = LabelledRows.of(X, y).divided(0.5, seed)
    assert 9 in fitted.y
    assert len(fitted) + len(held) == 20


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_each_row_is_in_one_fold(groups):
    rows = LabelledRows.of(X, Y, groups=groups)
    folds = list(rows.folds(3, 0))
    assert len(folds) == 3
    np.testing.assert_array_equal(np.sort(np.concatenate([own.X[:, 0] for _, own in folds])), X[:, 0])
    for others, own in folds:
        assert len(others) + len(own) == 20
        assert not set(others.X[:, 0]) & set(own.X[:, 0])
        if groups is not None:
            assert not set(others.groups) & set(own.groups)


def test_folds_that_leave_one_class_are_passed_over():
    y = np.array([0] * 19 + [1])
    folds = list(LabelledRows.of(X, y).folds(4, 0))
    assert len(folds) == 3
    assert all(1 in others.y for others, _ in folds)


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="requires y"):
        LabelledRows.of(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LabelledRows.of(X, Y[:-1])
    with pytest.raises(ValueError, match="a group for each of the 20 rows"):
        LabelledRows.of(X, Y, groups=GROUPS[:-1])
