import warnings

import numpy as np
import pytest

from kernelwright import CollapseWarning, EmbeddingClassifier, EmbeddingRegressor
from kernelwright.features import RandomFourier
from kernelwright.kernels import Gaussian, Laplace

random = np.random.default_rng(0)
X = random.uniform(-1, 1, (200, 4))
y = X @ [1.0, 2.0, 0.0, 0.0] + 0.1 * random.normal(size=200)


@pytest.mark.parametrize(
    "settings",
    [{"kernel": Gaussian()}, {"kernel": Laplace()}, {"features": RandomFourier(300), "learn": None}],
    ids=str,
)
@pytest.mark.parametrize("estimator", [EmbeddingRegressor, EmbeddingClassifier])
def test_rows_that_are_far_apart_for_a_given_kernel_are_no_silent_failure(estimator, settings):
    targets = y if estimator is EmbeddingRegressor else y > 0
    with pytest.warns(CollapseWarning, match="similar to no other row"):
        lost = estimator(random_state=0, **settings).fit(1e4 * X[:150], targets[:150])
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        found = estimator(random_state=0, scale="standard", **settings).fit(1e4 * X[:150], targets[:150])
    assert found.score(1e4 * X[150:], targets[150:]) > 0.8 > lost.score(1e4 * X[150:], targets[150:])


def test_rows_that_all_look_the_same_are_no_silent_failure():
    """Learning may flee from length scales far too short to others far too long."""
    wide, features = X * [1.0, 10.0, 300.0, 1000.0], RandomFourier(300)
    far_too_long = RandomFourier(300, lengthscale=1e5)
    with pytest.warns(CollapseWarning, match="look the same"):
        lost = EmbeddingRegressor(features=far_too_long, learn=None, ridge=1.0).fit(wide[:150], y[:150])
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        found = EmbeddingRegressor(features=features, scale="standard", random_state=0).fit(wide[:150], y[:150])
        EmbeddingRegressor(Gaussian(50.0), learn=None, ridge=1e-9).fit(X, X[:, 0])  # smooth, and it explains all
    assert found.score(wide[150:], y[150:]) > 0.8 > 0.1 > lost.score(wide[150:], y[150:])
