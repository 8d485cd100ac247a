"""Every method on every data set: the same rows, one thread, and a separate process for each fit.

``results/suite.csv`` has a row for each data set, fold and method, written as soon as it is measured, so a run that was
stopped resumes. Fits run in the peers' environment (``benchmarks/peers.txt``), two at a time; each is a fork of a
process that has already loaded its method.
"""

import contextlib
import math
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import ranks
from benchmarks.default import SETS as TUNED_ON
from benchmarks.default import scores, splits
from benchmarks.large import covtype, ijcnn1
from benchmarks.peers import METHODS
from benchmarks.probabilities import without_tiny_classes
from benchmarks.worker import said_file
from kernelwright import datasets
from kernelwright.storage.files import write_whole
from tools import tables
from tools.tables import Cells, Row

ROOT = Path(__file__).parents[1]
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
COLUMNS = (
    *("data", "seen", "fold", "training rows", "test rows", "features", "classes", "method"),
    *ranks.MEASURES,
    *("seconds to fit", "version", "note"),
)
BINS = 15
MOST_GIB = 8.0  # two fits at a time must fit into an ordinary machine
# CPU seconds to fit and predict: long enough for a verdict, short enough for the suite to end within the hour.
SECONDS, SECONDS_FOR_MANY_ROWS = 60.0, 150.0
MOST_FOLDED = 5000  # rows; larger sets are split once
TEST_ROWS = 20_000  # of covtype
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")}
NOT_FINISHED = "not finished"  # how notes about too much time or memory begin

Arrays = dict[str, np.ndarray]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # X_train, y_train, X_test, y_test


@dataclass(frozen=True)
class Data:
    """A data set, its splits, the CPU time that a method may take, and whether the defaults were tuned on it."""

    name: str
    split: Callable[[int], Split]
    folds: int
    seconds: float  # of CPU time, to fit and predict
    seen: bool = False


@dataclass(frozen=True)
class Task:
    """One fit."""

    data: Data
    fold: int
    method: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.data.name, str(self.fold), self.method


@dataclass(frozen=True)
class Contest:
    """What is measured: the name that the worker knows, the columns of a result, and how answers are scored."""

    name: str
    columns: tuple[str, ...]
    sizes: Callable[[Arrays], Row]  # of a split
    scores: Callable[[Arrays, Arrays], Row]  # of an answer on a split


def class_sizes(split: Arrays) -> Row:
    """Count rows, features and classes."""
    return {
        "training rows": len(split["y_train"]),
        "test rows": len(split["y_test"]),
        "features": split["X_train"].shape[1],
        "classes": len(np.unique(split["y_train"])),
    }


def class_scores(found: Arrays, split: Arrays) -> Row:
    """Score probabilities."""
    accuracy, log_loss, calibration = scores(found["probabilities"], found["classes"], split["y_test"], bins=BINS)
    return {"accuracy %": accuracy, "log loss": float(log_loss), "calibration error": calibration}


CLASSES = Contest("classes", COLUMNS, class_sizes, class_scores)


# Tasks in order. If one needs too much time or memory, so would the rest: they are skipped.
Chain = list[Task]


def folded(name: str) -> Data:
    """Split into three stratified folds, two thirds for training; above 5000 rows, use only the first fold."""

    def split(fold: int) -> Split:
        X, y = without_tiny_classes(*datasets.load(name))
        train, test = list(splits(X, y, len(y)))[fold]
        return X[train], y[train], X[test], y[test]

    return Data(name, split, 3 if datasets.SOURCES[name].n_rows <= MOST_FOLDED else 1, SECONDS, name in TUNED_ON)


def covtype_of(n: int, seconds: float, test_rows: int = TEST_ROWS) -> Data:
    """Take n training rows of covtype."""

    def split(fold: int) -> Split:
        X, y, X_test, y_test = covtype(n)
        return X, y, X_test[:test_rows], y_test[:test_rows]

    return Data(f"covtype, {n:,} rows", split, 1, seconds)


SMALL = (
    *("fertility", "wine", "sonar", "heart", "ecoli", "wdbc", "australian"),
    *("banknote", "yeast", "digits", "segment", "guide1", "robot"),
)
QUICK = ("fertility", "wine", "heart", "ecoli")


def groups(quick: bool) -> list[list[Data]]:
    """List the data sets; a group holds samples of one data set, fewest rows first."""
    if quick:
        return [[folded(name)] for name in QUICK]
    return [
        *([folded(name)] for name in SMALL),
        [Data("ijcnn1", lambda fold: ijcnn1(49_990), 1, SECONDS_FOR_MANY_ROWS)],
        [covtype_of(10_000, SECONDS), covtype_of(50_000, SECONDS_FOR_MANY_ROWS)],
    ]


