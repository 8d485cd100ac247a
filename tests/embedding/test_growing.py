"""Trees that take more rows, against solving all rows at once in the same partition."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet, growing
from kernelwright.embedding.growing import ColumnBlock, GrowingTrees
from kernelwright.embedding.partition import all_axes, grow
from kernelwright.embedding.tree import solve_tree
from kernelwright.kernels import Gaussian, WithTrend

NOISE = 0.3
KERNELS = {"local": Gaussian(0.8), "trend": WithTrend(Gaussian(0.8))}
for each in KERNELS.values():
    each.requires_grad_(False)


def rows(n, random, shift=0.0, *, merged=False):
    X, y = torch.from_numpy(random.normal(size=(n, 3)) + shift), torch.from_numpy(random.integers(0, 3, n))
    counts = torch.from_numpy(random.integers(1, 3, n)).double() if merged else None
    weights = torch.from_numpy(random.uniform(0.5, 2.0, n))
    return TrainingSet.of(X, torch.nn.functional.one_hot(y, 3).double(), weights=weights, counts=counts)


def begun(kernel, random, **options):
    first = rows(200, random, **options)
    trees = GrowingTrees.of(kernel, first, (grow(first.points, all_axes(kernel, first.points), 60),), 60)
    return trees.solved(0, ColumnBlock(first.targets, NOISE)).settled()


def compare(trees, block, number=0):
    """Compare with all rows solved at once; the prior is one that has moved since most leaves were solved."""
    prior = trees.data.weights @ block.targets / trees.data.total_weight
    data = replace(trees.data, targets=block.targets, prior=prior)
    for tree, found in zip(trees.trees, trees.solutions(number, block, prior), strict=True):
        expected = solve_tree(trees.kernel, data, block.noise / data.total_weight, tree.partition)
        for name in ("coefficients", "fitted", "left_out", "nearest"):
            size = max(1.0, float(getattr(expected, name).abs().max()))
            torch.testing.assert_close(getattr(found, name), getattr(expected, name), atol=1e-8 * size, rtol=0)
        assert found.squared_norm == pytest.approx(expected.squared_norm, rel=1e-8)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("merged", [False, True], ids=["single", "merged"])
@pytest.mark.parametrize("keeps", [True, False], ids=["inverses", "factors"])
def test_rows_that_come_and_go_give_the_solution_of_those_that_are_there(kernel, merged, keeps, monkeypatch):
    monkeypatch.setattr(growing, "KEPT_SHARE", growing.KEPT_SHARE * keeps)
    random, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    trees, pending, sizes = begun(kernel, random, merged=merged), [], set()
    for step in range(13):
        n = len(trees.data)
        kept = torch.arange(n)[torch.rand(n, generator=generator) > (0.0, 0.1, 0.0)[step % 3]]
        trees = trees.with_rows(rows(int(random.integers(1, 20)), random, 0.2 * step), kept, 3, generator)
        pending.append(trees.n_pending / sum(tree.partition.n_leaves for tree in trees.trees))
        sizes.add(trees.trees[0].partition.n_leaves)
        block = ColumnBlock(trees.data.targets, NOISE)
        trees = trees.solved(0, block).settled()
        compare(trees, block)
    assert min(pending) < 0.6  # leaves without new rows are not solved again
    assert len(trees.trees) == 3
    assert len(sizes) > 1  # some have been split


def test_more_columns_follow_with_their_own_noise():
    random, generator = np.random.default_rng(1), torch.Generator().manual_seed(0)
    trees = begun(KERNELS["local"], random)
    other = ColumnBlock(torch.from_numpy(random.normal(size=(200, 2))), 2.0)
    trees = trees.solved(1, other)
    compare(trees, other, 1)
    trees = trees.with_rows(rows(7, random), torch.arange(5, 200), 1, generator)
    other = ColumnBlock(torch.cat([other.targets[5:], torch.from_numpy(random.normal(size=(7, 2)))]), 2.0)
    main = ColumnBlock(trees.data.targets, NOISE)
    trees = trees.solved(0, main).solved(1, other).settled()
    compare(trees, main)
    compare(trees, other, 1)


def test_other_weights_are_those_of_all_leaves():
    random = np.random.default_rng(2)
    trees = begun(KERNELS["local"], random)
    trees = trees.weighted(trees.data.weights * torch.linspace(0.1, 1.0, 200))
    assert trees.n_pending == trees.trees[0].partition.n_leaves
    block = ColumnBlock(trees.data.targets, NOISE)
    compare(trees.solved(0, block), block)


def test_a_small_ridge_is_factorised_anew():
    """An inverse that is updated again and again would lose its digits."""
    random, generator = np.random.default_rng(3), torch.Generator().manual_seed(0)
    first = rows(200, random)
    trees = GrowingTrees.of(
        KERNELS["local"], first, (grow(first.points, all_axes(KERNELS["local"], first.points), 60),), 60
    )
    trees = trees.solved(0, ColumnBlock(first.targets, 1e-7))
    assert all(inverse is None for inverse in trees.trees[0].blocks[0].inverses)
    trees = trees.settled().with_rows(rows(9, random), torch.arange(200), 1, generator)
    block = ColumnBlock(trees.data.targets, 1e-7)
    trees, prior = trees.solved(0, block), torch.zeros(3).double()
    data = replace(trees.data, prior=prior)
    expected = solve_tree(KERNELS["local"], data, 1e-7 / data.total_weight, trees.trees[0].partition)
    torch.testing.assert_close(trees.solutions(0, block, prior)[0].left_out, expected.left_out, atol=1e-6, rtol=1e-6)
