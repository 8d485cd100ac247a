"""On a known distribution, estimates converge to the truth with more rows."""

import numpy as np
import pytest

from kernelwright import EmbeddingClassifier
from kernelwright.kernels import Gaussian

SIZES = (100, 400, 1600)
GRID = np.linspace(-2, 2, 101)[:, None]


def truth(X):
    """Return three smooth class probabilities of one input, always strictly between zero and one."""
    x = X[:, 0]
    logits = np.column_stack([np.sin(2 * x), np.cos(3 * x), 0.5 * x])
    p = np.exp(logits)
    return p / p.sum(1, keepdims=True)


def fit(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    y = (truth(X).cumsum(1) < rng.random((n, 1))).sum(1)
    # Theorem 1 of the paper: a fixed characteristic kernel and a ridge that falls, but slower than 1 / sqrt(n).
    return EmbeddingClassifier(Gaussian(0.5), learn=None, ridge=0.05 * n**-0.4).fit(X, y)


@pytest.fixture(scope="module")
def errors():
    """Return mean squared errors over the grid and ten draws, for each size."""
    found = {"raw": [], "embedding": [], "clip": []}
    p = truth(GRID)
    entropy = -(p * np.log(p)).sum(1)
    for n in SIZES:
        models = [fit(n, seed) for seed in range(10)]
        found["raw"].append(np.mean([(m.raw_outputs(GRID) - p) ** 2 for m in models]))
        for method in ("embedding", "clip"):
            found[method].append(np.mean([(m.entropy(GRID, method) - entropy) ** 2 for m in models]))
    return {name: np.sqrt(values) for name, values in found.items()}


@pytest.mark.parametrize("what", ["raw", "embedding", "clip"])
def test_the_error_falls_with_the_number_of_rows(errors, what):
    """Sixteen times the rows: by n^(-1/4) the error would halve, by n^(-1/2) it would be a quarter."""
    assert errors[what][0] > errors[what][1] > errors[what][2]
    exponent = np.polyfit(np.log(SIZES), np.log(errors[what]), 1)[0]
    assert -0.6 < exponent < -0.2


def test_the_raw_outputs_come_close(errors):
    assert errors["raw"][-1] < 0.06


def test_calibrated_probabilities_converge_too():
    p = truth(GRID)
    gaps = []
    for n in SIZES:
        rng = np.random.default_rng(n)
        X = rng.uniform(-2, 2, (n, 1))
        y = (truth(X).cumsum(1) < rng.random((n, 1))).sum(1)
        model = EmbeddingClassifier(Gaussian("median"), random_state=0).fit(X, y)
        gaps.append(np.abs(model.predict_proba(GRID) - p).mean())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.05
