"""Support vector regression over pairs against all m^2 pairs written out and another optimiser."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

from kernelwright.hyper import svr
from kernelwright.hyper.bases import MidpointBasis, whitening
from kernelwright.hyper.kernels import PointPairs
from kernelwright.hyper.pairs import Pairs, unique_pairs
from kernelwright.hyper.svr import support_vector, support_vector_primal
from tests.hyper.problems import GAUSSIAN, all_m2, data, pair_basis


def test_weighted_svr_equals_svr_on_all_pairs():
    X, target = data(m=7)
    pairs = unique_pairs(target)
    found = support_vector(pair_basis(GAUSSIAN, X).gram(), pairs, C=0.3, epsilon=0.2)
    machine = SVR(kernel="precomputed", C=0.3, epsilon=0.2, tol=1e-8)
    machine.fit(all_m2(GAUSSIAN, X), target.values.reshape(-1).numpy())
    new = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    i, j = np.divmod(np.arange(25), 5)
    k, s = np.divmod(np.arange(49), 7)
    expected = machine.predict(GAUSSIAN(PointPairs(new[i], new[j]), PointPairs(X[k], X[s])).numpy()).reshape(5, 5)
    ours = pair_basis(GAUSSIAN, X).combine(found.weights, new, new) + found.bias
    assert np.allclose(ours.numpy(), expected, atol=5e-3)  # SVR stops at a tolerance of 1e-3


def test_primal_svr_minimises_its_objective():
    X, target = data(m=7)
    pairs = unique_pairs(target)
    basis = MidpointBasis(GAUSSIAN, X[:4])
    Z = basis.at(PointPairs(X[pairs.first], X[pairs.second])) @ whitening(basis.gram())
    found = support_vector_primal(Z, pairs, C=2.0, epsilon=0.1)

    def objective(v):
        gap = (Z.numpy() @ v[:-1] + v[-1] - pairs.targets.numpy()).__abs__() - 0.1
        return 0.5 * v[:-1] @ v[:-1] + 2.0 * (pairs.weights.numpy() * np.clip(gap, 0, None) ** 2).sum()

    best = minimize(objective, np.zeros(Z.shape[1] + 1), method="BFGS", options={"gtol": 1e-8})
    assert objective(np.append(found.weights.numpy(), found.bias)) <= best.fun * (1 + 1e-3)


def test_a_support_vector_solver_does_not_go_on_for_ever(monkeypatch):
    monkeypatch.setattr(svr, "MOST_STEPS", 3)
    rng = np.random.default_rng(0)
    B = torch.from_numpy(rng.normal(size=(30, 30)))
    first, second = torch.zeros(30, dtype=torch.int64), torch.arange(30)
    pairs = Pairs(first, second, torch.from_numpy(rng.normal(size=30)), torch.ones(30, dtype=torch.float64))
    with pytest.warns(ConvergenceWarning, match="terminated early"):
        found = svr.support_vector(B @ B.T, pairs, C=100.0, epsilon=0.01)
    assert bool(torch.isfinite(found.weights).all())
