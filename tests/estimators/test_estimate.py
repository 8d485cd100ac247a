"""What a fit will take, as it is said beforehand."""

import re
import time

import numpy as np
import pytest
import torch

from kernelwright import EmbeddingClassifier
from kernelwright.embedding import TrainingSet
from kernelwright.estimators.estimate import estimate
from kernelwright.kernels import Gaussian, Spectrum
from kernelwright.learning import Auto, Given
from kernelwright.numerics.work import Work, WorkPace
from kernelwright.solvers import Exact, Herding, Landmarks, Tree

POINTS = torch.from_numpy(np.random.default_rng(0).normal(size=(3000, 4)))


def test_the_seconds_said_are_about_those_of_the_fit(caplog):
    X = POINTS.numpy()[:2500]
    y = X[:, 0] * X[:, 1] > 0
    fit = {"random_state": 0, "learn": Auto(max_iter=4)}
    EmbeddingClassifier(**fit).fit(X[:1200], y[:1200])  # loads what is loaded once
    started = time.process_time()
    EmbeddingClassifier(solver=Exact(), verbose=10**6, **fit).fit(X, y)
    used = time.process_time() - started
    said = next(
        re.search(r"about ([\d.e+]+) CPU seconds.* and (\d+) MiB", each) for each in caplog.messages if "CPU" in each
    )
    assert used / 4 < float(said[1]) < 4 * used
    assert int(said[2]) >= Exact().n_bytes(2500) / 2**20


@pytest.mark.parametrize("solver", [Exact(), Tree(750), Tree(750, landmarks=200), Landmarks(600)], ids=repr)
def test_an_estimate_of_a_solution_is_of_the_order_of_its_time(solver):

    y = (POINTS[:, :1] > 0).double()
    rows, kernel = TrainingSet.of(POINTS, torch.cat([y, 1 - y], 1)), Gaussian(1.0)
    with torch.no_grad():
        solver.solve(kernel, rows, 1e-4, torch.Generator().manual_seed(0))
        started = time.thread_time()
        solver.solve(kernel, rows, 1e-4, torch.Generator().manual_seed(0))
        used = time.thread_time() - started
    found = estimate(kernel, POINTS, solver, Given())
    assert found.learning == 0.0
    assert used / 5 < found.solving < 5 * used


def test_work_of_trees_is_linear_in_the_rows_and_that_of_an_exact_solution_cubic():
    pace = WorkPace(value=0.0, cube=1.0)
    for solver, power in ((Tree(100), 1), (Tree(100, landmarks=10), 1), (Exact(), 3)):
        few, many = (solver.work(n).seconds(pace) for n in (10_000, 20_000))
        assert many == pytest.approx(2**power * few)
    assert Tree(100, trees=1).work(50) == Exact().work(50) == Work(50**2, 50**3)


def test_more_rows_are_never_less_to_learn_but_where_few_rows_go_most_of_the_way():
    pace = WorkPace(value=1e-8, cube=1e-10)
    seconds = [Auto().work(n).seconds(pace) for n in (100, 700, 3000, 5000, 10_000)]
    assert seconds == sorted(seconds)
    assert Auto().work(10**6) == Auto().work(10_000)
    assert Auto(max_iter=1).work(3000).seconds(pace) < seconds[2]


def test_nothing_is_said_where_nothing_is_known():
    assert estimate(Gaussian(), POINTS, Herding(5), Auto()) is None
    assert estimate(Spectrum(2), POINTS, Exact(), Auto()) is None
