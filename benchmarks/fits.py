"""Whole fits with nothing tuned by hand, next to the usual alternatives, each in a process of its own."""

import csv
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from default import cpu_seconds, scores
from peers import catboost, xrfm
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelwright import EmbeddingClassifier, datasets
from kernelwright.baselines import GridSearchSVC

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
    X, y = datasets.load(name)
    size = min(500 if quick else MOST_ROWS, int(len(y) * 2 / 3))
    return train_test_split(X, y, train_size=size, stratify=y, random_state=0)


def work(method: str, name: str, quick: bool, pipe: object) -> None:
    X_train, X_test, y_train, y_test = split(name, quick)
    model = METHODS[method]()
    if method == "kernelwright":
        EmbeddingClassifier(max_iter=1).fit(X_train, y_train)  # load and compile before anything is timed
    started, used = time.perf_counter(), cpu_seconds()
    model.fit(X_train, y_train)
    cpu, wall = cpu_seconds() - used, time.perf_counter() - started
    pipe.send((*scores(model.predict_proba(X_test), np.unique(y_train), y_test), cpu, wall))


def rows(quick: bool) -> list[dict[str, object]]:
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
            except EOFError:  # it has said why on standard error
                note = "failed"
            process.kill()
            process.join()
            columns = ("accuracy %", "log loss", "calibration error", "CPU seconds", "seconds")
            cells = dict(zip(columns, map(float, values) if values else [""] * len(columns), strict=True))
            table.append({"data": name, "method": method, **cells, "note": note})
    return table


def means() -> list[dict[str, object]]:
    """Averages over the data sets, of the methods that finished all of them, from the table on disk."""
    with (Path(__file__).parent / "results" / "fits.csv").open() as file:
        table = list(csv.DictReader(file))
    summary = []
    for method in METHODS:
        own = [row for row in table if row["method"] == method]
        if any(row["note"] for row in own):
            continue
        columns = ("accuracy %", "log loss", "calibration error", "CPU seconds", "seconds")
        summary.append({"method": method, **{c: float(np.mean([float(row[c]) for row in own])) for c in columns}})
    return summary