def chains(quick: bool, methods: Iterable[str] | None = None, data: Iterable[str] | None = None) -> list[Chain]:
    """Order tasks by method, as each must be loaded, and the largest data sets first, to keep both jobs busy."""
    names = [name for name in METHODS if (METHODS[name].quick or not quick) and (not methods or name in methods)]
    return [
        [
            Task(each, fold, method)
            for each in group
            if not data or each.name in data
            for fold in range(1 if quick else each.folds)
        ]
        for method in names
        for group in reversed(groups(quick))
    ]


def run(
    todo: list[Chain],
    path: Path,
    measure: Callable[[Task], Row],
    *,
    columns: tuple[str, ...] = COLUMNS,
    jobs: int = 2,
    progress: Callable[[int, int, str], object] = lambda done, total, words: None,
) -> None:
    """Measure what the file lacks, ``jobs`` chains at a time; each row is on the disk before the next task starts."""
    known = {(row["data"], row["fold"], row["method"]): row["note"] for row in repaired(path)}
    total, done, lock = sum(map(len, todo)), 0, threading.Lock()

    def follow(chain: Chain) -> None:
        nonlocal done
        stopped = ""
        for task in chain:
            note = known.get(task.key)
            if note is None:
                row = skipped(task, stopped) if stopped else measure(task)
                note = str(row["note"])
                with lock:
                    append(path, row, columns)
            with lock:
                done += 1
                progress(done, total, f"{task.method}, {task.data.name} ({task.fold}) {note}")
            if note.startswith(NOT_FINISHED) and not stopped:
                stopped = not_tried(task.data.name, task.fold)

    with ThreadPoolExecutor(jobs) as pool:
        for finished in [pool.submit(follow, chain) for chain in todo]:
            finished.result()


def repaired(path: Path) -> list[Cells]:
    """Remove a last line that was cut off, and read the file."""
    if path.exists() and not (text := path.read_text()).endswith("\n"):
        write_whole(path, text[: text.rfind("\n") + 1].encode())
    return tables.read(path, missing_ok=True)


