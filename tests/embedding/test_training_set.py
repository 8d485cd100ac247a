"""Weighted rows: samples, folds and subsets."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.inputs.labels import one_hot
from tests import reference as naive

N, M = 12, 3
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N, 2))
LABELS = np.arange(N) % M
Y = np.eye(M)[LABELS]
ONES, HALVES = np.ones(N), np.linspace(0.2, 2.5, N)
RIDGE = 0.05


def tensor(array) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, dtype=np.float64))


def training_set(w=ONES, prior=None, points=POINTS, labels=LABELS) -> TrainingSet:
    prior = None if prior is None else tensor(prior)
    return TrainingSet.of(tensor(points), one_hot(labels, M), weights=tensor(w), prior=prior)


def test_defaults_of_a_training_set():
    data = TrainingSet.of(tensor(POINTS), one_hot(LABELS, M))
    np.testing.assert_array_equal(data.weights, ONES)
    np.testing.assert_array_equal(data.prior, np.zeros(M))
    np.testing.assert_array_equal(data.strata, LABELS)
    assert len(data) == N
    assert data.total_weight == N


def test_noise_is_larger_where_the_weight_is_smaller():
    np.testing.assert_allclose(training_set(HALVES).noise(RIDGE), naive.noise(HALVES, RIDGE), rtol=1e-12)


def test_subset_takes_rows_and_keeps_the_prior():
    data = training_set(HALVES, [0.5, 0.3, 0.2])
    some = data.subset(torch.tensor([4, 0, 7]))
    np.testing.assert_array_equal(some.points, POINTS[[4, 0, 7]])
    np.testing.assert_array_equal(some.targets, Y[[4, 0, 7]])
    np.testing.assert_array_equal(some.weights, HALVES[[4, 0, 7]])
    np.testing.assert_array_equal(some.strata, LABELS[[4, 0, 7]])
    np.testing.assert_array_equal(some.prior, data.prior)


def numbered(labels: list[int]) -> TrainingSet:
    """Return points whose values are their row numbers."""
    rows = torch.arange(len(labels), dtype=torch.float64)[:, None]
    return TrainingSet.of(rows, one_hot(np.array(labels), max(5, 1 + max(labels))))


labels = st.lists(st.integers(0, 4), min_size=1, max_size=60)


@st.composite
def unequal_strata(draw) -> tuple[list[int], int]:
    """Draw labels of strata of one to forty rows, and a sample size of at least five rows (or all) per stratum."""
    counts = draw(st.lists(st.sampled_from([1, 2, 3, 7, 15, 40]), min_size=2, max_size=5))
    rows = draw(st.permutations(np.repeat(np.arange(len(counts)), counts).tolist()))
    least = sum(min(count, 5) for count in counts)
    return rows, draw(st.integers(least, max(least, len(rows) - 1)))


@given(labels=labels, size=st.integers(1, 70), seed=st.integers(0, 9))
def test_a_sample_is_of_distinct_rows_in_order(labels, size, seed):
    sample = numbered(labels).sample(size, torch.Generator().manual_seed(seed))
    rows = sample.points[:, 0].long().tolist()
    assert len(rows) == min(size, len(labels))
    assert rows == sorted(set(rows))
    assert sample.strata.tolist() == [labels[row] for row in rows]


@given(strata=unequal_strata(), seed=st.integers(0, 9))
def test_a_sample_has_every_stratum(strata, seed):
    labels, size = strata
    sample = numbered(labels).sample(size, torch.Generator().manual_seed(seed))
    assert set(sample.strata.tolist()) == set(labels)
    taken, there = np.bincount(sample.strata), np.bincount(labels)
    assert (taken >= np.minimum(there, 2)).all()


@given(counts=st.lists(st.sampled_from([1, 2, 3, 7]), min_size=30, max_size=60), seed=st.integers(0, 9))
def test_a_sample_too_small_for_all_strata_has_rows_to_leave_out_of_some(counts, seed):
    labels = np.repeat(np.arange(len(counts)), counts).tolist()
    sample = numbered(labels).sample(20, torch.Generator().manual_seed(seed))
    taken = np.bincount(sample.strata)
    assert len(sample) == min(20, len(labels))
    if sum(min(count, 5) for count in counts if count > 1) >= 20:
        assert (taken[taken > 0] >= 2).sum() >= (taken > 0).sum() - 1  # the last may be cut


@given(strata=unequal_strata(), seed=st.integers(0, 9))
def test_a_sample_takes_the_share_of_every_stratum(strata, seed):
    labels, size = strata
    sample = numbered(labels).sample(size, torch.Generator().manual_seed(seed))
    all_rows, taken = np.bincount(labels, minlength=5), np.bincount(sample.strata, minlength=5)
    present = np.flatnonzero(all_rows)
    share = taken[present] / all_rows[present]
    # No stratum beyond its first two rows is ahead of another by more than the one row that rounding costs.
    ahead = np.where(taken[present] > 2, share - 0.5 / all_rows[present], 0.0)
    assert ahead.max() <= (share + 0.5 / all_rows[present]).min() + 1e-12


@given(labels=labels, size=st.integers(1, 70))
def test_a_sample_is_decided_by_its_generator(labels, size):
    first, second = (numbered(labels).sample(size, torch.Generator().manual_seed(3)).points for _ in range(2))
    assert torch.equal(first, second)


def test_samples_of_other_seeds_differ():
    data = numbered([0, 1] * 50)
    first, second = (data.sample(20, torch.Generator().manual_seed(seed)).points for seed in (0, 1))
    assert not torch.equal(first, second)


@given(labels=labels, n_folds=st.integers(2, 5))
def test_folds_share_every_stratum_evenly(labels, n_folds):
    folds = numbered(labels).folds(n_folds)
    assert set(folds) <= set(range(n_folds))
    for label in set(labels):
        counts = np.bincount(folds[np.array(labels) == label], minlength=n_folds)
        assert counts.max() - counts.min() <= 1


@given(labels=labels, n_folds=st.integers(2, 5))
def test_no_fold_is_empty_and_all_are_of_one_size(labels, n_folds):
    counts = np.bincount(numbered(labels).folds(n_folds), minlength=n_folds)
    assert counts.max() - counts.min() <= 1


@given(labels=labels, n_folds=st.integers(2, 5))
def test_rows_take_turns_one_stratum_after_the_other(labels, n_folds):
    np.testing.assert_array_equal(numbered(labels).folds(n_folds), naive.turns(np.array(labels), n_folds))


def uneven(n: int = 1000) -> TrainingSet:
    labels = (np.arange(n) % 20 == 0).astype(int)  # one row in twenty
    points = torch.arange(n, dtype=torch.float64)[:, None]
    return TrainingSet.of(points, one_hot(labels, 2), weights=torch.linspace(0.5, 2.0, n, dtype=torch.float64))


@pytest.mark.parametrize("size", [1, 10, 100, 1000, 2000])
def test_spread_rows_are_distinct_and_show_every_stratum(size):
    rows = uneven()
    found = rows.spread(size, torch.Generator().manual_seed(0))
    assert len(found) == len(found.unique()) == min(size, 1000)
    assert size < 2 or len(rows.strata[found].unique()) == 2


def test_rare_strata_get_half_their_share_and_half_an_equal_one():
    rows = uneven()
    found = rows.spread(100, torch.Generator().manual_seed(0))
    assert int((rows.strata[found] == 1).sum()) == pytest.approx(27, abs=1)


def test_a_spread_sample_counts_every_stratum_as_all_rows_do():
    rows = uneven()
    sample = rows.spread_sample(100, torch.Generator().manual_seed(0))
    assert len(sample) == 100
    own = rows.weights[rows.spread(100, torch.Generator().manual_seed(0))]
    assert float((sample.weights / own).max()) == pytest.approx(1.0)  # no row becomes heavier
    share = float(rows.weights[rows.strata == 1].sum()) / rows.total_weight
    assert float(sample.weights[sample.strata == 1].sum()) == pytest.approx(sample.total_weight * share)
    assert rows.spread_sample(1000, torch.Generator()) is rows


# Merged rows and groups --------------------------------------------------------------------------------------


def test_merged_rows_come_apart_again():
    counts = np.array([1, 3, 1, 2] + [1] * (N - 4))
    merged = TrainingSet.of(tensor(POINTS), one_hot(LABELS, M), weights=tensor(HALVES), counts=tensor(counts))
    apart, place = merged.unmerged(), np.repeat(np.arange(N), counts)
    np.testing.assert_array_equal(apart.points, POINTS[place])
    np.testing.assert_array_equal(apart.strata, LABELS[place])
    np.testing.assert_allclose(apart.weights, (HALVES / counts)[place])
    assert apart.counts is None
    assert merged.n_units == apart.n_units == counts.sum()
    np.testing.assert_allclose(merged.one_of_equals, 1 / counts)
    assert apart.unmerged() is apart


def test_units_are_groups_where_there_are_any():
    data = TrainingSet.of(tensor(POINTS), one_hot(LABELS, M), groups=torch.arange(N) // 5)
    assert data.n_units == len({row // 5 for row in range(N)})
    some = data.subset(torch.tensor([0, 6, 11]))
    assert some.groups.tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_of_whole_groups_cuts_none(seed):
    groups = torch.from_numpy(np.random.default_rng(seed).integers(0, 20, 200))
    data = TrainingSet.of(torch.arange(200.0)[:, None].double(), one_hot(np.arange(200) % 2, 2), groups=groups)
    sample = data.whole_groups(60, torch.Generator().manual_seed(seed))
    for group in sample.groups.unique():
        assert int((sample.groups == group).sum()) == int((groups == group).sum())
    largest = int(torch.bincount(groups).max())
    assert 60 <= len(sample) < 60 + largest
    assert data.whole_groups(500, torch.Generator()) is data


@pytest.mark.parametrize("groups", [None, torch.arange(N) // 2], ids=["rows", "groups"])
def test_random_parts_are_of_one_size_and_keep_groups_whole(groups):
    data = TrainingSet.of(tensor(POINTS), one_hot(LABELS, M), groups=groups)
    parts = data.random_parts(3, torch.Generator().manual_seed(0))
    sizes = torch.bincount(parts)
    assert len(sizes) == 3
    assert int(sizes.max() - sizes.min()) <= (1 if groups is None else 2)
    if groups is not None:
        assert all(len(parts[groups == group].unique()) == 1 for group in groups.unique())


def test_rows_of_two_sets_are_joined():
    first, second = training_set(HALVES, [0.5, 0.3, 0.2]), training_set(ONES)
    joined = first.joined(second)
    np.testing.assert_array_equal(joined.weights, np.concatenate([HALVES, ONES]))
    np.testing.assert_array_equal(joined.points, np.vstack([POINTS, POINTS]))
    np.testing.assert_array_equal(joined.prior, first.prior)


# Parts -------------------------------------------------------------------------------------------------------


def dealt_out(labels, groups=None):
    targets = torch.eye(4, dtype=torch.float64)[torch.tensor(labels)]
    named = None if groups is None else torch.tensor(groups)
    return TrainingSet.of(torch.arange(len(labels), dtype=torch.float64)[:, None], targets, groups=named)


labels_of = st.lists(st.integers(0, 3), min_size=2, max_size=60)


@given(labels_of)
def test_a_half_is_the_second_of_two_folds(labels):
    np.testing.assert_array_equal(dealt_out(labels).part(0.5), dealt_out(labels).folds(2))


@given(labels_of, st.floats(0.01, 0.99))
def test_a_part_takes_its_share_of_every_stratum(labels, share):
    taken = dealt_out(labels).part(share)
    assert set(taken) == {0, 1}
    for label in set(labels):
        own = np.array(labels) == label
        assert abs(taken[own].sum() - share * own.sum()) < 2.0  # one by rounding, one so that neither part is empty


@pytest.mark.parametrize("deal", [lambda data: data.folds(3), lambda data: data.part(0.3)], ids=["folds", "part"])
@given(st.data())
def test_groups_stay_whole_and_where_they_are_when_rows_are_sorted(deal, data):
    groups = data.draw(st.lists(st.integers(0, 9), min_size=2, max_size=40).filter(lambda some: len(set(some)) > 1))
    rows = dealt_out([group % 3 for group in groups], groups)
    folds = deal(rows)
    for group in set(groups):
        assert len(set(folds[np.array(groups) == group])) == 1
    order = np.argsort(folds, kind="stable")
    np.testing.assert_array_equal(deal(rows.subset(torch.from_numpy(order))), folds[order])


def test_groups_are_numbered_by_their_first_rows():
    names = torch.tensor([7, 3, 7, 9, 3, 1])
    data = TrainingSet.of(torch.zeros(6, 1).double(), one_hot(np.zeros(6, dtype=int), 2), groups=names)
    assert data.with_groups_in_order().groups.tolist() == [0, 1, 0, 2, 1, 3]
    assert data.groups is names
    plain = replace(data, groups=None)
    assert plain.with_groups_in_order() is plain
