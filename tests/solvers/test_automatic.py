"""The solver that fits the number of rows and the memory."""

import pytest
import torch

from kernelwright.solvers import Auto, Exact, Landmarks, Tree, automatic, base, landmarks
from tests.solvers.disc import solve


@pytest.mark.parametrize(("n", "expected"), [(500, Exact), (8000, Exact), (8001, Tree), (10**6, Tree)])
@pytest.mark.parametrize("precision", ["auto", "double"])
def test_the_solver_follows_from_the_number_of_rows(n, expected, precision):
    auto = Auto(precision)
    found = auto.for_rows(n)
    assert type(found) is expected
    assert found.size(n) == n
    assert (auto.size(n), auto.n_bytes(n)) == (found.size(n), found.n_bytes(n))


@pytest.mark.parametrize("n", [8001, 10**6])
@pytest.mark.parametrize(("precision", "divisible"), [("auto", False), ("double", False), ("single", True)])
def test_many_rows_that_no_tree_can_take_get_landmarks(n, precision, divisible):
    found = Auto(precision).for_rows(n, divisible=divisible)
    assert type(found) is Landmarks
    assert found.precision == precision
    assert 1000 <= found.size(n) <= 7500


def test_little_memory_means_a_tree_and_less_means_landmarks(monkeypatch):
    for module in (automatic, base, landmarks):
        monkeypatch.setattr(module, "free_memory", lambda: 1e8)
    assert type(Auto().for_rows(5000)) is Tree
    assert type(Auto().for_rows(10**6)) is Landmarks
    assert Auto().size(10**6) < 2000


def test_the_solution_is_that_of_the_solver_that_was_chosen(monkeypatch):
    assert torch.equal(solve(Auto()).coefficients, solve(Exact()).coefficients)
    monkeypatch.setattr(automatic, "EXACT_UP_TO", 100)
    assert torch.equal(solve(Auto()).coefficients, solve(automatic.Auto().for_rows(400)).coefficients)
    monkeypatch.setattr(landmarks, "usual_landmarks", lambda n: 50)
    assert torch.equal(solve(Auto("single")).coefficients, solve(Landmarks(50, "single")).coefficients)
