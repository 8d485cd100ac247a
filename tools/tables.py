"""Tables of results: CSV files, tables on the screen and Markdown tables."""

import csv
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

Cells = dict[str, str]  # a row in a file
Row = dict[str, object]  # a row of measurements
console = Console(width=140)


def read(path: Path, *, missing_ok: bool = False) -> list[Cells]:
    """Read the rows of a CSV file; ignore a last line that a crash has cut off."""
    if missing_ok and not path.exists():
        return []
    with path.open(newline="") as file:
        whole, _, _ = file.read().rpartition("\n")
    return list(csv.DictReader(io.StringIO(whole, newline="")))


def write(path: Path, rows: Sequence[Mapping[str, object]], *, line_end: str = "\n") -> None:
    """Write rows as CSV, completely or not at all."""
    path.parent.mkdir(exist_ok=True)
    partial = path.with_name(f".{path.name}")
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns_of(rows), restval="", lineterminator=line_end)
        writer.writeheader()
        writer.writerows(rows)
    os.replace(partial, path)


def append(path: Path, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Add rows to a CSV file, with a header if it is new, and wait until they are on the disk."""
    path.parent.mkdir(exist_ok=True)
    new = not path.exists() or not path.stat().st_size
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)
        file.flush()
        os.fsync(file.fileno())


def columns_of(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """List the columns of all rows, in the order in which they appear."""
    return list(dict.fromkeys(column for row in rows for column in row))


def show(title: str, rows: Sequence[Mapping[str, object]], *, number: str = "") -> None:
    """Print rows as a table; ``number`` is the format of floats."""
    table, columns = Table(title=title, title_justify="left"), columns_of(rows)
    for column in columns:
        table.add_column(column, justify="left" if isinstance(rows[0].get(column), str) else "right")
    for row in rows:
        cells = (row.get(column, "") for column in columns)
        table.add_row(*(format(cell, number) if isinstance(cell, float) else str(cell) for cell in cells))
    console.print(table)


def markdown(rows: Sequence[Cells]) -> str:
    """Format rows as a Markdown table."""
    header = list(rows[0])
    lines = [header, ["---"] * len(header), *[list(row.values()) for row in rows]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shortened(cell: str) -> str:
    """Round a long number and group its thousands; leave other cells unchanged."""
    if re.fullmatch(r"\d+", cell):
        return f"{int(cell):,}"
    if cell == "nan":
        return ""
    if not re.fullmatch(r"\d+\.\d+(e[+-]?\d+)?", cell):
        return cell
    value = float(cell)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def bold(cell: str, marked: bool) -> str:
    """Set a cell in bold if it is marked."""
    return f"**{cell}**" if marked else cell
