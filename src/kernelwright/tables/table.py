"""A table as it was read: its columns, and where each row stands in its file."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

__all__ = ["Table", "as_table", "check_name", "nearest_name", "some_of"]


@dataclass(frozen=True)
class Table:
    """Columns with names, and where they came from.

    Parameters
    ----------
    frame : pandas.DataFrame
        From a text file the cells are text (NaN where nothing stands), so that nothing is lost: "007" stays "007".
    source : str
        What the table is called in messages.
    lines : ndarray of int or None
        The line on which each row begins; None where rows have no lines, as in Parquet.
    missing_words : dict of str to tuple of str
        Words of a text file that were read as missing values, for each column that has some.

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

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    @property
    def row_word(self) -> str:
        """What :meth:`row_numbers` counts."""
        return "row" if self.lines is None else "line"

    def row_numbers(self) -> np.ndarray:
        """The line of each row, or its number from 1."""
        return np.arange(1, len(self) + 1) if self.lines is None else self.lines

    def place(self, row: int) -> str:
        """Where a row is, in words."""
        return f"{self.row_word} {self.row_numbers()[row]}"

    def take(self, rows: np.ndarray) -> Table:
        """Some of the rows (places or a mask)."""
        lines = np.arange(1, len(self) + 1) if self.lines is None else self.lines
        taken = self.frame.iloc[np.flatnonzero(rows) if rows.dtype == bool else rows].reset_index(drop=True)
        return replace(self, frame=taken, lines=None if self.lines is None else lines[rows])

    def column(self, name: str, what: str = "column") -> Any:
        """Return the column of a name; a name that is not there is an error that says which ones are."""
        check_name(name, self.names, self.source, what)
        return self.frame[name]


def as_table(rows: Any) -> Table:
    """A table from a Table or a data frame."""
    if isinstance(rows, Table):
        return rows
    frame = rows.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    return Table(frame.reset_index(drop=True))


def check_name(name: str, names: Collection[str], source: str, what: str = "column") -> None:
    """Refuse the name of a column that a table does not have."""
    if name not in names:
        raise ValueError(f"{source} has no {what} {name!r}{nearest_name(name, names)}")


def nearest_name(name: str, names: Iterable[str]) -> str:
    """The end of a sentence about a name that is not there: the nearest one, and which there are."""
    known = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), known, n=1)
    guess = f" (did you mean {known[near[0]]!r}?)" if near else ""
    return f"{guess}. It has: {some_of(list(known.values()), 20)}."


def some_of(names: Iterable[Any], most: int = 5) -> str:
    """Names with commas between them, and how many more there are."""
    names = [str(name) for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
