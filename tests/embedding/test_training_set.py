"""Parts of a training set."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.embedding import TrainingSet


def numbered(labels, groups=None):
    targets = torch.eye(4, dtype=torch.float64)[torch.tensor(labels)]
    named = None if groups is None else torch.tensor(groups)
    return TrainingSet.of(torch.arange(len(labels), dtype=torch.float64)[:, None], targets, groups=named)


labels_of = st.lists(st.integers(0, 3), min_size=2, max_size=60)


@given(labels_of)
def test_a_half_is_the_second_of_two_folds(labels):
    np.testing.assert_array_equal(numbered(labels).part(0.5), numbered(labels).folds(2))


@given(labels_of, st.floats(0.01, 0.99))
def test_a_part_takes_its_share_of_every_stratum(labels, share):
    taken = numbered(labels).part(share)
    assert set(taken) == {0, 1}
    for label in set(labels):
        own = np.array(labels) == label
        assert abs(taken[own].sum() - share * own.sum()) < 2.0  # one by rounding, one so that neither part is empty


@pytest.mark.parametrize("deal", [lambda data: data.folds(3), lambda data: data.part(0.3)], ids=["folds", "part"])
@given(st.data())
def test_groups_stay_whole_and_where_they_are_when_rows_are_sorted(deal, data):
    groups = data.draw(st.lists(st.integers(0, 9), min_size=2, max_size=40).filter(lambda some: len(set(some)) > 1))
    rows = numbered([group % 3 for group in groups], groups)
    folds = deal(rows)
    for group in set(groups):
        assert len(set(folds[np.array(groups) == group])) == 1
    order = np.argsort(folds, kind="stable")
    np.testing.assert_array_equal(deal(rows.subset(torch.from_numpy(order))), folds[order])
