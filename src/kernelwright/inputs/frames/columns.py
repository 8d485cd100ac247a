"""What is known about a column of a training table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.inputs.frames.notation import Notation
from kernelwright.inputs.frames.table import some_of
from kernelwright.storage.saved import saved

__all__ = ["Column", "columns_summary", "left_out", "remarks"]

USED = ("number", "boolean", "date", "category", "words")
REMARKS = 5  # columns whose remarks are shown in full


@saved("table-column")
@dataclass(frozen=True)
class Column:
    """A column of the training table: its kind, its treatment and its values.

    Parameters
    ----------
    name : str
    kind : str
        Used: "number", "boolean", "date", "category", "words" (a bag of words). Not used: "identifier", "text",
        "constant", "copy" (of another column), "dropped".
    treatment : str
        How it is prepared, in words.
    missing : int
        Number of rows without a value.
    distinct : int
        Number of different values.
    low, high : float or None
        Smallest and largest number (for a date: in days since 1970).
    categories : tuple of str
        For a category, all values that were seen; for a boolean, the words for no and yes; for a number or a date, the
        words that stand for a missing value; for a constant, its only value.
    counts : tuple of int
        Number of rows in each category.
    notation : Notation or None
        How numbers are written. New tables are read in the same way.
    remark : str
        A sentence about a choice that the user may want to change, or "".
    form : str
        How the cells are written if they are text: for a date "day-first", "month-first" or "" (not ambiguous); for a
        number "clock" if these are times of day, "duration" if these are durations; for a date "compact" for 19880428.
    ordered : bool
        Whether the order of the categories matters.
    """

    name: str
    kind: str
    treatment: str
    missing: int = 0
    distinct: int = 0
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    notation: Notation | None = None
    remark: str = ""
    form: str = ""
    ordered: bool = False

    @property
    def used(self) -> bool:
        """Whether the model uses this column."""
        return self.kind in USED


def columns_summary(columns: Sequence[Column]) -> str:
    """Sum columns up in a line: how many of each kind are used, and how many are left out.

    Examples
    --------
    >>> from kernelwright.inputs.frames.columns import Column, columns_summary
    >>> columns_summary([Column("id", "identifier", ""), Column("a", "number", ""), Column("b", "number", "")])
    '2 numbers; left out: 1 identifier'
    """
    plurals = {"category": "categories", "dropped": "dropped", "bag of words": "bags of words", "copy": "copies"}
    counts: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for column in columns:
        kind, kinds = "bag of words" if column.kind == "words" else column.kind, counts[column.used]
        kinds[kind] = kinds.get(kind, 0) + 1
    used, unused = (
        ", ".join(f"{n} {kind if n == 1 else plurals.get(kind, kind + 's')}" for kind, n in counts[which].items())
        for which in (True, False)
    )
    return f"{used or 'none'}; left out: {unused}" if unused else used


def remarks(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return sentences about choices that the user may want to change: the first few in full, then a summary."""
    found = [column for column in columns if column.remark]
    shown = [column.remark for column in found[:REMARKS]]
    if rest := found[REMARKS:]:
        shown.append(
            f"{len(rest)} more column{'s' if len(rest) > 1 else ''} like these: {some_of([c.name for c in rest])}."
        )
    return tuple(shown)


def left_out(columns: Sequence[Column]) -> str:
    """Name the columns that were left out, each with the reason; "" if none was.

    Columns that the user named are not listed, and neither are those that have a remark of their own.
    """
    guessed = [c for c in columns if c.kind == "constant" or (c.kind in ("identifier", "text", "copy") and c.distinct)]
    found = [column for column in guessed if not column.remark]
    return some_of([f"{c.name} ({c.treatment.removeprefix('left out: ')})" for c in found], 10)
