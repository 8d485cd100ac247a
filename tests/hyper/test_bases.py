"""Matrices of basis functions, made in blocks."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from kernelwright.hyper import bases
from kernelwright.hyper.bases import MidpointBasis, PairBasis, joined
from kernelwright.hyper.kernels import Gaussian, PointPairs, Sum, Wishart
from tests.hyper.problems import GAUSSIAN, SEVERAL, WISHART, data, pair_basis

X = torch.from_numpy(np.random.default_rng(0).normal(size=(12, 2)))
PAIRS = PointPairs(X, X.flip(0))


@pytest.mark.parametrize("entries", [1, 30, 10**6])
@pytest.mark.parametrize(
    "hyperkernel",
    [Sum([Gaussian(sigma=1.0), Gaussian(sigma=2.0)]), Wishart(delta=1.0, D=np.eye(2))],
    ids=lambda hyperkernel: type(hyperkernel).__name__,
)
def test_inner_products_do_not_depend_on_the_blocks(hyperkernel, entries, monkeypatch):
    monkeypatch.setattr(bases, "KERNEL_BLOCK", entries)
    found = PairBasis(hyperkernel, PAIRS).gram().detach()
    np.testing.assert_allclose(found, hyperkernel.forward(PAIRS, PAIRS).detach(), rtol=1e-12)


@pytest.mark.parametrize("hyper", [GAUSSIAN, SEVERAL])
def test_pairs_become_midpoints_without_loss(hyper):
    X, _ = data()
    basis = pair_basis(hyper, X)
    w = torch.randn(len(basis), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    midpoints, weights = basis.as_midpoints(w)
    new = torch.randn(7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(midpoints.combine(weights, new, X), basis.combine(w, new, X), rtol=1e-10)


def test_geometric_widths_by_powers_equal_exponentials():
    X, _ = data(m=30)
    for ratio, c in ((3.0, 3.0), (3.0, 4.0), (2.5, 3.0)):  # the last two have no shortcut
        parts = [Gaussian(sigma=(4.0 / ratio**s / 2) ** 0.5, sigma_h=(c - 4.0 / ratio**s / 2) ** 0.5) for s in range(5)]
        basis = MidpointBasis(Sum(parts).requires_grad_(False), X[:6])
        w = torch.randn(len(basis), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        i, j = torch.meshgrid(torch.arange(30), torch.arange(30), indexing="ij")
        expected = (basis.at(PointPairs(X[i.reshape(-1)], X[j.reshape(-1)])) @ w).reshape(30, 30)
        assert torch.allclose(basis.combine(w, X, X), expected, rtol=1e-9, atol=1e-12)


def test_joined_bases_add_up():
    X, _ = data(m=10)
    for make in (lambda Z: MidpointBasis(SEVERAL, Z), lambda Z: pair_basis(WISHART, Z)):
        parts = [(make(Z), torch.arange(1.0, len(make(Z)) + 1, dtype=torch.float64)) for Z in (X[:3], X[3:7])]
        basis, w = joined(parts)
        expected = sum(b.combine(v, X, X) for b, v in parts)
        assert torch.allclose(basis.combine(w, X, X), expected)


def test_a_kernel_of_no_functions_is_zero():
    X, _ = data()
    none = torch.zeros(0, dtype=torch.float64)
    for basis in (MidpointBasis(SEVERAL, X[:0]), PairBasis(WISHART, PointPairs(X[:0], X[:0]))):
        assert torch.equal(basis.combine(none, X, X[:3]), torch.zeros(8, 3, dtype=torch.float64))


def test_midpoint_form_needs_gaussians():
    with pytest.raises(ValueError, match="solver='nystroem'"):
        MidpointBasis(WISHART, torch.zeros(2, 2, dtype=torch.float64))


MEASURE = """
import resource
import numpy as np
from kernelwright import HyperKernelRidge

X = np.random.default_rng(0).normal(size=(90, 2))

def largest_memory_after(m):
    K = -np.log1p(np.linalg.norm(X[:m, None] - X[:m], axis=-1))
    HyperKernelRidge(solver="exact", refine=False, random_state=0).fit(X[:m], K)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

before = largest_memory_after(12)
print((largest_memory_after(90) - before) / (8.0 * (90 * 91 / 2) ** 2))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units elsewhere")
@pytest.mark.slow
def test_an_exact_solution_takes_no_more_memory_than_is_asked_for():
    """In matrices of all pairs with all pairs, of which four are asked for."""
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 4.0
