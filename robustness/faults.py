"""Shared by the parts: counts of failures, child processes to interrupt, Python programs to run."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tools.tables import Row

ROOT = Path(__file__).parents[1]
ASK_AGAIN = 20.0  # seconds until a signal is repeated


class Tally:
    """Count the trials and failures of one thing, and report failures on standard error."""

    def __init__(self, what: str) -> None:
        self.what, self.tried, self.failures = what, 0, 0
        self._started = time.perf_counter()

    def check(self, good: bool, why: object = "") -> None:
        """Count one trial."""
        self.tried += 1
        if not good:
            self.failures += 1
            sys.stderr.write(f"FAILED: {self.what}: {why}\n")

    def row(self, note: str = "") -> Row:
        """Return the counts as a row."""
        seconds = round(time.perf_counter() - self._started, 1)
        return {"what": self.what, "tried": self.tried, "failures": self.failures, "seconds": seconds, "note": note}


def blobs(n: int, *, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of three overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, d)) + y[:, None] * np.linspace(0.2, 1.0, d), y


def start_child(work: Callable[[], Any], errors: Path) -> int:
    """Fork, work in the child as a separate program would, and return its process number."""
    stops = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)  # until the child is ready for them
    number = os.fork()
    if number:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
        return number
    status = 1
    try:
        with open(errors, "ab", buffering=0) as file:
            os.dup2(file.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.unraisablehook = _without_interrupts
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        status = 130
    except BaseException as error:
        os.write(2, f"Traceback {error!r}\n".encode())
    finally:
        os._exit(status)  # skip the exit handlers of the parent


def _without_interrupts(lost: Any) -> None:
    """Ignore an interrupt that Python drops in a destructor; ``interrupt`` repeats it."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def interrupt(number: int, after: float, how: signal.Signals) -> int | None:
    """Send a signal after some seconds; return the exit status (negative: a signal), None if the child was done."""
    end = time.perf_counter() + after
    while time.perf_counter() < end:
        done, status = os.waitpid(number, os.WNOHANG)
        if done:
            return None if os.waitstatus_to_exitcode(status) == 0 else os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    done = 0
    while not done:  # Python drops an interrupt in a destructor: repeat it, as a person would
        os.kill(number, how)
        again = time.perf_counter() + ASK_AGAIN
        while not done and time.perf_counter() < again:
            done, status = os.waitpid(number, os.WNOHANG)
            time.sleep(0.0 if done else 0.0005)
    return os.waitstatus_to_exitcode(status)


def seconds_of(work: Callable[[], Any]) -> float:
    """Measure how long a piece of work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def python(code: str, *, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python code in a separate process."""
    environment = options.pop("env", None) or dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [*options.pop("before", []), sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=check, env=environment, **options)
