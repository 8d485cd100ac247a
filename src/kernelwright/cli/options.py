"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Decimal", "Drop", "Json", "Keep", "ModelFile", "Seed", "Spreadsheets", "TableFile"]

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
        help="Decimal sign of ambiguous columns: 3,671 is 3.671 (comma) or 3671 (point). Inferred by default.",
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", metavar="COLUMN", help="Leave a column out. Can be repeated.")
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="COLUMN", help="Use a column that would be left out. Can be repeated."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random choices.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
