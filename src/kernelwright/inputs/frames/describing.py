"""Find the kind of each column, and how it is prepared for a model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelwright.inputs.frames.cells import (
    category_texts,
    days_since_1970,
    has_dates,
    is_category,
    is_duration,
    texts,
    typed_numbers,
)
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.copies import without_copies
from kernelwright.inputs.frames.dates import DateReading, date_order, days_of, hours_of, read_compact, read_dates
from kernelwright.inputs.frames.identifiers import FEWEST, counter, is_id_name, is_person_name, is_unnamed, is_whole
from kernelwright.inputs.frames.notation import Reading, decimal_sign, notation_of, read_numbers
from kernelwright.inputs.frames.numerals import is_unit
from kernelwright.inputs.frames.table import Table, some_of
from kernelwright.inputs.frames.words import told_words

__all__ = ["MOSTLY", "decimal_of", "describe_columns", "is_date"]

BOOLEANS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"))
MOSTLY = 0.9  # share of numbers above which the other cells of a column count as missing
GAP = "a state of their own"  # what a model makes of missing values
FIRST_COMPACT, LAST_COMPACT = 1800_01_01, 2199_12_31
TIMES = (("clock", hours_of, "hours since midnight"), ("duration", days_of, "in days"))
SEVERAL_NAMES = 50  # different names of persons from which on they say no more than an identifier


@dataclass(frozen=True)
class _Asked:
    """What the user says about the columns, and what other columns say about how numbers and dates are written."""

    keep: Collection[str]
    categorical: Collection[str]
    sign: str
    dates: str | None
    bags: bool


@dataclass(frozen=True)
class _Typed:
    """A column of numbers, durations or dates, and its values without the missing ones."""

    reading: Reading | DateReading
    given: Any


def describe_columns(
    table: Table,
    *,
    ids: Collection[str] = (),
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    categorical: Collection[str] = (),
    decimal: str | None = None,
    dates: str | None = None,
    bags: bool = True,
) -> tuple[Column, ...]:
    """Find the kind of each column from its cells.

    Parameters
    ----------
    table : Table
    ids, drop, keep : collection of str
        Columns that the user calls identifiers, wants to leave out, or wants to use although they look useless.
    categorical : collection of str
        Columns that are categories although they hold numbers. Columns of a categorical dtype always are.
    decimal : {"comma", "point"}, optional
        The decimal sign of columns that can be read in both ways: "3,671" is 3.671 or 3671. By default it is taken
        from the unambiguous columns of the same table; if there are none, it is the point.
    dates : {"day-first", "month-first"}, optional
        The order of day and month in columns that can be read in both ways, such as 03/04/2020.
    bags : bool, default=True
        Whether a column of free text may become a bag of words; otherwise it is left out.

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
    asked = _Asked({*keep, *categorical}, categorical, sign, date_order(dates), bags)
    found, known = [], _wanted_numbers(table, asked)
    for name in table.names:
        if name in known:
            found.append(known[name])
        elif name in ids:
            found.append(Column(name, "identifier", "left out: named as an identifier"))
        elif name in drop:
            found.append(Column(name, "dropped", "left out: by your choice"))
        else:
            column = _describe(table, name, asked)
            settled = (said is not None and column.kind == "number") or (dates is not None and column.kind == "date")
            found.append(replace(column, remark="") if settled else column)
    return without_copies(table, found, asked.keep)


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
    if is_category(table, name) or series.dtype.kind in "biufcmM":
        return False
    return any(mark in cell for cell in series.to_numpy(dtype=object) if isinstance(cell, str))


def _settles(words: Any, decimal: str) -> bool:
    """Return whether a column consists of numbers with an unambiguous decimal sign."""
    reading = read_numbers(words, plain=False)
    few = reading.odd.sum() <= (1 - MOSTLY) * words.notna().sum()
    return bool(few) and reading.settled and reading.notation.decimal == decimal


def _wanted_numbers(table: Table, asked: _Asked) -> dict[str, Column]:
    """Describe columns of floats that are used whatever they hold, all at once: there may be thousands of them."""
    dtypes = zip(table.names, table.frame.dtypes, strict=True)
    names = [
        name for name, dtype in dtypes if dtype == np.float64 and name in asked.keep and name not in asked.categorical
    ]
    values = np.sort(table.frame[names].to_numpy(dtype=np.float64), axis=0)  # gaps come last
    gaps = np.isnan(values).sum(0)
    usual = np.flatnonzero((gaps < len(table)) & ~np.isinf(values).any(0))
    distinct, notation = 1 + (np.diff(values, axis=0) > 0).sum(0), notation_of(asked.sign)
    found = {}
    for place in usual.tolist():
        low, high = float(values[0, place]), float(values[len(table) - gaps[place] - 1, place])
        missing, name = int(gaps[place]), names[place]
        treatment = f"{missing} missing: {GAP}" if missing else "as it is"
        several = int(distinct[place])
        found[name] = Column(name, "number", treatment, missing, several, low=low, high=high, notation=notation)
    return found


