"""Print for people: tables and sentences on standard output; progress, notes and errors on standard error."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from kernelwright.tables.writing import visible

__all__ = [
    "Pace",
    "caught_warnings",
    "console",
    "note",
    "print_json",
    "print_table",
    "progress",
    "say",
    "shortened",
    "steps",
    "tell",
]

PIPED = 120  # width if there is no terminal
ROOMY = 100  # width from which cells are spaced more widely
SENTENCES, SENTENCE_WIDTH = "treatment", 24  # a column whose cells may be wrapped, and its smallest width
LONGEST = 26  # letters of a name in a table


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
    cells = [{name: visible(str(value)) for name, value in row.items()} for row in rows]
    for names in _side_by_side(cells, words, console().width, gap):
        table = Table(box=None, header_style="underline", padding=(0, gap, 0, 0))
        for name in names:
            least, heading = _least(cells, name, words), Text(_heading(name))
            table.add_column(heading, justify="left" if name in words else "right", overflow="fold", min_width=least)
        for row in cells:
            shown = [shortened(row[name]) if _named(name, words) else row[name] for name in names]
            table.add_row(*map(Text, shown), style="bold" if bold and bold in row.values() else "")
        console().print(table)


def shortened(name: str, longest: int = LONGEST) -> str:
    """Shorten a long name in its middle: names of the columns of a table often begin alike.

    Examples
    --------
    >>> from kernelwright.cli.screen import shortened
    >>> shortened("years_since_the_last_renovation_of_the_bathroom")
    'years_since_th…he_bathroom'
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) * 4 // 9
    return f"{name[: longest - 1 - end]}…{name[-end:]}"


def _heading(name: str) -> str:
    return " ".join(shortened(word) for word in visible(name).split(" "))


def _named(name: str, words: Sequence[str]) -> bool:
    """Return whether a column holds names, which are shortened, and not sentences, which are wrapped."""
    return name in words and name != SENTENCES


def _least(cells: Sequence[Mapping[str, str]], name: str, words: Sequence[str]) -> int:
    """Return the width below which a column is not squeezed: names and numbers are not broken."""
    if name == SENTENCES:
        return SENTENCE_WIDTH
    heading = max((len(word) for word in _heading(name).split(" ")), default=0)
    longest = max(len(row[name]) for row in cells)
    return max(heading, min(longest, LONGEST) if name in words else longest)


def _side_by_side(cells: Sequence[Mapping[str, str]], words: Sequence[str], width: int, gap: int) -> list[list[str]]:
    """Divide columns into tables that fit the screen; each begins with the first column."""
    first, *rest = list(cells[0])
    start = _least(cells, first, words) + gap
    tables, used = [[first]], start
    for name in rest:
        wide = _least(cells, name, words) + gap
        if used + wide > width and len(tables[-1]) > 1:
            tables.append([first])
            used = start
        tables[-1].append(name)
        used += wide
    return tables


def progress(left: ProgressColumn | None = None) -> Progress:
    """Return a progress bar with the time left, on standard error; it shows nothing if that is not a terminal."""
    shown = console(stderr=True)
    shown.quiet = not shown.is_terminal  # up to version 14, rich prints an empty line even after a hidden bar
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        left or TimeRemainingColumn(),
    )
    return Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal)


@contextmanager
def steps(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show progress through ``total`` steps; after each, call the yielded function with the name of the next."""
    with progress(TextColumn("{task.fields[left]}")) as bar:
        pace = Pace(total, time.perf_counter())
        task = bar.add_task(what, total=total, left="?")

        def done(following: str = what) -> None:
            left = pace.left(following, time.perf_counter())
            words = "?" if left is None else f"{left // 60:.0f}:{left % 60:02.0f}"
            bar.update(task, advance=1, description=following, left=words)

        yield done


class Pace:
    """Estimates the time left from the time that earlier steps of the same name took.

    Steps take turns: once a name comes back, the rest is expected to go on in the same order.

    Examples
    --------
    >>> from kernelwright.cli.screen import Pace
    >>> pace = Pace(6, 0.0)
    >>> [pace.left(name, now) for name, now in [("slow", 9.0), ("fast", 10.0), ("slow", 19.0), ("fast", 20.0)]]
    [None, 20.0, 11.0, 10.0]
    """

    def __init__(self, total: int, now: float) -> None:
        self._total, self._last = total, now
        self._done: list[tuple[str, float]] = []

    def left(self, name: str, now: float) -> float | None:
        """Note that a step has ended, and return the seconds that the others will take; None if it was the first."""
        self._done.append((name, now - self._last))
        self._last = now
        if len(self._done) == 1 and self._total > 1:
            return None
        order = list(dict.fromkeys(each for each, _ in self._done))
        usual = {each: _mean([time for other, time in self._done if other == each]) for each in order}
        place = order.index(name)
        return sum(usual[order[(place + k) % len(order)]] for k in range(1, self._total - len(self._done) + 1))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


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
