"""The primal form: features whose sums are kept."""

import numpy as np
import pytest
import torch

from kernelwright import MemoryBudgetError
from kernelwright.embedding import TrainingSet
from kernelwright.embedding.primal import FeatureSums
from kernelwright.features import Polynomial, RandomFourier, fourier_features
from kernelwright.kernels import FeatureKernel
from kernelwright.solvers import Exact, Fourier, Landmarks
from kernelwright.solvers import explicit as module
from kernelwright.solvers.explicit import Explicit, solve_sums, sum_up
from kernelwright.solvers.solution import LEFT_OUT_ROWS
from tests.solvers.disc import KERNEL, NEW, RIDGE, TRUTH, N, X, data, outputs, random, solve


def extremes() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(X.min(0)), torch.from_numpy(X.max(0))


@pytest.mark.parametrize("rows", [7, 64, 10_000])
def test_explicit_features_are_the_exact_solution_of_their_kernel(rows, monkeypatch):
    monkeypatch.setattr(module, "FEATURE_ROWS", rows)  # a sum over batches of any size
    features = Polynomial(3).fit(X)
    expected, found = (
        solver.solve(FeatureKernel(features), data(), RIDGE, random()) for solver in (Exact(), Explicit())
    )
    assert found.points is None
    assert found.features is features
    with torch.no_grad():
        dense = features(NEW) @ features(torch.from_numpy(X)).T @ expected.coefficients + data().prior
    np.testing.assert_allclose(outputs(found, features), dense, atol=1e-8)
    np.testing.assert_allclose(found.left_out.outputs, expected.left_out.outputs, atol=1e-8)  # leave-one-out
    assert found.squared_norm == pytest.approx(expected.squared_norm, rel=1e-6)


def test_fourier_features_come_close():
    features = fourier_features(KERNEL, 600, 2, seed=0)
    found = solve_sums(FeatureSums(sum_up(features, data()), data(), N, *extremes()), features, RIDGE)
    assert (outputs(found, features).argmax(1) == TRUTH).mean() > 0.93


def test_moments_add_up_in_any_order():
    features = RandomFourier(10).fit(X)
    rows = data()
    whole = sum_up(features, rows)
    last, first, second = (sum_up(features, rows.subset(torch.arange(N) % 3 == k)) for k in (2, 0, 1))
    parts = last + (first + second)
    torch.testing.assert_close(parts.gram, whole.gram)
    torch.testing.assert_close(parts.weights(parts.factor(RIDGE)), whole.weights(whole.factor(RIDGE)))
    assert (parts.total, parts.largest) == (whole.total, whole.largest)


def test_too_many_features_are_refused_before_they_are_summed():
    data = TrainingSet.of(torch.zeros(4, 2, dtype=torch.float64), torch.eye(2, dtype=torch.float64)[[0, 1, 0, 1]])
    with pytest.raises(MemoryBudgetError, match=r"An embedding of 2000000 features needs about .* Use fewer features"):
        sum_up(RandomFourier(2_000_000), data)


def test_fourier_draws_its_features_from_the_kernel_and_the_generator():
    first, second = solve(Fourier(600)), solve(Fourier(600))
    other = Fourier(600).solve(KERNEL, data(), RIDGE, torch.Generator().manual_seed(1))
    assert torch.equal(first.coefficients, second.coefficients)
    assert not torch.allclose(first.coefficients, other.coefficients)
    assert (outputs(first, first.features).argmax(1) == TRUTH).mean() > 0.93
    Z = first.features(X)
    assert np.abs(Z @ Z.T - KERNEL(X)).mean() < 0.05
    with pytest.raises(ValueError, match="Use solver='nystroem'"):
        Fourier(10).solve(FeatureKernel(Polynomial(2).fit(X)), data(), RIDGE, random())


def test_the_sums_keep_the_range_and_a_sample_of_the_rows():
    found = solve(Fourier(20)).sums
    low, high = extremes()
    assert torch.equal(found.low, low)
    assert torch.equal(found.high, high)
    assert (found.n_rows, len(found.sample)) == (N, N)
    assert found.moments.total == pytest.approx(N)


@pytest.mark.parametrize(("n_rows", "held"), [(100, 100), (10**6, module.FEATURE_ROWS + LEFT_OUT_ROWS)])
def test_memory_does_not_grow_with_the_rows_past_those_that_are_held(n_rows, held):
    assert Fourier(50).n_bytes(n_rows) == 8 * (6 * 50**2 + 4 * held * 50)
    assert Fourier(50).size(n_rows) == 50


def test_the_usual_number_of_features_is_that_of_landmarks():
    assert Fourier().size(10**5) == Landmarks().size(10**5)
