"""What a person sees: tables and sentences on standard output; progress, notes and faults on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from kernelwright.errors import CollapseWarning, NumericalRepairWarning

__all__ = ["console", "note", "own_warnings", "print_json", "print_table", "progress", "say", "steps"]

PIPED = 120  # columns where no terminal says how many
ROOMY = 100  # columns, from which on cells stand apart
WHOLE = 24  # letters of names that are not broken


def console(*, stderr: bool = False) -> Console:
    """A console that prints text as it is, and is wide enough where nobody looks on."""
    file = sys.stderr if stderr else sys.stdout
    wide = None if file.isatty() or "COLUMNS" in os.environ else PIPED
    return Console(stderr=stderr, width=wide, markup=False, highlight=False, emoji=False)


def say(sentence: str = "") -> None:
    """A line on standard output, however long."""
    console().print(sentence, soft_wrap=True)


def note(sentence: str) -> None:
    """A line on standard error, where it does not mix with results."""
    console(stderr=True).print(sentence, soft_wrap=True)


def print_json(record: Mapping[str, Any]) -> None:
    """One JSON object, and numbers that JSON does not have as null."""
    sys.stdout.write(json.dumps(_plain(record), allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def print_table(
    title: str, rows: Sequence[Mapping[str, Any]], *, words: Sequence[str] = ("data", "method"), bold: str = ""
) -> None:
    """Rows with the same keys; columns of ``words`` stand at the left, the row whose first cell is ``bold`` is so."""
    if title:
        say(title)  # rich would break it at the table's width
    gap = 2 if console().width >= ROOMY else 1
    table = Table(box=None, header_style="underline", padding=(0, gap, 0, 0))
    for name in rows[0]:
        worded, longest = name in words, max(len(str(row[name])) for row in rows)
        whole = worded and longest <= WHOLE  # on a narrow screen, headings of numbers are broken first
        table.add_column(Text(name), justify="left" if worded else "right", overflow="fold", no_wrap=whole)
    for row in rows:
        cells = [str(value) for value in row.values()]
        table.add_row(*map(Text, cells), style="bold" if bold and bold in cells else "")
    console().print(table)


def progress() -> Progress:
    """A bar with the time left, on standard error where that is a terminal; nothing elsewhere."""
    shown = console(stderr=True)
    shown.quiet = not shown.is_terminal  # up to version 14, rich ends even a bar that is not shown with an empty line
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal)


@contextmanager
def steps(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Progress through so many steps: call what it gives with the name of the next one after each."""
    with progress() as bar:
        task = bar.add_task(what, total=total)

        def done(following: str = what) -> None:
            bar.update(task, advance=1, description=following)

        yield done


@contextmanager
def own_warnings(shown: bool = True) -> Iterator[None]:
    """Notes in place of Python's warnings, of those that are this library's own; others say nothing to a person."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    ours = [w.message for w in caught if issubclass(w.category, (CollapseWarning, NumericalRepairWarning))]
    for sentence in dict.fromkeys(map(str, ours)) if shown else ():
        note(f"Note: {sentence}")
