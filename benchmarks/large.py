"""Many rows on one machine: explicit features in linear time, and the default settings."""

import multiprocessing
import resource
import time

import numpy as np
from sklearn.kernel_approximation import Nystroem as PlainNystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelwright import EmbeddingClassifier, datasets
from kernelwright.features import Nystroem
from kernelwright.kernels import Laplace
from kernelwright.learning import Auto
from kernelwright.solvers import Landmarks
from tools.processes import cpu_seconds

P = 500
TEST_ROWS = 50_000


def covtype(n: int) -> tuple[np.ndarray, ...]:
    """Load covtype with n training rows."""
    X, y = datasets.load("covtype")
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[:TEST_ROWS], order[TEST_ROWS:][:n]
    return X[train], y[train], X[test], y[test]


def covtype_binary(n: int) -> tuple[np.ndarray, ...]:
    """Load covtype, class 2 against the rest, with n training and n test rows."""
    X, y = datasets.load("covtype")
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:n], order[n : 2 * n]
    return X[train], (y[train] == 1).astype(int), X[test], (y[test] == 1).astype(int)


def ijcnn1(n: int) -> tuple[np.ndarray, ...]:
    """Load ijcnn1 with the split of its authors."""
    return *datasets.load("ijcnn1_train"), *datasets.load("ijcnn1_test")


def explicit() -> EmbeddingClassifier:
    """Make a classifier with explicit landmark features."""
    return EmbeddingClassifier(features=Nystroem(Laplace("median", ard=True), P), scale="standard", random_state=0)


def plain() -> object:
    """Make the rival from parts of scikit-learn."""
    features = PlainNystroem(n_components=P, random_state=0, gamma=1 / 54)
    return make_pipeline(StandardScaler(), features, LogisticRegression(max_iter=200))


JOBS = {
    f"covtype, 7 classes: {P} landmark features": [
        *((covtype, n, explicit) for n in (100_000, 250_000, 500_000)),
    ],
    # With more rows, logistic regression takes longer than everything else together.
    f"covtype, 7 classes: scikit-learn Nystroem({P}) + LogisticRegression": [(covtype, 100_000, plain)],
    "ijcnn1: EmbeddingClassifier()": [(ijcnn1, 49_990, lambda: EmbeddingClassifier(random_state=0))],
    "covtype, class 2: EmbeddingClassifier()": [
        (covtype_binary, 232_405, lambda: EmbeddingClassifier(random_state=0)),
    ],
    "covtype, class 2: EmbeddingClassifier(solver=Landmarks(3000))": [
        (covtype_binary, 232_405, lambda: EmbeddingClassifier(solver=Landmarks(3000), random_state=0)),
    ],
}


def work(name: str, number: int, pipe: object) -> None:
    """Fit in this process and send accuracy, seconds and memory."""
    load, n, make = JOBS[name][number]
    X_train, y_train, X_test, y_test = load(n)
    EmbeddingClassifier(learn=Auto(max_iter=1)).fit(
        X_train[:1200], y_train[:1200]
    )  # load and compile before anything is timed
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, used = time.perf_counter(), cpu_seconds()
    model = make().fit(X_train, y_train)
    cpu, wall = cpu_seconds() - used, time.perf_counter() - started
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    parts = np.array_split(np.arange(len(y_test)), 1 + len(y_test) // 20_000)
    accuracy = 100.0 * np.mean(np.concatenate([model.predict(X_test[rows]) == y_test[rows] for rows in parts]))
    pipe.send((accuracy, cpu, wall, memory))


def rows(quick: bool) -> list[dict[str, object]]:
    """Run every job in a separate process."""
    context = multiprocessing.get_context("spawn")
    table = []
    for name in list(JOBS)[2:3] if quick else JOBS:
        for number, (_, n, _) in enumerate(JOBS[name]):
            receive, send = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(name, number, send))
            process.start()
            send.close()
            accuracy, cpu, wall, memory = receive.recv()
            process.join()
            cells = {"accuracy %": accuracy, "CPU seconds": cpu, "seconds": wall, "GiB more": memory}
            table.append({"job": name, "training rows": n, **cells})
    return table