def _describe(table: Table, name: str, asked: _Asked) -> Column:
    keep, typed = name in asked.keep, _typed(table, name, asked)
    given = texts(table, name).dropna() if typed is None else typed.given
    missing, distinct = len(table) - len(given), int(given.nunique())
    seen = (missing, distinct)
    ticked = distinct == 1 and min(missing, len(given)) > 1  # a value or a blank: which rows have it may be informative
    if distinct < 2 and not ticked and not (keep and distinct):
        words_of_it = tuple(texts(table.only(name), name).dropna().unique())
        left_out = f"left out: {'one value only' if distinct else 'no values'}"
        return Column(name, "constant", left_out, *seen, categories=words_of_it)
    if typed is not None:
        return _typed_column(table, name, typed, keep, seen)
    if name in asked.categorical or is_category(table, name):
        return _category(name, given, len(table), keep, seen, ranks=_ranks(table, name))
    return _written_column(table, name, asked, seen)


def _typed(table: Table, name: str, asked: _Asked) -> _Typed | None:
    """Return the numbers or dates of a column whose dtype says that it holds them."""
    import pandas as pd

    if name in asked.categorical:
        return None
    if has_dates(table, name):
        days = days_since_1970(table, name)[0]
        return _Typed(DateReading("", days, np.zeros(len(days), dtype=bool)), pd.Series(days).dropna())
    reading = typed_numbers(table, name, asked.sign)
    if reading is None:
        return None
    if name not in asked.keep and (dates := _compact(table, name, reading.values)) is not None:
        return _Typed(dates, texts(table, name).dropna())
    given = pd.Series(np.where(reading.odd, np.inf, reading.values)).dropna()
    return _Typed(reading, given) if _mostly(reading, len(given)) else None


def _compact(table: Table, name: str, values: np.ndarray) -> DateReading | None:
    """Return numbers such as 19880428 as dates; None if they are none."""
    there = values[~np.isnan(values)]
    near = len(there) and there.min() >= FIRST_COMPACT and there.max() <= LAST_COMPACT and is_whole(there)
    return read_compact(texts(table, name)) if near and not is_duration(table, name) else None


def _typed_column(table: Table, name: str, typed: _Typed, keep: bool, seen: tuple[int, int]) -> Column:
    reading = typed.reading
    if isinstance(reading, DateReading):
        return _date(name, reading, typed.given.astype(object), seen)
    odd = typed.given[reading.odd[typed.given.index]].map(str)
    column = _number(name, reading, odd, keep, seen, is_unnamed(name) and name == table.names[0])
    return replace(column, treatment=_in_days(column.treatment)) if is_duration(table, name) else column


def _written_column(table: Table, name: str, asked: _Asked, seen: tuple[int, int]) -> Column:
    """Describe a column of text: dates, times, truth values, numbers, or words."""
    words, keep, (missing, distinct) = texts(table, name), name in asked.keep, seen
    given = words.dropna()
    if (dates := _dates(words, asked.dates)) is not None:
        return _date(name, dates, given, seen)
    for form, read, treatment in TIMES if ":" in given.iloc[0] else ():
        times, none = read(words)
        if not none.any():
            low, high = _range(times)
            return Column(name, "number", f"{treatment}{_gap(missing)}", *seen, low=low, high=high, form=form)
    lowered = set(given.str.lower().unique()) if distinct <= 4 else set()  # "True", "true", "False", "FALSE"
    for no, yes in BOOLEANS:
        if lowered and lowered <= {no, yes}:
            treatment = f"1 for {yes}, 0 for {no}{_gap(missing)}"
            return Column(name, "boolean", treatment, *seen, categories=(no, yes))
    numbers = read_numbers(words, asked.sign) if _may_be_numbers(given) else None
    if numbers is not None and _mostly(numbers, len(given)):
        unnamed = is_unnamed(name) and name == table.names[0]
        return _number(name, numbers, given[numbers.odd[given.index]], keep, seen, unnamed)
    column = _of_words(name, given, len(words), keep, seen, asked.bags)
    return column if keep or numbers is None else _with_units(column, numbers, len(given))


