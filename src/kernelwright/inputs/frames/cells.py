"""Read the cells of a column as text, as numbers or as dates."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.inputs.frames.dates import read_compact, read_dates
from kernelwright.inputs.frames.gaps import MISSING
from kernelwright.inputs.frames.notation import Notation, Reading, notation_of, read_numbers, read_numbers_as
from kernelwright.inputs.frames.table import Table

__all__ = ["days_since_1970", "has_dates", "is_category", "is_duration", "numbers", "read_as", "texts", "typed_numbers"]


def texts(table: Table, name: str) -> Any:
    """Return a column as stripped text, with NaN for missing values and for words that mean one.

    Numbers in a typed table become the text that a text file would have: 3.0 is "3".
    """
    known = table.__dict__.setdefault("_texts", {})  # a table never changes, and its text is needed several times
    if name not in known:
        known[name] = _texts(table.frame[name])
    return known[name]


def _texts(series: Any) -> Any:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return pd.Series(np.array([*category_texts(series), np.nan], dtype=object)[series.cat.codes], dtype=object)
    if pd.api.types.is_bool_dtype(series.dtype):
        series = series.astype(object).map(str, na_action="ignore")
    elif pd.api.types.is_numeric_dtype(series.dtype):
        series = series.astype(object).map(_plain_number, na_action="ignore")
    elif pd.api.types.infer_dtype(series, skipna=True) != "string":
        series = series.astype(object).map(_plain_text, na_action="ignore")
    codes, different = pd.factorize(series.to_numpy(dtype=object, na_value=np.nan))
    found = [str(cell).strip() for cell in different]
    cells = [cell if cell and cell not in MISSING else np.nan for cell in found]
    return pd.Series(np.array([*cells, np.nan], dtype=object)[codes], dtype=object)


def category_texts(series: Any) -> list[Any]:
    """Return the text of each category of a categorical column, in their order; NaN for words that mean a gap."""
    found = [_plain_text(value).strip() for value in series.cat.categories]
    return [word if word and word not in MISSING else np.nan for word in found]


def _plain_text(value: Any) -> str:
    if isinstance(value, (float, np.floating)) or (
        isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    ):
        return _plain_number(value)
    return str(value)


def _plain_number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(float(value))


def numbers(table: Table, name: str, notation: Notation | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a column as numbers, with NaN for missing values, and a mask of the cells that hold something else.

    ``notation`` says how the numbers are written; without it, this is inferred from the cells.
    """
    reading = typed_numbers(table, name) or read_as(texts(table, name), notation)
    return reading.values, reading.odd


def typed_numbers(table: Table, name: str, decimal: str = ".") -> Reading | None:
    """Return the values of a column of numbers, or of durations (in days); None if its dtype is neither."""
    import pandas as pd

    series = table.frame[name]
    if is_duration(table, name):
        values = np.array(series / pd.Timedelta(days=1), dtype=np.float64)
    elif not pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype):
        return None
    else:
        values = series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    odd = np.isinf(values)
    values[odd] = np.nan
    return Reading(notation_of(decimal), values, odd, np.zeros(len(values), dtype=bool))


def read_as(words: Any, notation: Notation | None, known: tuple[str, ...] = ()) -> Reading:
    """Read text as numbers: in the given notation, or in the one that suits the text best."""
    return read_numbers(words) if notation is None else read_numbers_as(words, notation, known=known)


def is_category(table: Table, name: str) -> bool:
    """Return whether the dtype of a column says that it is a category."""
    import pandas as pd

    return isinstance(table.frame[name].dtype, pd.CategoricalDtype)


def is_duration(table: Table, name: str) -> bool:
    """Return whether the dtype of a column says that it holds durations."""
    return getattr(table.frame[name].dtype, "kind", "O") == "m"


def has_dates(table: Table, name: str) -> bool:
    """Return whether the dtype of a column says that it holds dates."""
    import pandas as pd

    return bool(pd.api.types.is_datetime64_any_dtype(table.frame[name].dtype))


def days_since_1970(table: Table, name: str, order: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Return a column of dates as days since 1970, and a mask of the cells that hold something else.

    ``order`` is that of day and month in text, "day-first" or "month-first"; or "compact", for 19880428.
    """
    import pandas as pd

    if has_dates(table, name):
        dates = pd.to_datetime(table.frame[name], utc=True)
        days = np.array((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), dtype=np.float64)
        return days, np.zeros(len(days), dtype=bool)
    words = texts(table, name)
    reading = read_compact(words, told=True) if order == "compact" else read_dates(words, order or None, told=True)
    assert reading is not None
    return reading.days, reading.odd
