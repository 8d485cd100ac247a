"""Commands for similarities: learn-kernel, apply-kernel."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import kernelwright
from kernelwright.cli.classify import (
    Decimal,
    Json,
    Spreadsheets,
    check_model_output,
    load_model,
    report_maker,
    show_columns,
    write_report,
)
from kernelwright.cli.screen import note, print_json, print_table, say, steps
from kernelwright.tables import (
    KernelEvaluation,
    KernelModel,
    Table,
    check_output,
    describe_columns,
    held_out_error,
    read_similarities,
    read_table,
    write_table,
)
from kernelwright.tables.columns import remarks, texts
from kernelwright.tables.table import some_of
from kernelwright.tables.writing import safe_for_spreadsheets


def learn_kernel(
    features: Annotated[str, typer.Argument(metavar="FEATURES", help="Table with a row for each object.")],
    similarities: Annotated[
        str,
        typer.Argument(
            metavar="SIMILARITIES",
            help="Square table of similarities, with or without labels, blank where unknown; or a table of three "
            "columns: object, object, similarity.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to save the kernel in.")],
    report: Annotated[Path | None, typer.Option(help="Also write a page about the kernel, as HTML.")] = None,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column of FEATURES with the names of the objects.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="COLUMN", help="Leave a column out. May be repeated.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="Learn from a column that looks useless. May be repeated."),
    ] = None,
    decimal: Decimal = None,
    held_out: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of the objects to test the kernel with first; 0 is none.")
    ] = 0.25,
    seed: Annotated[int, typer.Option(min=0, help="Of all random choices.")] = 0,
    as_json: Json = False,
) -> None:
    """Learn a similarity function from a table of objects and a table of their similarities, and save it.

    Objects are matched by name where FEATURES has a column of names (found by itself, or --id) and SIMILARITIES has
    labels; otherwise they must stand in the same order.
    """
    check_model_output(output, features, similarities, report)
    page = None if report is None else report_maker(report, features, similarities)
    started = time.perf_counter()
    objects = read_table(features)
    for name in (*(drop or ()), *(keep or ())):
        objects.column(name)  # which says what is wrong if there is none of that name
    identifier = _identifier(objects, id_, drop or (), keep or ())
    names = _names(objects, identifier)
    given = read_similarities(similarities, names, named=identifier is not None, decimal=decimal)
    known = ~np.isnan(given.values).all(1)
    places, matrix = given.places[known], given.values[np.ix_(known, known)]
    used, names = objects.take(places), [names[k] for k in places]
    ids = [identifier] if identifier else []
    columns = describe_columns(used, ids=ids, drop=drop or [], keep=keep or [], decimal=decimal)
    notes = _notes(len(objects), len(places), given.form, identifier)
    notes += (given.remark,) * bool(given.remark) + remarks(columns)
    if not any(column.used for column in columns):
        raise ValueError(f"{objects.source} has no column to learn from: {some_of([c.name for c in columns])}.")
    if len(places) < 3:
        raise ValueError(f"{len(places)} objects have known similarities; a kernel needs at least 3.")
    with steps("testing on held-out objects" if held_out else "learning", 1 + bool(held_out)) as done:
        evaluation = None
        if held_out:
            evaluation = held_out_error(columns, used, matrix, objects=names, share=held_out, seed=seed)
            done("learning from all objects")
        settings = {"features": objects.source, "similarities": str(similarities), "seed": seed}
        rest = {"identifier": identifier, "evaluation": evaluation, "notes": notes, "settings": settings}
        model = KernelModel.fit(columns, used, matrix, objects=names, seed=seed, **rest)
        done("done")
    kernelwright.save(model, output)
    seconds = time.perf_counter() - started
    if not as_json:
        _show(model, seconds, output)
    if report is not None:
        write_report(report, page, model, output, quiet=as_json)
    if as_json:
        result = None if evaluation is None else evaluation.summary()
        record = {"kernel": str(output), "objects": len(names), "columns": list(model.used), "notes": list(notes)}
        print_json(record | {"evaluation": result, "seconds": seconds})


def _identifier(table: Table, wanted: str | None, drop: Collection[str], keep: Collection[str]) -> str | None:
    """The column that names the objects."""
    if wanted is not None:
        table.column(wanted)
        return wanted
    found = [column for column in describe_columns(table, drop=drop, keep=keep) if column.kind == "identifier"]
    return next((column.name for column in found if column.distinct == len(table)), None)


def _names(table: Table, identifier: str | None) -> list[str]:
    """Names of objects, all different; their numbers where no column names them."""
    if identifier is None:
        return [str(k + 1) for k in range(len(table))]
    words = texts(table, identifier)
    if words.isna().any():
        row = int(words.isna().to_numpy().argmax())
        raise ValueError(f"{table.source} has no name of an object (column {identifier!r}) in {table.place(row)}.")
    if (twice := words.duplicated().to_numpy()).any():
        row = int(twice.argmax())
        raise ValueError(f"{table.source} has the object {words[row]!r} twice, again in {table.place(row)}.")
    return list(words)


def _notes(n_objects: int, n_used: int, form: str, identifier: str | None) -> tuple[str, ...]:
    matched = "in the order of the rows" if identifier is None or form == "a matrix" else f"by {identifier!r}"
    notes = [f"Similarities: {form}, matched to the objects {matched}."]
    if n_used < n_objects:
        notes.append(f"{n_objects - n_used} of {n_objects} objects have no known similarity and were left out.")
    return tuple(notes)


def _show(model: KernelModel, seconds: float, output: Path) -> None:
    for sentence in model.notes:
        say(sentence)
    show_columns(model.columns)
    if model.evaluation is None:
        say("No objects were held out, so how good the kernel is on new ones is not known.")
    else:
        _show_evaluation(model.evaluation)
    say(f"\nLearned from {len(model.objects)} objects in {seconds:.1f} s and saved in {output}.")


def _show_evaluation(found: KernelEvaluation) -> None:
    errors = {"kernelwright": found.error, **found.rivals}
    rows = [
        {
            "method": name,
            "error": f"{error.value:.4g} ({error.low:.4g} to {error.high:.4g})",
            "of the spread": f"{100 * error.value / found.spread:.1f} %" if found.spread else "",
        }
        for name, error in errors.items()
    ]
    print_table("\nRoot mean squared error on new objects, with 95 % intervals", rows, bold="kernelwright")
    say(f"{found.protocol}.")


def apply_kernel(
    kernel: Annotated[Path, typer.Argument(metavar="KERNEL", help="File that kernelwright learn-kernel wrote.")],
    first: Annotated[str, typer.Argument(metavar="A", help="Table of objects; - is standard input.")],
    second: Annotated[str | None, typer.Argument(metavar="B", help="Another table; the same one if not given.")] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File for the matrix (.csv .tsv .parquet); - is standard output.")
    ] = "-",
    spreadsheets: Spreadsheets = False,
) -> None:
    """Write the similarities of the objects of one table, or of two, as a matrix with labels."""
    import pandas as pd

    check_output(output, kernel, first, second)
    model = load_model(kernel, KernelModel)
    tables = [read_table(path) for path in ((first,) if second is None else (first, second))]
    encoded = []
    for table in tables:
        X, findings = model.encode(table)
        encoded.append(X)
        for finding in findings:
            if finding.what in ("missing", "new category"):
                note(f"Note: {table.source}: {finding}.")
    labels = [_labels(table, model.identifier) for table in tables]
    K = model.learner.predict(*encoded)
    corner = model.identifier or "object"
    frame = pd.DataFrame(K, columns=labels[-1])
    frame.insert(0, corner, labels[0], allow_duplicates=True)
    write_table(safe_for_spreadsheets(frame) if spreadsheets else frame, output)
    if output != "-":
        say(f"Wrote {K.shape[0]} x {K.shape[1]} similarities to {output}.")


def _labels(table: Table, identifier: str | None) -> list[str]:
    """Names of the objects of a table, or the numbers of its rows."""
    return _names(table, identifier if identifier in table.names else None)
