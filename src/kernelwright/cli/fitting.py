"""The work of kernelwright fit, after its files have been checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from kernelwright.cli.screen import caught_warnings, note, print_table, say, steps, tell
from kernelwright.evaluation.cross_validation import Evaluation, cross_validate
from kernelwright.evaluation.numbers import NumberEvaluation, cross_validate_numbers
from kernelwright.inputs.frames.columns import Column, columns_summary
from kernelwright.tables.model import TabularModel
from kernelwright.tables.pipelines import make_number_pipeline, make_pipeline, number_rival_makers, rival_makers
from kernelwright.tables.training import TrainingTable

__all__ = ["fit_record", "learn", "show_columns", "show_training_table"]

OURS = "kernelwright"
SHOWN = 40  # columns that were not read literally


def learn(data: TrainingTable, folds: int, seed: int) -> tuple[Evaluation | NumberEvaluation | None, TabularModel]:
    """Cross-validate unless ``folds`` is 0, then fit to all rows."""
    rivals = (rival_makers if data.numbers is None else number_rival_makers)(data.columns, seed)
    validation = data.validation(folds, seed) if folds else None
    splits = [] if validation is None else validation.splits
    evaluation, of_folds = None, dict[str, str]()
    with steps("learning", len(splits) * (1 + len(rivals)) + 1) as done:
        if validation is not None:
            with caught_warnings() as of_folds:
                found = _cross_validated(
                    data,
                    seed,
                    splits=splits,
                    protocol=validation.protocol,
                    params=data.fit_params,
                    rivals=rivals,
                    progress=lambda name: done(f"cross-validation: {name or OURS} done"),
                )
            if left_out := [name for name in rivals if name not in found.rivals]:
                note(f"Note: {', '.join(left_out)} failed on these numbers and could not be compared.")
            rows = data.rows[found.rows - 1]
            evaluation = replace(found, rows=rows, row_word=data.row_word)
        with caught_warnings() as of_model:
            model = TabularModel.fit(data, seed=seed, evaluation=evaluation)
        done("saving")
    tell(of_model)
    tell(of_folds, "in cross-validation: ", but=of_model)
    return evaluation, model


def _cross_validated(data: TrainingTable, seed: int, **options: Any) -> Evaluation | NumberEvaluation:
    if data.numbers is None:
        make = partial(make_pipeline, data.columns, seed)
        return cross_validate(make, data.frame, data.labels, classes=data.classes, **options)
    return cross_validate_numbers(partial(make_number_pipeline, data.columns, seed), data.frame, data.labels, **options)


def show_training_table(data: TrainingTable, *, every: bool = False) -> None:
    """Print the size of a table, its columns (``every`` one, or their number by kind), and notes about it."""
    what = f"{len(data.classes)} classes"
    if (numbers := data.numbers) is not None:
        what = f"numbers from {numbers.low:g} to {numbers.high:g}"
    size = f"{len(data.labels)} rows, {len(data.columns)} columns besides the target {data.target!r} with {what}"
    say(f"{data.source}: {size}")
    show_columns(data.columns, every=every)
    for sentence in data.notes:
        say(f"Note: {sentence}")


def show_columns(columns: Sequence[Column], *, every: bool = False) -> None:
    """Print how each column is treated, or how many there are of each kind; and numbers that are not as written."""
    if every:
        rows = [{"column": c.name, "kind": c.kind, "treatment": c.treatment} for c in columns]
        print_table("", rows, words=list(rows[0]))
        return
    gaps = sum(column.missing for column in columns if column.used)
    rest = f"; {gaps:,} cells without a value" if gaps else ""
    say(f"Columns: {columns_summary(columns)}{rest}. --columns lists them.")
    for column in [c for c in columns if c.kind == "number" and " read as " in c.treatment][:SHOWN]:
        say(f"{column.name}: {column.treatment}")


def fit_record(model: TabularModel, output: Path, report: Path | None, seconds: float) -> dict[str, Any]:
    """Return the record that --json prints."""
    columns = [{key: value for key, value in asdict(c).items() if key != "counts"} for c in model.columns]
    return {
        "model": str(output),
        "report": None if report is None else str(report),
        "table": model.settings["table"],
        "rows": model.settings["rows"],
        "target": model.target,
        "task": model.task,
        **_target_record(model),
        "columns": columns,
        "notes": list(model.notes),
        "evaluation": None if model.evaluation is None else model.evaluation.summary(),
        "seconds": seconds,
    }


def _target_record(model: TabularModel) -> dict[str, Any]:
    if (numbers := model.numbers) is None:
        return {"classes": dict(zip(model.classes, model.class_counts, strict=True))}
    return {"numbers": {"low": numbers.low, "high": numbers.high, "mean": numbers.mean, "std": numbers.std}}
