"""Matrices of basis functions, made in blocks."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from kernelwright.hyper import bases
from kernelwright.hyper.bases import PairBasis
from kernelwright.hyperkernels import Gaussian, PointPairs, Sum, Wishart

X = torch.from_numpy(np.random.default_rng(0).normal(size=(12, 2)))
PAIRS = PointPairs(X, X.flip(0))


@pytest.mark.parametrize("entries", [1, 30, 10**6])
@pytest.mark.parametrize(
    "hyperkernel",
    [Sum([Gaussian(sigma=1.0), Gaussian(sigma=2.0)]), Wishart(delta=1.0, D=np.eye(2))],
    ids=lambda hyperkernel: type(hyperkernel).__name__,
)
def test_inner_products_do_not_depend_on_the_blocks(hyperkernel, entries, monkeypatch):
    monkeypatch.setattr(bases, "BLOCK_ENTRIES", entries)
    found = PairBasis(hyperkernel, PAIRS).gram().detach()
    np.testing.assert_allclose(found, hyperkernel.forward(PAIRS, PAIRS).detach(), rtol=1e-12)


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
