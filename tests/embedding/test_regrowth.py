"""Partitions whose rows change: routing stays right, large leaves are split, and small neighbours merged."""

import numpy as np
import torch

from kernelwright.embedding.partition import all_axes, grow, random_axes
from kernelwright.embedding.regrowth import regrown
from kernelwright.kernels import Gaussian

RNG = np.random.default_rng(0)
KERNEL = Gaussian(0.8)


def points(n, shift=0.0):
    return torch.from_numpy(RNG.normal(size=(n, 3)) + shift)


def changed(partition, X, rows, size=40, *, random=False):
    """Keep some rows of a partition and route all others to it."""
    leaf = partition.route(X[rows])
    leaves = [rows[leaf == number] for number in range(partition.n_leaves)]
    generator = torch.Generator().manual_seed(0)

    def axes(some):
        return random_axes(KERNEL, X[some], generator) if random else all_axes(KERNEL, X[some])

    return regrown(partition, leaves, size, axes, X)


def check(partition, leaves, X, rows):
    """Every row is in the leaf to which it is routed, and in no other."""
    assert torch.equal(partition.order.sort().values, rows.sort().values)
    for number, leaf in enumerate(leaves):
        assert torch.equal(partition.rows(number), leaf.rows)
        assert bool((partition.route(X[leaf.rows]) == number).all())


def test_leaves_that_have_grown_are_split_and_others_stay():
    X = torch.cat([points(160), points(60, shift=2.0)])
    for random in (False, True):
        axes = random_axes(KERNEL, X[:160], torch.Generator()) if random else all_axes(KERNEL, X[:160])
        partition = grow(X[:160], axes, 40)
        found, leaves = changed(partition, X, torch.arange(220), random=random)
        check(found, leaves, X, torch.arange(220))
        assert found.n_leaves > partition.n_leaves
        assert int(found.starts.diff().max()) <= 60
        stay = [leaf for leaf in leaves if leaf.origin is not None]
        assert stay
        for leaf in stay:
            assert set(partition.rows(leaf.origin).tolist()) <= set(leaf.rows.tolist())


def test_neighbours_with_few_rows_become_one_leaf_and_empty_leaves_vanish():
    X = points(320)
    partition = grow(X, all_axes(KERNEL, X), 40)
    few = torch.from_numpy(RNG.permutation(320)[:30])
    found, leaves = changed(partition, X, few)
    check(found, leaves, X, few)
    assert found.n_leaves < partition.n_leaves
    assert all(len(leaf.rows) for leaf in leaves)
    one_side = torch.arange(320)[partition.route(X) == 0]
    found, leaves = changed(partition, X, one_side)
    assert found.n_leaves == 1
    assert leaves[0].origin == 0  # nothing of it has changed: it need not be solved again


def test_a_stream_that_moves_on_makes_a_deep_tree_that_still_answers():
    X = torch.from_numpy(np.arange(160, dtype=float)[:, None])
    partition = grow(X[:4], all_axes(KERNEL, X[:4]), 2)
    for n in range(6, 161, 2):
        new = torch.arange(n - 2, n)
        leaf = partition.route(X[new])
        leaves = [torch.cat([partition.rows(each), new[leaf == each]]) for each in range(partition.n_leaves)]
        partition, found = regrown(partition, leaves, 2, lambda some: all_axes(KERNEL, X[some]), X)
    check(partition, found, X, torch.arange(160))
    assert int(partition.starts.diff().max()) <= 3
