"""The dual form on all rows."""

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.errors import NumericalRepairWarning, PrecisionWarning
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian
from kernelwright.solvers import Exact
from tests import reference as naive
from tests.solvers.disc import LABELS, NEW, X, data, outputs, random, solve


def test_the_solution_equals_refits_by_explicit_inverses():
    some = slice(0, 60)
    rows = data().subset(torch.arange(60))
    w, Y, prior = np.ones(60), np.eye(2)[LABELS[some]], rows.prior.numpy()
    K, K_new = naive.gram(naive.gaussian(0.7), X[some]), naive.gram(naive.gaussian(0.7), NEW.numpy()[:20], X[some])
    found, diagonal = solve(Exact(), rows, 0.01), naive.noise(w, 0.01)
    np.testing.assert_allclose(outputs(found)[:20], naive.outputs(K_new, K, Y, diagonal, prior), atol=1e-10)
    np.testing.assert_allclose(found.fitted, naive.outputs(K, K, Y, diagonal, prior), atol=1e-10)
    np.testing.assert_allclose(found.left_out.outputs, naive.leave_one_out(K, Y, w, 0.01, prior), atol=1e-9)
    assert found.squared_norm == pytest.approx(naive.squared_norm(K, Y, diagonal, prior), rel=1e-9)
    assert torch.equal(found.points, rows.points)
    assert found.left_out.rows is found.fitted_rows is rows


def test_its_size_is_that_of_the_rows_and_its_memory_that_of_four_matrices():
    assert Exact().size(700) == 700
    assert Exact().n_bytes(700) == 4 * 8 * 700**2


def test_an_exact_solution_in_single_precision_is_that_in_double_to_six_digits():
    expected, found = (solve(Exact(precision), ridge=1e-3) for precision in ("double", "single"))
    assert (expected.precision, found.precision) == ("double", "single")
    for field in ("coefficients", "fitted"):
        assert getattr(found, field).dtype == torch.float64
    np.testing.assert_allclose(outputs(found), outputs(expected), atol=1e-5)
    np.testing.assert_allclose(found.left_out.outputs, expected.left_out.outputs, atol=1e-4)
    assert found.squared_norm == pytest.approx(expected.squared_norm, rel=1e-5)
    assert found.support.level == pytest.approx(expected.support.level, rel=1e-5)


@pytest.mark.parametrize(
    ("ridge", "reason"), [(1e-6, "relative residual of"), (1e-12, "not positive definite")], ids=["small", "tiny"]
)
def test_a_small_ridge_falls_back_to_double_and_says_so(ridge, reason):
    smooth = Gaussian(2.0)
    with pytest.warns(PrecisionWarning, match=f"{reason}.*double precision instead"):
        found = Exact("single").solve(smooth, data(), ridge, random())
    assert found.precision == "double"
    assert torch.equal(found.coefficients, Exact().solve(smooth, data(), ridge, random()).coefficients)


def test_a_kernel_whose_values_are_wrong_in_single_precision_is_noticed():
    """The system of such values has a fine solution, of another problem."""

    class Rounded(Gaussian):
        def forward(self, X, Z=None):
            K = super().forward(X, Z)
            return K if X.dtype == torch.float64 else (K * 1e3).round() / 1e3

    with pytest.warns(PrecisionWarning, match="leaves a residual of"):
        assert Exact("single").solve(Rounded(0.7), data(), 0.01, random()).precision == "double"


def test_a_repair_is_kept_with_the_solution():
    twice = TrainingSet.of(torch.zeros(4, 1, dtype=torch.float64), one_hot(np.array([0, 1, 0, 1]), 2))
    with pytest.warns(NumericalRepairWarning) as caught:
        found = Exact().solve(Gaussian(), twice, 1e-18, random())
    assert found.jitter > 0
    assert f"{found.jitter:.1e}" in str(caught[0].message)
    assert solve(Exact()).jitter == 0.0
