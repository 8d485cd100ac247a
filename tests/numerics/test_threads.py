"""The same answers to the bit with the same number of threads, and to 1e-10 with another (docs/reliability.md)."""

import os
import subprocess
import sys

import numpy as np
import pytest

CODE = """
import sys
import numpy as np
import torch
from kernelwright import ConditionalMeanEmbedding, EmbeddingClassifier, linalg
from kernelwright.features import RandomFourier
from kernelwright.kernels import Gaussian

X = np.random.default_rng(0).normal(size=(linalg.ONE_THREAD_UP_TO + 100, 6))  # so many that threads are used
y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
new = X[:200] + 0.1
given = {"learn": None, "ridge": 1e-4}
np.savez(
    sys.argv[1],
    threads=torch.get_num_threads(),
    few=EmbeddingClassifier(random_state=0).fit(X[:200], y[:200]).predict_proba(new),
    many=EmbeddingClassifier(Gaussian(1.0), **given).fit(X, y).predict_proba(new),
    features=EmbeddingClassifier(features=RandomFourier(200), random_state=0, **given).fit(X, y).predict_proba(new),
    mean=ConditionalMeanEmbedding(Gaussian(1.0), **given).fit(X, X[:, 0]).expectation(new),
)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Answers of processes with one thread, and twice with two."""
    folder, found = tmp_path_factory.mktemp("threads"), {}
    for name, threads in (("one", "1"), ("two", "2"), ("two again", "2")):
        number = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        number["OMP_WAIT_POLICY"] = "passive"  # other tests are waiting for the same cores
        path = folder / f"{name}.npz"
        subprocess.run([sys.executable, "-c", CODE, str(path)], check=True, env=os.environ | number)
        with np.load(path) as file:
            found[name] = dict(file)
    return found


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
@pytest.mark.parametrize("kind", ["few", "many", "features", "mean"])
def test_answers_and_threads(answers, kind):
    assert [int(answers[name]["threads"]) for name in answers] == [1, 2, 2]
    np.testing.assert_array_equal(answers["two"][kind], answers["two again"][kind])
    np.testing.assert_allclose(answers["one"][kind], answers["two"][kind], rtol=0.0, atol=1e-10)
