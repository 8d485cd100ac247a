"""Find the kind of each column, and how it is prepared for a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelwright.storage.saved import saved
from kernelwright.tables.cells import days_since_1970, texts, typed_numbers
from kernelwright.tables.identifiers import FEWEST, counter, is_id_name, is_unnamed, is_whole
from kernelwright.tables.notation import Notation, Reading, decimal_sign, read_numbers
from kernelwright.tables.numerals import is_unit
from kernelwright.tables.table import Table, some_of

__all__ = ["MOSTLY", "Column", "decimal_of", "describe_columns", "is_date", "remarks"]

USED = ("number", "boolean", "date", "category")
BOOLEANS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"))
ISO_DATE = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?"
REMARKS = 5  # columns whose remarks are shown in full
MOSTLY = 0.9  # share of numbers above which the other cells of a column count as missing


@saved("table-column")
@dataclass(frozen=True)
class Column:
    """A column of the training table: its kind, its treatment and its values.

    Parameters
    ----------
    name : str
    kind : str
        Used: "number", "boolean", "date", "category". Not used: "identifier", "text", "constant", "dropped".
    treatment : str
        How it is prepared, in words.
    missing : int
        Number of rows without a value.
    distinct : int
        Number of different values.
    low, high : float or None
        Smallest and largest number (for a date: in days since 1970).
    categories : tuple of str
        For a category, all values that were seen; for a boolean, the words for no and yes; for a number, the words
        that stand for a missing value; for a constant, its only value.
    counts : tuple of int
        Number of rows in each category.
    notation : Notation or None
        How numbers are written. New tables are read in the same way.
    remark : str
        A sentence about a choice that the user may want to change, or "".
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

    @property
    def used(self) -> bool:
        """Whether the model uses this column."""
        return self.kind in USED


def describe_columns(
    table: Table,
    *,
    ids: Collection[str] = (),
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    decimal: str | None = None,
) -> tuple[Column, ...]:
    """Find the kind of each column from its cells.

    Parameters
    ----------
    table : Table
    ids, drop, keep : collection of str
        Columns that the user calls identifiers, wants to leave out, or wants to use although they look useless.
    decimal : {"comma", "point"}, optional
        The decimal sign of columns that can be read in both ways: "3,671" is 3.671 or 3671. By default it is taken
        from the unambiguous columns of the same table; if there are none, it is the point.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables import as_table, describe_columns
    >>> frame = pd.DataFrame({"id": [7, 8, 9], "age": [31.0, None, 25.0], "town": ["Bonn", "Ulm", "Bonn"]})
    >>> for column in describe_columns(as_table(frame)):
    ...     print(column.name, "is a", column.kind)
    id is a identifier
    age is a number
    town is a category
    """
    said = decimal_sign(decimal)
    sign = decimal_of(table, decimal, but=(*ids, *drop))
    found = []
    for name in table.names:
        if name in ids:
            found.append(Column(name, "identifier", "left out: named as an identifier"))
        elif name in drop:
            found.append(Column(name, "dropped", "left out: by your choice"))
        else:
            column = _describe(table, name, name in keep, sign)
            settled = said is not None and column.kind == "number"
            found.append(replace(column, remark="") if settled else column)
    return tuple(found)


