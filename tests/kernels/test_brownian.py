"""The kernel of Brownian motion: distances, and the scores of forecasts that it stands for."""

import numpy as np
import pytest
from sklearn.base import clone

from kernelwright.kernels import Brownian

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("origin", [0.0, -2.5])
def test_squared_distances_in_its_space_are_distances(n_features, origin):
    X = RNG.normal(size=(20, n_features))
    K = Brownian(origin)(X)
    D = np.linalg.norm(X[:, None] - X, axis=-1)
    np.testing.assert_allclose(K.diagonal()[:, None] - 2 * K + K.diagonal(), D, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-10


def test_on_positive_numbers_it_is_the_smaller_of_two():
    x = RNG.uniform(0, 9, (30, 1))
    np.testing.assert_allclose(Brownian()(x), np.minimum(x, x.T), atol=1e-12)


def test_the_largest_value_is_that_of_the_points():
    X = RNG.normal(size=(8, 2))
    assert float(Brownian([1.0, 1.0]).sup_diag(X)) == pytest.approx(np.linalg.norm(X - 1.0, axis=1).max())
    assert not Brownian().bounded


def test_clone_and_set_params_keep_the_origin():
    assert clone(Brownian([1.0, 2.0])).origin == (1.0, 2.0)
    assert Brownian().set_params(origin=3).origin == 3.0


@pytest.mark.parametrize("origin", [np.nan, [[1.0]], [0.0, np.inf]])
def test_a_wrong_origin_is_refused(origin):
    with pytest.raises(ValueError, match="'origin' parameter of Brownian"):
        Brownian(origin)


def test_an_origin_of_another_length_is_refused():
    with pytest.raises(ValueError, match="has 2 features, but the points have 3"):
        Brownian([0.0, 1.0])(np.ones((2, 3)))
