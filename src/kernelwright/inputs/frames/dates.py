"""Find how the dates of a column are written, and read them as days since 1970."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

__all__ = ["ORDERS", "DateCell", "DateReading", "date_order", "days_of", "hours_of", "read_compact", "read_dates"]

ORDERS = {"day-first": "month-first", "month-first": "day-first"}  # each with the other one
EPOCH = date(1970, 1, 1).toordinal()
LONGEST = 45  # characters in a cell that may be a date
EXAMINED = 30  # cells that must mostly be dates, or the others are not looked at
SPELLED = "january february march april may june july august september october november december"
MONTHS = {name[:length]: number for number, name in enumerate(SPELLED.split(), 1) for length in (3, len(name))}
MONTHS["sept"] = 9
CENTURY = 69  # years of two digits from here on are of the last century, as in POSIX

YEAR, MONTH = r"(?P<year>\d{4}|\d{2})", r"(?P<month>[A-Za-z]{3,9})\.?"
WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
NTH = r"(?:st|nd|rd|th|\.)?"
CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:[.,]\d{1,9})?))?\s*(?P<half>[ap]\.?m\.?)?"
ZONE = r"\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?(?:\d{2})?)?"
FORMS = [
    re.compile(rf"{WEEKDAY}{form}(?:(?:T|:|,?\s+){CLOCK}{ZONE})?", re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})([-/.])(?P<number>\d{1,2})\2(?P<one>\d{1,2})",  # 1988-04-28, 1988/04/28
        r"(?P<one>\d{1,2})(?P<mark>[-/.])\s?(?P<two>\d{1,2})(?P=mark)\s?(?P<year>\d{4})",  # 28/04/1988, 04/28/1988
        r"(?P<one>\d{1,2})(?P<mark>/)(?P<two>\d{1,2})/(?P<year>\d{2})",  # 28/4/88
        r"(?P<one>\d{2})(?P<mark>\.)(?P<two>\d{2})\.(?P<year>\d{2})",  # 28.04.88, but not the version 1.2.10
        rf"(?P<one>\d{{1,2}}){NTH}[-\s/]*(?:of\s+)?{MONTH},?[-\s/]*{YEAR}",  # 28 Apr 1988, 28-Apr-88
        rf"{MONTH}[-\s]*(?P<one>\d{{1,2}}){NTH},?[-\s]+(?P<year>\d{{4}})",  # April 28, 1988
        rf"{MONTH},?[-\s/]+(?P<year>\d{{4}})",  # Apr-1988
        r"(?P<year>(?:1[89]|20|21)\d{2})-(?P<number>0[1-9]|1[0-2])",  # 1988-04
        r"(?P<number>0?[1-9]|1[0-2])[-/](?P<year>(?:1[89]|20|21)\d{2})",  # 04/1988
        r"(?P<year>(?:1[89]|20|21)\d{2})[-\s/]?Q(?P<quarter>[1-4])",  # 1988Q2
        r"Q(?P<quarter>[1-4])[-\s/]?(?P<year>(?:1[89]|20|21)\d{2})",  # Q2 1988
    )
]
FORMS.append(
    re.compile(rf"{WEEKDAY}{MONTH}\s+(?P<one>\d{{1,2}})\s+{CLOCK}{ZONE}\s+(?P<year>\d{{4}})", re.IGNORECASE)
)  # ctime
FORMS.append(
    re.compile(
        r"(?P<year>\d{4})(?P<number>\d{2})(?P<one>\d{2})T(?P<hour>\d{2})(?P<minute>[0-5]\d)(?P<second>[0-5]\d)?(?P<half>)"
        + ZONE
    )
)  # 19880428T094500Z
COMPACT = re.compile(r"((?:1[89]|20|21)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")  # 19880428
FEWEST_COMPACT = 10  # different dates; fewer whole numbers may look like them by chance
DURATION = re.compile(
    r"(?:(?P<days>-?\d{1,6}) days?,?(?: \+?|$))?"
    r"(?:(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:\.\d{1,9})?))?)?"
)  # as str(timedelta) of Python and pandas, and hours beyond 24
CLOCKS = re.compile(CLOCK, re.IGNORECASE)


@dataclass(frozen=True)
class DateCell:
    """The days from 1970 to the date in a cell, in either order of day and month (NaN if there is no such date)."""

    days: dict[str, float]
    mark: str  # what separates day and month, if both are numbers

    @classmethod
    def of(cls, word: str) -> DateCell | None:
        """Parse a cell; return None if it is not a date.

        Examples
        --------
        >>> from kernelwright.inputs.frames.dates import DateCell
        >>> DateCell.of("02/01/1970").days
        {'day-first': 1.0, 'month-first': 31.0}
        >>> DateCell.of("Jan 2, 1970 6:00 PM").days
        {'day-first': 1.75, 'month-first': 1.75}
        """
        if len(word) > LONGEST or not any(sign.isdigit() for sign in word):
            return None
        for form in FORMS:
            if (found := form.fullmatch(word)) is not None:
                return cls._of(found.groupdict())
        return None

    @classmethod
    def _of(cls, parts: dict[str, Any]) -> DateCell | None:
        clock = _hours(parts)
        if clock is None:
            return None
        year, one = int(parts["year"]), int(parts.get("one") or 1)
        if len(parts["year"]) == 2:
            year += 1900 if year >= CENTURY else 2000
        if parts.get("two") is not None:
            two = int(parts["two"])
            days = {"day-first": _day(year, two, one), "month-first": _day(year, one, two)}
        else:
            days = dict.fromkeys(ORDERS, _day(year, _month(parts), one))
        found = {order: day + clock / 24.0 for order, day in days.items()}
        return None if all(map(np.isnan, found.values())) else cls(found, parts.get("mark") or "")


def _month(parts: dict[str, Any]) -> int:
    if parts.get("month"):
        return MONTHS.get(parts["month"].lower(), 0)
    return 3 * int(parts["quarter"]) - 2 if parts.get("quarter") else int(parts["number"])


def _day(year: int, month: int, day: int) -> float:
    try:
        return float(date(year, month, day).toordinal() - EPOCH)
    except ValueError:
        return np.nan


def _hours(parts: dict[str, Any]) -> float | None:
    """Return the hours since midnight, in UTC if there is a zone; None if there is no such time."""
    if parts.get("hour") is None:
        return 0.0
    hour, half = int(parts["hour"]), (parts["half"] or "").lower()[:1]
    if hour > (12 if half else 24) or (half and hour == 0):
        return None
    hour = hour % 12 + 12 * (half == "p") if half else hour
    second = float((parts["second"] or "0").replace(",", "."))
    zone, ahead = parts.get("zone") or "", 0.0
    if zone[:1] in ("+", "-") and zone:
        ahead = float(f"{zone[0]}1") * (int(zone[1:3]) + int(zone[3:].lstrip(":") or 0) / 60.0)
    return hour + int(parts["minute"]) / 60.0 + second / 3600.0 - ahead


@dataclass(frozen=True)
class DateReading:
    """A column of text read as dates.

    Parameters
    ----------
    order : str
        "day-first" or "month-first", the order in which ambiguous cells are read; "" if there are none; "compact" if
        the dates are written as whole numbers.
    days : ndarray
        Days since 1970; NaN where there is no date.
    odd : ndarray of bool
        Marks cells that hold something else.
    settled : bool
        Whether some cell allows only one order.
    example : str
        A cell that is another date in the other order; "" if there is none.
    """

    order: str
    days: np.ndarray
    odd: np.ndarray
    settled: bool = True
    example: str = ""

    def remark(self, where: str) -> str:
        """Say how an ambiguous column was read, and how to change it; "" if it is not ambiguous."""
        if self.settled or not self.example:
            return ""
        cell = DateCell.of(self.example)
        assert cell is not None
        other = ORDERS[self.order]
        first, second = (date.fromordinal(int(cell.days[order] // 1) + EPOCH) for order in (self.order, other))
        return (
            f"{where}: {self.example!r} can be read in two ways and was read as {first}. --dates {other} reads it as "
            f"{second} (in Python, convert the column with pandas.to_datetime(..., dayfirst={other == 'day-first'}))."
        )


def date_order(word: str | None) -> str | None:
    """Return the order that the user named; raise ValueError if it is none."""
    if word is not None and word not in ORDERS:
        raise ValueError(f"dates must be 'day-first' or 'month-first'. Got {word!r} instead.")
    return word


def read_dates(words: Any, order: str | None = None, *, told: bool = False) -> DateReading | None:
    """Read a column of text as dates; the order of day and month is the one that suits the whole column.

    Parameters
    ----------
    words : pandas.Series
        Text, with NaN for missing values.
    order : {"day-first", "month-first"}, optional
        The order if both suit the column. By default, the number that never changes is the day (reports on the first of
        each month); else the month is first between slashes, and the day between points or hyphens.
    told : bool, default=False
        Whether the column is known to hold dates, in this order; otherwise the answer is None if most cells are not.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.inputs.frames.dates import read_dates
    >>> read_dates(pd.Series(["03/02/1970", "28/01/1970", None])).days.tolist()
    [33.0, 27.0, nan]
    """
    import pandas as pd

    codes, different = pd.factorize(words)
    some = different[:: max(1, len(different) // EXAMINED)]
    if not told and 2 * sum(DateCell.of(word) is not None for word in some) <= len(some):
        return None
    cells = [DateCell.of(word) for word in different]
    counts = np.bincount(codes[codes >= 0], minlength=len(different))
    none = np.full(len(ORDERS), np.nan)
    days = np.array([none if cell is None else list(cell.days.values()) for cell in cells]).reshape(-1, len(ORDERS)).T
    readable = dict(zip(ORDERS, (~np.isnan(days) * counts).sum(1), strict=True))
    either = len(set(readable.values())) == 1
    if told and order:
        chosen = order
    elif not either:
        chosen = max(readable, key=readable.__getitem__)
    else:
        chosen = order or _likely([word for word, cell in zip(different, cells, strict=True) if cell and cell.mark])
    own = days[list(ORDERS).index(chosen)]
    twofold = np.flatnonzero((days[0] != days[1]) & ~np.isnan(days).any(0))
    spread = np.append(own, np.nan)[codes]  # the code of a missing value, -1, is the last place
    return DateReading(
        chosen if any(cell is not None and cell.mark for cell in cells) else "",
        spread,
        np.isnan(spread) & (codes >= 0),
        settled=not either,
        example=different[twofold[0]] if len(twofold) else "",
    )


def read_compact(words: Any, *, told: bool = False) -> DateReading | None:
    """Read a column of whole numbers such as 19880428 as dates; None if any is none, or if there are few.

    With ``told``, the column is known to hold such dates, and others are read as well.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.inputs.frames.dates import read_compact
    >>> read_compact(pd.Series([f"197001{day}" for day in range(10, 25)])).days[:3].tolist()
    [9.0, 10.0, 11.0]
    """
    different = words.dropna().unique()
    if not told and (len(different) < FEWEST_COMPACT or not all(map(COMPACT.fullmatch, different))):
        return None
    hyphens = words.map(lambda word: COMPACT.sub(r"\1-\2-\3", word) if COMPACT.fullmatch(word) else word, "ignore")
    reading = read_dates(hyphens, told=told)
    return None if reading is None or (reading.odd.any() and not told) else replace(reading, order="compact")


def _likely(words: list[str]) -> str:
    """Return the order of day and month in a column that can be read with both."""
    if not words:
        return "day-first"
    first, second = (np.unique([int(re.findall(r"\d+", word)[place]) for word in words]) for place in (0, 1))
    if (len(first) == 1) != (len(second) == 1):
        return "day-first" if len(first) == 1 else "month-first"
    return "month-first" if "/" in words[0] else "day-first"


def hours_of(words: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return times of day as hours since midnight (NaN if missing), and a mask of the cells that hold something else.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.inputs.frames.dates import hours_of
    >>> hours_of(pd.Series(["14:30", "2:30 PM", None]))[0].tolist()
    [14.5, 14.5, nan]
    """
    import pandas as pd

    codes, different = pd.factorize(words)
    found = [CLOCKS.fullmatch(word) if len(word) <= LONGEST else None for word in different]
    hours = [np.nan if each is None else _hours(each.groupdict()) for each in found]
    spread = np.append(np.array(hours, dtype=np.float64), np.nan)[codes]
    return spread, np.isnan(spread) & (codes >= 0)


def days_of(words: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return durations in days (NaN if missing), and a mask of the cells that hold something else.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.inputs.frames.dates import days_of
    >>> days_of(pd.Series(["1 days 12:00:00", "-1 days +18:00:00", "36:00", None]))[0].tolist()
    [1.5, -0.25, 1.5, nan]
    """
    import pandas as pd

    codes, different = pd.factorize(words)
    found = [DURATION.fullmatch(word) if word and len(word) <= LONGEST else None for word in different]
    days = [np.nan if each is None else _days(each.groupdict(default="0")) for each in found]
    spread = np.append(np.array(days, dtype=np.float64), np.nan)[codes]
    return spread, np.isnan(spread) & (codes >= 0)


def _days(parts: dict[str, Any]) -> float:
    seconds = 3600 * int(parts["hours"]) + 60 * int(parts["minutes"]) + float(parts["seconds"])
    return int(parts["days"]) + seconds / 86_400.0
