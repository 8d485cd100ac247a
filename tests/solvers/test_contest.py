"""Which of two solvers is better, from rows that are held out of parts of a table."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.kernels import Gaussian
from kernelwright.objectives.losses import BRIER
from kernelwright.solvers import Auto, Exact, Landmarks, Tree, automatic, contest
from kernelwright.solvers.contest import Contest
from tests.solvers.disc import KERNEL, RIDGE, data, random


def rows_of(function, n, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    y = function(*X.T) + noise * rng.normal(size=n)
    return TrainingSet.of(torch.from_numpy(X), torch.from_numpy(y)[:, None], strata=torch.zeros(n, dtype=torch.int64))


def squares(outputs, rows):
    return float((outputs - rows.targets).square().mean()), outputs


def test_the_loss_is_that_of_plain_ridge_regression_on_each_part(monkeypatch):
    monkeypatch.setattr(contest, "PART_ROWS", 200)
    rows = data()
    found = Contest.of(KERNEL, rows, RIDGE, random())
    assert sum(map(len, found.fitted + found.held)) == len(rows)
    assert [len(each) for each in found.held] == [40, 40]
    errors = []
    for fitted, held in zip(found.fitted, found.held, strict=True):
        X, Z = (torch.as_tensor(each.points).numpy() for each in (fitted, held))
        K, k = (np.exp(-0.5 * np.square(A[:, None] - X).sum(2) / 0.7**2) for A in (X, Z))
        centred = (fitted.targets - rows.prior).numpy()
        outputs = k @ np.linalg.solve(K + RIDGE * len(rows) * np.eye(len(K)), centred) + rows.prior.numpy()
        errors.extend(np.square(outputs - held.targets.numpy()).sum(1))
    assert found.loss(lambda _: Exact(), BRIER, random()) == pytest.approx(np.mean(errors), rel=1e-8)


def test_groups_stay_together_and_rare_strata_do_no_harm(monkeypatch):
    monkeypatch.setattr(contest, "PART_ROWS", 200)
    rows = replace(data(), groups=torch.arange(400) // 8, strata=torch.arange(400))
    found = Contest.of(KERNEL, rows, RIDGE, random())
    for fitted, held in zip(found.fitted, found.held, strict=True):
        both = torch.cat([fitted.points, held.points])
        group = {tuple(point.tolist()): int(name) for point, name in zip(rows.points, rows.groups, strict=True)}
        names = [group[tuple(point.tolist())] for point in both]
        assert not set(names[: len(fitted)]) & set(names[len(fitted) :])


@pytest.mark.parametrize(
    ("function", "noise", "lengthscale", "ridge", "expected"),
    [
        (lambda a, b: np.sign(np.sin(25 * a) * np.sin(25 * b)), 0.1, 0.1, 1e-6, Tree),
        (lambda a, b: a + b**2, 1.0, 1.0, 1e-3, Landmarks),
    ],
    ids=["rough", "smooth"],
)
def test_the_winner_is_the_better_one_on_new_rows(function, noise, lengthscale, ridge, expected, monkeypatch):
    monkeypatch.setattr(contest, "PART_ROWS", 1200)
    rows, new = rows_of(function, 4500, noise), rows_of(function, 2000, 0.0, seed=1)
    kernel, tree = Gaussian(lengthscale), Tree(400)
    monkeypatch.setattr(automatic, "Tree", lambda: tree)
    chosen = Auto().settled(Landmarks(150), kernel, rows, ridge, squares, random())
    assert type(chosen) is expected
    errors = {}
    for solver in (tree, Landmarks(150)):
        solution = solver.solve(kernel, rows, ridge, random())
        errors[type(solver)] = squares(contest._outputs(kernel, solution, new.points), new)[0]
    assert min(errors, key=errors.get) is expected


@pytest.mark.parametrize(
    ("asked", "found", "n"),
    [(Auto("single"), Landmarks(20), 5000), (Auto(), Landmarks(20), 3999), (Auto(), Exact(), 5000)],
    ids=["single precision", "few rows", "not landmarks"],
)
def test_there_is_no_contest_where_no_choice_is_open(asked, found, n, monkeypatch):
    monkeypatch.setattr(Contest, "of", lambda *_: pytest.fail("no contest was expected"))
    rows = rows_of(lambda a, b: a * b, n, 0.1)
    assert asked.settled(found, KERNEL, rows, RIDGE, squares, random()) is found
    given = Landmarks(20)
    assert given.settled(given, KERNEL, rows, RIDGE, squares, random()) is given


def test_parts_of_one_group_leave_the_choice_as_it_is():
    rows = replace(rows_of(lambda a, b: a * b, 5000, 0.1), groups=torch.zeros(5000, dtype=torch.int64))
    found = Landmarks(20)
    assert Auto().settled(found, KERNEL, rows, RIDGE, squares, random()) is found


def test_memory_decides_before_any_contest(monkeypatch):
    monkeypatch.setattr(automatic, "free_memory", lambda: 1e6)
    found = Landmarks(20)
    assert Auto().settled(found, KERNEL, rows_of(lambda a, b: a * b, 5000, 0.1), RIDGE, squares, random()) is found
