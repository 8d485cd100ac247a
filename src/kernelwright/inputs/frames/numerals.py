"""Parse single cells as numbers: decimal signs, thousands separators, currencies and units.

This needs only the standard library, so that a file can be checked before pandas is imported.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

__all__ = ["OTHER", "PERCENT", "NumberCell", "is_number", "is_unit"]

OTHER = {".": ",", ",": "."}
LONGEST = 60  # characters in a cell that may be a number
BLANKS = "' \u2019\u00a0\u2009\u202f"  # thousands separators, besides commas and points
CURRENCIES = "$\u00a2\u00a3\u00a5\u0e3f\u20a9\u20aa\u20ab\u20ac\u20b4\u20b9\u20ba\u20bd\u20bf"
CODES = "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF INR JPY KRW MXN NOK NZD PLN RUB SEK SGD TRY USD ZAR"
WORD = r"[^\W\d_][^\s\d]{0,14}"
CELL = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[+\-\u2212]?)\s*"
    rf"(?P<before>[A-Z]{{0,3}}[{CURRENCIES}]|(?:{'|'.join(CODES.split())})(?=[\s\d+\-\u2212]))?\s*(?P<inner>[+\-\u2212]?)"
    rf"(?P<number>[.,]?\d(?:[\d.,{BLANKS}]*\d)?(?:[eE][+\-]?\d+)?)\s*"
    rf"(?P<after>[%\u2030{CURRENCIES}]|\u00b0?{WORD}(?:\s{WORD})?(?:\^?[23])?|\u00b0)?\s*(?(open)\))"
)
UNITS = "kg g mg t lb lbs oz km m cm mm mi ft in yd l ml cl dl s sec ms min h hr hrs hour hours day days week weeks"
UNITS += " month months year years yr yrs K k M B mn mio bn \u00b0 \u00b0C \u00b0F % \u2030 USD EUR GBP CHF"
PERCENT = "%\u2030"  # 0.5 and 50% are the same, so a cell without the sign may mean either


def _pattern(decimal: str) -> re.Pattern[str]:
    """Compile the pattern of numbers with this decimal sign; all their thousands separators must be the same."""
    other = re.escape(OTHER[decimal])
    grouped = rf"[1-9]\d{{0,2}}([{other}{BLANKS}])\d{{3}}(?:\1\d{{3}})*"
    indian = r"|[1-9]\d?(?:,\d\d)+,\d{3}" if decimal == "." else ""
    sign = re.escape(decimal)
    return re.compile(rf"(?:(?:{grouped}{indian}|\d+)(?:{sign}\d+)?|{sign}\d+)(?:[eE][+\-]?\d+)?")


PATTERNS = {decimal: _pattern(decimal) for decimal in OTHER}
MARKS = {
    decimal: str.maketrans({mark: "" for mark in BLANKS} | {OTHER[decimal]: "", decimal: "."}) for decimal in OTHER
}


@dataclass(frozen=True)
class NumberCell:
    """The value of a cell with each of the two decimal signs (NaN if it is not a number), and its unit."""

    values: dict[str, float]
    unit: str

    @classmethod
    def of(cls, word: str) -> NumberCell | None:
        """Parse a cell; return None if it is not a number."""
        found = CELL.fullmatch(word) if len(word) <= LONGEST else None
        if found is None or (found["sign"] and found["inner"]):
            return None
        minus = bool(found["open"]) != ((found["sign"] or found["inner"] or "+") != "+")
        values = {decimal: _number(found["number"], decimal, minus) for decimal in PATTERNS}
        return cls(values, f"{found['before'] or ''}{(found['after'] or '').rstrip('.')}")


def _number(text: str, decimal: str, minus: bool) -> float:
    if PATTERNS[decimal].fullmatch(text) is None:
        return math.nan
    value = float(text.translate(MARKS[decimal]))
    return math.nan if math.isinf(value) else -value if minus else value


def is_number(word: str) -> bool:
    """Return whether a cell is a number without a unit, with either decimal sign."""
    try:
        float(word)
    except ValueError:
        cell = NumberCell.of(word.strip())
        return cell is not None and not cell.unit and not all(map(math.isnan, cell.values.values()))
    return True


def is_unit(word: str) -> bool:
    """Return whether the text next to a number is a common unit, a currency or empty, and not a letter of a code."""
    return not word or word in UNITS.split() or any(sign in word for sign in CURRENCIES)
