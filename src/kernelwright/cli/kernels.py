"""Commands for similarities: learn-kernel, apply-kernel.

Each command checks its files before it imports torch, scikit-learn and pandas.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

import kernelwright
from kernelwright.cli.models import check_model, check_model_output, load_model, write_report
from kernelwright.cli.options import Columns, Decimal, Drop, Json, Keep, Seed, Spreadsheets
from kernelwright.cli.screen import print_json, say
from kernelwright.tables.reading import scan_table
from kernelwright.tables.writing import check_output, safe_for_spreadsheets, write_table

__all__ = ["apply_kernel", "learn_kernel"]


def learn_kernel(
    features: Annotated[str, typer.Argument(metavar="FEATURES", help="Table with one row for each object.")],
    similarities: Annotated[
        str,
        typer.Argument(
            metavar="SIMILARITIES",
            help="Square table of similarities, with or without labels, blank if unknown; or a table with three "
            "columns: object, object, similarity.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to save the kernel in.")],
    report: Annotated[Path | None, typer.Option(help="Also write a report on the kernel, as HTML.")] = None,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column of FEATURES with the names of the objects.")
    ] = None,
    drop: Drop = None,
    keep: Keep = None,
    decimal: Decimal = None,
    held_out: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of the objects that is held out for a test; 0 for no test.")
    ] = 0.25,
    seed: Seed = 0,
    every_column: Columns = False,
    as_json: Json = False,
) -> None:
    """Learn a similarity function from a table of objects and a table of their similarities, and save it.

    Objects are matched by name if FEATURES has a column of names (inferred, or given by --id) and SIMILARITIES has
    labels; otherwise both must be in the same order.
    """
    check_model_output(output, features, similarities, report)
    if report is not None:
        check_output(report, features, similarities)
    named = [*(drop or ()), *(keep or ()), *([id_] if id_ is not None else ())]
    objects = scan_table(features, required=dict.fromkeys(named, "column"))
    given = scan_table(similarities, header=False)

    from kernelwright.cli.kernel_learning import KernelData, learn, show_kernel

    started = time.perf_counter()
    tables = objects.table(), given.table()
    data = KernelData.of(*tables, id_=id_, drop=drop or (), keep=keep or (), decimal=decimal)
    model = learn(data, held_out=held_out, seed=seed, source=str(similarities))
    kernelwright.save(model, output)
    seconds = time.perf_counter() - started
    if not as_json:
        show_kernel(model, seconds, output, every=every_column)
    if report is not None:
        write_report(report, model, output, quiet=as_json)
    if as_json:
        result = None if model.evaluation is None else model.evaluation.summary()
        record = {"kernel": str(output), "objects": len(data.names), "columns": list(model.used)}
        print_json(record | {"notes": list(data.notes), "evaluation": result, "seconds": seconds})


def apply_kernel(
    kernel: Annotated[Path, typer.Argument(metavar="KERNEL", help="File that kernelwright learn-kernel wrote.")],
    first: Annotated[str, typer.Argument(metavar="A", help="Table of objects; - is standard input.")],
    second: Annotated[str | None, typer.Argument(metavar="B", help="Another table; by default the same one.")] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File for the matrix (.csv .tsv .parquet); - is standard output.")
    ] = "-",
    spreadsheets: Spreadsheets = False,
) -> None:
    """Write the similarities of the objects of one table, or of two, as a matrix with labels."""
    check_output(output, kernel, first, second)
    check_model(kernel)
    scanned = [scan_table(path) for path in ((first,) if second is None else (first, second))]

    from kernelwright.cli.kernel_learning import kernel_matrix

    model = load_model(kernel, "learn-kernel")
    frame = kernel_matrix(model, [each.table() for each in scanned])
    write_table(safe_for_spreadsheets(frame) if spreadsheets else frame, output)
    if output != "-":
        say(f"Wrote {frame.shape[0]} x {frame.shape[1] - 1} similarities to {output}.")
