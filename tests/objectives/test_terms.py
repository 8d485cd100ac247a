"""The numbers at which objectives are evaluated."""

import math

import pytest
import torch

from kernelwright.kernels import Gaussian
from kernelwright.objectives import Hyperparameters
from kernelwright.objectives.losses import BRIER
from kernelwright.objectives.terms import PrimalTerms, Setting


@pytest.mark.parametrize("squared_norm", [1e-8, 0.3, 50.0])
def test_complexity_and_its_slopes_equal_finite_differences(squared_norm):
    tau, sup = 0.7, 2.5

    def r(t=squared_norm, s=sup):
        return math.sqrt(s * t)

    at, step = Setting(0.1, tau, sup, BRIER), 1e-6
    complexity, slope = at.complexity_and_slope(squared_norm)
    assert complexity == pytest.approx(r(), rel=1e-14)
    t = squared_norm * step
    assert slope == pytest.approx(tau * (r(squared_norm + t) - r(squared_norm - t)) / (2 * t), rel=1e-6)
    assert at.slope_in_sup(complexity) == pytest.approx(
        tau * (r(s=sup + step) - r(s=sup - step)) / (2 * step), rel=1e-6
    )


def test_no_embedding_has_no_complexity_and_no_slope():
    at = Setting(0.1, 0.7, 2.5, BRIER)
    assert at.complexity_and_slope(0.0) == at.complexity_and_slope(-1e-18) == (0.0, 0.0)
    assert Setting(0.1, 0.7, 0.0, BRIER).slope_in_sup(0.0) == 0.0


def test_terms_of_splits_add_up():
    first = PrimalTerms(1.0, 2.0, torch.ones(2, 2), 3.0, 4.0)
    second = PrimalTerms(10.0, 20.0, 2.0 * torch.ones(2, 2), 30.0, 40.0)
    total = first + second
    assert (total.loss, total.complexity, total.d_ridge, total.d_sup) == (11.0, 22.0, 33.0, 44.0)
    assert torch.equal(total.d_features, 3.0 * torch.ones(2, 2))


@pytest.mark.parametrize("noise", [0.01, 5.0, 300.0])
def test_the_ridge_is_drawn_to_a_cautious_one(noise):
    kernel = Gaussian([1.0, 4.0])
    found = Hyperparameters(kernel, noise / 20).penalty(20)
    spread = 0.5 * 2 * math.log(2.0) ** 2  # two log length scales, each log 2 from their mean
    assert float(found.detach()) == pytest.approx(
        spread + math.log1p(0.5 * (math.log(noise / 5.0) / 2.0) ** 2), rel=1e-12
    )
