"""Bring a new table into the form of the training table, and list what is new in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.inputs.frames.cells import days_since_1970, texts
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.table import Table, as_table, guessed_name, some_of
from kernelwright.inputs.frames.values import ColumnValues, values_of

__all__ = ["Finding", "check_columns", "prepare", "with_days"]

MICROSECONDS = 86_400e6  # in a day


@dataclass(frozen=True)
class Finding:
    """Something in a new table that the training table did not have.

    ``what`` is "missing", "new category", "no unit", "below range" or "above range"; ``rows`` are the first few row
    numbers.
    """

    column: str
    what: str
    count: int
    example: str
    rows: tuple[int, ...]

    def __str__(self) -> str:
        words = {
            "missing": "{n} without a value",
            "new category": "{n} with a value never seen in training ({example})",
            "no unit": "{n} without the unit of the training values ({example})",
            "below range": "{n} below every training value ({example})",
            "above range": "{n} above every training value ({example})",
        }[self.what]
        n = f"{self.count} row{'s' if self.count > 1 else ''}"
        return f"{self.column}: {words.format(n=n, example=self.example)}"


def prepare(columns: Sequence[Column], rows: Any) -> tuple[Any, list[Finding]]:
    """Return the used columns as numbers and words, and what is new in them compared with the training table.

    A missing column is an error, and so is text where training had numbers.

    Parameters
    ----------
    columns : sequence of Column
        Columns of the training table.
    rows : Table or pandas.DataFrame

    Returns
    -------
    frame : pandas.DataFrame
        Numbers and booleans as floats; dates as datetime64; categories and texts as objects; NaN or NaT for gaps.
    findings : list of Finding

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables import as_table, describe_columns, prepare
    >>> columns = describe_columns(as_table(pd.DataFrame({"town": ["Bonn", "Ulm", "Bonn"]})))
    >>> frame, findings = prepare(columns, pd.DataFrame({"town": ["Ulm", "Rom"]}))
    >>> print(findings[0])
    town: 1 row with a value never seen in training ('Rom')
    """
    import pandas as pd

    table = as_table(rows)
    check_columns(columns, table)
    used = [column for column in columns if column.used]
    parts, findings = {}, []
    for column in used:
        found = values_of(table, column)
        parts[column.name] = found.values
        if column.kind == "date":
            parts[column.name] = dates_of(found.values)
        elif column.kind == "words":
            parts[column.name] = np.where(found.missing, "", found.values)
        findings += _news(table, column, found)
    for column in columns:  # not used, but a constant that now varies is worth reporting
        if column.kind == "constant" and column.categories and column.name in table.frame.columns:
            words = texts(table, column.name)
            findings += _findings(table, column, {"new category": words.notna() & ~words.isin(column.categories)})
    frame = pd.DataFrame({name: pd.Series(values) for name, values in parts.items()}, index=range(len(table)))
    return frame[[column.name for column in used]], findings


def check_columns(columns: Sequence[Column], table: Table) -> None:
    """Raise ValueError if a used column is missing."""
    known = set(table.names)
    absent = [column.name for column in columns if column.used and column.name not in known]
    if absent:
        named = some_of([repr(name) + guessed_name(name, table.names) for name in absent], 10)
        raise ValueError(
            f"{table.source} has no column{'s' if len(absent) > 1 else ''} {named}, which the model needs. It has: "
            f"{some_of(table.names, 20)}."
        )


def dates_of(days: np.ndarray) -> np.ndarray:
    """Return days since 1970 as dates, to the microsecond; NaN becomes NaT."""
    gaps = np.isnan(days)
    found = np.round(np.where(gaps, 0.0, days) * MICROSECONDS).astype("datetime64[us]")
    found[gaps] = np.datetime64("NaT")
    return found


def with_days(frame: Any) -> Any:
    """Return a prepared frame with dates as days since 1970, for encoders that take numbers and categories only.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.inputs.frames.preparing import with_days
    >>> with_days(pd.DataFrame({"day": pd.to_datetime(["1970-01-02", None])}))["day"].tolist()
    [1.0, nan]
    """
    dates = [name for name in frame.columns if frame[name].dtype.kind == "M"]
    return frame.assign(**{name: days_since_1970(Table(frame[[name]]), name)[0] for name in dates}) if dates else frame


def _news(table: Table, column: Column, found: ColumnValues) -> list[Finding]:
    """List what is new in a column."""
    masks: dict[str, Any] = {}
    if column.kind in ("number", "date"):
        if found.bare is not None:
            masks["no unit"] = found.bare
        below, above = found.values < column.low, found.values > column.high
        masks |= {"missing": found.missing, "below range": below, "above range": above}
    else:
        new = np.zeros(len(table), dtype=bool) if found.new is None else found.new
        masks |= {"missing": found.missing & ~new, "new category": new}
    return _findings(table, column, masks)


def _findings(table: Table, column: Column, masks: dict[str, Any]) -> list[Finding]:
    """List what is new in a column, with a few examples and the first rows of each kind."""
    found, rows = [], table.row_numbers()
    for what, mask in masks.items():
        places = np.flatnonzero(np.asarray(mask))
        if len(places):
            words = dict.fromkeys(texts(table.only(column.name).take(places[:1000]), column.name))
            example = "" if what == "missing" else some_of(map(repr, words), 3)
            found.append(Finding(column.name, what, len(places), example, tuple(map(int, rows[places[:5]]))))
    return found
