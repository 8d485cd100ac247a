"""Arguments and options that several commands have."""

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
        help="What 3,671 is in a column that can be read in two ways: 3.671 or 3671. Found by itself if not given.",
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", metavar="COLUMN", help="Leave a column out. May be repeated.")
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="COLUMN", help="Learn from a column that looks useless. May be repeated."),
]
Seed = Annotated[int, typer.Option(min=0, help="Of all random choices.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
