"""Outputs of a solution at new rows."""

import numpy as np
import pytest
import torch

from kernelwright.solvers import Exact
from kernelwright.solvers.solution import judged_by_new_rows
from tests import reference as naive
from tests.solvers.disc import KERNEL, NEW, X, data, outputs, solve


def test_new_rows_are_judged_by_their_outputs_and_their_nearest_point():
    found = solve(Exact())
    rows = data().subset(torch.arange(50))
    left_out, support = judged_by_new_rows(KERNEL, rows, found.points[100:], found.coefficients[100:])
    K = naive.gram(naive.gaussian(0.7), X[:50], X[100:])
    expected = data().prior.numpy() + K @ found.coefficients[100:].numpy()
    np.testing.assert_allclose(left_out.outputs, expected, atol=1e-9)
    assert left_out.rows is rows
    assert support.level == pytest.approx(K.max(1).min())  # one row in a hundred of fifty is the first
    np.testing.assert_allclose(left_out.support, K.max(1) / support.level)


def test_a_solution_says_what_it_belongs_to():
    found = solve(Exact())
    assert found.features is found.sums is None
    assert found.precision == "double"
    assert outputs(found).shape == (len(NEW), 2)
