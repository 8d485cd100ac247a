"""Representative targets: their shares keep masses, and embeddings hardly change."""

import numpy as np
import pytest
import torch

from kernelwright.embedding.representatives import MOST_BINS, Representatives
from kernelwright.embedding.target_space import TargetSpace
from kernelwright.inputs.any_targets import DistinctTargets
from kernelwright.kernels import Brownian, Gaussian, Spectrum

RNG = np.random.default_rng(0)


def shares_of(few, n):
    """Return the matrix of shares, a row for each distinct target."""
    return few.sums(torch.eye(n, dtype=torch.float64), torch.arange(n)).numpy()


def strings(n):
    return np.array(sorted({"".join(RNG.choice(list("ab"), 11)) for _ in range(n)}))


MANY = {
    "numbers": (RNG.normal(size=3000), None),
    "vectors": (RNG.normal(size=(1500, 2)), None),
    "energy": (RNG.normal(size=(1500, 2)), Brownian()),
    "strings": (strings(4000), Spectrum(2)),
}


@pytest.mark.parametrize("kind", MANY)
def test_shares_sum_to_one_and_counts_to_the_rows(kind):
    Y, kernel = MANY[kind]
    every = TargetSpace.of(DistinctTargets.of(Y), kernel)
    few = Representatives.of(every)
    assert len(few.space.values) <= MOST_BINS < len(every.values)
    np.testing.assert_allclose(shares_of(few, len(every.values)).sum(1), 1.0, atol=1e-8)
    assert few.space.counts.sum() == pytest.approx(len(Y))


@pytest.mark.parametrize("kind", MANY)
def test_the_mean_embedding_of_some_rows_hardly_moves(kind):
    """Compare squared distances in the space of the target kernel with the variance there."""
    Y, kernel = MANY[kind]
    every = TargetSpace.of(DistinctTargets.of(Y), kernel)
    few = Representatives.of(every)
    A, some = shares_of(few, len(every.values)), RNG.choice(len(every.values), 60)
    with torch.no_grad():
        points, known = every.points(every.values[some]), few.space.points(few.space.values)
        own, cross = every.kernel.forward(points).numpy(), every.kernel.forward(points, known).numpy()
    masses = A[some].mean(0)
    moved = own.mean() - 2 * cross.mean(0) @ masses + masses @ few.space.gram().numpy() @ masses
    assert moved < 1e-3 * (own.diagonal().mean() - own.mean())


def test_few_targets_and_labels_stand_for_themselves():
    for Y in (RNG.normal(size=(50, 2)), np.array([f"label {i}" for i in range(1200)])):
        every = TargetSpace.of(DistinctTargets.of(Y))
        few = Representatives.of(every)
        assert few.space is every
        np.testing.assert_array_equal(shares_of(few, len(every.values)), np.eye(len(every.values)))


def test_bins_of_numbers_hold_equally_many_rows_and_have_a_target_of_their_own():
    Y = np.concatenate([RNG.exponential(size=4000), np.full(1000, 0.5)])
    every = TargetSpace.of(DistinctTargets.of(Y), Gaussian())
    few = Representatives.of(every)
    place = few.place.numpy()
    assert (np.diff(place) >= 0).all()
    assert set(few.space.values) <= set(Y)
    alone = np.delete(few.space.counts, place[np.searchsorted(every.values, 0.5)])
    assert alone.max() <= 2 * len(Y) / MOST_BINS
    inside = [every.values[place == k].min() <= few.space.values[k] <= every.values[place == k].max() for k in place]
    assert all(inside)
