"""Fits of one method, each in a process of its own: ``python benchmarks/worker.py METHOD``.

Each line on standard input is a fit to do: SPLIT.npz, ANSWER.npz, SECONDS and GIB with tabs between. The answer to it
is a line with the exit status of its process. SPLIT has X_train, y_train and X_test; ANSWER gets probabilities,
seconds and memory, or a note that says why not; what was printed meanwhile is in a file of its own.

What is measured is fitting and predicting: imports, compilation and (up to two seconds of) a first fit of a small
made-up table come before, once, and each fit is a fork of the process that has them behind it. Beyond SECONDS of CPU
time the system ends a fit, whoever holds the time (a loop in C, say).
"""

import contextlib
import ctypes
import gc
import importlib.metadata
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from peers import METHODS

ROWS_AT_ONCE = 20_000  # predicting 90,000 rows at once would measure memory that nobody needs
MEMORY_SIGNS = ("memory", "bad_alloc", "cpuallocator")


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def status_bytes(field: str) -> int:
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def limit(seconds: float, gibibytes: float) -> None:
    """From here on: CPU time of all threads together, and memory beyond what is there already."""
    end = int(cpu_seconds() + seconds + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (end, end + 5))
    most = int(status_bytes("VmSize") + gibibytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def warm_up(name: str, seconds: float = 2.0) -> None:
    """A fit of a made-up table, or the beginning of it, loads what is loaded late.

    If that fails, the fit that counts will say so.
    """
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 4)), np.arange(60) % 3

    def enough(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, enough)
    with contextlib.suppress(Exception):
        model = METHODS[name].make()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        model.fit(X + y[:, None], y).predict_proba(X)
    signal.setitimer(signal.ITIMER_PROF, 0.0)


def answer(name: str, split: dict[str, np.ndarray], seconds: float, gibibytes: float) -> dict[str, object]:
    try:
        model = METHODS[name].make()
        version = importlib.metadata.version(METHODS[name].package)
    except Exception as error:  # whatever a package may raise when it is imported
        return {"note": f"does not load: {one_line(error)}"}
    # What the first fit has freed goes back to the system, or the fit that counts would seem to need less; the peak
    # is counted from here.
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = status_bytes("VmRSS")
    limit(seconds, gibibytes)
    try:
        started, started_clock = cpu_seconds(), time.perf_counter()
        model.fit(split["X_train"], split["y_train"])
        fitted, fitted_clock = cpu_seconds(), time.perf_counter()
        parts = range(0, len(split["X_test"]), ROWS_AT_ONCE)
        p = np.concatenate([model.predict_proba(split["X_test"][i : i + ROWS_AT_ONCE]) for i in parts])
        predicted = cpu_seconds()
    except Exception as error:
        if isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in MEMORY_SIGNS):
            return {"note": f"not finished: needs more than {gibibytes:g} GiB", "version": version}
        return {"note": f"failed: {one_line(error)}", "version": version}
    return {
        "probabilities": p,
        "classes": model.classes_,
        "fit": fitted - started,
        "fit_clock": fitted_clock - started_clock,
        "predict": predicted - fitted,
        "gibibytes": (status_bytes("VmHWM") - before) / 2**30,
        "version": version,
        "note": "",
    }


def one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def said_file(answer_file: Path) -> Path:
    return answer_file.with_suffix(".txt")


def fit_in_this_process(name: str, split: str, path: str, seconds: str, gibibytes: str) -> None:
    """Ends the process."""
    status = 1
    try:
        with said_file(Path(path)).open("w") as said:
            os.dup2(said.fileno(), sys.stdout.fileno())
            os.dup2(said.fileno(), sys.stderr.fileno())
        with np.load(split) as file:
            data = dict(file)
        np.savez(path, **answer(name, data, float(seconds), float(gibibytes)))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    name = sys.argv[1]
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # some methods talk
    warm_up(name)
    for line in sys.stdin:
        if not (child := os.fork()):
            fit_in_this_process(name, *line.rstrip("\n").split("\t"))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


if __name__ == "__main__":
    main()
