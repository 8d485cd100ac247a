"""Fit one method, each time in a separate process: ``python -m benchmarks.worker CONTEST METHOD``.

CONTEST is ``classes``, ``numbers`` or ``tables``. Each line on standard input asks for a fit: SPLIT.npz, ANSWER.npz,
SECONDS and GIB, separated by tabs. The reply is a line with the exit status of its process. SPLIT has X_train, y_train,
X_test and y_test; ANSWER gets probabilities or the scores of a forecast, seconds and memory, or a note that says why
there are none; output of the method goes to a separate file.

Only fitting and predicting are measured: imports, compilation and (up to two seconds of) a first fit of a small
synthetic table happen once, before, and each fit is a fork of that process. After SECONDS of CPU time the system kills
the fit, even inside a loop in C.
"""

import contextlib
import importlib.metadata
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from benchmarks import number_peers, peers, table_peers
from benchmarks.forecasts import Forecast, forecast_scores
from benchmarks.frames import frames
from benchmarks.peers import Method
from tools.processes import cpu_seconds, memory, reset_peak

ROWS_AT_ONCE = 20_000  # predicting 90,000 rows at once would need far more memory than necessary
MEMORY_SIGNS = ("memory", "bad_alloc", "cpuallocator")

Arrays = dict[str, np.ndarray]


class Asked(ABC):
    """What is asked of the methods of a contest."""

    methods: Mapping[str, Method]

    def small_rows(self, X: np.ndarray) -> Any:
        """Make rows of a small synthetic table."""
        return X

    def rows(self, split: Arrays) -> tuple[Any, Any]:
        """Return the rows to train and to test."""
        return split["X_train"], split["X_test"]

    @abstractmethod
    def small_targets(self, X: np.ndarray) -> np.ndarray:
        """Make targets for a small synthetic table."""

    @abstractmethod
    def predicted(self, model: Any, X: np.ndarray) -> Any:
        """Predict, which is timed."""

    @abstractmethod
    def told(self, model: Any, predicted: Any, y: np.ndarray) -> dict[str, object]:
        """Turn predictions into what the answer holds, which is not timed."""


class AskedClasses(Asked):
    """Probabilities of classes."""

    methods = peers.METHODS

    def small_targets(self, X: np.ndarray) -> np.ndarray:
        return np.arange(len(X)) % 3

    def predicted(self, model: Any, X: np.ndarray) -> np.ndarray:
        parts = range(0, len(X), ROWS_AT_ONCE)
        return np.concatenate([model.predict_proba(X[i : i + ROWS_AT_ONCE]) for i in parts])

    def told(self, model: Any, predicted: np.ndarray, y: np.ndarray) -> dict[str, object]:
        return {"probabilities": predicted, "classes": model.classes_}


class AskedNumbers(Asked):
    """Forecasts of numbers, which only their method can score."""

    methods = number_peers.METHODS

    def small_targets(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] + np.arange(len(X)) % 3

    def predicted(self, model: Any, X: np.ndarray) -> Forecast:
        return model.forecast(X)

    def told(self, model: Any, predicted: Forecast, y: np.ndarray) -> dict[str, object]:
        return dict(forecast_scores(predicted, y))


