"""Arguments and options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Asked",
    "CheckpointFolder",
    "Columns",
    "Dates",
    "Decimal",
    "Drop",
    "Groups",
    "Json",
    "Keep",
    "ModelFile",
    "Seed",
    "Spreadsheets",
    "TableFile",
    "Time",
    "check_task",
    "levels_of",
    "share_of",
]

TableFile = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV or Parquet, compressed (.gz .bz2 .xz .zst .zip) or not; - is standard input. For fit and "
        "predict also a folder or a pattern in quotation marks ('big/*.parquet'), and files larger than the memory.",
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
Dates = Annotated[
    str | None,
    typer.Option(
        "--dates",
        metavar="day-first|month-first",
        help="Order of ambiguous dates: 03/04/2020 is 3 April (day-first) or 4 March. Inferred by default.",
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", metavar="COLUMN", help="Leave a column out. Can be repeated.")
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="COLUMN", help="Use a column that would be left out. Can be repeated."),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Rows with the same value here belong together: they are left out together, and not told by this column.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COLUMN",
        help="Dates or numbers: validation goes forward in time, each test row later than the rows it is learned from.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random choices.")]
CheckpointFolder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FOLDER",
        help="Folder in which a fit of many rows keeps what it has done: if it is killed, the same command goes on.",
    ),
]
Columns = Annotated[bool, typer.Option("--columns", help="List every column and how it is treated.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@dataclass(frozen=True)
class Asked:
    """What kernelwright predict is to write besides the prediction; None is the default.

    ``proba`` and ``sets`` belong to classes, ``interval`` and ``quantiles`` to numbers.
    """

    proba: bool | None = None
    sets: float | None = None
    interval: float | None = None
    quantiles: tuple[str, ...] | None = None


def check_task(task: str | None) -> None:
    """Raise ValueError if this is not a task."""
    if task not in (None, "classes", "numbers"):
        raise ValueError(f"--task must be 'classes' or 'numbers'. Got {task!r} instead.")


def share_of(value: float | None, option: str) -> float | None:
    """Return a probability that a user gave; raise ValueError unless it lies between 0 and 1."""
    if value is not None and not 0 < value < 1:
        raise ValueError(f"{option} must lie between 0 and 1, such as 0.9. Got {value:g} instead.")
    return value


def levels_of(words: str | None) -> tuple[str, ...] | None:
    """Return the levels in a list such as "0.1,0.5,0.9", as they are written; raise ValueError if one is none."""
    if words is None:
        return None
    levels = tuple(word.strip() for word in words.split(","))
    for word in levels:
        try:
            share_of(float(word), "Each of the --quantiles")
        except ValueError:
            raise ValueError(
                f"--quantiles must be numbers between 0 and 1 with commas between them, such as 0.1,0.5,0.9. Got "
                f"{words!r} instead."
            ) from None
    return levels
