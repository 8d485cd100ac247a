"""Ctrl-C, SIGTERM and kill -9 at random moments: nothing half-written, nothing lost, nothing left behind.

Processes are forked from one that has imported everything, so that hundreds can be killed within minutes. Each signal
is sent at a random moment of the work.
"""

import random
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import kernelwright as kw
from kernelwright import cli
from kernelwright.research.experiments.runner import Experiment, Task, read_results, run
from robustness.faults import Row, Tally, blobs, interrupt, seconds_of, start_child

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGKILL: "kill -9"}


def figures(*, quick: bool) -> list[Row]:
    """Make a row for each kind of work and signal; ``quick`` tries some of these pairs."""
    kills = 3 if quick else 30
    with tempfile.TemporaryDirectory() as folder:
        work = (_checkpoints, _saves, _predictions, _fits, _reproductions)
        pairs = [(each, how) for each in work for how in SIGNALS]
        return [each(Path(folder), how, kills).row() for each, how in (pairs[::4] if quick else pairs)]


def _parts(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


def _new_folder(folder: Path, name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=name, dir=folder))


def _no_traceback(tally: Tally, errors: Path) -> None:
    said = errors.read_text() if errors.exists() else ""
    if "Traceback" in said or "Error" in said:
        tally.check(False, said[-500:])
    errors.unlink(missing_ok=True)


def _seconds_in_a_child(work: Callable[[], object], errors: Path) -> float:
    """Measure how long some work takes in a child: forking may take longer than the work."""
    return seconds_of(lambda: interrupt(start_child(work, errors), 3600, signal.SIGKILL))


def _moments(usual: float, rng: random.Random) -> Iterator[float]:
    """Draw moments to interrupt work that usually takes so long: later and later, as the machine may have slowed."""
    most = 0.6 * usual
    while True:
        yield rng.uniform(0, most)
        most *= 1.1


# In Python ---------------------------------------------------------------------------------------------


def _checkpoints(folder: Path, how: signal.Signals, kills: int) -> Tally:
    """Restart a fit with a checkpoint after each kill: it must end with the numbers of an uninterrupted fit."""
    tally = Tally(f"fit with a checkpoint, {NAMES[how]}")
    place, rng = _new_folder(folder, "checkpoint"), random.Random(int(how))
    X, y = blobs(400)

    def fit(checkpoint: Path | None) -> kw.EmbeddingNetworkClassifier:
        training = kw.networks.Training(max_epochs=30, batch_size=100, checkpoint=checkpoint)
        return kw.EmbeddingNetworkClassifier(hidden=(32, 32), training=training, random_state=0).fit(X, y)

    def whole_job(checkpoint: Path) -> None:
        with warnings.catch_warnings():
            # An interrupted fit keeps its best epoch and warns. Here it must be resumed instead.
            warnings.filterwarnings("error", "Interrupted")
            try:
                model = fit(checkpoint)
            except UserWarning:
                raise SystemExit(130) from None
            except TypeError as error:  # NumPy turns an interrupt while it compares types into this
                if "Cannot compare structured arrays" not in str(error):
                    raise
                raise SystemExit(130) from None
        kw.save(model.set_params(training__checkpoint=None), checkpoint.with_suffix(".kw"))

    expected = fit(None).predict_proba(X)
    usual = _seconds_in_a_child(lambda: whole_job(place / "alone"), place / "errors")
    attempt = 0
    while tally.tried < kills:
        attempt += 1
        checkpoint = place / f"run{attempt}"
        for moment in _moments(usual, rng):  # kill it again and again until it gets through
            child = start_child(lambda path=checkpoint: whole_job(path), place / "errors")
            status = interrupt(child, moment, how)
            if status in (0, None):
                break
            tally.check(status in (130, -int(how)), f"status {status}")
        loaded = kw.load(checkpoint.with_suffix(".kw"))
        if not np.array_equal(loaded.predict_proba(X), expected):
            tally.check(False, "not the result of an uninterrupted fit")
        if left := _parts(place):
            tally.check(False, f"left behind: {left}")
        _no_traceback(tally, place / "errors")
    return tally


def _saves(folder: Path, how: signal.Signals, kills: int) -> Tally:
    """Check that the file is always one of the two models that are written in turn."""
    tally = Tally(f"save, {NAMES[how]}")
    place, rng = _new_folder(folder, "save"), random.Random(int(how))
    path = place / "model.kw"
    X, y = blobs(300)
    models = [kw.EmbeddingClassifier(kw.kernels.Gaussian(scale), learn=None).fit(X, y) for scale in (1.0, 2.0)]
    answers = [model.predict_proba(X) for model in models]
    usual = seconds_of(lambda: kw.save(models[0], path))

    def write_forever() -> None:
        while True:
            for model in models:
                kw.save(model, path)

    for _ in range(kills):
        status = interrupt(start_child(write_forever, place / "errors"), rng.uniform(0, 6 * usual), how)
        found = kw.load(path).predict_proba(X)
        whole = any(np.array_equal(found, answer) for answer in answers)
        tally.check(whole and status in (130, -int(how)), f"status {status}, whole {whole}")
        if how == signal.SIGINT and _parts(place):
            tally.check(False, f"left behind by Ctrl-C: {_parts(place)}")
    kw.save(models[0], path)
    if left := _parts(place):
        tally.check(False, f"left behind: {left}")
    return tally


