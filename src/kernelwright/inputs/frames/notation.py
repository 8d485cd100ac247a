"""Find how the numbers of a column are written: decimal signs, thousands separators, currencies and units."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from kernelwright.inputs.frames.numerals import OTHER, PERCENT, NumberCell
from kernelwright.storage.saved import saved

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
    """How the numbers of a training column are written, so that new tables are read in the same way.

    Parameters
    ----------
    decimal : {".", ","}
        The decimal sign; the other one can only be a thousands separator.
    unit : str
        The currency or unit of the numbers, "" for none.
    bare : bool
        Whether some numbers had no unit.
    """

    decimal: str = "."
    unit: str = ""
    bare: bool = False

    @property
    def words(self) -> str:
        """A noun for such numbers."""
        return f"numbers in {self.unit}" if self.unit else "numbers"


notation_of = cache(Notation)  # so that a file with thousands of columns holds it once


@dataclass(frozen=True)
class Reading:
    """A column of text read as numbers.

    Parameters
    ----------
    notation : Notation
    values : ndarray
        The numbers; NaN where there is none.
    odd : ndarray of bool
        Marks cells that hold something else.
    bare : ndarray of bool
        Marks numbers without the unit that the others have.
    example : str
        A cell that is not a plain number; "" if all are.
    settled : bool
        Whether the cells allow only one decimal sign.
    otherwise : float or None
        The value of ``example`` with the other decimal sign, if the whole column could be read with it.
    units : tuple of (str, int)
        The units and their counts, most frequent first; "" is no unit.
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
        """The value of ``example``."""
        cell = NumberCell.of(self.example)
        return np.nan if cell is None else cell.values[self.notation.decimal]

    def remark(self, where: str) -> str:
        """Say how an ambiguous column was read, and which option changes it; "" if it is not ambiguous."""
        if self.otherwise is None:
            return ""
        other = {".": "comma", ",": "point"}[self.notation.decimal]
        return (
            f"{where}: {self.example!r} can be read in two ways and was read as {self.value:.10g}. --decimal {other} "
            f"reads it as {self.otherwise:.10g} (in Python, convert the column to numbers)."
        )


def decimal_sign(word: str | None) -> str | None:
    """Return the sign that a user's word stands for."""
    if word is not None and word not in DECIMALS:
        raise ValueError(f"decimal must be 'comma' or 'point'. Got {word!r} instead.")
    return None if word is None else DECIMALS[word]


def read_numbers(words: Any, decimal: str = ".", *, plain: bool = True) -> Reading:
    """Read a column of text as numbers, in the notation that suits the whole column best.

    Parameters
    ----------
    words : pandas.Series
        Text, with NaN for missing values.
    decimal : {".", ","}
        The decimal sign to use if the column can be read with both.
    plain : bool, default=True
        Stop early if Python can read every cell as a number. Whether the cells allow only one decimal sign is then
        not checked.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.inputs.frames.notation import read_numbers
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
    """Read a column of text in a given notation; use the other decimal sign only if nothing else works.

    ``known`` are words that stood for missing values in training. Cells in another unit are odd.
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
    """Read the cells that Python itself accepts as numbers."""
    import pandas as pd

    values = pd.to_numeric(words, errors="coerce").to_numpy(dtype=np.float64)
    values = np.where(np.isinf(values), np.nan, values)
    return Reading(
        notation_of(), values, np.isnan(values) & words.notna().to_numpy(), np.zeros(len(values), dtype=bool)
    )


@dataclass(frozen=True)
class _Column:
    """The unique cells of a column, parsed."""

    words: list[str]
    codes: np.ndarray  # of each row, -1 for a missing value
    counts: np.ndarray
    cells: list[NumberCell | None]
    usual: np.ndarray  # as Python reads them, which accepts numbers such as "12."

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
        """Count the rows of each unique cell; zero if it is not a number with this decimal sign."""
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
        """Read all rows; cells in another unit are odd, and so are cells without a percent sign if others have one."""
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
        """Spread the values of the unique cells over the rows."""
        return np.append(values, otherwise).astype(values.dtype)[
            self.codes
        ]  # the code of a missing value, -1, is the last place

    def example(self, decimal: str, unit: str) -> str:
        """Return the most informative cell: one with two meanings, else one with a separator."""
        best, most = "", 0
        for word, cell, usual in zip(self.words, self.cells, self.usual, strict=True):
            if cell is None or cell.unit != unit or np.isnan(cell.values[decimal]) or usual == cell.values[decimal]:
                continue
            says = 1 + any(mark in word for mark in ".,") + 2 * (cell.values["."] != cell.values[","])
            if says > most:
                best, most = word, says
        return best
