"""Folds by groups and forward in time, checked against the splitters of scikit-learn."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, TimeSeriesSplit

from kernelwright import EmbeddingRegressor
from kernelwright.evaluation import (
    around_residuals,
    cross_validate,
    cross_validate_numbers,
    forward_folds,
    grouped_folds,
)


def lists(splits):
    return [(sorted(train.tolist()), sorted(test.tolist())) for train, test in splits]


def test_forward_folds_of_different_times_are_those_of_a_sorted_series():
    random = np.random.default_rng(0)
    for n, folds in ((50, 5), (23, 4), (6, 2)):
        times = random.permutation(n) * 1.5
        order = np.argsort(times)
        expected = [(order[train], order[test]) for train, test in TimeSeriesSplit(folds).split(order)]
        assert lists(forward_folds(times, folds)) == lists(expected)


@pytest.mark.parametrize("seed", range(20))
def test_forward_folds_test_later_rows_only_and_keep_equal_times_together(seed):
    random = np.random.default_rng(seed)
    times = random.integers(0, random.integers(3, 12), 40).astype(float)
    splits = forward_folds(times, 5)
    for train, test in splits:
        assert times[train].max() < times[test].min()
        assert set(np.flatnonzero(times < times[test].min())) == set(train)  # all earlier rows
    tested = np.concatenate([test for _, test in splits])
    assert len(set(tested)) == len(tested)
    assert times[tested].max() == times.max()


def test_forward_folds_need_times_and_classes():
    with pytest.raises(ValueError, match=r"at least three different times and 4 rows. Got 2 times in 10 rows"):
        forward_folds(np.repeat([1.0, 2.0], 5))
    with pytest.raises(ValueError, match="too few windows"):
        forward_folds(np.array([1.0, 2.0] + [3.0] * 30), 2)
    labels = np.array([0] * 6 + [0, 1] * 3)
    assert [len(train) for train, _ in forward_folds(np.arange(12.0), 3, labels=labels)] == [9]
    with pytest.raises(ValueError, match="only one class"):
        forward_folds(np.arange(12.0), 3, labels=np.repeat([0, 1], [11, 1]))


def test_grouped_folds_are_those_of_scikit_learn():
    random = np.random.default_rng(1)
    names = random.choice([f"g{k}" for k in range(12)], 80)
    labels = random.integers(0, 2, 80)
    expected = StratifiedGroupKFold(4, shuffle=True, random_state=3).split(names, labels, names)
    assert lists(grouped_folds(names, 4, labels=labels, seed=3)) == lists(expected)
    assert lists(grouped_folds(names, 4)) == lists(GroupKFold(4).split(names, groups=names))


def test_grouped_folds_are_fewer_if_groups_or_classes_are_few():
    groups = np.repeat(np.arange(3), 4)
    assert len(grouped_folds(groups, 5)) == 3
    groups = np.repeat(np.arange(8), 4)
    assert len(grouped_folds(groups, 5, labels=(groups < 2).astype(int))) == 2
    with pytest.raises(ValueError, match="at least two groups"):
        grouped_folds(np.zeros(9))
    with pytest.raises(ValueError, match="one class is left to learn from"):
        grouped_folds(np.repeat([0, 1], 5), labels=np.repeat([0, 1], 5))


def test_params_go_to_the_model_and_not_to_rivals():
    seen = []

    class Asking(DummyClassifier):
        def fit(self, X, y, groups=None):
            seen.append(groups)
            return super().fit(X, y)

    groups = np.repeat(np.arange(10), 3)
    y = np.tile([0, 1], 15)
    splits = grouped_folds(groups, 2, labels=y)
    options = {"splits": splits, "rivals": {"prior": Asking}, "params": {"groups": groups}}
    cross_validate(Asking, np.zeros((30, 1)), y, classes=("a", "b"), **options)
    ours = [given.tolist() for given in seen if given is not None]
    assert ours == [groups[train].tolist() for train, _ in splits]
    assert len(seen) == 4


def test_rows_that_are_never_tested_are_not_scored_and_rivals_get_residuals_of_tested_rows():
    X = np.random.default_rng(0).normal(size=(48, 1))
    y = X[:, 0] + np.arange(48) / 10
    times = np.random.default_rng(1).permutation(48).astype(float)
    splits = forward_folds(times, 3)
    make = lambda: EmbeddingRegressor(random_state=0)  # noqa: E731
    found = cross_validate_numbers(make, X, y, splits=splits, rivals={"mean": DummyRegressor}, protocol="forward")
    tested = np.flatnonzero(times >= 12)
    assert found.protocol == "forward"
    assert found.rows.tolist() == (tested + 1).tolist()
    assert found.summary()["rows"] == len(found.predictions.means) == 36
    means = {k: y[train].mean() for k, (train, _) in enumerate(splits)}
    residuals = [y[test] - means[k] for k, (_, test) in enumerate(splits)]
    crps = np.zeros(48)
    for k, (_, test) in enumerate(splits):
        others = np.concatenate([each for j, each in enumerate(residuals) if j != k])
        crps[test] = around_residuals(np.full(len(test), means[k]), others, y[test]).crps
    assert found.rivals["mean"].scores.crps.value == pytest.approx(crps[tested].mean())
