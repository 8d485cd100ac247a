"""Commands for tables with a label column: fit, predict, evaluate, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import kernelwright
from kernelwright.cli.screen import caught_warnings, note, print_json, print_table, say, steps, tell
from kernelwright.evaluation.cross_validation import Evaluation, cross_validate, prediction_sets, stratified_folds
from kernelwright.evaluation.scores import Scores
from kernelwright.tables import (
    Column,
    Drift,
    Finding,
    KernelModel,
    Table,
    TabularModel,
    TrainingTable,
    check_output,
    read_table,
    write_bytes,
    write_table,
)
from kernelwright.tables.labels import about_missing
from kernelwright.tables.model import make_pipeline, rival_makers
from kernelwright.tables.table import some_of
from kernelwright.tables.writing import safe_for_spreadsheets

OURS = "kernelwright"
SHOWN = 40  # columns of a table that are listed one by one
CONFUSED = 12  # classes of a confusion matrix that is shown whole

TableFile = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="CSV, TSV or Parquet, compressed (.gz .bz2 .xz .zst .zip) or not; - is standard input."
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="File that kernelwright fit wrote.")]
Spreadsheets = Annotated[
    bool,
    typer.Option(
        "--safe-for-spreadsheets", help="Put an apostrophe before text that a spreadsheet would take for a formula."
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal",
        metavar="comma|point",
        help="What 3,671 is in a column that can be read in two ways: 3.671 or 3671. Found by itself if not given.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def fit(
    table: TableFile,
    target: Annotated[str, typer.Option("--target", "-t", help="Column with the classes to learn.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to save the model in.")],
    report: Annotated[Path | None, typer.Option(help="Also write a page about the model, as HTML.")] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation; fewer if a class is smaller.")] = 5,
    cv: Annotated[bool, typer.Option("--cv/--no-cv", help="Whether to tell how good the model is.")] = True,
    id_: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="COLUMN", help="An identifier: not learned from. May be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="COLUMN", help="Leave a column out. May be repeated.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="Learn from a column that looks useless. May be repeated."),
    ] = None,
    decimal: Decimal = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all random choices.")] = 0,
    as_json: Json = False,
) -> None:
    """Learn to tell the classes of a table, say how good it is, and save the model.

    Kinds of columns are found, gaps filled and categories encoded; identifiers are left out. Every row is then
    predicted by a model that has not seen it, next to the majority class, logistic regression and a random forest.
    """
    check_model_output(output, table, report)
    page = None if report is None else report_maker(report, table)
    started = time.perf_counter()
    whole = read_table(table)
    data = TrainingTable.of(whole, target, ids=id_ or (), drop=drop or (), keep=keep or (), decimal=decimal)
    if not as_json:
        _show_columns(data)
    evaluation, model = _learn(data, folds if cv else 0, seed)
    kernelwright.save(model, output)
    seconds = time.perf_counter() - started
    if not as_json:
        if evaluation is not None:
            _show_comparison(evaluation)
        say(f"\nLearned from {len(data.labels)} rows in {seconds:.1f} s and saved in {output}.")
    if report is not None:
        write_report(report, page, model, output, quiet=as_json)
    if as_json:
        print_json(_fit_record(model, output, report, seconds))


def _learn(data: TrainingTable, folds: int, seed: int) -> tuple[Evaluation | None, TabularModel]:
    """Cross-validate, unless there are to be no folds; then learn from all rows."""
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
            few = f" ({folds} were asked for, but a class is smaller)" if len(splits) < folds else ""
            if left_out := [name for name in rivals if name not in found.rivals]:
                note(f"Note: {', '.join(left_out)} cannot take these numbers and could not be compared with.")
            rows = data.rows[found.rows - 1]
            evaluation = replace(found, rows=rows, row_word=data.row_word, protocol=found.protocol + few)
        with caught_warnings() as of_model:
            model = TabularModel.fit(data, seed=seed, evaluation=evaluation)
        done("saving")
    tell(of_model)
    tell(of_folds, "in cross-validation: ", but=of_model)
    return evaluation, model


def _show_columns(data: TrainingTable) -> None:
    n, m = len(data.labels), len(data.classes)
    say(f"{data.source}: {n} rows, {len(data.columns)} columns besides the target {data.target!r} with {m} classes")
    show_columns(data.columns)
    for sentence in data.notes:
        say(f"Note: {sentence}")


def show_columns(columns: Sequence[Column]) -> None:
    """What is done to each column, or to each kind where there are many."""
    if len(columns) <= SHOWN:
        rows = [{"column": c.name, "kind": c.kind, "what is done to it": c.treatment} for c in columns]
    else:
        kinds = dict.fromkeys(column.kind for column in columns)
        rows = [_summed_up(kind, [c for c in columns if c.kind == kind]) for kind in kinds]
    print_table("", rows, words=list(rows[0]))
    if len(columns) > SHOWN:  # what is not as it stands in the file is listed all the same
        for column in [c for c in columns if c.kind == "number" and " read as " in c.treatment][:SHOWN]:
            say(f"{column.name}: {column.treatment}")


def _summed_up(kind: str, columns: Sequence[Column]) -> dict[str, str]:
    missing = sum(column.missing for column in columns)
    what = "used" if columns[0].used else "left out"
    return {
        "columns": f"{len(columns)}: {some_of([c.name for c in columns], 3)}",
        "kind": kind,
        "what is done to them": f"{what}, {missing} values missing" if missing else what,
    }


def _score_row(method: str, scores: Scores) -> dict[str, str]:
    accuracy = scores.accuracy
    return {
        "method": method,
        "accuracy": f"{100 * accuracy.value:.1f} % ({100 * accuracy.low:.1f} to {100 * accuracy.high:.1f})",
        "log loss": str(scores.log_loss),
        "calibration error": str(scores.calibration_error),
    }


def _show_comparison(evaluation: Evaluation) -> None:
    rows = [_score_row(OURS, evaluation.scores)]
    rows += [_score_row(name, rival.scores) for name, rival in evaluation.rivals.items()]
    seconds = [evaluation.seconds, *(rival.seconds for rival in evaluation.rivals.values())]
    rows = [row | {"seconds": f"{time:.1f}"} for row, time in zip(rows, seconds, strict=True)]
    print_table("\nHow good, with 95 % intervals", rows, bold=OURS)
    say(f"By {evaluation.protocol}.")
    gains = {name: rival.gain for name, rival in evaluation.rivals.items()}
    parts = {
        "better than": [name for name, gain in gains.items() if gain.low > 0],
        "level with": [name for name, gain in gains.items() if gain.low <= 0 <= gain.high],
        "worse than": [name for name, gain in gains.items() if gain.high < 0],
    }
    verdict = "; ".join(f"{word} {', '.join(names)}" for word, names in parts.items() if names)
    say(f"Log loss, row by row: {verdict}.")


def _fit_record(model: TabularModel, output: Path, report: Path | None, seconds: float) -> dict[str, Any]:
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


def predict(
    model: ModelFile,
    table: TableFile,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File for the answers (.csv .tsv .parquet); - is standard output.")
    ] = "-",
    proba: Annotated[bool, typer.Option("--proba/--no-proba", help="Whether to write probabilities.")] = True,
    sets: Annotated[
        float | None,
        typer.Option(help="Also write a set of classes that holds the true one in this share of cases, such as 0.9."),
    ] = None,
    keep_columns: Annotated[
        bool, typer.Option("--keep-columns", help="Write the columns of the table, too, not only its identifiers.")
    ] = False,
    spreadsheets: Spreadsheets = False,
) -> None:
    """Tell the classes of new rows: a line for each, with the class and the probability of every class."""
    check_output(output, model, table)
    fitted = load_model(model, TabularModel)
    rows = read_table(table)
    kept = rows.names if keep_columns else [name for name in fitted.identifiers if name in rows.names]
    if sets is not None and fitted.evaluation is None:
        raise ValueError("--sets needs a model that was cross-validated: fit it without --no-cv.")
    probabilities, drift = fitted.answer(rows)
    answers = _answers(fitted, rows.frame[kept], probabilities, proba, sets)
    write_table(safe_for_spreadsheets(answers) if spreadsheets else answers, output)
    for sentence in [*_oddities(fitted, rows, drift.findings), *_warnings_of(drift)]:
        note(f"Note: {sentence}")
    if output != "-":
        say(f"Wrote {len(rows)} rows to {output}.")


def _answers(model: TabularModel, kept: Any, probabilities: np.ndarray, proba: bool, coverage: float | None) -> Any:
    """The columns of the output."""
    import pandas as pd

    classes = np.array(model.classes, dtype=object)
    new = {"prediction": classes[probabilities.argmax(1)]}
    if proba:
        new |= {f"probability_{name}": probabilities[:, k].round(6) for k, name in enumerate(classes)}
    if coverage is not None and model.evaluation is not None:
        inside = prediction_sets(model.evaluation, probabilities, coverage)
        new["prediction_set"] = np.array(["|".join(classes[row]) for row in inside], dtype=object)
    if twice := [name for name in new if name in kept.columns]:
        raise ValueError(f"The table has a column {twice[0]!r} itself, which the answers need: rename it.")
    return pd.concat([kept.reset_index(drop=True), pd.DataFrame(new)], axis=1)


def _warnings_of(drift: Drift) -> list[str]:
    """What a person should know of rows that are unlike the training rows, if there are any."""
    if not (drift.found or drift.nowhere):
        return []
    beyond = [f"{f.column} ({f.count})" for f in drift.findings if f.what.endswith("range")]
    outside = [f"Values outside the range of the training rows: {some_of(beyond, 10)}."] if beyond else []
    return [" ".join(drift.sentences()), *outside]


def _oddities(model: TabularModel, table: Table, findings: Sequence[Finding]) -> list[str]:
    """What a person should know of a table before trusting the answers."""
    found = []
    if extra := model.extra_columns(table):
        found.append(f"columns that the model does not know are ignored: {some_of(extra, 10)}.")
    usual = {column.name for column in model.columns if column.missing}
    gaps = [finding for finding in findings if finding.what == "missing"]
    if gaps:
        names = some_of(
            [f"{g.column} ({g.count}{'' if g.column in usual else ', none in training'})" for g in gaps], 10
        )
        found.append(f"{sum(g.count for g in gaps)} values are missing and were filled in: {names}.")
    found += [f"{finding}." for finding in findings if finding.what == "new category"]
    return found


def evaluate(
    model: ModelFile,
    table: TableFile,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column with the true classes; as in training if not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell how good a model is on a table with labels, and whether the table is unlike the training table."""
    fitted = load_model(model, TabularModel)
    given = read_table(table)
    rows, labels = fitted.label_numbers(given, target)
    if unlabelled := len(given) - len(rows):
        note(f"Note: {about_missing(given, target or fitted.target, unlabelled)}")
    started = time.perf_counter()
    probabilities, drift = fitted.answer(rows)
    seconds = time.perf_counter() - started
    result = Evaluation.of(
        probabilities,
        labels,
        classes=fitted.classes,
        rows=rows.row_numbers(),
        row_word=rows.row_word,
        protocol=f"{len(labels)} rows of {rows.source}, with the model as it was saved",
        seconds=seconds,
    )
    shares = np.array(fitted.class_counts) / sum(fitted.class_counts)
    result.rivals["majority class"] = result.compare(np.tile(shares, (len(labels), 1)))
    if as_json:
        hardest = [asdict(row) for row in result.hardest()]
        print_json(
            {"model": str(model), "table": rows.source}
            | result.summary()
            | {"hardest_rows": hardest}
            | {"drift": drift.summary()}
        )
        return
    _show_evaluation(result, fitted)
    _show_drift(drift)


