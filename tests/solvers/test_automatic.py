"""The solver that fits the number of rows and the memory."""

import pytest
import torch

from kernelwright.solvers import Auto, Exact, Landmarks, automatic, base, landmarks
from tests.solvers.disc import solve


@pytest.mark.parametrize(("n", "expected"), [(500, Exact), (8000, Exact), (8001, Landmarks), (10**6, Landmarks)])
@pytest.mark.parametrize("precision", ["auto", "single", "double"])
def test_the_solver_follows_from_the_number_of_rows(n, expected, precision):
    auto = Auto(precision)
    found = auto.for_rows(n)
    assert type(found) is expected
    assert found.precision == precision
    assert found.size(n) == n if expected is Exact else 1000 <= found.size(n) <= 7500
    assert (auto.size(n), auto.n_bytes(n)) == (found.size(n), found.n_bytes(n))


def test_little_memory_means_few_landmarks(monkeypatch):
    for module in (automatic, base, landmarks):
        monkeypatch.setattr(module, "free_memory", lambda: 1e8)
    assert type(Auto().for_rows(5000)) is Landmarks
    assert Auto().size(10**6) < 2000


def test_the_solution_is_that_of_the_solver_that_was_chosen(monkeypatch):
    assert torch.equal(solve(Auto()).coefficients, solve(Exact()).coefficients)
    monkeypatch.setattr(automatic, "EXACT_UP_TO", 100)
    monkeypatch.setattr(landmarks, "usual_landmarks", lambda n: 50)
    assert torch.equal(solve(Auto()).coefficients, solve(Landmarks(50)).coefficients)
