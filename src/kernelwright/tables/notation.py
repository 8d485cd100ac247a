"""How numbers are written in a column: decimal signs, marks between thousands, currencies and units."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from kernelwright.storage.saved import saved
from kernelwright.tables.numerals import OTHER, PERCENT, NumberCell

__all__ = [
    "Notation",
    "Reading",
    "decimal_sign",
    "notation_of",
    "read_numbers",
    "read_numbers_as",
]

DECIMALS = {"point": ".", "comma": ","}


@saved("number-notation")
@dataclass(frozen=True)
class Notation:
    """What a training column settled about its numbers, so that new tables are read in the same way.

    Parameters
    ----------
    decimal : {".", ","}
        The decimal sign; the other one stands between thousands, if it stands anywhere.
    unit : str
        The currency or unit next to the numbers, "" for none.
    bare : bool
        Whether some numbers were without the unit.
    """

    decimal: str = "."
    unit: str = ""
    bare: bool = False

    @property
    def words(self) -> str:
        """What a column of such numbers holds."""
        return f"numbers in {self.unit}" if self.unit else "numbers"


notation_of = cache(Notation)  # so that a file with thousands of columns holds it once


@dataclass(frozen=True)
class Reading:
    """A column of text read as numbers.

    Parameters
    ----------
    notation : Notation
    values : ndarray
        NaN where there is no number.
    odd : ndarray of bool
        Cells that hold something else.
    bare : ndarray of bool
        Numbers without the unit that others have.
    example : str
        A cell that is no plain number; "" where all are.
    settled : bool
        Whether the cells themselves leave one decimal sign only.
    otherwise : float or None
        What ``example`` would be with the other decimal sign, if the whole column could be read so.
    units : tuple of (str, int)
        Units that were met and how often, "" for none, the most frequent one first.
    """

    notation: Notation
    values: np.ndarray
    odd: np.ndarray
    bare: np.ndarray
    example: str = ""
    settled: bool = False
    otherwise: float | None = None
    units: tuple[tuple[str, int], ...] = ()

    @property
    def value(self) -> float:
        """The number of ``example``."""
        cell = NumberCell.of(self.example)
        return np.nan if cell is None else cell.values[self.notation.decimal]

    def remark(self, where: str) -> str:
        """A sentence that says how the numbers of a column were read where there are two ways, and what changes it."""
        if self.otherwise is None:
            return ""
        other = {".": "comma", ",": "point"}[self.notation.decimal]
        return (
            f"{where}: {self.example!r} can be read in two ways and was read as {self.value:.10g}. --decimal {other} "
            f"(in Python, decimal={other!r}) reads it as {self.otherwise:.10g}."
        )


def decimal_sign(word: str | None) -> str | None:
    """The sign that a user's word stands for."""
    if word is not None and word not in DECIMALS:
        raise ValueError(f"decimal must be 'comma' or 'point'. Got {word!r} instead.")
    return None if word is None else DECIMALS[word]


def read_numbers(words: Any, decimal: str = ".", *, plain: bool = True) -> Reading:
    """Read a column of text as numbers, in the notation that suits the whole of it.

    Parameters
    ----------
    words : pandas.Series
        Text, NaN where there is nothing.
    decimal : {".", ","}
        The decimal sign where the column could be read with either one.
    plain : bool, default=True
        Take the short way where every cell is a number to Python as well. Whether the cells settle the decimal sign is
        then not looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables.notation import read_numbers
    >>> read_numbers(pd.Series(["$3,671", "$12", None])).values.tolist()
    [3671.0, 12.0, nan]
    >>> read_numbers(pd.Series(["3,671", "0,5"])).values.tolist()
    [3.671, 0.5]
    """
    usual = _usual(words)
    if plain and not usual.odd.any() and (decimal == "." or not words.str.contains(".", regex=False, na=False).any()):
        return replace(usual, notation=notation_of(decimal))
    column = _Column.of(words, usual)
    point, comma = column.readable(".").sum(), column.readable(",").sum()
    either = point == comma
    chosen = decimal if either else "." if point > comma else ","
    reading = column.reading(chosen, column.main_unit(chosen))
    if not either:
        return replace(reading, settled=True)
    cell = NumberCell.of(reading.example)
    otherwise = np.nan if cell is None else cell.values[OTHER[chosen]]
    same = np.isnan(otherwise) or otherwise == reading.value
    return replace(reading, otherwise=None if same else otherwise)


