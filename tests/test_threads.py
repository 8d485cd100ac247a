"""The same answers to the bit with the same number of threads, and to 1e-10 with another (docs/reliability.md)."""

import os
import subprocess
import sys

import numpy as np
import pytest

from kernelwright.linalg import ONE_THREAD_UP_TO

ROWS = ONE_THREAD_UP_TO + 200  # so many that threads are used

CODE = """
import sys
import numpy as np
import torch
from kernelwright import ConditionalMeanEmbedding, EmbeddingClassifier, EmbeddingNetworkClassifier
from kernelwright.features import RandomFourier
from kernelwright.kernels import Gaussian

n = int(sys.argv[1])
X = np.random.default_rng(0).normal(size=(n, 6))
y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
new = X[:200] + 0.1
given = {"learn": None, "ridge": 1e-4}
np.savez(
    sys.argv[2],
    threads=torch.get_num_threads(),
    few=EmbeddingClassifier(random_state=0).fit(X[:300], y[:300]).predict_proba(new),
    many=EmbeddingClassifier(Gaussian(1.0), **given).fit(X, y).predict_proba(new),
    features=EmbeddingClassifier(features=RandomFourier(200), random_state=0).fit(X, y).predict_proba(new),
    mean=ConditionalMeanEmbedding(Gaussian(1.0), **given).fit(X, X[:, 0]).expectation(new),
    network=EmbeddingNetworkClassifier(max_epochs=2, random_state=0).fit(X[:300], y[:300]).predict_proba(new),
)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Answers of processes with one thread, and twice with two."""
    folder, found = tmp_path_factory.mktemp("threads"), {}
    for name, threads in (("one", "1"), ("two", "2"), ("two again", "2")):
        number = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        path = folder / f"{name}.npz"
        subprocess.run([sys.executable, "-c", CODE, str(ROWS), str(path)], check=True, env=os.environ | number)
        with np.load(path) as file:
            found[name] = dict(file)
    return found


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
@pytest.mark.parametrize("kind", ["few", "many", "features", "mean", "network"])
def test_answers_and_threads(answers, kind):
    assert [int(answers[name]["threads"]) for name in answers] == [1, 2, 2]
    np.testing.assert_array_equal(answers["two"][kind], answers["two again"][kind])
    np.testing.assert_allclose(answers["one"][kind], answers["two"][kind], rtol=0.0, atol=1e-10)
