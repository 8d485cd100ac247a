"""Table 3 of [Liu2021]_: many rows, by landmarks on v parts (Algorithm 1), from the ideal kernel.

Protocol: inputs in [0, 1]; ijcnn1 as given (49,990 to train, 91,701 to test), class 2 of covtype against the rest
(232,405 and 232,405 rows).
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from kernelwright import datasets
from kernelwright.estimators import EmbeddingClassifier, HyperKernelRidge, HyperKernelSVR, LearnedKernelClassifier
from kernelwright.hyper import Partition
from kernelwright.research.experiments.runner import Experiment, Task

__all__ = ["EXPERIMENT", "PARTS", "load", "trial"]

PARTS = {"ijcnn1": (5, 10, 20), "covtype": (50, 100, 200)}
COVTYPE_ROWS = 50_000
METHODS = ("nonnegative", "hyper-KRR", "hyper-SVR")


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Load training and test rows and labels."""
    if name == "ijcnn1":
        (X, y), (X_test, y_test) = datasets.load("ijcnn1_train"), datasets.load("ijcnn1_test")
    else:
        X, y = datasets.load("covtype")
        kept = np.random.default_rng(0).permutation(len(y))[: 2 * COVTYPE_ROWS]
        X, X_test, y, y_test = train_test_split(X[kept], (y == 1)[kept], train_size=0.5, random_state=0)
    scaler = MinMaxScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def trial(name: str, method: str, n_parts: int) -> dict[str, float]:
    """Compute the test accuracy in percent and the CPU seconds of both stages."""
    X, y, X_test, y_test = load(name)
    settings: dict[str, Any] = {"solver": Partition(n_parts), "random_state": 0}
    model: Any
    if method == "EmbeddingClassifier()":
        model = EmbeddingClassifier(random_state=0)
    elif method == "hyper-SVR":
        model = LearnedKernelClassifier(HyperKernelSVR(**settings), scale=None)
    else:
        model = LearnedKernelClassifier(HyperKernelRidge(nonnegative=method == "nonnegative", **settings), scale=None)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds = time.process_time() - started
    return {"accuracy": 100.0 * float(model.score(X_test, y_test)), "seconds": seconds}


def tasks(quick: bool) -> list[Task]:
    """List each cell once, and this library's own classifier for comparison."""
    if quick:
        return [Task("ijcnn1, v = 20", "hyper-KRR", 0, trial, ("ijcnn1", "hyper-KRR", 20))]
    return [
        Task(f"{name}, v = {v}", method, 0, trial, (name, method, v))
        for name, parts in PARTS.items()
        for v in parts
        for method in METHODS
    ] + [Task(name, "EmbeddingClassifier()", 0, trial, (name, "EmbeddingClassifier()", 1)) for name in PARTS]


EXPERIMENT = Experiment(
    name="liu-table3",
    title="Table 3 of Liu and others (2021): many rows, accuracy in % and CPU seconds",
    tasks=tasks,
    published="liu2021_table3.csv",
    protocol="Inputs in [0, 1], Algorithm 1 with v parts; stage 2 is an embedding by landmarks of the learned kernel.",
    deviations=(
        "Pairs and landmarks of each part are this library's defaults, not M = 0.05 m (which has three million pairs).",
        "covtype: 50,000 training and 50,000 test rows of the 232,405 each; the published times are of all.",
        "Published times are of another machine: only their order can be compared.",
    ),
    left_out={"distributed BMKL": "the published runs took between one and 64 hours"},
    quick="ijcnn1 with v = 20, hyper-KRR.",
    explanations=(
        "ijcnn1 has 9.7 % of its rows in one class: naming the other alone has 90.3 to 90.5 %, which is the published "
        "accuracy of all methods in hyper-RKHS. hyper-SVR with v = 20 is below even that: its parts have few pairs of "
        "the rare class. In one part, on standardised inputs, hyper-KRR has 96.1 % (page of benchmarks).",
        "covtype: the second stage is an embedding by landmarks of the learned kernel, which accounts for most of the "
        "difference; the number of parts hardly matters.",
    ),
)
