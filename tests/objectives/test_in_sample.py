"""In-sample objectives: evaluated at the embedded rows."""

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian, Laplace
from kernelwright.numerics.linalg import Workspace
from kernelwright.numerics.products import Outer
from kernelwright.objectives import (
    EmpiricalRiskObjective,
    Hyperparameters,
    RademacherObjective,
    objective_named,
    value_and_gradient,
)
from kernelwright.objectives.losses import BRIER
from kernelwright.objectives.terms import Setting
from tests import reference as naive
from tests.objectives.problem import LABELS, RIDGE, WEIGHTS, X, Y, rows


def test_empirical_risk_ignores_the_complexity():
    with_weight, _ = value_and_gradient("empirical-risk", Gaussian(), X, LABELS, ridge=RIDGE, complexity_weight=5.0)
    assert with_weight == value_and_gradient("empirical-risk", Gaussian(), X, LABELS, ridge=RIDGE)[0]


@pytest.mark.parametrize("name", ["rademacher", "empirical-risk"])
@pytest.mark.parametrize("kernel", [Gaussian(1.5, ard=True), Laplace(3.0), Gaussian(1.0) + Laplace(2.0)])
def test_a_factor_in_single_precision_gives_the_numbers_of_double(name, kernel):
    rng = np.random.default_rng(0)
    data = TrainingSet.of(torch.from_numpy(rng.normal(size=(60, 3))), one_hot(np.arange(60) % 3, 3))
    kernel.prepare_(data.points)
    hyper = Hyperparameters(kernel, 0.01)
    for workspace in (None, Workspace()):
        double, single = (
            objective_named(name, complexity_weight=0.1, precision=precision)(hyper, data, workspace)
            for precision in ("double", "single")
        )
        assert single.value == pytest.approx(double.value, rel=1e-10)
        for parameter, gradient in double.gradients.items():
            np.testing.assert_allclose(single.gradients[parameter], gradient, rtol=1e-8, atol=1e-12)


def test_the_weight_of_the_complexity_follows_the_number_of_rows():
    data = rows(weights=WEIGHTS)
    assert RademacherObjective("1/n").tau(data) == pytest.approx(1 / WEIGHTS.sum())
    assert RademacherObjective(0.3).tau(data) == 0.3
    assert EmpiricalRiskObjective(0.3).tau(data) == 0.0


def test_the_dual_gradient_is_a_product_of_thin_matrices():
    data, K = rows(weights=WEIGHTS), naive.gram(naive.gaussian(1.5), X)
    terms = RademacherObjective().dual(torch.from_numpy(K), data, Setting(RIDGE, 0.1, 1.0, BRIER))
    assert isinstance(terms.d_kernel, Outer)
    assert terms.d_kernel.left.shape == data.targets.shape
    diagonal = naive.noise(WEIGHTS, RIDGE)
    assert terms.loss == pytest.approx(naive.brier(naive.outputs(K, K, Y, diagonal), Y, WEIGHTS), rel=1e-10)
    assert terms.complexity == pytest.approx(naive.squared_norm(K, Y, diagonal) ** 0.5, rel=1e-10)
