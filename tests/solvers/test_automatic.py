"""The solver that fits the number of rows and the memory."""

import pytest
import torch

from kernelwright.solvers import Auto, Exact, Landmarks, Tree, automatic, base, landmarks
from tests.solvers.disc import solve


@pytest.mark.parametrize(
    ("n", "expected"),
    [(500, Exact), (8000, Exact), (8001, Landmarks), (19_999, Landmarks), (20_000, Tree), (10**6, Tree)],
)
@pytest.mark.parametrize("precision", ["auto", "double"])
def test_the_solver_follows_from_the_number_of_rows(n, expected, precision):
    auto = Auto(precision)
    found = auto.for_rows(n)
    assert type(found) is expected
    assert found.size(n) == n if expected is not Landmarks else 1000 <= found.size(n) <= 7500
    assert (auto.size(n), auto.n_bytes(n)) == (found.size(n), found.n_bytes(n))


@pytest.mark.parametrize("n", [20_000, 10**6])
@pytest.mark.parametrize(("precision", "divisible"), [("auto", False), ("double", False), ("single", True)])
def test_many_rows_that_no_tree_can_take_get_landmarks(n, precision, divisible):
    found = Auto(precision).for_rows(n, divisible=divisible)
    assert type(found) is Landmarks
    assert found.precision == precision
    assert 1000 <= found.size(n) <= 7500


def test_little_memory_means_few_landmarks(monkeypatch):
    for module in (automatic, base, landmarks):
        monkeypatch.setattr(module, "free_memory", lambda: 1e8)
    assert type(Auto().for_rows(5000)) is Landmarks
    assert type(Auto().for_rows(10**6)) is Landmarks
    assert Auto().size(10**6) < 2000


def test_the_solution_is_that_of_the_solver_that_was_chosen(monkeypatch):
    assert torch.equal(solve(Auto()).coefficients, solve(Exact()).coefficients)
    monkeypatch.setattr(automatic, "EXACT_UP_TO", 100)
    monkeypatch.setattr(landmarks, "usual_landmarks", lambda n: 50)
    assert torch.equal(solve(Auto()).coefficients, solve(Landmarks(50)).coefficients)
    monkeypatch.setattr(automatic, "TREE_FROM", 200)
    assert torch.equal(solve(Auto()).coefficients, solve(Tree()).coefficients)
