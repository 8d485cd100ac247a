"""The work of kernelwright fit and predict on tables that are read in parts."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kernelwright
from kernelwright.cli.answering import answers, drift_notes, table_notes
from kernelwright.cli.fitting import fit_record, show_columns
from kernelwright.cli.models import write_report
from kernelwright.cli.options import Asked
from kernelwright.cli.screen import caught_warnings, note, print_json, say, tell
from kernelwright.tables.big import BigTable
from kernelwright.tables.drift import joined_drift
from kernelwright.tables.model import TabularModel
from kernelwright.tables.parts import TableParts
from kernelwright.tables.writing import safe_for_spreadsheets, written_in_parts

__all__ = ["fit_parts", "predict_parts"]


class _Lines(logging.Handler):
    """Prints the lines of a log as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


@contextmanager
def _rows_shown(*, quiet: bool) -> Iterator[None]:
    """Print how many rows are done, and the time left."""
    log = logging.getLogger("kernelwright.rows")
    level, passed_on, handler = log.level, log.propagate, _Lines()
    if quiet:
        yield
        return
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = passed_on


def fit_parts(
    parts: TableParts,
    target: str,
    output: Path,
    *,
    report: Path | None,
    seed: int,
    checkpoint: Path | None,
    every_column: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a model on all rows of a table, and save it."""
    started = time.perf_counter()
    with _rows_shown(quiet=as_json), caught_warnings() as warned:
        data = BigTable.of(parts, target, seed=seed, **options)
        if not as_json:
            _show(data, every=every_column)
        model = data.fit(seed, checkpoint)
        kernelwright.save(model, output)
    tell(warned)
    seconds = time.perf_counter() - started
    if not as_json:
        say(f"\nTrained on {data.rows:,} rows in {seconds:.1f} s (wall clock) and saved in {output}.")
        say("So many rows are not cross-validated. kernelwright evaluate says how good the model is at new rows.")
        if checkpoint is not None:
            say(f"The checkpoint {checkpoint} is not needed any more.")
    if report is not None:
        write_report(report, model, output, quiet=as_json)
    if as_json:
        print_json(fit_record(model, output, report, seconds))


def _show(data: BigTable, *, every: bool) -> None:
    what = f"{len(data.classes)} classes"
    if (numbers := data.numbers) is not None:
        what = f"numbers from {numbers.low:g} to {numbers.high:g}"
    columns = data.sample.columns
    size = f"{data.rows:,} rows, {len(columns)} columns besides the target {data.sample.target!r} with {what}"
    say(f"{data.parts.source}: {size}, read in parts")
    show_columns(columns, every=every)
    for sentence in data.notes:
        say(f"Note: {sentence}")
    say(f"What is said of the columns is that of {len(data.sample.labels):,} random rows.")


def predict_parts(
    fitted: TabularModel, parts: TableParts, output: str, asked: Asked, *, keep_columns: bool, spreadsheets: bool
) -> None:
    """Predict the rows of a table part by part, and write them as they come."""
    identifiers = [name for name in fitted.identifiers if name in parts.names]
    kept, drifts, n = list(parts.names) if keep_columns else identifiers, [], 0
    with written_in_parts(output) as write:
        for table in parts.tables():
            found, drift = answers(fitted, table, kept, asked)
            write(safe_for_spreadsheets(found) if spreadsheets else found)
            drifts.append(drift)
            n += len(table)
    drift = joined_drift(drifts, fitted.estimator.n_support_rows_)
    for sentence in [*table_notes(fitted, table, drift.findings), *drift_notes(drift)]:
        note(f"Note: {sentence}")
    if output != "-":
        say(f"Wrote {n:,} rows to {output}.")
