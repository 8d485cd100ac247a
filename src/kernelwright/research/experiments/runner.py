"""Reproduction of published results: tasks that append rows to a CSV file, so that a killed run can resume.

An experiment is a list of tasks. Each gives numbers for one cell of a table (or one point of a figure) and one trial.
They are appended to a CSV file when they are done. The cells, published and ours, are computed from this file only.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from kernelwright.numerics.threads import on_one_thread
from kernelwright.reports import Picture
from kernelwright.research.experiments.claims import Claim
from kernelwright.storage.files import locked_folder, write_whole

__all__ = [
    "BETTER",
    "REPRODUCED",
    "WORSE",
    "Cell",
    "Experiment",
    "Published",
    "Result",
    "Task",
    "cells_of",
    "named",
    "read_published",
    "read_results",
    "run",
    "write_cells",
]

COLUMNS = ("row", "column", "trial", "measure", "value")
CELL_COLUMNS = (
    *("row", "column", "measure", "published", "published deviation", "tolerance"),
    *("ours", "deviation", "trials", "verdict"),
)
REPRODUCED, BETTER, WORSE = "reproduced", "better", "worse"
ROUNDING = 1e-9  # of differences of decimal numbers


@dataclass(frozen=True)
class Task:
    """One trial of one cell. ``work(*arguments)`` returns a number for each measure; both must be picklable."""

    row: str
    column: str
    trial: int
    work: Callable[..., dict[str, float]]
    arguments: tuple[Any, ...] = ()
    in_folder: bool = False  # whether the folder of results comes before the arguments, for files between trials

    def __call__(self) -> list[Result]:
        """Run the trial."""
        found = self.work(*self.arguments)
        return [Result(self.row, self.column, self.trial, measure, float(value)) for measure, value in found.items()]

    def within(self, folder: Path) -> Task:
        """Return the task with the folder among its arguments, if it asks for it."""
        return replace(self, arguments=(folder, *self.arguments)) if self.in_folder else self


@dataclass(frozen=True)
class Result:
    """One number of one trial."""

    row: str
    column: str
    trial: int
    measure: str
    value: float


@dataclass(frozen=True)
class Published:
    """One number of a paper. Ours reproduces it if they differ by at most the tolerance, either way."""

    row: str
    column: str
    measure: str
    mean: float
    deviation: float  # NaN where none is printed
    tolerance: float  # the printed deviation, if there is one
    source: str
    rival: bool = False  # whether it is of a method that the paper compares its own with, or of a reference

    @property
    def is_time(self) -> bool:
        """Whether it is a time, which is of another machine and has no verdict."""
        return self.measure.endswith("seconds")

    def verdict(self, ours: float) -> str:
        """Return "reproduced" if our number is within the tolerance either way, else "better" or "worse"."""
        difference = ours - self.mean
        if abs(difference) <= self.tolerance + ROUNDING:
            return REPRODUCED
        lower_is_better = self.measure.startswith("error")
        return BETTER if (difference < 0) == lower_is_better else WORSE


@dataclass(frozen=True)
class Cell:
    """Our results over all trials, with the published number if there is one."""

    row: str
    column: str
    measure: str
    mean: float
    deviation: float
    trials: int
    published: Published | None = None

    @property
    def verdict(self) -> str | None:
        """How our number compares with the published one; None if there is none, or if it is a time."""
        return None if self.published is None or self.published.is_time else self.published.verdict(self.mean)

    @property
    def standard_errors(self) -> float:
        """Our number minus theirs in standard errors of the difference, if they had as many trials."""
        if self.published is None:
            return math.nan
        theirs = 0.0 if math.isnan(self.published.deviation) else self.published.deviation
        spread = math.sqrt((self.deviation**2 + theirs**2) / self.trials)
        return (self.mean - self.published.mean) / spread if spread > 0 else math.nan


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of a paper."""

    name: str
    title: str
    tasks: Callable[[bool], list[Task]]  # argument: whether to run the quick version
    published: str | None = None  # the file in ``published/`` with its numbers
    protocol: str = ""
    deviations: tuple[str, ...] = ()  # from the published protocol, in sentences
    quick: str = ""  # what --quick leaves out
    left_out: dict[str, str] = field(default_factory=dict)  # columns with published numbers that are not run: why
    explanations: tuple[str, ...] = ()  # of systematic differences
    claims: tuple[Claim, ...] = ()  # sentences of the paper that its results judge
    findings: Callable[[Sequence[Result]], Sequence[str]] = field(default=lambda results: ())  # sentences from results
    in_turn: bool = False  # whether each task continues the one before, so that they run one at a time
    by_name_only: bool = False  # whether it takes days, so that "all" leaves it out
    published_trials: int = 0  # trials of each published number; 0: not printed, or one
    pictures: Callable[[Sequence[Result]], dict[str, Picture]] = field(default=lambda results: {})


