"""Read the cells of a column as text, as numbers or as dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from kernelwright.tables.notation import Notation, Reading, notation_of, read_numbers, read_numbers_as
from kernelwright.tables.table import Table

__all__ = ["days_since_1970", "numbers", "read_as", "texts", "typed_numbers"]


def texts(table: Table, name: str) -> Any:
    """Return a column as stripped text, with NaN for missing values.

    Numbers in a typed table become the text that a text file would have: 3.0 is "3".
    """
    import pandas as pd

    series = table.frame[name]
    if pd.api.types.is_bool_dtype(series.dtype):
        series = series.astype(object).map(str, na_action="ignore")
    elif pd.api.types.is_numeric_dtype(series.dtype):
        series = series.astype(object).map(_plain_number, na_action="ignore")
    elif not isinstance(series.dtype, pd.StringDtype):
        series = series.astype(object).map(str, na_action="ignore")
    cells = series.to_numpy(dtype=object, na_value=np.nan)
    # A loop is as fast as pandas on long columns, and much faster on thousands of short ones.
    return pd.Series([cell.strip() if isinstance(cell, str) else np.nan for cell in cells], dtype=object)


def _plain_number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def numbers(table: Table, name: str, notation: Notation | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a column as numbers, with NaN for missing values, and a mask of the cells that hold something else.

    ``notation`` says how the numbers are written; without it, this is inferred from the cells.
    """
    reading = typed_numbers(table, name) or read_as(texts(table, name), notation)
    return reading.values, reading.odd


def typed_numbers(table: Table, name: str, decimal: str = ".") -> Reading | None:
    """Return the values of a numeric column, or None if its dtype is not numeric."""
    import pandas as pd

    series = table.frame[name]
    if not pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype):
        return None
    values = series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    odd = np.isinf(values)
    values[odd] = np.nan
    return Reading(notation_of(decimal), values, odd, np.zeros(len(values), dtype=bool))


def read_as(words: Any, notation: Notation | None, known: tuple[str, ...] = ()) -> Reading:
    """Read text as numbers: in the given notation, or in the one that suits the text best."""
    return read_numbers(words) if notation is None else read_numbers_as(words, notation, known=known)


def days_since_1970(table: Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a column of dates as days since 1970, and a mask of the cells that hold something else."""
    import pandas as pd

    series = table.frame[name]
    try:
        dates = pd.to_datetime(series, format="ISO8601", errors="coerce", utc=True)
        days = np.array((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), dtype=np.float64)
    except pd.errors.OutOfBoundsDatetime:
        days = np.full(len(series), np.nan)
    # Some versions of pandas cannot read the year 9999, a common way to say "never"; Python can.
    unread = np.flatnonzero(np.isnan(days) & series.notna().to_numpy())
    days[unread] = [_day(word) for word in series.iloc[unread]]
    return days, np.isnan(days) & series.notna().to_numpy()


def _day(word: Any) -> float:
    """Return the days from 1970 to an ISO date, with or without a time; NaN if the word is not a date."""
    try:
        when = datetime.fromisoformat(str(word).strip())
    except ValueError:
        return np.nan
    when = when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    return (when - datetime(1970, 1, 1)) / timedelta(days=1)
