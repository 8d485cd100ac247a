"""Solver objects: their words, their parameters, and the solver that they choose."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import kernelwright as kw
from kernelwright import HyperKernelRidge, HyperKernelSVR
from kernelwright.hyper import AutoPairs, ExactPairs, HeldOutMetric, LandmarkPairs, Midpoints, Partition
from kernelwright.hyper.kernels import Gaussian, Wishart
from kernelwright.hyper.solvers import SOLVERS, as_solver, divided
from tests.hyper.problems import gaussian, points


@pytest.mark.parametrize("make", [HyperKernelRidge, HyperKernelSVR])
@pytest.mark.parametrize("word", list(SOLVERS))
def test_a_word_stands_for_its_object(make, word):
    X = points(30, d=2)
    by_word, by_object = (make(solver=s, random_state=0).fit(X, gaussian(X, X)) for s in (word, SOLVERS[word]()))
    assert np.array_equal(by_word.predict(X), by_object.predict(X))
    assert by_word.solver_ == by_object.solver_


@pytest.mark.parametrize(
    ("solver", "hyper", "n_points", "exact_first", "expected"),
    [
        (AutoPairs(7, n_pairs=9), Gaussian(), 50, False, Midpoints(7, n_pairs=9)),
        (AutoPairs(), Gaussian(), 50, True, ExactPairs()),
        (AutoPairs(7, choose="leverage"), Gaussian(), 61, True, Midpoints(7, choose="leverage")),
        (AutoPairs(), Wishart(), 60, False, ExactPairs()),
        (AutoPairs(7, choose="uniform"), Wishart(), 61, False, LandmarkPairs(7, choose="uniform")),
        (LandmarkPairs(3), Gaussian(), 5, True, LandmarkPairs(3)),
    ],
)
def test_what_is_left_to_auto_is_settled_by_the_hyperkernel_and_the_points(
    solver, hyper, n_points, exact_first, expected
):
    found = solver.settled(hyper, n_points, exact_first=exact_first)
    assert type(found) is type(expected)
    assert found.get_params() == expected.get_params()


def test_a_whole_is_one_part():
    partition, inner = divided(as_solver(Midpoints(5)))
    assert (partition.n, partition.n_jobs, inner.n) == (1, None, 5)
    partition, inner = divided(as_solver(Partition(3, "exact", n_jobs=2)))
    assert (partition.n, partition.n_jobs, type(inner)) == (3, 2, ExactPairs)


def test_parameters_of_objects_are_reached_through_the_estimator():
    model = HyperKernelRidge(solver=Partition(2, Midpoints(5)), learn=HeldOutMetric(4))
    copied = clone(model).set_params(solver__n=3, solver__solver__n=6, learn__max_iter=1)
    assert (copied.solver.n, copied.solver.solver.n, copied.learn.max_iter) == (3, 6, 1)
    assert (model.solver.n, model.solver.solver.n, model.learn.max_iter) == (2, 5, 4)
    assert repr(model.solver) == "Partition(n=2, solver=Midpoints(n=5))"


def test_a_number_of_centres_can_be_searched():
    X, y = load_iris(return_X_y=True)
    learner = HyperKernelRidge(Gaussian(0.3), ridge=1e-3, solver=Midpoints(), random_state=0)
    search = GridSearchCV(kw.LearnedKernelClassifier(learner, SVC()), {"learner__solver__n": [1, 15]}, cv=3).fit(X, y)
    assert search.best_params_ == {"learner__solver__n": 15}
    assert learner.solver.n is None


def test_a_fit_leaves_the_objects_it_is_given_as_they_were():
    X = points(40, d=2)
    model = HyperKernelRidge(Gaussian(), solver=Partition(2, AutoPairs(5)), learn=HeldOutMetric(2), random_state=0)
    before = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(X, gaussian(X, X))
    assert {name: repr(value) for name, value in model.get_params().items()} == before
    assert model.hyperkernel.sigma.requires_grad


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "best"}, "'solver' parameter of HyperKernelRidge must be a str among"),
        ({"solver": 3}, "instance of 'kernelwright.hyper.solvers.PairSolver'"),
        ({"solver": Midpoints(0)}, r"'n' parameter of Midpoints must be an int in the range \[1, inf\)"),
        ({"solver": LandmarkPairs(choose="best")}, "'choose' parameter of LandmarkPairs"),
        ({"solver": AutoPairs(n_pairs="some")}, "'n_pairs' parameter of AutoPairs"),
        ({"solver": Partition(0)}, "'n' parameter of Partition"),
        ({"solver": Partition(2, Midpoints(-1))}, "'n' parameter of Midpoints"),
        ({"solver": Partition(2, Partition(2))}, "'solver' parameter of Partition"),
        ({"solver": Partition(2, "partitioned")}, "'solver' parameter of Partition"),
        ({"learn": "leave-one-out"}, "'learn' parameter of HyperKernelRidge"),
        ({"learn": HeldOutMetric(0)}, "'max_iter' parameter of HeldOutMetric"),
        ({"symmetric": "no"}, "'symmetric' parameter of HyperKernelRidge"),
    ],
)
def test_bad_settings_say_whose_they_are(settings, message):
    X = points(20, d=2)
    with pytest.raises(ValueError, match=message):
        HyperKernelRidge(**settings).fit(X, gaussian(X, X))


def test_estimates_of_memory_grow_as_the_solutions_do():
    assert ExactPairs().bytes(10) == 4 * 8 * 55**2
    assert ExactPairs().bytes(10, matrices=18) == 18 * 8 * 55**2
    few, many = Midpoints().bytes(100), Midpoints().bytes(200)
    assert many - few == 16 * 8 * (200**2 - 100**2)


def test_too_many_functions_are_refused_before_they_are_solved_for(monkeypatch):
    X = points(200)
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 2.0**27)
    with pytest.raises(kw.MemoryBudgetError, match=r"20100 functions of pairs.*LandmarkPairs\(n="):
        HyperKernelRidge(Wishart(), solver=LandmarkPairs(200), random_state=0).fit(X, gaussian(X, X))
