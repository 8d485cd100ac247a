"""Kernel functions learned by support vector regression over pairs."""

import numpy as np
import pytest

from kernelwright import HyperKernelRidge, HyperKernelSVR
from kernelwright.hyper.kernels import Gaussian
from kernelwright.hyper.solvers import SOLVERS
from tests.hyper.problems import gaussian, points, relative_error


@pytest.mark.parametrize("solver", ["exact", "midpoint", "nystroem", "auto"])
def test_support_vector_regression_fits(solver):
    X = points(40, d=2)
    Y = gaussian(X, X)
    made = "exact" if solver == "exact" else SOLVERS[solver](12)
    model = HyperKernelSVR(Gaussian(sigma=1.0), C=100.0, epsilon=0.02, solver=made, random_state=0)
    assert np.abs(model.fit(X, Y).predict(X) - Y).mean() < 0.06


def test_support_vector_cost_is_chosen_by_leaving_out_points():
    X = points(40, d=2)
    model = HyperKernelSVR(random_state=0, epsilon="m^-1").fit(X, gaussian(X, X))
    assert model.C_ > 0.01
    assert relative_error(model.predict(points(20, d=2, seed=1)), gaussian(*[points(20, d=2, seed=1)] * 2)) < 0.3


def test_outliers_matter_less_to_support_vectors():
    X = points(45, d=2)
    Y = gaussian(X, X)
    spoiled = Y.copy()
    i, j = np.triu_indices(45)
    hit = np.random.default_rng(0).choice(len(i), 40, replace=False)
    spoiled[i[hit], j[hit]] = spoiled[j[hit], i[hit]] = 10.0
    new = points(30, d=2, seed=1)
    ridge = HyperKernelRidge(Gaussian(sigma=1.0), random_state=0).fit(X, spoiled)
    machine = HyperKernelSVR(Gaussian(sigma=1.0), random_state=0, solver="exact").fit(X, spoiled)
    target = gaussian(new, new)
    assert np.abs(machine.predict(new) - target).mean() < np.abs(ridge.predict(new) - target).mean()
