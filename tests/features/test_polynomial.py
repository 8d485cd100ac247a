"""Monomials whose inner products are the polynomial kernel."""

import numpy as np
import pytest

from kernelwright import kernels
from kernelwright.features import Polynomial

X = np.random.default_rng(0).normal(size=(40, 4))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomial_features_are_the_polynomial_kernel(degree):
    Z = Polynomial(degree, 1.7, 0.6).fit(X)(X)
    np.testing.assert_allclose(Z @ Z.T, kernels.Polynomial(degree, 1.7, 0.6)(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("n_inputs", "degree", "expected"), [(1, 1, 2), (1, 5, 6), (4, 2, 15), (3, 3, 20)])
def test_the_number_of_monomials(n_inputs, degree, expected):
    features = Polynomial(degree).fit(X[:, :n_inputs])
    assert features.n_features == expected
    assert features(X[:, :n_inputs]).shape == (40, expected)


def test_the_number_is_not_known_before_points_are():
    with pytest.raises(ValueError, match="depends on the inputs: call fit"):
        _ = Polynomial().n_features


def test_too_many_monomials_are_refused():
    with pytest.raises(ValueError, match=r"more than 20000. Use a lower degree"):
        Polynomial(5).fit(np.zeros((2, 50)))
