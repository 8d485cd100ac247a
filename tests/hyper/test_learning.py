import numpy as np
import pytest
import torch

from kernelwright.hyper.bases import MidpointBasis, PairBasis
from kernelwright.hyper.kernels import Gaussian, PointPairs, Sum, Wishart
from kernelwright.hyper.learning import HeldOutPoints, split_points
from kernelwright.hyper.pairs import unique_pairs
from kernelwright.hyper.targets import MatrixTarget


@pytest.mark.parametrize(
    "hyper",
    [
        Gaussian(sigma=1.0, sigma_h=0.7, lengthscale=[1.0, 1.5, 0.7]),
        Sum([Gaussian(sigma=0.8, sigma_h=0.7), Gaussian(sigma=1.6, sigma_h=1.2)], lengthscale=[1.0, 0.8, 1.3]),
        Wishart(delta=1.5, nu=4, lengthscale=[1.0, 2.0, 0.5]),
    ],
    ids=["gaussian", "sum", "wishart"],
)
@pytest.mark.parametrize("form", ["midpoint", "pairs"])
def test_gradient_equals_finite_differences(hyper, form):
    if form == "midpoint" and hyper.widths() is None:
        pytest.skip("the midpoint form is for Gaussian hyper-kernels")
    random = np.random.default_rng(0)
    X = torch.from_numpy(random.normal(size=(14, 3)))
    pairs = unique_pairs(MatrixTarget(torch.exp(-torch.cdist(X, X)) - 0.3))
    i, j = torch.triu_indices(3, 3)
    basis = MidpointBasis(hyper, X[:4]) if form == "midpoint" else PairBasis(hyper, PointPairs(X[i], X[j]))
    split = split_points(X, pairs, torch.Generator().manual_seed(0))
    objective = HeldOutPoints(basis, 1e-3)
    found = objective(hyper, split)
    assert set(found.gradients) == {name for name, _ in hyper.named_parameters()}
    for name, parameter in hyper.named_parameters():
        for place in range(parameter.numel()):
            step = 1e-5
            values = []
            for sign in (1, -1):
                with torch.no_grad():
                    parameter.reshape(-1)[place] += sign * step
                    values.append(objective(hyper, split).value)
                    parameter.reshape(-1)[place] -= sign * step
            slope = (values[0] - values[1]) / (2 * step)
            assert float(found.gradients[name].reshape(-1)[place]) == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_judged_pairs_have_a_point_that_no_fitted_pair_has():
    X = torch.randn(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pairs = unique_pairs(MatrixTarget(torch.eye(20, dtype=torch.float64)))
    split = split_points(X, pairs, torch.Generator().manual_seed(1))
    inside = set(split.fit.first.tolist()) | set(split.fit.second.tolist())
    assert len(inside) == 10
    assert all(
        not {i, j} <= inside for i, j in zip(split.judge.first.tolist(), split.judge.second.tolist(), strict=True)
    )