def _show_evaluation(result: Evaluation, model: TabularModel) -> None:
    rows = [_score_row(OURS, result.scores)]
    rows += [_score_row(name, rival.scores) for name, rival in result.rivals.items()]
    if model.evaluation is not None:
        rows.append(_score_row("cross-validation then", model.evaluation.scores))
    print_table("How good, with 95 % intervals", rows, bold=OURS)
    say(f"By {result.protocol}.")
    counts = result.confusion()
    if len(result.classes) <= CONFUSED:
        table = [
            {"true class": name} | dict(zip(result.classes, map(int, counts[k]), strict=True))
            for k, name in enumerate(result.classes)
        ]
        print_table("\nTrue class (down) and predicted class (across)", table, words=("true class",))
    wrong = [row for row in result.hardest(5) if row.actual != row.predicted]
    if wrong:
        print_table(
            "\nWorst mistakes", [_hard_row(row, result.row_word) for row in wrong], words=("true class", "predicted")
        )


def _hard_row(row: Any, word: str) -> dict[str, Any]:
    return {
        word: row.row,
        "true class": row.actual,
        "predicted": row.predicted,
        "probability of the true class": f"{row.probability:.3g}",
    }


def _show_drift(drift: Drift) -> None:
    say()
    for sentence in drift.sentences():
        say(sentence)
    for finding in drift.findings:
        if finding.what != "missing":
            word = drift.row_word + "s" * (finding.count > 1)
            say(f"  {finding}; {word} {some_of(finding.rows)}{', ...' if finding.count > len(finding.rows) else ''}")


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of kernelwright fit or learn-kernel.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page, an HTML file.")],
) -> None:
    """Write a page about a saved model: how good it is, what it learned, where it errs."""
    page = report_maker(output, model)
    write_bytes(output, page(load_model(model, (TabularModel, KernelModel))).encode())
    say(f"Report: {output}")


