"""Format scores, intervals and counts for report pages."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

from kernelwright.evaluation.cross_validation import Rival
from kernelwright.evaluation.scores import Score
from kernelwright.tables import Column

__all__ = [
    "column_range",
    "count_of",
    "interval",
    "listed",
    "name_of_table",
    "number",
    "percent",
    "probability",
    "record_rows",
    "verdict",
]


def number(value: float) -> str:
    """Format a number with few digits, and without an exponent if possible."""
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "unbounded"
    if not (abs(value) < 1e-9 or 1e-3 <= abs(value) < 1e6):
        return f"{value:.3g}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def percent(value: float, digits: int = 1) -> str:
    """Format a share as a percentage."""
    return f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%" if math.isfinite(value) else "unknown"


def probability(value: float) -> str:
    """Format a probability with three decimals, or with an exponent if it is small."""
    return f"{value:.3f}" if value >= 0.001 or value == 0 else f"{value:.1e}"


def interval(score: Score, *, share: bool = False) -> str:
    r"""Format the 95 % interval of a score.

    Examples
    --------
    >>> from kernelwright.evaluation import Score
    >>> from kernelwright.reports.formatting import interval
    >>> interval(Score(0.95, 0.91, 0.98), share=True)
    '91.0 to 98.0\xa0%'
    """
    if not (math.isfinite(score.low) and math.isfinite(score.high)):
        return "too few rows for an interval"
    if share:
        return f"{100 * score.low:.1f} to {percent(score.high)}"
    return f"{number(score.low)} to {number(score.high)}"


def count_of(count: int, word: str) -> str:
    """Format a count with its noun: "1 row", "2 rows", "3 classes"."""
    plural = word + ("es" if word.endswith("s") else "s")
    return f"{count:,} {word if count == 1 else plural}"


def verdict(rival: Rival) -> str:
    """Say who has the better probabilities, if the interval of the difference excludes zero.

    Examples
    --------
    >>> from kernelwright.evaluation import Rival, Score
    >>> from kernelwright.reports.formatting import verdict
    >>> verdict(Rival(None, Score(0.1, -0.02, 0.22), 1.0))
    'no clear difference'
    """
    if rival.gain.low > 0:
        return "this model is better"
    return "this model is worse" if rival.gain.high < 0 else "no clear difference"


def column_range(column: Column) -> str:
    """Summarise the values of a column in a few words."""
    if column.kind == "date" and column.low is not None and column.high is not None:
        return f"{_date(column.low)} to {_date(column.high)}"
    if column.kind == "boolean" and len(column.categories) == 2:
        return " or ".join(column.categories)
    if column.kind == "category":
        most = sorted(zip(column.counts, column.categories, strict=False), reverse=True)[:3]
        shown = ", ".join(name for _, name in most) or ", ".join(column.categories[:3])
        rest = len(column.categories) - min(3, len(column.categories))
        return shown + (f" and {rest} more" if rest else "")
    if column.low is not None and column.high is not None:
        return f"{column.low:.6g} to {column.high:.6g}"
    return ""


def _date(days: float) -> str:
    try:
        return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=math.floor(days)))
    except (OverflowError, ValueError):  # before the year 1 or after 9999
        return f"day {days:.6g} after 1970"


def name_of_table(settings: Mapping[str, Any]) -> str:
    """Return the name of the training table."""
    return str(settings.get("table") or "the table")


def record_rows(record: Mapping[str, Any], longest: int = 300) -> list[tuple[str, str]]:
    """Turn a dictionary into rows of a table."""
    rows = []
    for name, value in record.items():
        if isinstance(value, float):
            text = f"{value:.6g}"
        elif isinstance(value, list | tuple | set):
            text = ", ".join(map(str, value))
        else:
            text = str(value)
        rows.append((str(name).replace("_", " "), text if len(text) <= longest else f"{text[:longest]}…"))
    return rows


def listed(names: Sequence[str], last: str = "and") -> str:
    """Join names as in a sentence.

    Examples
    --------
    >>> from kernelwright.reports.formatting import listed
    >>> listed(["ridge regression"]), listed(["a", "b", "c"], "or")
    ('ridge regression', 'a, b or c')
    """
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
