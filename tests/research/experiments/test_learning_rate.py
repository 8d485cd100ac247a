"""The error on new points falls with the number of points."""

import numpy as np

from kernelwright.hyperkernels import Gaussian
from kernelwright.research.experiments import learning_rate
from kernelwright.research.experiments.runner import Result


def test_the_target_lies_in_the_hyper_rkhs():
    X = np.random.default_rng(0).normal(size=(6, 2))
    K = learning_rate.target()(X, X)
    assert np.allclose(K, K.T)
    random = np.random.default_rng(0)
    left, right = random.uniform(-1, 1, (2, 8, 2))
    beta = random.choice([-1.0, 1.0], 8)
    hyper = Gaussian(sigma=learning_rate.SIGMA, sigma_h=learning_rate.SIGMA)
    expected = sum(b * hyper(([X[1]], [X[4]]), ([r], [s]))[0, 0] for b, r, s in zip(beta, left, right, strict=True))
    assert np.isclose(K[1, 4], expected)


def test_error_falls_at_least_as_fast_as_the_theorem_says():
    results = [
        Result(f"m = {m}", "hyper-KRR", number, "error", learning_rate.trial(m, number)["error"])
        for m in (8, 16, 32)
        for number in range(4)
    ]
    rate = learning_rate.rate_of(results)
    assert rate.sizes == (8, 16, 32)
    assert rate.reached
    assert rate.exponent < -0.5
    assert learning_rate.pictures(results)["learning-rate"].png.startswith(b"\x89PNG")


def test_a_flat_error_is_not_reached():
    assert not learning_rate.Rate((10, 20), np.ones((2, 3))).reached