def remarks(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return sentences about choices that the user may want to change: the first few in full, then a summary."""
    found = [column for column in columns if column.remark]
    shown = [column.remark for column in found[:REMARKS]]
    if rest := found[REMARKS:]:
        shown.append(
            f"{len(rest)} more column{'s' if len(rest) > 1 else ''} like these: {some_of([c.name for c in rest])}."
        )
    return tuple(shown)


def decimal_of(table: Table, decimal: str | None = None, *, but: Collection[str] = ()) -> str:
    """Return the sign that the user named, else that of the unambiguous columns; the point if these disagree."""
    if (said := decimal_sign(decimal)) is not None:
        return said
    names = [name for name in table.names if name not in but]
    if not any(_settles(texts(table, name), ",") for name in names if _has(table, name, ",")):
        return "."
    return "." if any(_settles(texts(table, name), ".") for name in names if _has(table, name, ".")) else ","


def _has(table: Table, name: str, mark: str) -> bool:
    """Return whether any cell of a text column contains a mark."""
    series = table.frame[name]
    if series.dtype.kind in "biufcmM":
        return False
    return any(mark in cell for cell in series.to_numpy(dtype=object) if isinstance(cell, str))


def _settles(words: Any, decimal: str) -> bool:
    """Return whether a column consists of numbers with an unambiguous decimal sign."""
    reading = read_numbers(words, plain=False)
    few = reading.odd.sum() <= (1 - MOSTLY) * words.notna().sum()
    return bool(few) and reading.settled and reading.notation.decimal == decimal


def _describe(table: Table, name: str, keep: bool, decimal: str) -> Column:
    words = texts(table, name)
    unnamed = is_unnamed(name) and name == table.names[0]
    given = words.dropna()
    missing, distinct = len(words) - len(given), int(given.nunique())
    seen = (missing, distinct)
    ticked = distinct == 1 and min(missing, len(given)) > 1  # a value or a blank: which rows have it may be informative
    if distinct < 2 and not ticked and not (keep and distinct):
        words_of_it = tuple(given.unique())
        left_out = f"left out: {'one value only' if distinct else 'no values'}"
        return Column(name, "constant", left_out, *seen, categories=words_of_it)
    gap = f"; {missing} missing: filled with the median, and marked in a column of their own" if missing else ""
    if is_date(table, name, given):
        low, high = _range(days_since_1970(table, name)[0])
        return Column(name, "date", f"days since 1970{gap}", *seen, low=low, high=high)
    lowered = set(given.str.lower().unique()) if distinct <= 4 else set()  # "True", "true", "False", "FALSE"
    for no, yes in BOOLEANS:
        if lowered and lowered <= {no, yes}:
            return Column(name, "boolean", f"1 for {yes}, 0 for {no}{gap}", *seen, categories=(no, yes))
    reading = typed_numbers(table, name, decimal) or read_numbers(words, decimal)
    several = len(np.unique(reading.values[~np.isnan(reading.values)])) > FEWEST
    if not reading.odd.any() or (several and reading.odd.sum() <= (1 - MOSTLY) * len(given)):
        return _number(name, reading, given[reading.odd[given.index]], keep, seen, unnamed)
    column = _category(name, given, len(words), keep, seen)
    return column if keep else _with_units(column, reading, len(given))


def is_date(table: Table, name: str, given: Any) -> bool:
    """Return whether all cells of a column are dates; ``given`` are its cells as text, without the missing ones."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(table.frame[name].dtype):
        return True
    if not len(given) or not re.fullmatch(ISO_DATE, given.iloc[0]) or not given.str.fullmatch(ISO_DATE).all():
        return False
    return not days_since_1970(table, name)[1].any()


def _range(values: np.ndarray) -> tuple[float, float]:
    return float(np.nanmin(values)), float(np.nanmax(values))


def _number(name: str, reading: Reading, odd: Any, keep: bool, seen: tuple[int, int], unnamed: bool) -> Column:
    """Describe a column of numbers; it is an identifier if the numbers only count the rows."""
    low, high = _range(reading.values)
    may_count = not keep and not reading.notation.unit
    if may_count and (why := _why_identifier(name, reading.values, unnamed, seen[1])):
        return Column(name, "identifier", f"left out: {why}", *seen)
    words, missing = tuple(sorted(odd.unique())), seen[0] + len(odd)
    steps = []
    if reading.example:
        steps.append(f"{reading.example!r} read as {reading.value:.10g}")
    if bare := int(reading.bare.sum()):
        steps.append(f"{bare} without {reading.notation.unit} read as if with it")
    if missing:
        steps.append(f"{missing} missing: filled with the median, and marked in a column of their own")
    if words:
        steps.append(f"{some_of(map(repr, words), 3)} read as missing")
    treatment = "; ".join(steps) or "as it is"
    column = Column(name, "number", treatment, missing, seen[1], low=low, high=high, categories=words)
    return replace(column, notation=reading.notation, remark=reading.remark(name))


def _why_identifier(name: str, values: np.ndarray, unnamed: bool, distinct: int) -> str:
    if unnamed and is_whole(values) and (distinct > FEWEST or distinct == len(values)):  # or again in joined tables
        return "whole numbers in a first column without a name, as other programs number rows"
    return counter(name, values)


def _with_units(column: Column, reading: Reading, n_given: int) -> Column:
    """Return the column; numbers in several units are left out, or stay a category if there are few values."""
    in_numbers = sum(count for _, count in reading.units)
    if in_numbers < MOSTLY * n_given or sum(is_unit(unit) for unit, _ in reading.units) < 2:
        return column  # codes such as 12A and 12B, or words
    named = some_of([f"{unit or 'none'} in {count} row{'s' if count > 1 else ''}" for unit, count in reading.units], 5)
    if column.used and column.distinct <= FEWEST:
        return replace(column, treatment=f"{column.treatment}; not numbers, because the units differ: {named}")
    return replace(
        column,
        kind="text",
        treatment=f"left out: numbers in different units ({named})",
        remark=f"{column.name} has numbers in different units ({named}) and is left out. Convert them to one unit.",
    )


def _category(name: str, given: Any, n_rows: int, keep: bool, seen: tuple[int, int]) -> Column:
    """Describe a column of words; it is an identifier if all differ, and text if most do."""
    missing, distinct = seen
    if not keep and distinct == n_rows and (n_rows >= FEWEST or is_id_name(name) or is_unnamed(name)):
        return Column(name, "identifier", "left out: a different value in every row", *seen)
    if not keep and distinct > max(FEWEST, 0.5 * len(given)):
        return Column(name, "text", f"left out: {distinct} different values in {len(given)} rows", *seen)
    counts = given.value_counts().sort_index()
    rare = int((counts < 2).sum())
    treatment = f"one column for each of {distinct - rare} categories" + (
        f", one for {rare} rare one{'s' if rare > 1 else ''}" if rare else ""
    )
    if missing:
        treatment += f"; {missing} missing: a category of their own"
    return Column(name, "category", treatment, *seen, categories=tuple(counts.index), counts=tuple(map(int, counts)))
