"""The whole fit as a function."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright import HyperKernelRidge, HyperKernelSVR
from kernelwright.hyper import BasisPlan, HeldOutMetric, Midpoints, PairRidge, PairSVR, Partition, fit_pairs
from kernelwright.hyper.kernels import Gaussian, Wishart
from kernelwright.hyper.moments import fold_moments
from kernelwright.hyper.pairs import unique_pairs
from kernelwright.hyper.targets import MatrixTarget, pair_problem
from kernelwright.inputs.arrays import generator
from tests.hyper.problems import gaussian, log_kernel, points


def random():
    return generator(0)


@pytest.mark.parametrize(
    ("basis", "regressor", "model"),
    [
        (BasisPlan(), PairRidge(), HyperKernelRidge()),
        (
            BasisPlan(Wishart(), Partition(2, "exact")),
            PairRidge(1e-3, bias=False),
            HyperKernelRidge(Wishart(), ridge=1e-3, bias=False, solver=Partition(2, "exact")),
        ),
        (
            BasisPlan(Gaussian(), learn=HeldOutMetric(3)),
            PairSVR(10.0),
            HyperKernelSVR(Gaussian(), C=10.0, learn=HeldOutMetric(3)),
        ),
    ],
    ids=["default", "parts", "support vectors"],
)
def test_an_estimator_is_a_face_of_the_function(basis, regressor, model):
    X = points(30)
    Y = log_kernel(X, X)
    found = fit_pairs(pair_problem(X, Y), basis, regressor, random=random())
    model = model.set_params(random_state=0).fit(X, Y)
    assert np.array_equal(found.kernel(X), model.predict(X))
    assert found.solver == model.solver_
    assert len(found.history) == len(model.history_)


def test_a_fit_is_made_of_its_steps():
    """Centre, prepare, sums over pairs, one solve: written out, with nothing else in between."""
    X = torch.from_numpy(points(30))
    Y = gaussian(X.numpy(), X.numpy())
    found = fit_pairs(
        pair_problem(X.numpy(), Y), BasisPlan(Gaussian(), Midpoints(6)), PairRidge(1e-3, bias=False), random=random()
    )
    basis, scale = found.kernel.basis, Y.std(ddof=1)
    assert float(basis.hyperkernel.sigma) ** 2 == pytest.approx(float(X.var(0, correction=0).sum()))
    pairs = unique_pairs(MatrixTarget(torch.from_numpy(Y / scale)))
    M = fold_moments(basis, X, pairs, torch.zeros(30, dtype=torch.int64))[0, 0] / 900
    w = torch.linalg.solve(M[:-2, :-2] + 1e-3 * basis.gram(), M[:-2, -2])
    assert torch.allclose(found.kernel.weights, scale * w, rtol=1e-6)
    assert found.kernel.bias == 0.0


def test_what_is_passed_in_stays_as_it_was():
    X = points(40, d=2)
    problem, hyper = pair_problem(X, gaussian(X, X)), Wishart()
    points_before, values_before = problem.points.clone(), problem.target.values.clone()
    for learn in (None, HeldOutMetric(2)):
        found = fit_pairs(problem, BasisPlan(hyper, learn=learn), PairRidge(), random=random())
        assert hyper.get_params() == {"delta": None, "nu": 4, "D": None, "lengthscale": 1.0}
        assert all(parameter.requires_grad for parameter in hyper.parameters())
        assert not any(parameter.requires_grad for parameter in found.kernel.hyperkernel.parameters())
    assert torch.equal(problem.points, points_before)
    assert torch.equal(problem.target.values, values_before)


def test_all_pairs_of_labelled_points_in_linear_time():
    X = points(600, d=2)
    problem = pair_problem(X, (X[:, 0] > 0).astype(int))
    fast = BasisPlan(Gaussian(sigma=2.0, sigma_h=2.0), Midpoints(8, n_pairs="all"))
    slow = replace(fast, solver=Midpoints(8, n_pairs=10**6))
    one, other = (
        fit_pairs(problem, basis, PairRidge(1e-4, usual_pairs=1000), random=random()).kernel(X)
        for basis in (fast, slow)
    )
    assert not np.array_equal(one, other)  # sums of low rank on one side, pairs on the other
    assert np.allclose(one, other, atol=1e-3)


def test_bound_may_be_the_largest_target():
    X = points(30)
    Y = 0.5 * gaussian(X, X)
    kernel = fit_pairs(pair_problem(X, Y), BasisPlan(), PairRidge(), bound="auto", random=random()).kernel
    assert kernel.bound == pytest.approx(0.5)
