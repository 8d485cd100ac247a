"""What a person sees: tables and sentences on standard output; progress, notes and faults on standard error."""

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
    _print(sentence)


def note(sentence: str) -> None:
    """A line on standard error, where it does not mix with results."""
    _print(sentence, stderr=True)


def _print(sentence: str, *, stderr: bool = False) -> None:
    """One line, with empty ones around it if asked for; names from files cannot command the terminal."""
    line = sentence.strip("\n")
    before, _, after = sentence.partition(line) if line else (sentence, "", "")
    console(stderr=stderr).print(f"{before}{visible(line)}{after}", soft_wrap=True)


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
        table.add_column(Text(visible(name)), justify="left" if worded else "right", overflow="fold", no_wrap=whole)
    for row in rows:
        cells = [visible(str(value)) for value in row.values()]
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
def caught_warnings() -> Iterator[dict[str, str]]:
    """Warnings for a person, in place of Python's: those that this library gives, and that something did not converge.

    Others speak to programmers. Those that differ only in their numbers are one; what it gives is for :func:`tell`.
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
    """Whether a warning is scikit-learn's ConvergenceWarning, known by its name: its import takes most of a second."""
    return any(each.__name__ == "ConvergenceWarning" for each in category.__mro__)


def _given_by_us() -> bool:
    """Whether the warning that is being given comes from this package, whichever caller it is said to be about."""
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") == "warnings" and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "kernelwright"


def tell(found: Mapping[str, str], where: str = "", *, but: Mapping[str, str] | None = None) -> None:
    """Give warnings that were caught as notes, but for those of another place."""
    for key, sentence in found.items():
        if key not in (but or {}):
            note(f"Note: {where}{sentence}")
