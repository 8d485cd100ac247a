"""The conditional embedding against explicit inverses and refits."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.embedding import TrainingSet, clip_normalise, embed
from kernelwright.embedding.training_set import smoothed_prior
from kernelwright.inputs.labels import one_hot
from tests import reference as naive

N, M = 12, 3
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N, 2))
NEW = RNG.normal(size=(5, 2))
LABELS = np.arange(N) % M
Y = np.eye(M)[LABELS]
PAIR = naive.gaussian(0.8)
K, K_NEW = naive.gram(PAIR, POINTS), naive.gram(PAIR, NEW, POINTS)
WHOLE = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1, 4, 1, 1])
ONES, HALVES = np.ones(N), np.linspace(0.2, 2.5, N)
RIDGE = 0.05

weightings = pytest.mark.parametrize("w", [ONES, WHOLE.astype(float), HALVES], ids=["ones", "whole", "any"])
priors = pytest.mark.parametrize("prior", [np.zeros(M), np.array([0.5, 0.3, 0.2])], ids=["no-prior", "prior"])


def tensor(array) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, dtype=np.float64))


def training_set(w=ONES, prior=None, points=POINTS, labels=LABELS) -> TrainingSet:
    prior = None if prior is None else tensor(prior)
    return TrainingSet.of(tensor(points), one_hot(labels, M), weights=tensor(w), prior=prior)


def fitted(w=ONES, prior=None):
    return embed(tensor(K), training_set(w, prior), RIDGE)


# The solution ------------------------------------------------------------------------------------------------


@weightings
@priors
def test_outputs_equal_the_explicit_formula(w, prior):
    expected = naive.outputs(K_NEW, K, Y, naive.noise(w, RIDGE), prior)
    np.testing.assert_allclose(fitted(w, prior).outputs(tensor(K_NEW)), expected, rtol=1e-10, atol=1e-12)


@weightings
@priors
def test_fitted_equals_the_outputs_at_the_training_points(w, prior):
    expected = naive.outputs(K, K, Y, naive.noise(w, RIDGE), prior)
    np.testing.assert_allclose(fitted(w, prior).fitted, expected, rtol=1e-10, atol=1e-12)


@weightings
@priors
def test_squared_norm_is_the_trace(w, prior):
    assert fitted(w, prior).squared_norm == pytest.approx(naive.squared_norm(K, Y, naive.noise(w, RIDGE), prior))


@weightings
def test_weights_are_those_of_the_targets(w):
    weights = fitted(w).weights(tensor(K_NEW))
    np.testing.assert_allclose(weights, K_NEW @ np.linalg.inv(K + np.diag(naive.noise(w, RIDGE))), rtol=1e-9)
    np.testing.assert_allclose(weights @ tensor(Y), fitted(w).outputs(tensor(K_NEW)), rtol=1e-10, atol=1e-12)


def test_with_equal_weights_it_is_kernel_ridge_regression():
    from sklearn.kernel_ridge import KernelRidge

    model = KernelRidge(alpha=N * RIDGE, kernel="precomputed").fit(K, Y)
    np.testing.assert_allclose(fitted().outputs(tensor(K_NEW)), model.predict(K_NEW), rtol=1e-10)


def test_weights_are_relative():
    np.testing.assert_allclose(fitted(7.0 * HALVES).coefficients, fitted(HALVES).coefficients, rtol=1e-10)


def test_a_whole_weight_is_that_many_equal_rows():
    repeated = np.repeat(np.arange(N), WHOLE)
    copies = embed(
        tensor(K[np.ix_(repeated, repeated)]),
        training_set(np.ones(len(repeated)), points=POINTS[repeated], labels=LABELS[repeated]),
        RIDGE,
    )
    weighted = fitted(WHOLE.astype(float))
    np.testing.assert_allclose(
        copies.outputs(tensor(K_NEW[:, repeated])), weighted.outputs(tensor(K_NEW)), rtol=1e-9, atol=1e-12
    )
    assert copies.squared_norm == pytest.approx(weighted.squared_norm, rel=1e-9)


# Leave one out -----------------------------------------------------------------------------------------------


@weightings
@priors
def test_leave_one_out_equals_a_refit_without_each_row(w, prior):
    found = fitted(w, prior).leave_one_out()
    np.testing.assert_allclose(found, naive.leave_one_out(K, Y, w, RIDGE, prior), rtol=1e-10, atol=1e-10)


def test_of_equal_rows_that_were_merged_one_is_left_out_with_its_own_weight():
    repeated = np.repeat(np.arange(N), WHOLE)
    on_copies = naive.leave_one_out(K[np.ix_(repeated, repeated)], Y[repeated], HALVES[repeated], RIDGE)
    merged = replace(training_set(HALVES * WHOLE), counts=tensor(WHOLE.astype(float)))
    found = embed(tensor(K), merged, RIDGE).leave_one_out()
    np.testing.assert_allclose(found[repeated], on_copies, rtol=1e-10, atol=1e-10)


@weightings
@priors
@pytest.mark.parametrize("groups", [np.arange(N) // 3, np.arange(N) % 2, np.minimum(np.arange(N), 4)])
def test_groups_are_left_out_as_a_whole(w, prior, groups):
    grouped = replace(training_set(w, prior), groups=torch.from_numpy(groups))
    found = embed(tensor(K), grouped, RIDGE).leave_one_out()
    np.testing.assert_allclose(found, naive.leave_one_out(K, Y, w, RIDGE, prior, groups), rtol=1e-9, atol=1e-9)


def test_copies_in_one_group_are_one_row_of_their_weight():
    repeated = np.repeat(np.arange(N), WHOLE)
    copies = training_set(np.ones(len(repeated)), points=POINTS[repeated], labels=LABELS[repeated])
    grouped = replace(copies, groups=torch.from_numpy(repeated))
    found = embed(tensor(K[np.ix_(repeated, repeated)]), grouped, RIDGE).leave_one_out()
    np.testing.assert_allclose(found, fitted(WHOLE.astype(float)).leave_one_out()[repeated], rtol=1e-7, atol=1e-9)


# The training set --------------------------------------------------------------------------------------------


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
    """Points that are their own row numbers."""
    rows = torch.arange(len(labels), dtype=torch.float64)[:, None]
    return TrainingSet.of(rows, one_hot(np.array(labels), max(5, 1 + max(labels))))


labels = st.lists(st.integers(0, 4), min_size=1, max_size=60)


@st.composite
def unequal_strata(draw) -> tuple[list[int], int]:
    """Labels of strata from one row to forty, and a number of rows to sample: five a stratum, not all."""
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


# Probabilities -----------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.floats(-2, 2), min_size=3, max_size=3), min_size=1, max_size=5))
def test_clip_normalise_equals_a_loop(rows):
    found = clip_normalise(tensor(rows)).numpy()
    np.testing.assert_allclose(found, naive.clip_normalise(np.array(rows)), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-12)


def test_clip_normalise_is_uniform_where_nothing_is_left():
    np.testing.assert_allclose(clip_normalise(tensor([[-1.0, -2.0], [0.0, 0.0]])), 0.5)


@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e300, 1.5e308])
def test_clip_normalise_of_extreme_outputs_has_sum_one(size):
    np.testing.assert_allclose(clip_normalise(tensor([[size, size, -size]])), [[0.5, 0.5, 0.0]], rtol=1e-10)


@weightings
def test_smoothed_prior_adds_one_row_shared_by_all_classes(w):
    expected = [(w[k == LABELS].sum() + 1 / M) / (w.sum() + 1) for k in range(M)]
    found = smoothed_prior(one_hot(LABELS, M), tensor(w))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert float(found.sum()) == pytest.approx(1.0)


# Samples that show rare strata -------------------------------------------------------------------------------


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
