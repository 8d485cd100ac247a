"""Whole fits with nothing tuned by hand, next to the usual alternatives, each in a separate process."""

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.default import scores
from benchmarks.peers import catboost, xrfm
from kernelwright import EmbeddingClassifier, datasets
from kernelwright.learning import Auto
from kernelwright.research.baselines import GridSearchSVC
from tools import tables
from tools.processes import cpu_seconds

SETS = ("segment", "robot", "yeast", "digits")
MOST_ROWS = 2000
MOST_SECONDS = 60


METHODS: dict[str, Callable[[], object]] = {
    "kernelwright": lambda: EmbeddingClassifier(random_state=0),
    "SVC, 5 x 7 grid, 5 folds": GridSearchSVC,
    "Gaussian process": lambda: make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * RBF(1.0))),
    "random forest": lambda: RandomForestClassifier(500, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "CatBoost": catboost,
    "xRFM": xrfm,
}


def split(name: str, quick: bool) -> tuple[np.ndarray, ...]:
    """Split a data set into training and test rows."""
    X, y = datasets.load(name)
    size = min(500 if quick else MOST_ROWS, int(len(y) * 2 / 3))
    return train_test_split(X, y, train_size=size, stratify=y, random_state=0)


def work(method: str, name: str, quick: bool, pipe: object) -> None:
    """Fit in this process and send scores and seconds."""
    X_train, X_test, y_train, y_test = split(name, quick)
    model = METHODS[method]()
    if method == "kernelwright":
        EmbeddingClassifier(learn=Auto(max_iter=1)).fit(X_train, y_train)  # load and compile before anything is timed
    started, used = time.perf_counter(), cpu_seconds()
    model.fit(X_train, y_train)
    cpu, wall = cpu_seconds() - used, time.perf_counter() - started
    pipe.send((*scores(model.predict_proba(X_test), np.unique(y_train), y_test), cpu, wall))


def rows(quick: bool) -> list[dict[str, object]]:
    """Fit every method on every data set."""
    context = multiprocessing.get_context("spawn")
    table = []
    for name in SETS:
        for method in METHODS:
            receive, send = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(method, name, quick, send))
            process.start()
            send.close()
            values, note = None, ""
            try:
                if receive.poll(MOST_SECONDS):
                    values = receive.recv()
                else:
                    note = f"not finished in {MOST_SECONDS} s"
            except EOFError:  # the reason is on standard error
                note = "failed"
            process.kill()
            process.join()
            columns = ("accuracy %", "log loss", "calibration error", "CPU seconds", "seconds")
            cells = dict(zip(columns, map(float, values) if values else [""] * len(columns), strict=True))
            table.append({"data": name, "method": method, **cells, "note": note})
    return table


def means() -> list[dict[str, object]]:
    """Average the table on disk over data sets, for the methods that finished all of them."""
    table = tables.read(Path(__file__).parent / "results" / "fits.csv")
    summary = []
    for method in METHODS:
        own = [row for row in table if row["method"] == method]
        if any(row["note"] for row in own):
            continue
        columns = ("accuracy %", "log loss", "calibration error", "CPU seconds", "seconds")
        summary.append({"method": method, **{c: float(np.mean([float(row[c]) for row in own])) for c in columns}})
    return summary