def report_maker(output: Path, *others: str | Path) -> Any:
    """The function that writes pages; what is wrong with the place for one is said before any work."""
    from kernelwright.reports import model_report

    check_output(output, *others)
    return model_report


def write_report(report: Path, make_page: Any, model: Any, saved: Path, *, quiet: bool = False) -> None:
    """Write a page about a model that has been saved; if that fails, say that the model is there all the same."""
    try:
        write_bytes(report, make_page(model).encode())
    except (OSError, ValueError, MemoryError) as error:
        why = f"{error.strerror}." if isinstance(error, OSError) and error.strerror else str(error)
        raise ValueError(
            f"The model was written to {saved}, but the report could not be written to {report}: {why} Once there is "
            f"room for it, kernelwright report {saved} -o {report} makes it."
        ) from error
    if not quiet:
        say(f"Report: {report}")


def check_model_output(path: Path, *others: str | Path | None) -> None:
    """A model is a file, and none of the others that a command reads or writes."""
    if str(path) == "-":
        raise ValueError("A model cannot go to standard output: give the name of a file.")
    check_output(path, *others)
    if path.exists() and not path.is_file():
        raise ValueError(f"Cannot write to {path}: it is not a regular file.")


def load_model(path: Path, kind: type | tuple[type, ...]) -> Any:
    """A model of the kind that a command is for."""
    if not path.exists():
        raise ValueError(f"There is no file {path}.")
    found = kernelwright.load(path)
    if not isinstance(found, kind):
        made = {TabularModel: "kernelwright fit", KernelModel: "kernelwright learn-kernel"}.get(type(found), "")
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = "kernelwright fit" if TabularModel in kinds else "kernelwright learn-kernel"
        raise ValueError(
            f"{path} holds {'a model of ' + made if made else 'a ' + type(found).__name__}, and this command wants one "
            f"of {wanted}."
        )
    return found
