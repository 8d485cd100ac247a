"""Tests that all solvers share: words, settings, memory and calibration rows."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

from kernelwright import EmbeddingClassifier, MemoryBudgetError
from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Gaussian
from kernelwright.solvers import SOLVERS, Auto, Exact, Fourier, Herding, Landmarks, Tree, solver_of
from tests.solvers.disc import RNG, TRUTH, N, X, outputs, random, solve

each_solver = pytest.mark.parametrize("word", SOLVERS)


@each_solver
def test_a_word_is_the_object_with_its_usual_settings(word):
    found = solver_of(word, "Owner")
    assert type(found) is SOLVERS[word]
    assert (found.word, found.get_params()) == (word, SOLVERS[word]().get_params())


@each_solver
def test_an_object_is_itself_and_a_class_is_refused(word):
    solver = SOLVERS[word]()
    assert solver_of(solver, "Owner") is solver
    with pytest.raises(TypeError, match=f"use {SOLVERS[word].__name__}"):
        solver_of(SOLVERS[word], "Owner")


def test_an_unknown_word_is_refused_with_the_choices():
    with pytest.raises(
        ValueError, match=r"'solver' parameter of Owner must be one of \['auto', 'exact', .* Got 'qr' instead"
    ):
        solver_of("qr", "Owner")


@pytest.mark.parametrize(
    ("solver", "name"),
    [
        (Exact("half"), "precision"),
        (Auto("half"), "precision"),
        (Landmarks(5, "half"), "precision"),
        (Landmarks(0), "n"),
        (Fourier(-1), "n"),
        (Tree(1), "leaf"),
        (Tree(trees=0), "trees"),
        (Tree(landmarks=-1), "landmarks"),
        (Herding(2.5), "n"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused_by_name(solver, name):
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of {type(solver).__name__} must be"):
        solver_of(solver, "Owner")


@each_solver
def test_solvers_are_cloned_with_their_settings(word):
    solver = SOLVERS[word]()
    assert clone(solver).get_params() == solver.get_params()


@each_solver
def test_sizes_and_bytes_grow_with_the_rows(word):
    solver = SOLVERS[word]()
    for few, many in ((500, 2000), (2000, 7000)):
        assert 0 < solver.size(few) <= solver.size(many)
        assert 0 < solver.n_bytes(few) < solver.n_bytes(many)


@each_solver
def test_a_solution_has_a_coefficient_for_every_point_or_feature_and_output(word):
    few = {"auto": {}, "exact": {}, "tree": {"leaf": 150, "trees": 1}}.get(word, {"n": 40})
    found, size = solve(SOLVERS[word](**few)), SOLVERS[word](**few).size(N)
    assert found.coefficients.shape[1] == 2
    assert len(found.coefficients) == size or (word == "herding" and len(found.coefficients) <= size)
    assert found.fitted.shape == found.fitted_rows.targets.shape
    assert found.left_out.outputs.shape == found.left_out.rows.targets.shape
    assert len(found.left_out.support) == len(found.left_out.rows)


@pytest.mark.parametrize("solver", [Landmarks(150), Herding(150)], ids=["landmarks", "herding"])
def test_calibration_outputs_have_not_seen_their_targets(solver):
    """With labels that are a coin's toss, outputs at rows that were fitted would look better than a coin."""
    Y, w = one_hot(RNG.integers(0, 2, N), 2), torch.ones(N, dtype=torch.float64)
    noisy = TrainingSet.of(torch.from_numpy(X), Y, weights=w, prior=ClassTargets(2).prior(Y, w))
    found = solver.solve(Gaussian(0.1), noisy, 1e-6, random())
    assert float((found.left_out.outputs.argmax(1) == found.left_out.rows.strata).double().mean()) < 0.7


@pytest.mark.parametrize("solver", [Landmarks(60), Herding(60)], ids=["landmarks", "herding"])
def test_few_landmarks_come_close(solver):
    found = solve(solver)
    assert len(found.coefficients) == pytest.approx(60, abs=2)
    assert (outputs(found).argmax(1) == TRUTH).mean() > 0.87


@pytest.mark.parametrize(
    "solver", [Exact(), Landmarks(200), Fourier(200), Herding(200)], ids=lambda solver: solver.word
)
def test_every_solver_refuses_in_advance_what_would_not_fit(solver, monkeypatch):
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1e6)
    X = np.random.default_rng(0).normal(size=(500, 2))
    model = EmbeddingClassifier(Gaussian(1.0), solver=solver)
    with pytest.raises(MemoryBudgetError, match=r"needs about .* [GM]iB, and 1 MiB are free. Use"):
        model.fit(X, X[:, 0] > 0)
    assert not hasattr(model, "kernel_")