class AskedTables(Asked):
    """Probabilities of classes, or forecasts of numbers, from frames."""

    methods = table_peers.METHODS

    def small_rows(self, X: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(X, columns=list("abcd")).assign(
            word=np.array(["one", "two", "three"])[np.arange(len(X)) % 3]
        )

    def rows(self, split: Arrays) -> tuple[pd.DataFrame, pd.DataFrame]:
        return frames(split["X_train"], split["X_test"], len(split["y_train"]))

    def small_targets(self, X: np.ndarray) -> np.ndarray:
        return np.arange(len(X)) % 2

    def predicted(self, model: Any, X: pd.DataFrame) -> table_peers.Answer:
        return model.answer(X)

    def told(self, model: Any, predicted: table_peers.Answer, y: np.ndarray) -> dict[str, object]:
        if isinstance(predicted, Forecast):
            return dict(forecast_scores(model.with_distribution(predicted), y))
        labels, two = np.arange(predicted.shape[1]), predicted.shape[1] == 2
        return {
            "log loss": log_loss(y, predicted, labels=labels),
            "accuracy %": 100.0 * accuracy_score(y, predicted.argmax(1)),
            "AUC": roc_auc_score(y, predicted[:, 1]) if two else np.nan,
        }


ASKED: dict[str, Asked] = {"classes": AskedClasses(), "numbers": AskedNumbers(), "tables": AskedTables()}


def limit(seconds: float, gibibytes: float) -> None:
    """Limit the CPU time of all threads together, and the memory beyond what is in use now."""
    end = int(cpu_seconds() + seconds + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (end, end + 5))
    most = int(memory("VmSize") + gibibytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def warm_up(asked: Asked, name: str, seconds: float = 2.0) -> None:
    """Fit a synthetic table, or begin to, so that lazy imports are done.

    If that fails, the measured fit will say so.
    """
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    y = asked.small_targets(X)

    def enough(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, enough)
    with contextlib.suppress(Exception):
        model = asked.methods[name].make()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        asked.predicted(model.fit(asked.small_rows(X + y[:, None]), y), asked.small_rows(X))
    signal.setitimer(signal.ITIMER_PROF, 0.0)


def answer(asked: Asked, name: str, split: Arrays, seconds: float, gibibytes: float) -> dict[str, object]:
    """Fit and predict; return what was measured, or a note."""
    try:
        model = asked.methods[name].make()
        version = importlib.metadata.version(asked.methods[name].package)
    except Exception as error:  # an import may raise anything
        return {"note": f"does not load: {one_line(error)}"}
    most = asked.methods[name].most_rows
    if most is not None and len(split["y_train"]) > most:
        return {"note": f"not finished: takes at most {most} rows", "version": version}
    rows, new = asked.rows(split)
    before = reset_peak()
    limit(seconds, gibibytes)
    try:
        started, started_clock = cpu_seconds(), time.perf_counter()
        model.fit(rows, split["y_train"])
        fitted, fitted_clock = cpu_seconds(), time.perf_counter()
        found = asked.predicted(model, new)
        predicted = cpu_seconds()
        more = (memory("VmHWM") - before) / 2**30
        told = asked.told(model, found, split["y_test"])
    except Exception as error:
        if isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in MEMORY_SIGNS):
            return {"note": f"not finished: needs more than {gibibytes:g} GiB", "version": version}
        return {"note": f"failed: {one_line(error)}", "version": version}
    return {
        **told,
        "fit": fitted - started,
        "fit_clock": fitted_clock - started_clock,
        "predict": predicted - fitted,
        "gibibytes": more,
        "version": version,
        "note": "",
    }


def one_line(error: Exception) -> str:
    """Shorten an error to a line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def said_file(answer_file: Path) -> Path:
    """Return the file for the output of a fit."""
    return answer_file.with_suffix(".txt")


def fit_in_this_process(asked: Asked, name: str, split: str, path: str, seconds: str, gibibytes: str) -> None:
    """Fit, write the answer, and exit."""
    status = 1
    try:
        with said_file(Path(path)).open("w") as said:
            os.dup2(said.fileno(), sys.stdout.fileno())
            os.dup2(said.fileno(), sys.stderr.fileno())
        with np.load(split) as file:
            data = dict(file)
        np.savez(path, **answer(asked, name, data, float(seconds), float(gibibytes)))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Answer requests until standard input ends."""
    asked, name = ASKED[sys.argv[1]], sys.argv[2]
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # some methods print
    warm_up(asked, name)
    for line in sys.stdin:
        if not (child := os.fork()):
            fit_in_this_process(asked, name, *line.rstrip("\n").split("\t"))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


if __name__ == "__main__":
    main()
