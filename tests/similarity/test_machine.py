import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

from kernelwright.errors import NumericalError
from kernelwright.similarity.indefinite import correct
from kernelwright.similarity.machine import COST_FACTORS, best_cost, fit_machine, pair_coefficients

X, Y = make_blobs(60, centers=3, cluster_std=2.5, random_state=1)
DEFINITE = np.exp(-((X[:, None] - X) ** 2).sum(2) / 20)
INDEFINITE = -np.sqrt(((X[:, None] - X) ** 2).sum(2))
ONES = np.ones(60)


def test_pair_coefficients_give_the_outputs_of_the_machine():
    machine = SVC(kernel="precomputed", decision_function_shape="ovo").fit(DEFINITE, Y)
    found = DEFINITE @ pair_coefficients(machine, Y).T + machine.intercept_
    np.testing.assert_allclose(found, machine.decision_function(DEFINITE), atol=1e-10)


@pytest.mark.parametrize("correction", ["clip", "flip", "shift"])
def test_the_correction_is_folded_into_the_coefficients(correction):
    K = torch.from_numpy(INDEFINITE)
    corrected = correct(K, correction)
    assert corrected.signature.negative > 0
    found = fit_machine(K, Y, ONES, C=2.0, correction=correction)
    machine = SVC(C=2.0, kernel="precomputed", decision_function_shape="ovo").fit(corrected.matrix.numpy(), Y)
    new = -np.sqrt((((X + 0.3)[:, None] - X) ** 2).sum(2))
    expected = machine.decision_function(corrected.transform(torch.from_numpy(new)).numpy())
    np.testing.assert_allclose(new @ found.coefficients.T + found.intercept, expected, atol=1e-8)
    np.testing.assert_array_equal(found.support, machine.support_)
    assert (found.C, found.signature) == (2.0, corrected.signature)


def test_weights_are_factors_of_the_cost():
    K = torch.from_numpy(DEFINITE)
    one, other = fit_machine(K, Y, 3.0 * ONES, C=1.0), fit_machine(K, Y, ONES, C=3.0)
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-10)


def test_the_best_cost_scales_with_the_kernel():
    K = torch.from_numpy(DEFINITE)
    cost = best_cost(K, Y, ONES)
    spread = float(K.diagonal().mean() - K.mean())
    assert cost * spread == pytest.approx(min(COST_FACTORS, key=lambda factor: abs(factor - cost * spread)))
    assert best_cost(8.0 * K, Y, ONES) == pytest.approx(cost / 8.0)
    chosen = fit_machine(K, Y, ONES, C="auto").C
    assert chosen == cost


def test_a_class_of_one_row_has_the_plain_cost():
    labels = np.append(np.zeros(59, dtype=int), 1)
    K = torch.from_numpy(DEFINITE)
    assert best_cost(K, labels, ONES) == pytest.approx(1.0 / float(K.diagonal().mean() - K.mean()))


def test_an_infinite_solution_is_told():
    K = torch.from_numpy(1e300 * (X @ X.T))
    with pytest.raises(NumericalError, match="no finite solution"):
        fit_machine(K, Y, ONES, C=1e300, correction="none")
