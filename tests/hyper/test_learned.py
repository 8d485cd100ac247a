"""A learned kernel by itself."""

import pytest
import torch

from kernelwright.hyper.bases import MidpointBasis
from kernelwright.hyper.kernels import Gaussian, Wishart
from kernelwright.hyper.learned import LearnedKernel
from kernelwright.hyper.refinement import PairSmoother
from kernelwright.kernels import Gaussian as GaussianKernel
from tests.hyper.problems import data, pair_basis


@pytest.mark.parametrize("hyper", [Gaussian(sigma=1.0), Wishart(delta=1.0)], ids=["gaussian", "wishart"])
def test_a_kernel_fixes_its_own_numbers_and_nobody_elses(hyper):
    X, _ = data()
    basis = pair_basis(hyper, X)
    kernel = LearnedKernel(basis, torch.ones(len(basis), dtype=torch.float64), 0.5)
    assert all(parameter.requires_grad for parameter in hyper.parameters())
    assert not any(parameter.requires_grad for parameter in kernel.parameters())
    assert torch.allclose(kernel(X), basis.combine(kernel.weights.new_ones(len(basis)), X, X).detach() + 0.5)


def test_a_smoother_fixes_its_own_numbers_and_nobody_elses():
    X, _ = data()
    base = GaussianKernel(0.8)
    smoother = PairSmoother(base, X, torch.eye(8, dtype=torch.float64), torch.ones(8, dtype=torch.float64))
    assert all(parameter.requires_grad for parameter in base.parameters())
    assert not any(parameter.requires_grad for parameter in smoother.parameters())


def test_functions_of_weight_zero_are_left_out():
    X, _ = data()
    basis = pair_basis(Wishart(delta=1.0), X)
    weights = torch.zeros(len(basis), dtype=torch.float64)
    weights[[2, 5]] = torch.tensor([1.0, -2.0], dtype=torch.float64)
    kernel = LearnedKernel(basis, weights)
    assert len(kernel.basis) == 2
    assert torch.allclose(kernel(X), basis.combine(weights, X, X).detach())
    assert isinstance(LearnedKernel(pair_basis(Gaussian(sigma=1.0), X), weights).basis, MidpointBasis)
