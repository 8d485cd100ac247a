"""The solver of trees: one leaf is exact, held-out groups, more columns, and points that cannot be split."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from kernelwright.embedding import TrainingSet
from kernelwright.kernels import Gaussian, Spectrum
from kernelwright.solvers import Exact, Landmarks, Tree
from kernelwright.solvers.solution import Columns
from tests.solvers.disc import KERNEL, NEW, RIDGE, TRUTH, data, outputs, random, solve


def answers(solver, rows=None, ridge=RIDGE):
    found = solve(solver, rows, ridge)
    with torch.no_grad():
        at_new, _ = found.trees.outputs(KERNEL, found.points, found.coefficients, NEW)
    return (at_new + data().prior).numpy(), found


@pytest.mark.parametrize("settings", [{}, {"trees": 3}, {"landmarks": 30}], ids=str)
def test_one_leaf_is_the_exact_solution(settings):
    at_new, found = answers(Tree(400, **settings))
    expected = solve(Exact())
    np.testing.assert_allclose(at_new, outputs(expected), atol=1e-10)
    torch.testing.assert_close(found.left_out.outputs, expected.left_out.outputs, atol=1e-10, rtol=0)
    torch.testing.assert_close(found.left_out.support, expected.left_out.support, atol=1e-10, rtol=0)
    torch.testing.assert_close(found.fitted, expected.fitted, atol=1e-10, rtol=0)
    assert found.squared_norm == pytest.approx(expected.squared_norm)


@pytest.mark.parametrize("settings", [{}, {"trees": 3}, {"landmarks": 40}, {"trees": 2, "landmarks": 40}], ids=str)
def test_leaves_are_almost_as_good_as_the_exact_solution(settings):
    at_new, found = answers(Tree(100, **settings))
    assert (at_new.argmax(1) == TRUTH).mean() > (outputs(solve(Exact())).argmax(1) == TRUTH).mean() - 0.03
    left_out = (found.left_out.outputs.argmax(1) == found.fitted_rows.targets.argmax(1)).double().mean()
    assert float(left_out) == pytest.approx((at_new.argmax(1) == TRUTH).mean(), abs=0.03)


def test_landmarks_and_more_trees_help_where_leaves_are_too_small():
    """Each against the truth of a smooth function with noise, of which a leaf sees little."""
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.uniform(-1, 1, (1100, 2)))
    truth = (torch.sin(3 * X[:, 0]) + X[:, 1].square())[:, None]
    y = truth[:600] + 0.5 * torch.from_numpy(rng.normal(size=(600, 1)))
    rows = TrainingSet.of(X[:600], y, prior=y.mean(0), strata=torch.zeros(600, dtype=torch.int64))
    errors = []
    for solver in (Tree(30, trees=1), Tree(30, trees=4), Tree(30, trees=1, landmarks=50)):
        found = solver.solve(Gaussian(0.7), rows, 1e-2, random())
        at_new = found.trees.outputs(Gaussian(0.7), found.points, found.coefficients, X[600:])[0] + rows.prior
        errors.append(float((at_new - truth[600:]).square().mean()))
    assert errors[1] < 0.9 * errors[0]
    assert errors[2] < 0.7 * errors[0]


@pytest.mark.parametrize("landmarks", [0, 40])
def test_only_relative_weights_matter(landmarks):
    rows = data()
    heavy = replace(rows, weights=7.0 * rows.weights)
    for one, other in zip(*(answers(Tree(100, landmarks=landmarks), each)[:1] for each in (rows, heavy)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


def test_more_columns_are_those_of_a_solution_of_their_own():
    rows, solver = data(), Tree(100, landmarks=20)
    found = solve(solver)
    columns = torch.stack([rows.points[:, 0], rows.points.square().sum(1)], 1)
    prior = columns.mean(0)
    wanted = [Columns(columns[:, :1], prior[:1], 1e-2), Columns(rows.targets, rows.prior, RIDGE)]
    first, *more = solver.more(KERNEL, found, [*wanted, Columns(columns, prior, 1e-2)])
    torch.testing.assert_close(first.coefficients, more[1].coefficients[:, :1])
    torch.testing.assert_close(more[0].coefficients, found.coefficients)
    torch.testing.assert_close(more[0].left_out, found.left_out.outputs)
    alone = solve(solver, replace(rows, targets=columns, prior=prior), 1e-2)
    torch.testing.assert_close(more[1].coefficients, alone.coefficients)
    torch.testing.assert_close(more[1].left_out, alone.left_out.outputs)


def test_groups_across_leaves_are_held_out_if_landmarks_connect_these():
    groups = torch.arange(400) % 50
    apart = replace(data(), groups=groups)
    closed = solve(Tree(100), apart)
    assert closed.left_out.rows is closed.fitted_rows
    held = solve(Tree(100, landmarks=30), apart)
    judged, fitted = held.left_out.rows, held.fitted_rows
    assert not set(judged.groups.tolist()) & set(fitted.groups.tolist())
    at_held, _ = held.trees.outputs(KERNEL, held.points, held.coefficients, judged.points)
    torch.testing.assert_close(held.left_out.outputs, at_held + fitted.prior)
    more = Tree(100, landmarks=30).more(KERNEL, held, [Columns(fitted.targets, fitted.prior, RIDGE)])
    assert more[0].left_out.shape == judged.targets.shape


def test_points_that_cannot_be_split_are_solved_otherwise():
    words = Spectrum(2).encode(np.array(["ACGT", "CGTA", "GGTA", "ACCT"] * 6))
    rows = TrainingSet.of(words, torch.eye(2).double()[torch.arange(24) % 2])
    solver = Tree(10)
    with pytest.warns(UserWarning, match=r"A tree can split .* solved by Landmarks\(\) instead"):
        found = solver.solve(Spectrum(2), rows, 0.1, random())
    assert found.trees is None
    with pytest.warns(UserWarning, match=r"solved by Exact\(\)"):
        assert type(solver.for_rows(10, divisible=False)) is Exact
    assert type(Tree(10).for_rows(100)) is Tree


def test_the_same_seed_gives_the_same_trees():
    first, second = (solve(Tree(100, trees=3, landmarks=20)) for _ in range(2))
    assert torch.equal(first.coefficients, second.coefficients)


def test_a_tree_is_better_than_as_many_landmarks_on_a_rough_function():
    """Where detail is everywhere, a row must ask all of its neighbours."""
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.uniform(-1, 1, (1600, 2)))
    y = (torch.sin(9 * X[:, 0]) * torch.cos(9 * X[:, 1]) > 0).long()
    rows = TrainingSet.of(X[:1200], torch.eye(2).double()[y[:1200]], prior=torch.tensor([0.5, 0.5]).double())
    kernel, ridge = Gaussian(0.15), 1e-5
    tree = Tree(150).solve(kernel, rows, ridge, random())
    few = Landmarks(150).solve(kernel, rows, ridge, random())
    with torch.no_grad():
        by_tree = tree.trees.outputs(kernel, tree.points, tree.coefficients, X[1200:])[0].argmax(1)
        by_few = (kernel.forward(X[1200:], few.points) @ few.coefficients).argmax(1)
    right, rival = (float((each == y[1200:]).double().mean()) for each in (by_tree, by_few))
    assert right > rival + 0.01
    assert right > 0.9


def test_the_number_of_threads_changes_no_digit():
    """Each leaf is computed on one thread, whatever their number."""
    found = []
    for count in (1, 3):
        with threadpool_limits(count):
            found.append(answers(Tree(50, trees=2)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1].left_out.outputs, found[1][1].left_out.outputs)


def test_leaves_that_are_solved_at_once_need_their_memory_at_once():
    with threadpool_limits(1):
        alone = Tree(1000).n_bytes(100_000)
    with threadpool_limits(4):
        assert Tree(1000).n_bytes(100_000) - alone == 3 * 8 * 4 * 1000**2
        assert Tree(1000).n_bytes(800) < alone
