"""The conditional embedding against explicit inverses and refits."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.embedding import TrainingSet, clip_normalise, embed
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
