"""What fits are made of, each next to the least that it needs: ratios that are kept in ``history.csv``.

Objectives against a bare Gram matrix and its Cholesky factor, the embedding head against linear + softmax, a learned
kernel against a plain one, predictions against the matrix products that they contain.
"""

from functools import partial

import floor
import head
import numpy as np
import torch
from threadpoolctl import threadpool_limits

import hyper
from kernelwright import EmbeddingClassifier
from kernelwright.kernels import Gaussian, Laplace

USUAL = {"n": 1000, "d": 16, "m": 5, "kernel": "Gaussian", "objective": "rademacher", "dtype": "float64"}
# One thing at a time differs from the usual.
VARIATIONS = {
    "n": (250, 2000),
    "d": (4, 64),
    "m": (2, 20),
    "kernel": ("Laplace",),
    "objective": ("leave-one-out", "folds", "held-out"),
    "dtype": ("float32",),
}
LOSSES = {"rademacher": "log", "held-out": "log", "leave-one-out": "brier", "folds": "brier"}
NEW_ROWS, SUPPORT, CLASSES, FEATURES = 100_000, 2000, 5, 16


def settings() -> list[dict[str, object]]:
    return [USUAL, *(USUAL | {name: value} for name, values in VARIATIONS.items() for value in values)]


def objectives(quick: bool) -> dict[str, float]:
    """Times the Gram + Cholesky floor of the same size and precision."""
    ratios = {}
    for case in settings():
        data = floor.problem(case["n"], case["d"], case["m"], getattr(torch, case["dtype"]))
        scale = float(case["d"]) ** 0.5
        kernel = Gaussian(scale, ard=True) if case["kernel"] == "Gaussian" else Laplace(scale * 5.0, ard=True)
        name = case["objective"]
        tasks = {
            "floor": partial(floor.gram_and_cholesky, data),
            "ours": floor.value_and_gradient(data, name, kernel.to(data.points), LOSSES[name]),
        }
        seconds = floor.side_by_side(tasks, 3 if quick else 15)
        ratios[f"objective: {', '.join(f'{k}={v}' for k, v in case.items())}"] = seconds["ours"] / seconds["floor"]
    return ratios


def heads(quick: bool) -> dict[str, float]:
    """Times a linear + softmax head, or a training step with it."""
    kept = ("head: embedding", "CNN step: embedding")
    return {row["task"]: row["times linear + softmax"] for row in head.rows(quick) if row["task"].endswith(kept)}


def learned_kernels(quick: bool) -> dict[str, float]:
    """Times a plain Gaussian kernel."""
    return {f"hyper-kernel: {row['features']} features": row["ratio"] for row in hyper.evaluation(quick)}


def predictions(quick: bool) -> dict[str, float]:
    """Probabilities of 100,000 rows by 2000 training rows, times the two matrix products: rows by rows, by labels."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(SUPPORT, FEATURES)), np.arange(SUPPORT) % CLASSES
    new = random.normal(size=(NEW_ROWS // 10 if quick else NEW_ROWS, FEATURES))
    V = random.normal(size=(SUPPORT, CLASSES))

    def products() -> None:
        for start in range(0, len(new), 2000):  # in parts that stay in the cache's neighbourhood, as ours are
            (new[start : start + 2000] @ X.T) @ V

    models = {
        "Gaussian": EmbeddingClassifier(Gaussian(4.0), learn=None, ridge=0.01, scale=None),
        "as it comes": EmbeddingClassifier(max_iter=2, random_state=0),
    }
    tasks = {"products": products}
    for name, model in models.items():
        tasks[name] = partial(model.fit(X, y).predict_proba, new)
    seconds = floor.side_by_side(tasks, 3)
    return {f"predict_proba: {name}": seconds[name] / seconds["products"] for name in models}


def rows(quick: bool) -> list[dict[str, object]]:
    with threadpool_limits(1):  # two libraries' threads on few cores disturb each other: see linalg.threads_for
        parts = [part(quick) for part in (objectives, heads, learned_kernels, predictions)]
    return [{"name": name, "ratio": float(ratio)} for part in parts for name, ratio in part.items()]