# On the command line -----------------------------------------------------------------------------------


def _table(path: Path, n: int) -> None:
    X, y = blobs(n)
    lines = [",".join([*map(str, row), "abc"[label]]) for row, label in zip(X.round(3), y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,e,f,y", *lines, ""]))


def _command(*arguments: object) -> Callable[[], None]:
    def work() -> None:
        sys.argv = ["kernelwright", *map(str, arguments)]
        cli.main()

    return work


def _killed_command(tally: Tally, work: Callable[[], None], output: Path, how: signal.Signals, kills: int) -> Tally:
    """Check that the output is the old file or the whole new one, and that no traceback is printed."""
    place, rng = output.parent, random.Random(int(how))
    started = _seconds_in_a_child(work, place / "errors")
    new = output.read_bytes()
    status = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[how]
    while tally.tried < kills:
        output.write_bytes(b"old")
        found = interrupt(start_child(work, place / "errors"), rng.uniform(0, started), how)
        if found in (0, None):
            continue  # it had finished
        content = output.read_bytes()
        good = found in (status, -int(how)) and content in (b"old", new)
        tally.check(good, f"status {found}, {len(content)} bytes")
        if how != signal.SIGKILL and _parts(place):
            tally.check(False, f"left behind: {_parts(place)}")
        _no_traceback(tally, place / "errors")
    interrupt(start_child(work, place / "errors"), 3600, how)
    if output.read_bytes() != new or _parts(place):
        tally.check(False, f"the next run: {_parts(place)}")
    return tally


def _predictions(folder: Path, how: signal.Signals, kills: int) -> Tally:
    place = _new_folder(folder, "predict")
    _table(place / "train.csv", 150)
    _table(place / "new.csv", 4000)
    child = start_child(_command("fit", place / "train.csv", "-t", "y", "--no-cv", "-o", place / "m.kw"), place / "e")
    interrupt(child, 3600, how)
    work = _command("predict", place / "m.kw", place / "new.csv", "-o", place / "out.csv")
    return _killed_command(Tally(f"kernelwright predict, {NAMES[how]}"), work, place / "out.csv", how, kills)


def _fits(folder: Path, how: signal.Signals, kills: int) -> Tally:
    place = _new_folder(folder, "fit")
    _table(place / "train.csv", 150)
    work = _command("fit", place / "train.csv", "-t", "y", "--no-cv", "--seed", 1, "-o", place / "m.kw")
    return _killed_command(Tally(f"kernelwright fit, {NAMES[how]}"), work, place / "m.kw", how, kills)


# Experiments -------------------------------------------------------------------------------------------


def _trial(number: int) -> dict[str, float]:
    values = np.random.default_rng(number).normal(size=(150, 150))
    return {f"measure {k}": float(value) for k, value in enumerate(np.linalg.eigvalsh(values + values.T)[:40])}


def _reproductions(folder: Path, how: signal.Signals, kills: int) -> Tally:
    """Check that every trial is in the file once and whole, as after an uninterrupted run."""
    tally, rng = Tally(f"reproduce, {NAMES[how]}"), random.Random(int(how))
    tasks = [Task("row", "column", number, _trial, (number,)) for number in range(30)]
    experiment = Experiment("toy", "A toy", lambda quick: tasks)
    place = _new_folder(folder, "reproduce")
    usual = _seconds_in_a_child(lambda: run(experiment, place / "alone"), place / "errors")
    expected = (place / "alone" / "toy.csv").read_text()
    attempt = 0
    while tally.tried < kills:
        attempt += 1
        output, known = place / f"out{attempt}", 0
        for moment in _moments(usual, rng):
            child = start_child(lambda out=output: run(experiment, out), place / "errors")
            status = interrupt(child, moment, how)
            if status in (0, None):
                break
            found = len(read_results(output / "toy.csv")) if (output / "toy.csv").exists() else 0
            good = found >= known and found % 40 == 0 and status in (130, -int(how))
            tally.check(good, f"status {status}, {known} results became {found}")
            known = found
        if (output / "toy.csv").read_text() != expected:
            tally.check(False, "not the file of an uninterrupted run")
        if left := _parts(output):
            tally.check(False, f"left behind: {left}")
    return tally