def read_numbers_as(words: Any, notation: Notation, *, known: tuple[str, ...] = ()) -> Reading:
    """Read a column of text as another one was read; with the other decimal sign only where there is no other way.

    ``known`` are words that were missing values then. Cells in another unit are odd.
    """
    usual = _usual(words)
    if not usual.odd.any() and notation == Notation("."):
        return usual
    column = _Column.of(words, usual)
    reading = column.reading(notation.decimal, notation.unit)
    if (reading.odd & ~words.isin(known).to_numpy()).any():
        other = column.reading(OTHER[notation.decimal], notation.unit)
        if not (other.odd & ~words.isin(known).to_numpy()).any():
            return other
    return reading


def _usual(words: Any) -> Reading:
    """What Python itself takes for numbers."""
    import pandas as pd

    values = pd.to_numeric(words, errors="coerce").to_numpy(dtype=np.float64)
    values = np.where(np.isinf(values), np.nan, values)
    return Reading(
        notation_of(), values, np.isnan(values) & words.notna().to_numpy(), np.zeros(len(values), dtype=bool)
    )


@dataclass(frozen=True)
class _Column:
    """The different cells of a column, taken apart."""

    words: list[str]
    codes: np.ndarray  # of each row, -1 where there is nothing
    counts: np.ndarray
    cells: list[NumberCell | None]
    usual: np.ndarray  # what Python reads, which knows numbers such as "12."

    @classmethod
    def of(cls, words: Any, usual: Reading) -> _Column:
        import pandas as pd

        codes, different = pd.factorize(words)
        values = np.full(len(different), np.nan)
        values[codes[codes >= 0]] = usual.values[codes >= 0]
        counts = np.bincount(codes[codes >= 0], minlength=len(different))
        return cls(list(different), codes, counts, [NumberCell.of(word) for word in different], values)

    def values(self, decimal: str) -> np.ndarray:
        found = np.array([np.nan if cell is None else cell.values[decimal] for cell in self.cells], dtype=np.float64)
        return np.where(np.isnan(found), self.usual, found) if decimal == "." else found

    def readable(self, decimal: str) -> np.ndarray:
        """Rows of each different cell that is a number with this decimal sign."""
        return np.where(np.isnan(self.values(decimal)), 0, self.counts)

    def units(self, decimal: str) -> Counter[str]:
        found: Counter[str] = Counter()
        for cell, count in zip(self.cells, self.readable(decimal), strict=True):
            if count:
                found["" if cell is None else cell.unit] += int(count)
        return found

    def main_unit(self, decimal: str) -> str:
        found = self.units(decimal).most_common(1)
        return found[0][0] if found else ""

    def reading(self, decimal: str, unit: str) -> Reading:
        """All rows; cells of another unit are odd, and so are those without a percent sign where others have one."""
        own = np.array([cell.unit if cell else "" for cell in self.cells], dtype=object)
        values = self.values(decimal)
        bare = (own == "") & (unit != "")
        values[~bare & (own != unit)] = np.nan
        if unit in tuple(PERCENT):
            values[bare & (values != 0)] = np.nan
        bare &= ~np.isnan(values)
        notation = notation_of(decimal, unit, bool(bare.any()))
        example, units = self.example(decimal, unit), tuple(self.units(decimal).most_common())
        spread = self._in_rows(values, np.nan)
        return Reading(
            notation, spread, np.isnan(spread) & (self.codes >= 0), self._in_rows(bare, False), example, units=units
        )

    def _in_rows(self, values: np.ndarray, otherwise: Any) -> np.ndarray:
        """What belongs to each different cell, in every row that has it."""
        return np.append(values, otherwise).astype(values.dtype)[
            self.codes
        ]  # the code of nothing, -1, is the last place

    def example(self, decimal: str, unit: str) -> str:
        """The cell that says most about how numbers are written here: one of two meanings, else one with a mark."""
        best, most = "", 0
        for word, cell, usual in zip(self.words, self.cells, self.usual, strict=True):
            if cell is None or cell.unit != unit or np.isnan(cell.values[decimal]) or usual == cell.values[decimal]:
                continue
            says = 1 + any(mark in word for mark in ".,") + 2 * (cell.values["."] != cell.values[","])
            if says > most:
                best, most = word, says
        return best
