"""Print for people: tables and sentences on standard output; progress, notes and errors on standard error."""

from __future__ import annotations

import json
import math
import os
import re
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

from kernelwright.tables.writing import visible

__all__ = ["caught_warnings", "console", "note", "print_json", "print_table", "progress", "say", "steps", "tell"]

PIPED = 120  # width if there is no terminal
ROOMY = 100  # width from which cells are spaced more widely
WHOLE = 24  # names up to this length are not broken


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints text literally, with a fixed width if there is no terminal."""
    file = sys.stderr if stderr else sys.stdout
    wide = None if file.isatty() or "COLUMNS" in os.environ else PIPED
    return Console(stderr=stderr, width=wide, markup=False, highlight=False, emoji=False)


def say(sentence: str = "") -> None:
    """Print a line on standard output, without wrapping it."""
    _print(sentence)


def note(sentence: str) -> None:
    """Print a line on standard error, where it does not mix with results."""
    _print(sentence, stderr=True)


def _print(sentence: str, *, stderr: bool = False) -> None:
    """Print one line, and the empty lines around it; names from files cannot control the terminal."""
    line = sentence.strip("\n")
    before, _, after = sentence.partition(line) if line else (sentence, "", "")
    console(stderr=stderr).print(f"{before}{visible(line)}{after}", soft_wrap=True)


def print_json(record: Mapping[str, Any]) -> None:
    """Print one JSON object; NaN and infinity become null."""
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
    """Print rows with the same keys; columns in ``words`` are left-aligned, rows with the cell ``bold`` are bold."""
    if title:
        say(title)  # rich would wrap it at the width of the table
    gap = 2 if console().width >= ROOMY else 1
    table = Table(box=None, header_style="underline", padding=(0, gap, 0, 0))
    for name in rows[0]:
        worded, longest = name in words, max(len(str(row[name])) for row in rows)
        whole = worded and longest <= WHOLE  # on a narrow screen, headings of numbers are wrapped first
        table.add_column(Text(visible(name)), justify="left" if worded else "right", overflow="fold", no_wrap=whole)
    for row in rows:
        cells = [visible(str(value)) for value in row.values()]
        table.add_row(*map(Text, cells), style="bold" if bold and bold in cells else "")
    console().print(table)


def progress() -> Progress:
    """Return a progress bar with the time left, on standard error; it shows nothing if that is not a terminal."""
    shown = console(stderr=True)
    shown.quiet = not shown.is_terminal  # up to version 14, rich prints an empty line even after a hidden bar
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
    """Show progress through ``total`` steps; after each, call the yielded function with the name of the next."""
    with progress() as bar:
        task = bar.add_task(what, total=total)

        def done(following: str = what) -> None:
            bar.update(task, advance=1, description=following)

        yield done


@contextmanager
def caught_warnings() -> Iterator[dict[str, str]]:
    """Collect warnings for users: those of this library, and those that something did not converge.

    Other warnings are for programmers and are dropped. Warnings that differ only in their numbers are merged. Pass the
    result to :func:`tell`.
    """
    found: dict[str, str] = {}

    def keep(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if _not_converged(category) or (issubclass(category, UserWarning) and _given_by_us()):
            sentence = " ".join(str(message).split())
            found.setdefault(re.sub(r"[\d.e+-]+", "", sentence), sentence)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = keep
        yield found


def _not_converged(category: type[Warning]) -> bool:
    """Return whether a category is scikit-learn's ConvergenceWarning; compare names, since the import is slow."""
    return any(each.__name__ == "ConvergenceWarning" for each in category.__mro__)


def _given_by_us() -> bool:
    """Return whether the current warning comes from this package, whatever its stack level."""
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") == "warnings" and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "kernelwright"


def tell(found: Mapping[str, str], where: str = "", *, but: Mapping[str, str] | None = None) -> None:
    """Print collected warnings as notes, except those in ``but``."""
    for key, sentence in found.items():
        if key not in (but or {}):
            note(f"Note: {where}{sentence}")
