"""Commands for tables with a target column: fit, predict, evaluate, report.

Each command checks its files before it imports torch, scikit-learn and pandas.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

import kernelwright
from kernelwright.cli.models import check_model, check_model_output, load_model, write_report
from kernelwright.cli.options import (
    Asked,
    CheckpointFolder,
    Columns,
    Dates,
    Decimal,
    Drop,
    Groups,
    Json,
    Keep,
    ModelFile,
    Seed,
    Spreadsheets,
    TableFile,
    Time,
    check_task,
    levels_of,
    share_of,
)
from kernelwright.cli.screen import note, print_json, say
from kernelwright.tables.parts import TableParts, WholeParts, in_parts, table_parts
from kernelwright.tables.reading import scan_table
from kernelwright.tables.writing import check_output, safe_for_spreadsheets, write_bytes, write_table

__all__ = ["evaluate", "fit", "predict", "report"]


def fit(
    table: TableFile,
    target: Annotated[str, typer.Option("--target", "-t", help="Column with the classes or numbers to learn.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to save the model in.")],
    report: Annotated[Path | None, typer.Option(help="Also write a report on the model, as HTML.")] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="classes|numbers", help="What to predict. By default, this is told from the target."),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation; fewer if there are few rows.")] = 5,
    cv: Annotated[bool, typer.Option("--cv/--no-cv", help="Whether to measure how good the model is.")] = True,
    id_: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="COLUMN", help="Column that identifies rows; not used for training. Can be repeated."
        ),
    ] = None,
    drop: Drop = None,
    keep: Keep = None,
    groups: Groups = None,
    time_: Time = None,
    decimal: Decimal = None,
    dates: Dates = None,
    checkpoint: CheckpointFolder = None,
    seed: Seed = 0,
    every_column: Columns = False,
    as_json: Json = False,
) -> None:
    """Train a model of classes or numbers on a table, measure how good it is, and save it.

    The kind of each column is inferred: numbers, dates, categories, free text; identifiers and copies are left out.
    Cross-validation compares a model of classes with the majority class, logistic regression and a random forest,
    and a model of numbers with the mean, ridge regression, a random forest and gradient boosting. Rows that belong
    together (--groups) are left out together; with --time, validation goes forward in time.

    A table in a folder or in the files of a pattern, or one that is larger than the memory, is read in parts and not
    cross-validated; --checkpoint keeps what was done.
    """
    check_task(task)
    check_model_output(output, table, report)
    if report is not None:
        check_output(report, table)
    named: dict[str, Any] = {"ids": id_ or (), "drop": drop or (), "keep": keep or ()}
    required = {name: "column" for names in named.values() for name in names}
    required |= {name: what for name, what in ((groups, "group column"), (time_, "time column")) if name is not None}
    required |= {target: "target column"}
    options: dict[str, Any] = {"task": task, "decimal": decimal, "dates": dates}
    whole = _scanned(table, required, in_memory=checkpoint is None)
    if isinstance(whole, TableParts):
        _refuse_relations(groups, time_)

        from kernelwright.cli.big import fit_parts

        shown: dict[str, Any] = {"every_column": every_column, "as_json": as_json}
        fit_parts(whole, target, output, report=report, seed=seed, checkpoint=checkpoint, **options, **named, **shown)
        return

    from kernelwright.cli.fitting import fit_record, learn, show_training_table
    from kernelwright.cli.scoring import show_comparison, show_importance
    from kernelwright.tables.training import TrainingTable

    started = time.perf_counter()
    related = named | {"groups": groups, "time": time_}
    data = TrainingTable.of(whole.table(), target, **related, **options)
    if not as_json:
        show_training_table(data, every=every_column)
    evaluation, model = learn(data, folds if cv else 0, seed)
    kernelwright.save(model, output)
    seconds = time.perf_counter() - started
    if not as_json:
        if evaluation is not None:
            show_comparison(evaluation)
            show_importance(model.evaluation.importance)
        say(f"\nTrained on {len(data.labels)} rows in {seconds:.1f} s (wall clock) and saved in {output}.")
    if report is not None:
        write_report(report, model, output, quiet=as_json)
    if as_json:
        print_json(fit_record(model, output, report, seconds))


def _scanned(table: str, required: dict[str, str] | None = None, *, in_memory: bool = True) -> Any:
    """Return the table, to be read at once or in parts."""
    if table == "-" or (in_memory and not in_parts(table)):
        return scan_table(table, required=required)
    parts = table_parts(table, required)
    return WholeParts(parts) if in_memory and parts.small else parts


def _refuse_relations(groups: str | None, time: str | None) -> None:
    """Raise ValueError if rows that are read in parts are said to be related."""
    for option, column in (("--groups", groups), ("--time", time)):
        if column is not None:
            raise ValueError(f"{option} needs all rows in memory, and this table is read in parts. Take a part of it.")


def predict(
    model: ModelFile,
    table: TableFile,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File for the predictions (.csv .tsv .parquet); - is standard output.")
    ] = "-",
    proba: Annotated[
        bool | None, typer.Option("--proba/--no-proba", help="Classes: whether to write probabilities (default: yes).")
    ] = None,
    sets: Annotated[
        float | None,
        typer.Option(help="Classes: also write sets that contain the true class with this probability, such as 0.9."),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(help="Numbers: probability with which the interval holds the true number (default: 0.9)."),
    ] = None,
    quantiles: Annotated[
        str | None, typer.Option(metavar="LEVELS", help="Numbers: also write quantiles, such as 0.1,0.5,0.9.")
    ] = None,
    keep_columns: Annotated[
        bool, typer.Option("--keep-columns", help="Also write the columns of the table, not only its identifiers.")
    ] = False,
    spreadsheets: Spreadsheets = False,
) -> None:
    """Predict new rows: one line for each, with the class and all class probabilities, or the mean and an interval."""
    check_output(output, model, table)
    check_model(model)
    asked = Asked(proba, sets, share_of(interval, "--interval"), levels_of(quantiles))
    scanned = _scanned(table)

    from kernelwright.cli.answering import answers, drift_notes, table_notes

    fitted = load_model(model, "fit")
    if isinstance(scanned, TableParts):
        from kernelwright.cli.big import predict_parts

        predict_parts(fitted, scanned, output, asked, keep_columns=keep_columns, spreadsheets=spreadsheets)
        return
    rows = scanned.table()
    kept = rows.names if keep_columns else [name for name in fitted.identifiers if name in rows.names]
    found, drift = answers(fitted, rows, kept, asked)
    write_table(safe_for_spreadsheets(found) if spreadsheets else found, output)
    for sentence in [*table_notes(fitted, rows, drift.findings), *drift_notes(drift)]:
        note(f"Note: {sentence}")
    if output != "-":
        say(f"Wrote {len(rows)} rows to {output}.")


def evaluate(
    model: ModelFile,
    table: TableFile,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column with the true targets; by default the same as in training."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a report on this evaluation, as HTML.")] = None,
    as_json: Json = False,
) -> None:
    """Measure how good a model is on a table with its targets, and test rows and targets for drift."""
    check_model(model)
    if report is not None:
        check_output(report, model, table)
    scanned = scan_table(table, required={} if target is None else {target: "target column"})

    from kernelwright.cli.scoring import evaluation_on, evaluation_page, evaluation_record, show_drift, show_evaluation
    from kernelwright.tables.labels import about_missing

    fitted = load_model(model, "fit")
    given = scanned.table()
    rows, targets = fitted.with_target(given, target)
    if unlabelled := len(given) - len(rows):
        noun = {"classes": "class", "numbers": "number"}[fitted.task]
        note(f"Note: {about_missing(given, target or fitted.target, unlabelled, noun)}")
    result, drift = evaluation_on(fitted, rows, targets)
    shift = fitted.target_drift(targets)
    if report is not None:
        write_bytes(report, evaluation_page(fitted, rows, targets, (result, drift, shift)).encode())
    if as_json:
        print_json({"model": str(model), "table": rows.source} | evaluation_record(result, drift, shift))
        return
    show_evaluation(result, fitted)
    show_drift(drift, shift)
    if report is not None:
        say(f"Report: {report}")


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of kernelwright fit or learn-kernel.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file for the report.")],
) -> None:
    """Write a report on a saved model: how good it is, what it learned, and where it is wrong."""
    check_output(output, model)
    check_model(model)

    from kernelwright.reports import model_report

    write_bytes(output, model_report(load_model(model, "fit", "learn-kernel")).encode())
    say(f"Report: {output}")
