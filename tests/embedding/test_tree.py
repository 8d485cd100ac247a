"""The embedding in the kernel of a tree, against one solve with its whole kernel matrix and against refits."""

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet, embed
from kernelwright.embedding.partition import all_axes, grow, random_axes
from kernelwright.embedding.tree import GlobalPart, Trees, solve_tree
from kernelwright.kernels import Gaussian, WithTrend
from kernelwright.kernels.tabular import Tabular

N, M, RIDGE = 240, 3, 2e-3
RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(N, 2)))
NEW = torch.from_numpy(RNG.normal(size=(50, 2)))
Y = torch.nn.functional.one_hot(torch.from_numpy(RNG.integers(0, M, N))).double()
KERNEL = Gaussian(0.8)
KERNEL.requires_grad_(False)


def data(*, weighted=False, merged=False, grouped=False) -> TrainingSet:
    weights = torch.from_numpy(RNG.uniform(0.3, 3.0, N)) if weighted else None
    counts = torch.from_numpy(RNG.integers(1, 4, N)).double() if merged else None
    groups = torch.from_numpy(RNG.integers(0, 60, N)) if grouped else None
    prior = torch.tensor([0.5, 0.3, 0.2]).double()
    return TrainingSet.of(X, Y, weights=weights, prior=prior, counts=counts, groups=groups)


def tree(points, leaf=60, random=False):
    axes = random_axes(KERNEL, points, torch.Generator().manual_seed(1)) if random else all_axes(KERNEL, points)
    return grow(points, axes, leaf)


def kernel_of(partition, landmarks, A, B):
    """The kernel of a tree by its definition."""
    same = partition.route(A)[:, None] == partition.route(B)
    own = torch.where(same, KERNEL.forward(A, B), 0.0)
    if landmarks is None:
        return own
    K = KERNEL.forward(landmarks, landmarks)
    K.diagonal().add_(1e-6)
    return own + KERNEL.forward(A, landmarks) @ torch.linalg.solve(K, KERNEL.forward(landmarks, B))


each_global_part = pytest.mark.parametrize("n_landmarks", [0, 25])


def parts(n_landmarks):
    if not n_landmarks:
        return None, None
    landmarks = X[:n_landmarks]
    return landmarks, GlobalPart.of(KERNEL, landmarks)


@each_global_part
@pytest.mark.parametrize("random", [False, True], ids=["columns", "mixtures"])
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"weighted": True, "merged": True}], ids=str)
def test_the_solution_is_that_of_the_whole_kernel_matrix(n_landmarks, random, options):
    rows, partition, (landmarks, global_part) = data(**options), tree(X, random=random), parts(n_landmarks)
    found = solve_tree(KERNEL, rows, RIDGE, partition, global_part)
    expected = embed(kernel_of(partition, landmarks, X, X), rows, RIDGE)
    torch.testing.assert_close(found.coefficients, expected.coefficients, atol=1e-7, rtol=1e-7)
    torch.testing.assert_close(found.fitted, expected.fitted, atol=1e-9, rtol=1e-8)
    torch.testing.assert_close(found.left_out, expected.leave_one_out(), atol=1e-8, rtol=1e-8)
    assert found.squared_norm == pytest.approx(expected.squared_norm, rel=1e-6)
    trees = Trees((partition,), X[:n_landmarks])
    outputs, nearest = trees.outputs(KERNEL, X, trees.coefficients([found]), NEW)
    K = kernel_of(partition, landmarks, NEW, X)
    torch.testing.assert_close(outputs, K @ expected.coefficients, atol=1e-7, rtol=1e-7)
    inside = partition.route(NEW)[:, None] == partition.route(X)
    torch.testing.assert_close(nearest, torch.where(inside, KERNEL.forward(NEW, X), 0.0).amax(1))


@each_global_part
def test_left_out_outputs_are_those_of_refits(n_landmarks):
    """Also that they are not too good on average: no row has seen itself, neither in its leaf nor by the landmarks."""
    rows, partition, (_, global_part) = data(), tree(X), parts(n_landmarks)
    found = solve_tree(KERNEL, rows, RIDGE, partition, global_part).left_out
    trees, gaps = Trees((partition,), X[:n_landmarks]), []
    for row in range(0, N, 4):
        weights = rows.weights.clone()
        weights[row] = 1e-12  # the row stays in its leaf, but it does not count
        without = TrainingSet.of(X, Y, weights=weights, prior=rows.prior)
        refitted = solve_tree(KERNEL, without, RIDGE * rows.total_weight / without.total_weight, partition, global_part)
        at_row = trees.outputs(KERNEL, X, trees.coefficients([refitted]), X[[row]])[0] + rows.prior
        gaps.append(found[[row]] - at_row)
    assert float(torch.cat(gaps).abs().max()) < 1e-8


def test_groups_are_left_out_of_each_leaf():
    rows, partition = data(grouped=True), tree(X)
    found = solve_tree(KERNEL, rows, RIDGE, partition).left_out
    expected = embed(kernel_of(partition, None, X, X), rows, RIDGE).leave_one_out()
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-8)


def test_one_leaf_is_the_exact_embedding():
    partition = tree(X, N)
    found = solve_tree(KERNEL, data(), RIDGE, partition)
    expected = embed(KERNEL.matrix(X), data(), RIDGE)
    torch.testing.assert_close(found.coefficients, expected.coefficients, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(found.left_out, expected.leave_one_out(), atol=1e-10, rtol=1e-9)
    trees = Trees((partition,), X[:0])
    outputs = trees.outputs(KERNEL, X, trees.coefficients([found]), NEW)[0] + data().prior
    torch.testing.assert_close(outputs, expected.outputs(KERNEL.forward(NEW, X)), atol=1e-8, rtol=1e-8)


def test_one_row_is_answered_as_in_a_batch_and_trees_are_averaged():
    partitions, (landmarks, global_part) = (tree(X), tree(X, 40, random=True)), parts(25)
    solved = [solve_tree(KERNEL, data(), RIDGE, each, global_part) for each in partitions]
    trees = Trees(partitions, landmarks)
    coefficients = trees.coefficients(solved)
    batch, near = trees.outputs(KERNEL, X, coefficients, NEW)
    alone = [trees.outputs(KERNEL, X, coefficients, row[None]) for row in NEW]
    torch.testing.assert_close(torch.cat([each for each, _ in alone]), batch, atol=1e-12, rtol=1e-11)
    torch.testing.assert_close(torch.cat([each for _, each in alone]), near, atol=1e-12, rtol=1e-11)
    each = [
        Trees((one,), landmarks).outputs(KERNEL, X, Trees((one,), landmarks).coefficients([tree_]), NEW)[0]
        for one, tree_ in zip(partitions, solved, strict=True)
    ]
    torch.testing.assert_close(batch, (each[0] + each[1]) / 2, atol=1e-10, rtol=1e-9)


def test_a_trend_beside_the_kernel_is_solved_in_each_leaf():
    views = torch.hstack([X, X]) / 2
    kernel = WithTrend(Tabular(1.0), 2.0).prepared(views)
    rows, partition = TrainingSet.of(views, Y), grow(views, all_axes(kernel, views), 100)
    found = solve_tree(kernel, rows, RIDGE, partition)
    for leaf in range(partition.n_leaves):
        some = rows.subset(partition.rows(leaf))
        expected = embed(kernel.matrix(some.points), some, RIDGE * rows.total_weight / some.total_weight)
        torch.testing.assert_close(found.left_out[partition.rows(leaf)], expected.leave_one_out())
