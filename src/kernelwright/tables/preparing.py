"""Bring a new table into the form of the training table, and list what is new in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.tables.cells import days_since_1970, read_as, texts, typed_numbers
from kernelwright.tables.columns import Column
from kernelwright.tables.table import Table, as_table, some_of

__all__ = ["Finding", "prepare"]


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
        Numbers, booleans and dates as floats; categories as objects; NaN for missing values.
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
    used = [column for column in columns if column.used]
    if absent := [column.name for column in used if column.name not in table.frame.columns]:
        raise ValueError(
            f"{table.source} has no column{'s' if len(absent) > 1 else ''} {some_of(map(repr, absent), 10)}, which "
            f"the model needs. It has: {some_of(table.names, 20)}."
        )
    parts, findings = {}, []
    for column in used:
        parts[column.name], news = _as_trained(table, column)
        findings += news
    for column in columns:  # not used, but a constant that now varies is worth reporting
        if column.kind == "constant" and column.categories and column.name in table.frame.columns:
            words = texts(table, column.name)
            findings += _findings(table, column, {"new category": words.notna() & ~words.isin(column.categories)})
    return pd.DataFrame(parts, columns=[column.name for column in used], index=range(len(table))), findings


def _as_trained(table: Table, column: Column) -> tuple[Any, list[Finding]]:
    """Return a column in the form that the model was trained on, and what is new in it."""
    import pandas as pd

    if column.kind == "category":
        words = texts(table, column.name)
        new = words.notna() & ~words.isin(column.categories)
        return words, _findings(table, column, {"missing": words.isna(), "new category": new})
    if column.kind == "boolean":
        words = texts(table, column.name).str.lower()
        codes = {"0": 0.0, "1": 1.0, column.categories[0]: 0.0, column.categories[1]: 1.0}
        values = words.map(codes).to_numpy(dtype=np.float64)
        new = np.isnan(values) & words.notna().to_numpy()
        return pd.Series(values), _findings(table, column, {"missing": words.isna(), "new category": new})
    masks: dict[str, np.ndarray] = {}
    if column.kind == "date":
        noun = "dates (YYYY-MM-DD)"
        values, odd = days_since_1970(table, column.name)
    else:
        reading = typed_numbers(table, column.name)
        reading = reading or read_as(texts(table, column.name), column.notation, column.categories)
        noun, values, odd = reading.notation.words, reading.values, reading.odd
        if column.notation is not None and not column.notation.bare:
            masks["no unit"] = reading.bare
    if odd.any():
        words = texts(table, column.name)
        odd = odd & ~words.isin(column.categories).to_numpy()
    if odd.any():
        row = int(odd.argmax())
        raise ValueError(
            f"Column {column.name!r} held {noun} in training, but {table.source} has {words[row]!r} in "
            f"{table.place(row)}."
        )
    masks |= {"missing": np.isnan(values), "below range": values < column.low, "above range": values > column.high}
    return pd.Series(values), _findings(table, column, masks)


def _findings(table: Table, column: Column, masks: dict[str, Any]) -> list[Finding]:
    """List what is new in a column, with a few examples and the first rows of each kind."""
    found, rows = [], table.row_numbers()
    for what, mask in masks.items():
        places = np.flatnonzero(np.asarray(mask))
        if len(places):
            words = dict.fromkeys(texts(table.take(places[:1000]), column.name))
            example = "" if what == "missing" else some_of(map(repr, words), 3)
            found.append(Finding(column.name, what, len(places), example, tuple(map(int, rows[places[:5]]))))
    return found
