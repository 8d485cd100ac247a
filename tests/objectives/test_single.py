"""Double precision is used where single precision fails."""

import warnings

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.errors import NumericalError, PrecisionWarning
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian
from kernelwright.objectives import Hyperparameters, objective_named
from kernelwright.objectives.losses import BRIER
from kernelwright.objectives.single import go_on_in_double, refined
from kernelwright.objectives.terms import Setting


@pytest.mark.parametrize("name", ["rademacher", "leave-one-out"])
def test_what_single_precision_cannot_do_is_done_in_double_and_said(name):
    X = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    data = TrainingSet.of(X, one_hot(np.arange(50) % 2, 2))
    hyper = Hyperparameters(Gaussian(2.0), 1e-9)
    double = objective_named(name, complexity_weight=0.1)(hyper, data)
    with pytest.warns(PrecisionWarning, match="Learning continues in double precision"):
        single = objective_named(name, complexity_weight=0.1, precision="single")(hyper, data)
    assert single.value == double.value
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody asked for it, so nothing is said
        assert objective_named(name, complexity_weight=0.1, precision="auto")(hyper, data).value == double.value


def test_solutions_are_refined_to_double():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(30, 30))
    K, noise, right = (
        torch.from_numpy(B @ B.T),
        torch.full((30,), 0.5).double(),
        torch.from_numpy(rng.normal(size=(30, 2))),
    )
    A = K + torch.diag(noise)
    rough = torch.linalg.inv(A.float())
    solve = refined(lambda R: (rough @ R.float()).double(), K, noise)
    exact = torch.linalg.solve(A, right)
    assert float(((rough @ right.float()).double() - exact).abs().max()) > 1e-8
    np.testing.assert_allclose(solve(right), exact, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("precision", "said"), [("single", 1), ("auto", 0)])
def test_only_who_asked_is_told(precision, said):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        go_on_in_double(NumericalError("Too far."), Setting(0.1, 0.0, 1.0, BRIER, precision))
    assert [str(each.message) for each in caught] == [
        "Too far. Learning continues in double precision in such steps."
    ] * said
