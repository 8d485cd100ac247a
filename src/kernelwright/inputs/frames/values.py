"""Read a column of any table as it was read in training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelwright.inputs.frames.cells import days_since_1970, is_duration, read_as, texts, typed_numbers
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.dates import days_of, hours_of
from kernelwright.inputs.frames.table import Table

__all__ = ["ColumnValues", "values_of"]

NOUNS = {"": "YYYY-MM-DD", "compact": "YYYYMMDD"}  # of forms of dates


@dataclass(frozen=True)
class ColumnValues:
    """The cells of a column.

    Parameters
    ----------
    values : ndarray
        Numbers (for dates days since 1970; NaN for gaps), or text as objects.
    bare : ndarray of bool or None
        Marks numbers without the unit that those of the training table had.
    new : ndarray of bool or None
        Marks words that the training table did not have.
    """

    values: np.ndarray
    bare: np.ndarray | None = None
    new: np.ndarray | None = None

    @property
    def missing(self) -> np.ndarray:
        """A mask of the rows without a value."""
        gaps = np.array([word is None or word != word for word in self.values]) if self.values.dtype == object else None
        return np.isnan(self.values) if gaps is None else gaps.astype(bool)


def values_of(table: Table, column: Column) -> ColumnValues:
    """Read a used column; text where training had numbers or dates is an error that names the row."""
    name = column.name
    if column.kind in ("category", "words"):
        words = texts(table, name)
        new = words.notna() & ~words.isin(column.categories) if column.kind == "category" else words.isin(())
        return ColumnValues(words.to_numpy(dtype=object), new=new.to_numpy())
    if column.kind == "boolean":
        words = texts(table, name).str.lower()
        codes = {"0": 0.0, "1": 1.0, column.categories[0]: 0.0, column.categories[1]: 1.0}
        values = words.map(codes).to_numpy(dtype=np.float64)
        return ColumnValues(values, new=np.isnan(values) & words.notna().to_numpy())
    bare = None
    if column.kind == "date":
        noun = f"dates ({NOUNS.get(column.form, column.form.replace('-', ' '))})"
        values, odd = days_since_1970(table, name, column.form)
    elif column.form == "clock" and not is_duration(table, name):
        noun = "times of day"
        values, odd = hours_of(texts(table, name))
    elif column.form == "duration" and not is_duration(table, name):
        noun = "durations"
        values, odd = days_of(texts(table, name))
    else:
        reading = typed_numbers(table, name) or read_as(texts(table, name), column.notation, column.categories)
        noun, values, odd = reading.notation.words, reading.values, reading.odd
        if column.notation is not None and not column.notation.bare:
            bare = reading.bare
        if column.form == "clock":  # durations are read in days
            values = 24.0 * values
    if odd.any():
        _refuse_odd(table, column, odd, noun)
    return ColumnValues(values, bare=bare)


def _refuse_odd(table: Table, column: Column, odd: np.ndarray, noun: str) -> None:
    """Raise ValueError unless the cells are words that stood for a missing value in training."""
    words = texts(table, column.name)
    odd = odd & ~words.isin(column.categories).to_numpy()
    if odd.any():
        row = int(odd.argmax())
        raise ValueError(
            f"Column {column.name!r} held {noun} in training, but {table.source} has {words[row]!r} in "
            f"{table.place(row)}."
        )