def run(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool = False,
    jobs: int = 1,
    progress: Callable[[int, int, str], Any] = lambda done, total, name: None,
) -> list[Result]:
    """Run the tasks whose results are not in the folder's CSV file yet, and return all results of the experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{named(experiment.name, quick)}.csv"
    tasks = experiment.tasks(quick)
    known = {(r.row, r.column, r.trial) for r in read_results(path)}
    open_tasks = [task.within(folder) for task in tasks if (task.row, task.column, task.trial) not in known]
    done = len(tasks) - len(open_tasks)
    progress(done, len(tasks), "")
    # Uses the backend of joblib.parallel_config; by default processes on this machine.
    workers = Parallel(1 if experiment.in_turn else jobs, return_as="generator_unordered")
    found = workers(delayed(on_one_thread)(task) for task in open_tasks)
    for results in found:
        _append(path, results)
        done += 1
        progress(done, len(tasks), f"{results[0].row}, {results[0].column}")
    wanted = {(task.row, task.column, task.trial) for task in tasks}
    return [r for r in read_results(path) if (r.row, r.column, r.trial) in wanted]


def named(stem: str, quick: bool) -> str:
    """Return the stem of a file, which tells a quick run from a full one."""
    return f"{stem}-quick" if quick else stem


def read_results(path: Path) -> list[Result]:
    """Read the results in a file, each once; an incomplete last line after a crash is ignored."""
    if not path.exists():
        return []
    found: dict[tuple[str, str, str, str], Result] = {}
    for r in csv.DictReader(_whole_lines(path).splitlines()):
        key = (r["row"], r["column"], r["trial"], r["measure"])  # it occurs twice if two runs did the same task
        found.setdefault(key, Result(r["row"], r["column"], int(r["trial"]), r["measure"], float(r["value"])))
    return list(found.values())


def _whole_lines(path: Path) -> str:
    text = path.read_text()
    return text[: text.rfind("\n") + 1]


def _append(path: Path, results: Iterable[Result]) -> None:
    """Append all numbers of one task or none; a lock lets several runs share a folder."""
    with locked_folder(path.parent):
        known = _whole_lines(path) if path.exists() else ""
        added = io.StringIO()
        writer = csv.writer(added, lineterminator="\n")
        writer.writerows([] if known else [COLUMNS])
        writer.writerows((r.row, r.column, r.trial, r.measure, repr(r.value)) for r in results)
        write_whole(path, (known + added.getvalue()).encode())


def read_published(name: str | None) -> list[Published]:
    """Read the numbers of a file in ``published/``."""
    if name is None:
        return []
    with (files("kernelwright.research.experiments") / "published" / name).open() as file:
        return [
            Published(
                r["row"],
                r["column"],
                r["measure"],
                float(r["mean"]),
                float(r["deviation"] or "nan"),
                float(r["tolerance"]),
                r["source"],
                r["method"] == "rival",
            )
            for r in csv.DictReader(file)
        ]


def cells_of(results: Sequence[Result], published: Sequence[Published] = ()) -> list[Cell]:
    """Compute means over trials, in the order in which cells first appear, with the published numbers."""
    theirs = {(p.row, p.column, p.measure): p for p in published}
    return list(_cells(results, theirs))


def write_cells(path: Path, cells: Iterable[Cell]) -> None:
    """Write one row for each cell: published, ours and the tolerance."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CELL_COLUMNS)
    for c in cells:
        p = c.published
        theirs = ("", "", "") if p is None else (p.mean, p.deviation, p.tolerance)
        ours = (f"{c.mean:.6g}", f"{c.deviation:.6g}", c.trials)
        writer.writerow((c.row, c.column, c.measure, *theirs, *ours, c.verdict or ""))
    write_whole(path, buffer.getvalue().encode())


def _cells(results: Sequence[Result], theirs: dict[tuple[str, str, str], Published]) -> Iterator[Cell]:
    values: dict[tuple[str, str, str], list[float]] = {}
    for r in results:
        values.setdefault((r.row, r.column, r.measure), []).append(r.value)
    for key, found in values.items():
        yield Cell(*key, float(np.mean(found)), float(np.std(found)), len(found), theirs.get(key))
