"""Rows added to a fitted tree, beside a full fit; and compressed models: seconds, size and loss."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large import covtype
from tools.processes import cpu_seconds
from tools.tables import Row

ROWS, ADDED, CALLS = 50_000, 1000, 5
NEW_ROWS, ONE_ROW_CALLS = 100_000, 100


def rows(quick: bool) -> Iterator[Row]:
    """Yield a row for each fit and each call of ``partial_fit``."""
    from kernelwright import EmbeddingClassifier
    from kernelwright.solvers import Tree

    n = ROWS // 10 if quick else ROWS
    X, y, X_test, y_test = covtype(n + CALLS * ADDED)
    model = EmbeddingClassifier(solver=Tree(), random_state=0)
    start = cpu_seconds()
    model.fit(X[:n], y[:n])
    whole = cpu_seconds() - start
    yield _row("fit", n, whole, 1.0, model.score(X_test, y_test))
    for call in range(CALLS):
        part, start = slice(n + call * ADDED, n + (call + 1) * ADDED), cpu_seconds()
        model.partial_fit(X[part], y[part])
        seconds = cpu_seconds() - start
        name = f"partial_fit, call {call + 1}"
        yield _row(name, len(model.points_), seconds, seconds / whole, model.score(X_test, y_test))


def _row(step: str, n: int, seconds: float, share: float, score: float) -> Row:
    return {"step": step, "rows": n, "CPU seconds": seconds, "share of a fit": share, "accuracy %": 100 * score}


def small_models(quick: bool) -> Iterator[Row]:
    """Yield a row for each model of 2000 rows with 20 columns, whole and compressed."""
    from kernelwright import EmbeddingClassifier, EmbeddingRegressor

    random = np.random.default_rng(0)
    n_new = NEW_ROWS // 10 if quick else NEW_ROWS
    X, new = random.normal(size=(2000, 20)), random.normal(size=(n_new, 20))
    signal, of_new = (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] for x in (X, new))
    noise, of_noise = (random.normal(size=len(x)) for x in (X, new))
    classes, later = ((s > 0).astype(int) for s in (signal, of_new))
    classifier = EmbeddingClassifier(random_state=0).fit(X, classes)
    regressor = EmbeddingRegressor(random_state=0).fit(X, signal + 0.3 * noise)
    for name, model in (("classes", classifier), ("numbers", regressor)):
        for which, each in ((name, model), (f"{name}, compressed", model.compress())):
            target = later if name == "classes" else of_new + 0.3 * of_noise
            yield {"model": which, "points": len(each.points_)} | _measured(each, new, target)


def _measured(model: Any, X: np.ndarray, y: np.ndarray) -> Row:
    from kernelwright import save

    classes = hasattr(model, "predict_proba")
    answer = model.predict_proba if classes else model.predict
    answer(X[:10])
    start = cpu_seconds()
    for row in X[:ONE_ROW_CALLS]:
        answer(row[None])
    one, start = (cpu_seconds() - start) / ONE_ROW_CALLS, cpu_seconds()
    answers = answer(X)
    many = cpu_seconds() - start
    loss = -np.log(answers[np.arange(len(y)), y]).mean() if classes else model.crps(X[:10_000], y[:10_000]).mean()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.kw"
        save(model, path)
        size = path.stat().st_size / 1e3
    return {"one row, ms": 1e3 * one, "rows a second": len(X) / many, "kB": size, "log loss or CRPS": float(loss)}