def _may_be_numbers(given: Any) -> bool:
    """Return whether most cells have a digit; reading numbers takes longer."""
    import pandas as pd

    codes, different = pd.factorize(given)
    return bool(np.mean(np.array([any(map(str.isdigit, word)) for word in different])[codes]) >= MOSTLY)


def _gap(missing: int) -> str:
    return f"; {missing} missing: {GAP}" if missing else ""


def _in_days(treatment: str) -> str:
    return "in days" if treatment == "as it is" else f"in days; {treatment}"


def _mostly(reading: Reading | DateReading, n_given: int) -> bool:
    """Return whether all cells could be read, or most cells of a column with several values."""
    values = reading.days if isinstance(reading, DateReading) else reading.values
    several = len(np.unique(values[~np.isnan(values)])) > FEWEST
    return not reading.odd.any() or (several and reading.odd.sum() <= (1 - MOSTLY) * n_given)


def is_date(table: Table, name: str, given: Any) -> bool:
    """Return whether a column holds dates; ``given`` are its cells as text, without the missing ones."""
    return has_dates(table, name) or (typed_numbers(table, name) is None and _dates(given, None) is not None)


def _dates(words: Any, order: str | None) -> DateReading | None:
    reading = read_dates(words, order) or read_compact(words)
    return reading if reading is not None and _mostly(reading, int(words.notna().sum())) else None


def _range(values: np.ndarray) -> tuple[float, float]:
    return float(np.nanmin(values)), float(np.nanmax(values))


def _date(name: str, reading: DateReading, given: Any, seen: tuple[int, int]) -> Column:
    odd = tuple(sorted(given[reading.odd[given.index]].unique()))
    low, high = _range(reading.days)
    missing = seen[0] + int(reading.odd.sum())
    read = f", the {reading.order.replace('-', ' ')}" if reading.order else ""
    read = f", written as {given.iloc[0]}" if reading.order == "compact" else read
    treatment = f"a date{read}{_gap(missing)}" + (f"; {some_of(map(repr, odd), 3)} read as missing" if odd else "")
    column = Column(name, "date", treatment, missing, seen[1], low=low, high=high, categories=odd)
    return replace(column, form=reading.order, remark=reading.remark(name))


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
        steps.append(f"{missing} missing: {GAP}")
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


def _of_words(name: str, given: Any, n_rows: int, keep: bool, seen: tuple[int, int], bags: bool) -> Column:
    """Describe a column of words: free text, an identifier if all differ, or a category."""
    missing, distinct = seen
    many = distinct > max(FEWEST, 0.5 * len(given))
    if many and bags and (treatment := told_words(given)):
        return Column(name, "words", f"{treatment}{_gap(missing)}", *seen)
    if many and not keep and distinct < n_rows:
        return Column(name, "text", f"left out: {distinct} different values in {len(given)} rows", *seen)
    if not keep and distinct > SEVERAL_NAMES and is_person_name(name):
        return Column(name, "identifier", f"left out: {distinct} different names of persons", *seen)
    return _category(name, given, n_rows, keep, seen)


def _ranks(table: Table, name: str) -> tuple[str, ...] | None:
    """Return all categories of an ordered categorical column in their order; None for any other column."""
    if not is_category(table, name) or not table.frame[name].cat.ordered:
        return None
    return tuple(dict.fromkeys(word for word in category_texts(table.frame[name]) if isinstance(word, str)))


def _category(
    name: str, given: Any, n_rows: int, keep: bool, seen: tuple[int, int], ranks: tuple[str, ...] | None = None
) -> Column:
    """Describe a column of categories; it is an identifier if all differ."""
    missing, distinct = seen
    if not keep and distinct == n_rows and (n_rows >= FEWEST or is_id_name(name) or is_unnamed(name)):
        return Column(name, "identifier", "left out: a different value in every row", *seen)
    counts = given.value_counts()
    counts = counts.sort_index() if ranks is None else counts.reindex(ranks, fill_value=0)
    rare = int((counts == 1).sum())
    treatment = f"{distinct} categories" + ("" if ranks is None else " in order")
    if rare:
        treatment += f", {rare} of them in one row only"
    treatment += _gap(missing)
    words, numbers = tuple(counts.index), tuple(map(int, counts))
    return Column(name, "category", treatment, *seen, categories=words, counts=numbers, ordered=ranks is not None)
