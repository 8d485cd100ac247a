"""Sums over pairs, against loops over the pairs."""

import numpy as np
import pytest
import torch

from kernelwright.errors import NumericalError
from kernelwright.hyper.bases import MidpointBasis
from kernelwright.hyper.kernels import Gaussian, Sum
from kernelwright.hyper.moments import all_pair_moments
from kernelwright.hyper.pairs import unique_pairs
from kernelwright.hyper.targets import LabelTarget
from tests.hyper.problems import data, whole_moments


@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_all_pairs_in_linear_time_equal_all_pairs_visited(low):
    X, _ = data(m=60)
    labels = torch.from_numpy(np.random.default_rng(0).integers(0, 3, 60))
    target = LabelTarget(labels, low)
    wide = Sum([Gaussian(sigma=2.0, sigma_h=2.0), Gaussian(sigma=4.0, sigma_h=1.0)]).requires_grad_(False)
    basis = MidpointBasis(wide, X[:5])
    fast = all_pair_moments(basis, X, *target.low_rank(), rank=60)
    assert torch.allclose(fast, whole_moments(basis, X, unique_pairs(target)), rtol=1e-6, atol=1e-6)


def test_narrow_falloffs_are_refused_in_linear_time():
    X, _ = data(m=300, d=5)
    basis = MidpointBasis(Gaussian(sigma=0.05, sigma_h=1.0).requires_grad_(False), X[:5])
    with pytest.raises(NumericalError, match=r"not of low rank.*n_pairs"):
        all_pair_moments(basis, X, torch.ones(300, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64), rank=20)
