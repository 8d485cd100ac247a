"""A table as it was read: its columns, and the line of each row in its file."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

__all__ = ["Table", "as_table", "check_name", "guessed_name", "nearest_name", "some_of"]


@dataclass(frozen=True)
class Table:
    """Named columns and their source.

    Parameters
    ----------
    frame : pandas.DataFrame
        Cells of a text file stay text (NaN if missing), so that nothing is lost: "007" stays "007".
    source : str
        The name of the table in messages.
    lines : ndarray of int or None
        The line on which each row begins; None if rows have no lines, as in Parquet.
    missing_words : dict of str to tuple of str
        For each column that has some, the words of the text file that were read as missing values.
    start : int
        The number of rows before these, if they are a part of a table without lines.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables import Table
    >>> table = Table(pd.DataFrame({"age": ["31", "x"]}), "people.csv", lines=np.array([2, 3]))
    >>> table.place(1)
    'line 3'
    """

    frame: Any
    source: str = "the table"
    lines: np.ndarray | None = None
    missing_words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    start: int = 0

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    @property
    def row_word(self) -> str:
        """The unit of :meth:`row_numbers`: "row" or "line"."""
        return "row" if self.lines is None else "line"

    def row_numbers(self) -> np.ndarray:
        """Return the line of each row, or its number from 1."""
        return np.arange(self.start + 1, self.start + len(self) + 1) if self.lines is None else self.lines

    def place(self, row: int) -> str:
        """Return the place of a row in words, such as "line 3"."""
        return f"{self.row_word} {self.row_numbers()[row]}"

    def take(self, rows: np.ndarray) -> Table:
        """Return some of the rows, given by indices or a mask."""
        lines = np.arange(1, len(self) + 1) if self.lines is None else self.lines
        taken = self.frame.iloc[np.flatnonzero(rows) if rows.dtype == bool else rows].reset_index(drop=True)
        return replace(self, frame=taken, lines=None if self.lines is None else lines[rows])

    def only(self, name: str) -> Table:
        """Return the table of one column."""
        return replace(self, frame=self.frame[[name]])

    def column(self, name: str, what: str = "column") -> Any:
        """Return a column by name; raise ValueError with the known names if there is none."""
        check_name(name, self.names, self.source, what)
        return self.frame[name]


def as_table(rows: Any) -> Table:
    """Convert a data frame (of pandas, polars or pyarrow) to a Table; return a Table as it is."""
    if isinstance(rows, Table):
        return rows
    from kernelwright.inputs.frames.given import pandas_frame  # not needed to read a file

    frame = pandas_frame(rows)
    if not frame.columns.is_unique:
        raise ValueError(f"Two columns are named {frame.columns[frame.columns.duplicated()][0]!r}: rename one of them.")
    return Table(frame.reset_index(drop=True))


def check_name(name: str, names: Collection[str], source: str, what: str = "column") -> None:
    """Raise ValueError if a table has no column of this name."""
    if name not in names:
        raise ValueError(f"{source} has no {what} {name!r}{nearest_name(name, names)}")


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest one, and the known ones."""
    names = list(names)
    return f"{guessed_name(name, names)}. It has: {some_of(names, 20)}."


def guessed_name(name: str, names: Iterable[str]) -> str:
    """Return a question about the nearest name; "" if none is near."""
    known = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), known, n=1)
    return f" (did you mean {known[near[0]]!r}?)" if near else ""


def some_of(names: Iterable[Any], most: int = 5) -> str:
    """Join the first names with commas, and count the rest."""
    names = [str(name) for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
