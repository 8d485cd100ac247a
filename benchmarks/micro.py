"""Parts of a fit, each as a ratio to the least that it needs; the ratios are kept in ``history.csv``.

Objectives and whole fits against a Gram matrix and its Cholesky factor, their memory against the Gram matrix, the
embedding head against linear + softmax, a learned kernel against a plain one, predictions against the matrix products
that they contain, blocks of the default kernel against one product, and compressed models against whole ones.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import blocks, floor, head, hyper
from kernelwright import EmbeddingClassifier
from kernelwright.kernels import Gaussian, Laplace
from kernelwright.learning import Auto
from kernelwright.solvers import Exact
from tools.processes import peak_of

ROOT = Path(__file__).parents[1]

USUAL = {"n": 2000, "d": 16, "m": 5, "kernel": "Gaussian", "objective": "rademacher", "dtype": "float64"}
SINGLE = {"dtype": "float32 factor"}
# What differs from the usual case.
VARIATIONS = (
    *({"n": n} for n in (500, 4000)),
    *({"d": d} for d in (4, 64)),
    *({"m": m} for m in (2, 20)),
    {"kernel": "Laplace"},
    *({"objective": name} for name in ("leave-one-out", "folds", "held-out")),
    SINGLE,
    *(SINGLE | {"n": n} for n in (3000, 4000)),
    SINGLE | {"objective": "leave-one-out"},
)
QUICK_ROWS = 1000  # larger cases are skipped
LOSSES = {"rademacher": "log", "held-out": "log", "leave-one-out": "brier", "folds": "brier"}
PRECISIONS = {"float64": "double", "float32 factor": "single"}
NEW_ROWS, SUPPORT, CLASSES, FEATURES, MANY_FEATURES = 100_000, 2000, 5, 16, 128


def settings(quick: bool) -> list[dict[str, object]]:
    """List the cases: the usual one, and its variations."""
    usual = USUAL | {"n": QUICK_ROWS} if quick else USUAL
    every = [usual, *(usual | changed for changed in VARIATIONS)]
    return [case for case in every if not quick or int(str(case["n"])) <= QUICK_ROWS]


def objectives(quick: bool) -> dict[str, float]:
    """Time objectives against the Gram + Cholesky floor of the same size, in float64."""
    ratios = {}
    for case in settings(quick):
        data = floor.problem(case["n"], case["d"], case["m"])
        scale = float(case["d"]) ** 0.5
        kernel = Gaussian(scale, ard=True) if case["kernel"] == "Gaussian" else Laplace(scale * 5.0, ard=True)
        name = case["objective"]
        tasks = {
            "floor": partial(floor.gram_and_cholesky, data),
            "ours": floor.value_and_gradient(data, name, kernel, LOSSES[name], PRECISIONS[case["dtype"]]),
        }
        seconds = floor.side_by_side(tasks, 3 if quick else 11)
        ratios[f"objective: {', '.join(f'{k}={v}' for k, v in case.items())}"] = seconds["ours"] / seconds["floor"]
    return ratios


def fits(quick: bool) -> dict[str, float]:
    """Time a whole default fit against the Gram + Cholesky floor of all its rows."""
    n = QUICK_ROWS if quick else 2000
    data = floor.problem(n, FEATURES, CLASSES)
    y = data.targets.argmax(1).numpy()
    X = data.points.numpy() + 0.7 * np.eye(CLASSES, FEATURES)[y]
    tasks = {
        "floor": partial(floor.gram_and_cholesky, data),
        "ours": lambda: EmbeddingClassifier(random_state=0).fit(X, y),
    }
    seconds = floor.side_by_side(tasks, 3)
    return {f"fit: as it comes, n={n}": seconds["ours"] / seconds["floor"]}


def memory(quick: bool) -> dict[str, float]:
    """Measure the extra memory of one value and gradient, in units of the float64 Gram matrix."""
    ratios = {}
    for objective in ("rademacher", "leave-one-out"):
        for dtype, precision in PRECISIONS.items():
            command = [sys.executable, "-m", "benchmarks.micro", objective, precision, str(1500 if quick else 4000)]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            ratios[f"memory of an objective: {objective}, {dtype}"] = float(done.stdout)
    return ratios


def gram_matrices_needed(objective: str, precision: str, n: int) -> float:
    """Measure one objective; needs a fresh process, as earlier work would have raised the peak."""
    data = floor.problem(n, FEATURES, CLASSES)
    small = floor.problem(200, FEATURES, CLASSES)
    floor.value_and_gradient(small, objective, Gaussian(4.0, ard=True), LOSSES[objective], precision)()
    work = partial(floor.value_and_gradient, data, objective, Gaussian(4.0, ard=True), LOSSES[objective], precision)
    return peak_of(lambda: work()()) / (8.0 * n * n)


def heads(quick: bool) -> dict[str, float]:
    """Time the embedding head, and a training step with it, against linear + softmax."""
    kept = ("head: embedding", "factor alone", "CNN step: embedding")
    return {row["task"]: row["times linear + softmax"] for row in head.rows(quick) if row["task"].endswith(kept)}


def learned_kernels(quick: bool) -> dict[str, float]:
    """Time a learned kernel against a plain Gaussian."""
    return {f"hyper-kernel: {row['features']} features": row["ratio"] for row in hyper.evaluation(quick)}


def predictions(quick: bool) -> dict[str, float]:
    """Time probabilities of 100,000 rows, with 2000 training rows, against the two matrix products they contain."""
    return {
        f"predict_proba: {name}, {n_features} features": ratio
        for n_features in (FEATURES, MANY_FEATURES)
        for name, ratio in _predictions(NEW_ROWS // 10 if quick else NEW_ROWS, n_features).items()
    }


def _predictions(n: int, n_features: int) -> dict[str, float]:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(SUPPORT, n_features)), np.arange(SUPPORT) % CLASSES
    new = random.normal(size=(n, n_features))
    V = random.normal(size=(SUPPORT, CLASSES))

    def products() -> None:
        for start in range(0, len(new), 2000):  # in blocks that fit the cache, as in predict_proba
            (new[start : start + 2000] @ X.T) @ V

    kernel = Gaussian(n_features**0.5)
    models = {
        "Gaussian": EmbeddingClassifier(kernel, learn=None, ridge=0.01),
        "Gaussian, single precision": EmbeddingClassifier(kernel, learn=None, ridge=0.01, solver=Exact("single")),
    }
    if n_features == FEATURES:
        models["as it comes"] = EmbeddingClassifier(learn=Auto(max_iter=2), random_state=0)
    tasks = {"products": products}
    for name, model in models.items():
        tasks[name] = partial(model.fit(X, y).predict_proba, new)
    seconds = floor.side_by_side(tasks, 3)
    return {name: seconds[name] / seconds["products"] for name in models}


PARTS = (
    objectives,
    fits,
    memory,
    heads,
    learned_kernels,
    predictions,
    blocks.blocks,
    blocks.gradients,
    blocks.compressed,
)


def rows(quick: bool) -> list[dict[str, object]]:
    """Measure all ratios."""
    with threadpool_limits(1):  # threads of two libraries compete for few cores: see threads.threads_for
        parts = [part(quick) for part in PARTS]
    return [{"name": name, "ratio": float(ratio)} for part in parts for name, ratio in part.items()]


if __name__ == "__main__":
    print(gram_matrices_needed(sys.argv[1], sys.argv[2], int(sys.argv[3])))