def append(path: Path, row: Row, columns: tuple[str, ...]) -> None:
    """Add a row to the file, floats with six digits, and nothing in place of NaN."""
    cells = {k: ("" if np.isnan(v) else f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()}
    tables.append(path, [cells], columns)


def forget(path: Path, methods: Iterable[str]) -> None:
    """Remove the rows of these methods, so that they are measured again."""
    kept = [row for row in repaired(path) if row["method"] not in set(methods)]
    if path.exists():
        path.unlink()
    for row in kept:
        append(path, dict(row), tuple(row))


def forget_hasty(path: Path, todo: list[Chain]) -> None:
    """Remove the rows of tasks that had less time than they would have now, and what was not tried because of them."""
    limits = {task.key: task.data.seconds for chain in todo for task in chain}
    rows = repaired(path)
    hasty = {key for key, row in _keyed(rows) if _seconds_given(row["note"]) < limits.get(key, 0.0)}
    if hasty:
        blamed = {(method, not_tried(data, fold)) for data, fold, method in hasty}
        kept = [row for key, row in _keyed(rows) if key not in hasty and (row["method"], row["note"]) not in blamed]
        path.unlink()
        for row in kept:
            append(path, dict(row), tuple(row))


def _keyed(rows: list[Cells]) -> list[tuple[tuple[str, str, str], Cells]]:
    return [((row["data"], row["fold"], row["method"]), row) for row in rows]


def _seconds_given(note: str) -> float:
    """Read the limit from the note of a task that was not finished in time; infinity for other tasks."""
    found = re.fullmatch(rf"{NOT_FINISHED} in (\S+) s", note)
    return float(found[1]) if found else math.inf


def not_tried(data: str, fold: int | str) -> str:
    """Say that a task was not tried because another one needed too much."""
    return f"{NOT_FINISHED}: not tried, because of {data}, fold {fold}"


def skipped(task: Task, note: str) -> Row:
    """Make the row of a task that was not tried."""
    return {**_what(task), "note": note}


def _what(task: Task) -> Row:
    return {
        "data": task.data.name,
        "seen": "yes" if task.data.seen else "no",
        "fold": task.fold,
        "method": task.method,
    }


class Worker:
    """A process in the peers' environment that has loaded a method (``worker.py``)."""

    def __init__(self, python: Path, contest: str, method: str) -> None:
        self.method = method
        self.process = subprocess.Popen(
            [Path(python).absolute(), "-m", "benchmarks.worker", contest, method],
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that it can be killed together with the fit that it has forked
        )

    def fit(self, split: Path, answer: Path, seconds: float, patience: float) -> int | None:
        """Return the exit status of the fit, or of a dead worker; kill both and return None after too long."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{split}\t{answer}\t{seconds}\t{MOST_GIB}\n".encode())
            self.process.stdin.flush()
        in_time = bool(select.select([self.process.stdout], [], [], patience)[0])
        if in_time and (line := self.process.stdout.readline()):
            return int(line)
        self.end()
        return self.process.returncode if in_time else None

    @property
    def lives(self) -> bool:
        """Say whether the process is still running."""
        return self.process.poll() is None

    def end(self) -> None:
        """Kill the process and its fit."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


class InProcesses:
    """Measure tasks in processes of the peers' environment. Splits are made once, the same for all methods."""

    def __init__(self, folder: Path, python: Path, contest: Contest = CLASSES) -> None:
        self.folder, self.python, self.contest, self.lock = folder, python, contest, threading.Lock()
        self.workers: dict[int, Worker] = {}  # one for each thread

    def __enter__(self) -> "InProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers.values():
            worker.end()

    def worker(self, method: str) -> Worker:
        """Return this thread's worker, a new one if the method changed or the process died."""
        me = threading.get_ident()
        known = self.workers.get(me)
        if known is None or known.method != method or not known.lives:
            if known is not None:
                known.end()
            self.workers[me] = Worker(self.python, self.contest.name, method)
        return self.workers[me]

    def __call__(self, task: Task) -> Row:
        split = self.split_file(task.data, task.fold)
        answer = self.folder / f"answer-{threading.get_ident()}.npz"
        said = said_file(answer)
        answer.unlink(missing_ok=True)
        said.unlink(missing_ok=True)
        # The worker limits its own CPU time. This limit is for a method that hangs; on a busy machine a second of CPU
        # time takes several.
        patience = 10.0 * task.data.seconds + 300.0
        status = self.worker(task.method).fit(split, answer, task.data.seconds, patience)
        with np.load(split) as file:
            given = dict(file)
        sizes = self.contest.sizes(given)
        if answer.exists():
            with np.load(answer) as file:
                return {**_what(task), **sizes, **_measured(dict(file), given, self.contest)}
        if status is None or status in (-24, -9):  # SIGXCPU, or SIGKILL where a library ignores it
            return {**_what(task), **sizes, "note": f"{NOT_FINISHED} in {task.data.seconds:g} s"}
        last = ((said.read_text().strip() if said.exists() else "") or f"status {status}").splitlines()[-1]
        if "bad_alloc" in last or "memory" in last.lower():
            return {**_what(task), **sizes, "note": f"{NOT_FINISHED}: needs more than {MOST_GIB:g} GiB"}
        return {**_what(task), **sizes, "note": f"failed: {last[:200]}"}

    def split_file(self, data: Data, fold: int) -> Path:
        """Write the split of a fold, unless it is there."""
        path = self.folder / f"{data.name.replace(' ', '-')}-{fold}.npz"
        with self.lock:
            if not path.exists():
                names = ("X_train", "y_train", "X_test", "y_test")
                np.savez(path, **dict(zip(names, data.split(fold), strict=True)))
        return path


def _measured(found: Arrays, split: Arrays, contest: Contest = CLASSES) -> Row:
    row: Row = {"note": str(found["note"]), "version": str(found.get("version", ""))}
    if row["note"]:
        return row
    return {
        **row,
        **contest.scores(found, split),
        "CPU seconds to fit": float(found["fit"]),
        "CPU seconds to predict": float(found["predict"]),
        "GiB more": float(found["gibibytes"]),
        "seconds to fit": float(found["fit_clock"]),
    }


def measure_all(
    todo: list[Chain],
    path: Path,
    *,
    python: Path,
    jobs: int,
    progress: Callable[[int, int, str], object],
    contest: Contest = CLASSES,
) -> None:
    """Run the tasks in the peers' environment."""
    if not python.exists():
        sys.exit(f"{python} not found: `make bench` sets up the peers' environment, or pass --python PATH.")
    with tempfile.TemporaryDirectory() as folder, InProcesses(Path(folder), python, contest) as measure:
        run(todo, path, measure, columns=contest.columns, jobs=jobs, progress=progress)
