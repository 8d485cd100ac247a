"""Leaves solved bucket by bucket: the same trees in memory have the same solution."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.embedding.tree import averaged, solve_tree
from kernelwright.inputs.blocks import Block, SlicedRows
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Gaussian
from kernelwright.solvers import buckets
from kernelwright.solvers.buckets import BucketSolver, CollectedTrees, grow_stems
from kernelwright.solvers.solution import Columns

KERNEL, NOISE = Gaussian(0.5), 0.3


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1200, 3))
    X[:, 2] = X[:, 2] > 0.3
    return Block(X, (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0), rng.uniform(0.5, 1.5, 1200))


def solved(rows, n_trees, leaf, n_sample=300):
    """Return the collected trees, and the rows as one training set in memory."""
    points, weights = torch.from_numpy(rows.X), torch.from_numpy(rows.weights)
    prior = torch.tensor([0.3, 0.4, 0.3]).double()
    random = torch.Generator().manual_seed(0)
    sample = points[torch.randperm(len(points), generator=random)[:n_sample]]
    stems = grow_stems(KERNEL, sample, len(points), leaf, n_trees, random)
    judged = np.arange(0, 1200, 7)
    solver = BucketSolver(KERNEL, None, ClassTargets(3), prior, NOISE, leaf, stems, judged)
    gathered = SlicedRows(rows).gathered(solver.route, solver.starts[-1])
    found = CollectedTrees(solver, gathered)
    found.collect()
    data = TrainingSet.of(points, ClassTargets(3).encode(rows.labels), weights=weights, prior=prior)
    at = torch.from_numpy(judged)
    return found.solution(judged, data.subset(at)), data, at


@pytest.mark.parametrize("n_trees", [1, 3])
def test_the_same_partition_in_memory_has_the_same_solution(rows, n_trees, monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_LEAVES", 4)
    found, data, judged = solved(rows, n_trees, 60)
    partitions = found.trees.partitions
    assert len(partitions) == n_trees
    in_memory = [solve_tree(KERNEL, data, NOISE / data.total_weight, each) for each in partitions]
    mean = averaged(in_memory)
    torch.testing.assert_close(found.coefficients, found.trees.coefficients(in_memory), atol=1e-10, rtol=0)
    torch.testing.assert_close(found.left_out.outputs, mean.left_out[judged], atol=1e-10, rtol=0)
    torch.testing.assert_close(found.fitted, mean.fitted[judged], atol=1e-10, rtol=0)
    assert found.squared_norm == pytest.approx(mean.squared_norm)
    torch.testing.assert_close(found.points, data.points)


def test_new_rows_and_training_rows_go_to_the_same_leaf(rows, monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_LEAVES", 4)
    found, data, _ = solved(rows, 2, 60)
    for partition in found.trees.partitions:
        assert sorted(partition.order.tolist()) == list(range(1200))
        leaves = partition.route(data.points)
        for leaf in range(partition.n_leaves):
            assert set(leaves[partition.rows(leaf)].tolist()) == {leaf}
        assert int(partition.starts.diff().max()) <= 60


def test_one_leaf_with_room_for_all_rows_is_one_tree(rows):
    found, data, _ = solved(rows, 3, 5000)
    assert [each.n_leaves for each in found.trees.partitions] == [1]
    whole = solve_tree(KERNEL, data, NOISE / data.total_weight, found.trees.partitions[0])
    torch.testing.assert_close(found.coefficients, found.trees.coefficients([whole]), atol=1e-10, rtol=0)


def test_a_bucket_far_larger_than_the_sample_foretold_is_split_into_small_leaves(rows):
    """All rows of the sample are from one corner, so nearly all others are in the outermost buckets."""
    corner = rows.X[:, :2].max(1) < -0.4
    ordered = np.argsort(~corner, kind="stable")
    skewed = Block(*(column[ordered] for column in rows))
    points = torch.from_numpy(skewed.X)
    stems = grow_stems(KERNEL, points[: int(corner.sum())], 1200, 30, 1, torch.Generator())
    solver = BucketSolver(KERNEL, None, ClassTargets(3), torch.zeros(3).double(), NOISE, 30, stems)
    gathered = SlicedRows(skewed).gathered(solver.route, solver.starts[-1])
    assert gathered.sizes.sum() == 1200
    sizes = [np.diff(bucket.starts).max() for _, bucket in gathered.map(solver.solve)]
    assert max(sizes) <= 30


def test_points_in_single_precision_are_the_points_that_are_solved(rows):
    points = torch.from_numpy(rows.X)
    stems = grow_stems(KERNEL, points[::4], 1200, 100, 1, torch.Generator())
    solver = BucketSolver(
        KERNEL, None, ClassTargets(3), torch.zeros(3).double(), NOISE, 100, stems, None, torch.float32
    )
    gathered = SlicedRows(rows).gathered(solver.route, solver.starts[-1])
    found = CollectedTrees(solver, gathered)
    found.collect()
    data = TrainingSet.of(points.float().double(), ClassTargets(3).encode(rows.labels))
    solution = found.solution(np.arange(1200), data)
    assert solution.points.dtype == torch.float32
    outputs, _ = solution.trees.outputs(KERNEL, solution.points, solution.coefficients, data.points)
    torch.testing.assert_close(outputs, solution.fitted, atol=1e-8, rtol=0)


def squares(y, left_out):
    """Return two more columns, which depend on the targets and on left-out outputs."""
    return torch.stack([torch.from_numpy(y.astype(float)), left_out[:, 0].square()], 1)


def first_output(y, left_out):
    return left_out[:, :1]


@pytest.mark.parametrize("other_noise", [NOISE, 2.0])
def test_more_columns_are_those_of_the_same_trees_in_memory(rows, other_noise, monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_LEAVES", 4)
    points, weights = torch.from_numpy(rows.X), torch.from_numpy(rows.weights)
    stems = grow_stems(KERNEL, points[::4], 1200, 60, 2, torch.Generator().manual_seed(0))
    solver = BucketSolver(KERNEL, None, ClassTargets(3), torch.zeros(3).double(), NOISE, 60, stems)
    found = CollectedTrees(solver, SlicedRows(rows).gathered(solver.route, solver.starts[-1]))
    found.collect()
    judged = np.arange(3, 1200, 5)
    data = TrainingSet.of(points, ClassTargets(3).encode(rows.labels), weights=weights)
    solution = found.solution(judged, data.subset(torch.from_numpy(judged)))
    total = solution.fitted_rows.total_weight
    columns = [
        Columns(torch.empty(0, 2), torch.tensor([0.5, 0.1]).double(), NOISE / total, squares),
        Columns(torch.empty(0, 1), torch.tensor([0.2]).double(), other_noise / total, first_output),
    ]
    left_out = averaged(
        [solve_tree(KERNEL, data, NOISE / data.total_weight, each) for each in found.partitions]
    ).left_out
    for each, more in zip(columns, found.more(solution, judged, columns), strict=True):
        whole = replace(data, targets=each.rule(rows.labels, left_out), prior=each.prior)
        ridge = each.ridge * total / data.total_weight
        in_memory = [solve_tree(KERNEL, whole, ridge, partition) for partition in found.partitions]
        torch.testing.assert_close(more.coefficients, solution.trees.coefficients(in_memory), atol=1e-9, rtol=0)
        torch.testing.assert_close(more.left_out, averaged(in_memory).left_out[judged], atol=1e-9, rtol=0)


def test_a_bucket_that_only_the_sample_could_fill_stays_empty():
    """Equal rows are cut in their order, and new ones like them go left: nothing is routed to the right."""
    X = np.repeat([[0.0], [1.0]], [1100, 100], axis=0)
    rows = Block(X, np.arange(1200) % 2, np.ones(1200))
    stems = grow_stems(KERNEL, torch.from_numpy(X[::4]), 1200, 2, 1, torch.Generator())
    solver = BucketSolver(KERNEL, None, ClassTargets(2), torch.zeros(2).double(), NOISE, 20, stems)
    gathered = SlicedRows(rows).gathered(solver.route, solver.starts[-1])
    assert 0 in gathered.sizes
    found = CollectedTrees(solver, gathered)
    found.collect()
    assert sorted(found.partitions[0].order.tolist()) == list(range(1200))
    outputs, _ = solution_of(found, rows)
    assert bool(outputs.isfinite().all())


def solution_of(found, rows):
    data = TrainingSet.of(torch.from_numpy(rows.X), ClassTargets(2).encode(rows.labels))
    solution = found.solution(np.arange(len(data)), data)
    return solution.trees.outputs(KERNEL, solution.points, solution.coefficients, data.points)
