"""The work of kernelwright fit, after its files have been checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kernelwright.cli.screen import caught_warnings, note, print_table, say, steps, tell
from kernelwright.evaluation.cross_validation import Evaluation, cross_validate, stratified_folds
from kernelwright.tables.columns import Column
from kernelwright.tables.model import TabularModel, TrainingTable, make_pipeline, rival_makers
from kernelwright.tables.table import some_of

__all__ = ["fit_record", "learn", "show_columns", "show_training_table"]

OURS = "kernelwright"
SHOWN = 40  # with more columns, a table is listed by kind


def learn(data: TrainingTable, folds: int, seed: int) -> tuple[Evaluation | None, TabularModel]:
    """Cross-validate unless ``folds`` is 0, then fit to all rows."""
    rivals = rival_makers(data.columns, seed)
    splits = stratified_folds(data.labels, folds, seed=seed) if folds else []
    evaluation, of_folds = None, dict[str, str]()
    with steps("learning", len(splits) * (1 + len(rivals)) + 1) as done:
        if splits:
            with caught_warnings() as of_folds:
                found = cross_validate(
                    lambda: make_pipeline(data.columns, seed),
                    data.frame,
                    data.labels,
                    classes=data.classes,
                    splits=splits,
                    rivals=rivals,
                    progress=lambda name: done(f"cross-validation: {name or OURS} done"),
                )
            few = f" ({folds} were requested, but a class has fewer rows)" if len(splits) < folds else ""
            if left_out := [name for name in rivals if name not in found.rivals]:
                note(f"Note: {', '.join(left_out)} failed on these numbers and could not be compared.")
            rows = data.rows[found.rows - 1]
            evaluation = replace(found, rows=rows, row_word=data.row_word, protocol=found.protocol + few)
        with caught_warnings() as of_model:
            model = TabularModel.fit(data, seed=seed, evaluation=evaluation)
        done("saving")
    tell(of_model)
    tell(of_folds, "in cross-validation: ", but=of_model)
    return evaluation, model


def show_training_table(data: TrainingTable) -> None:
    """Print the size of a table, its columns, and notes about it."""
    n, m = len(data.labels), len(data.classes)
    say(f"{data.source}: {n} rows, {len(data.columns)} columns besides the target {data.target!r} with {m} classes")
    show_columns(data.columns)
    for sentence in data.notes:
        say(f"Note: {sentence}")


def show_columns(columns: Sequence[Column]) -> None:
    """Print how each column is treated, or each kind of column if there are many."""
    if len(columns) <= SHOWN:
        rows = [{"column": c.name, "kind": c.kind, "treatment": c.treatment} for c in columns]
    else:
        kinds = dict.fromkeys(column.kind for column in columns)
        rows = [_summed_up(kind, [c for c in columns if c.kind == kind]) for kind in kinds]
    print_table("", rows, words=list(rows[0]))
    if len(columns) > SHOWN:  # always list numbers that were not read literally
        for column in [c for c in columns if c.kind == "number" and " read as " in c.treatment][:SHOWN]:
            say(f"{column.name}: {column.treatment}")


def _summed_up(kind: str, columns: Sequence[Column]) -> dict[str, str]:
    missing = sum(column.missing for column in columns)
    what = "used" if columns[0].used else "left out"
    return {
        "columns": f"{len(columns)}: {some_of([c.name for c in columns], 3)}",
        "kind": kind,
        "treatment": f"{what}, {missing} values missing" if missing else what,
    }


def fit_record(model: TabularModel, output: Path, report: Path | None, seconds: float) -> dict[str, Any]:
    """Return the record that --json prints."""
    columns = [{key: value for key, value in asdict(c).items() if key != "counts"} for c in model.columns]
    return {
        "model": str(output),
        "report": None if report is None else str(report),
        "table": model.settings["table"],
        "rows": model.settings["rows"],
        "target": model.target,
        "classes": dict(zip(model.classes, model.class_counts, strict=True)),
        "columns": columns,
        "notes": list(model.notes),
        "evaluation": None if model.evaluation is None else model.evaluation.summary(),
        "seconds": seconds,
    }
