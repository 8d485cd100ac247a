"""Many rows with the default settings, beside the accuracy, seconds and memory to be reached, and the least work.

Each job runs in its own process on one thread. The floor of a fit is what its steps of learning and its leaves need at
least: matrix products, factors and inverses of the same sizes, timed in the same process.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack
from sklearn.metrics import log_loss

from benchmarks import number_peers, numbers
from benchmarks.forecasts import Forecast, ResidualForecast, forecast_scores
from benchmarks.large import covtype, covtype_binary, ijcnn1
from tools.processes import cpu_seconds, memory, reset_peak
from tools.tables import Row

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
AT_ONCE = 20_000  # rows of a prediction
MILLION, NEW_ROWS = 1_000_000, 20_000


def everything_else(n: int) -> Split:
    """Load covtype with n training rows; all others are test rows."""
    from kernelwright import datasets

    X, y = datasets.load("covtype")
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:n], order[n:]
    return X[train], y[train], X[test], y[test]


def protein(n: int) -> Split:
    """Load the first split of protein."""
    return numbers.uci("protein").split(0)


def made_up(n: int) -> Split:
    """Make a table whose answer is rough in some places, with noise that depends on the row."""
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, (n + NEW_ROWS, 10))
    a, b, c, d = X[:, :4].T
    y = np.sin(6.0 * a) * np.cos(5.0 * b) + np.abs(c + 0.5 * a) + np.where(d > 0.2, b, -0.5 * c)
    y += (0.05 + 0.2 * (b > 0)) * random.normal(size=len(y))
    return X[:n], y[:n], X[n:], y[n:]


class Boosted:
    """A boosted regressor, with the residuals of a tenth of the rows, which end its rounds, as its distribution."""

    def __init__(self, make: Callable[..., Any], settings: list[dict[str, Any]]) -> None:
        self.make, self.settings = make, settings

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Boosted":
        """Fit with all settings; keep the one with the least error at the rows held out."""
        held = np.random.default_rng(0).random(len(y)) < 0.1
        found = []
        for each in self.settings:
            model = self.make(each, X[~held], y[~held], X[held], y[held])
            residuals = y[held] - model.predict(X[held])
            found.append((float(np.mean(residuals**2)), len(found), model, residuals))
        _, _, self.model, self.residuals = min(found)
        return self

    def forecast(self, X: np.ndarray) -> Forecast:
        """Put the residuals around each prediction."""
        return ResidualForecast(np.asarray(self.model.predict(X)), self.residuals)


def _lightgbm(settings: dict[str, Any], X: np.ndarray, y: np.ndarray, X_held: np.ndarray, y_held: np.ndarray) -> Any:
    import lightgbm

    model = lightgbm.LGBMRegressor(
        n_estimators=3000, learning_rate=0.1, verbose=-1, random_state=0, n_jobs=1, **settings
    )
    return model.fit(X, y, eval_set=[(X_held, y_held)], callbacks=[lightgbm.early_stopping(30, verbose=False)])


def _catboost(settings: dict[str, Any], X: np.ndarray, y: np.ndarray, X_held: np.ndarray, y_held: np.ndarray) -> Any:
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(verbose=0, random_state=0, allow_writing_files=False, thread_count=1, **settings)
    return model.fit(X, y, eval_set=(X_held, y_held))


def classifier() -> Any:
    """Make the default classifier."""
    from kernelwright import EmbeddingClassifier

    return EmbeddingClassifier(random_state=0)


METHODS: dict[str, Callable[[], Any]] = {
    "kernelwright": classifier,
    "kernelwright, numbers": number_peers.kernelwright,
    "CatBoost": lambda: Boosted(_catboost, [{}]),
    "LightGBM, leaves tuned": lambda: Boosted(_lightgbm, [{"num_leaves": n} for n in (31, 127, 511)]),
}


@dataclass(frozen=True)
class Goal:
    """A job, and what is to be reached: an accuracy or nothing, a loss or nothing, CPU seconds, GiB."""

    load: Callable[[int], Split]
    n: int
    score: float | None = None
    loss: float | None = None
    seconds: float | None = None
    gibibytes: float | None = None
    methods: tuple[str, ...] = ("kernelwright",)


OF_NUMBERS = ("kernelwright, numbers", "CatBoost", "LightGBM, leaves tuned")
GOALS = {
    "covtype, 10,000 rows": Goal(covtype, 10_000, 85.5, None, 5.0),
    "covtype, 50,000 rows": Goal(covtype, 50_000, 93.0, None, 10.0),
    "covtype, 100,000 rows": Goal(covtype, 100_000, 95.0, None, 18.0),
    "covtype, 464,810 rows": Goal(everything_else, 464_810, 97.6, 0.062, 50.0, 3.0),
    "covtype, class 2": Goal(covtype_binary, 232_405, 97.2, None, 30.0, 2.0),
    "ijcnn1": Goal(ijcnn1, 49_990, 99.0, 0.029, 20.0),
    "protein": Goal(protein, 41_157, methods=OF_NUMBERS),
    "made up, a million rows": Goal(made_up, MILLION, methods=OF_NUMBERS),
}
QUICK = ("covtype, 10,000 rows",)


def measured(goal: Goal, method: str) -> Row:
    """Fit and predict in this process; return scores, CPU seconds and memory."""
    X, y, X_new, y_new = goal.load(goal.n)
    of_numbers = method != "kernelwright"
    number_peers.load_compiled_loops()
    model, before = METHODS[method](), reset_peak()
    started = cpu_seconds()
    model.fit(X, y)
    fitted, gibibytes = cpu_seconds(), (memory("VmHWM") - before) / 2**30
    if of_numbers:
        forecast = model.forecast(X_new)
        predicted = cpu_seconds()
        scores = forecast_scores(forecast, y_new)
        found: Row = {"RMSE": scores["RMSE"], "CRPS": scores["CRPS"]}
    else:
        parts = np.split(X_new, range(AT_ONCE, len(X_new), AT_ONCE))
        p = np.concatenate([model.predict_proba(part) for part in parts])
        predicted = cpu_seconds()
        accuracy = 100.0 * float(np.mean(model.classes_[p.argmax(1)] == y_new))
        found = {"accuracy %": accuracy, "log loss": float(log_loss(y_new, p, labels=model.classes_))}
    fitted_model = getattr(model, "model", model)
    floor = floor_seconds(fitted_model, X.shape[1]) if hasattr(fitted_model, "embedding_") else None
    seconds = {"CPU seconds to fit": fitted - started, "floor, s": floor}
    return found | seconds | {"to predict 10,000 rows": 10_000 * (predicted - fitted) / len(X_new), "GiB": gibibytes}


def floor_seconds(model: Any, n_features: int) -> float:
    """Return the CPU seconds of products, factors and inverses that the steps and the leaves of a fit need at least."""
    trees, total = model.embedding_.trees, 0.0
    stages = (re.search(r"leave-one-out.*, (\d+) rows", step.stage) for step in model.history_)
    for rows, steps in Counter(int(stage[1]) for stage in stages if stage).items():
        total += steps * _matrix_seconds(rows, n_features, learning=True)
    sizes = Counter(int(size) for each in trees.partitions for size in each.starts.diff()) if trees else Counter()
    if sizes:
        usual = round(sum(size * count for size, count in sizes.items()) / sum(sizes.values()))
        total += sum(sizes.values()) * _matrix_seconds(usual, n_features, learning=False)
    return total


def _matrix_seconds(n: int, n_features: int, *, learning: bool) -> float:
    """Time a Gram matrix, a factor and the inverse's diagonal; or, to learn, the inverse and its product with itself.

    Learning works in single precision, as the library does for many rows.
    """
    Z = np.asfortranarray(np.random.default_rng(0).normal(size=(n, n_features)), np.float32 if learning else float)
    before = cpu_seconds()
    gram = (blas.ssyrk if learning else blas.dsyrk)(1.0, Z, lower=1)
    gram[np.diag_indices(n)] += n_features
    root, _ = (lapack.spotrf if learning else lapack.dpotrf)(gram, lower=1, overwrite_a=1)
    if learning:
        inverse, _ = lapack.spotri(root, lower=1, overwrite_c=1)
        blas.ssyrk(1.0, inverse, lower=1)
    else:
        lapack.dtrtri(root, lower=1, overwrite_c=1)
    return cpu_seconds() - before


def _told(name: str, method: str, python: Path) -> Row:
    """Run a job in a process of its own, on one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [str(python), "-m", "benchmarks.goals", name, method]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
    if done.returncode:
        return {"note": (done.stderr.strip().splitlines() or ["failed"])[-1][:200]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


COLUMNS = (
    *("accuracy %", "log loss", "RMSE", "CRPS", "CPU seconds to fit", "floor, s", "to predict 10,000 rows", "GiB"),
    *("goal: accuracy %", "goal: log loss", "goal: seconds", "goal: GiB", "note"),
)


def rows(quick: bool, peers_python: Path, only: Sequence[str] = ()) -> Iterator[Row]:
    """Run every job, or those on the given data, and yield what each has found."""
    for name, goal in GOALS.items():
        if (quick and name not in QUICK) or (only and name not in only):
            continue
        goals = (goal.score, goal.loss, goal.seconds, goal.gibibytes)
        wanted = dict(zip(COLUMNS[8:12], goals, strict=True))
        for method in goal.methods:
            ours = method.startswith("kernelwright")
            found = _told(name, method, Path(sys.executable) if ours else peers_python)
            cells = {"data": name, "rows": goal.n, "method": method.split(", numbers")[0]} | wanted | found
            yield {key: cells.get(key) for key in ("data", "rows", "method", *COLUMNS)}


def main() -> None:
    """Run one job and print its measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(GOALS))
    parser.add_argument("method", choices=list(METHODS))
    asked = parser.parse_args()
    print(json.dumps(measured(GOALS[asked.name], asked.method)))


if __name__ == "__main__":
    main()
