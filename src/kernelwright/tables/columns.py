"""What kind of column is this, and what is done to it before a model sees it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from kernelwright.tables.table import Table, as_table, some_of

__all__ = ["Column", "Finding", "describe_columns", "numbers", "prepare", "texts"]

USED = ("number", "boolean", "date", "category")
BOOLEANS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"))
ISO_DATE = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?"
DECIMAL_COMMA = r"[+-]?\d+,\d+([eE][+-]?\d+)?"
ID_WORDS = {"id", "ids", "uuid", "guid", "rowid", "rownames", "index", "unnamed"}
FEWEST = 10  # rows from which a column of values that are all different is taken for an identifier without a name
MOSTLY = 0.9  # share of numbers from which the other cells of a column count as missing


@dataclass(frozen=True)
class Column:
    """A column of the training table: its kind, what is done to it, what was seen in it.

    Parameters
    ----------
    name : str
    kind : str
        "number", "boolean", "date" or "category", which are used; "identifier", "text", "constant" or "dropped", which
        are not.
    treatment : str
        What is done to it, in words.
    missing : int
        Rows without a value.
    distinct : int
        Different values.
    low, high : float or None
        Smallest and largest number (of a date: in days since 1970).
    categories : tuple of str
        Of a category all that were seen; of a boolean the words for no and yes; of a number the words that stand for
        a missing value; of a constant its one value.
    counts : tuple of int
        Rows of each category.
    """

    name: str
    kind: str
    treatment: str
    missing: int = 0
    distinct: int = 0
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def used(self) -> bool:
        """Whether a model sees it."""
        return self.kind in USED


@dataclass(frozen=True)
class Finding:
    """Something in a new table that the training table did not have.

    ``what`` is "missing", "new category", "below range" or "above range"; ``rows`` are the first few row numbers.
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
            "below range": "{n} below every training value ({example})",
            "above range": "{n} above every training value ({example})",
        }[self.what]
        n = f"{self.count} row{'s' if self.count > 1 else ''}"
        return f"{self.column}: {words.format(n=n, example=self.example)}"


def describe_columns(
    table: Table, *, ids: Collection[str] = (), drop: Collection[str] = (), keep: Collection[str] = ()
) -> tuple[Column, ...]:
    """The kind of each column, found from its cells; ``ids``, ``drop`` and ``keep`` are the user's own word.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables import as_table, describe_columns
    >>> frame = pd.DataFrame({"id": [7, 8, 9], "age": [31.0, None, 25.0], "town": ["Bonn", "Ulm", "Bonn"]})
    >>> for column in describe_columns(as_table(frame)):
    ...     print(column.name, "is a", column.kind)
    id is a identifier
    age is a number
    town is a category
    """
    found = []
    for name in table.names:
        if name in ids:
            found.append(Column(name, "identifier", "left out: named as an identifier"))
        elif name in drop:
            found.append(Column(name, "dropped", "left out: you said so"))
        else:
            found.append(_describe(table, name, name in keep))
    return tuple(found)


def texts(table: Table, name: str) -> Any:
    """A column as text without blanks around it, NaN where there is nothing.

    Numbers of a typed table become the text that a text file would have: 3.0 is "3".
    """
    import pandas as pd

    series = table.frame[name]
    if pd.api.types.is_bool_dtype(series.dtype):
        series = series.astype(object).map(str, na_action="ignore")
    elif pd.api.types.is_numeric_dtype(series.dtype):
        series = series.astype(object).map(_plain_number, na_action="ignore")
    elif isinstance(series.dtype, pd.StringDtype):
        series = series.str.strip()
    else:
        series = series.astype(object).map(lambda value: str(value).strip(), na_action="ignore")
    return pd.Series(series.to_numpy(dtype=object, na_value=np.nan), dtype=object)


def _plain_number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def numbers(table: Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A column as numbers, NaN where there is none, and a mask of the cells that hold something else."""
    import pandas as pd

    series = table.frame[name]
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
        odd = np.isinf(values)
        values[odd] = np.nan
        return values, odd
    words = texts(table, name)
    if table.decimal_comma and (comma := words.str.fullmatch(DECIMAL_COMMA) == True).any():  # noqa: E712, NaN is neither
        words = words.where(~comma, words.str.replace(",", "."))
    values = pd.to_numeric(words, errors="coerce").to_numpy(dtype=np.float64)
    values = np.where(np.isinf(values), np.nan, values)
    return values, np.isnan(values) & words.notna().to_numpy()


def _days(table: Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A column of dates as days since 1970, and a mask of the cells that hold something else."""
    import pandas as pd

    series = table.frame[name]
    try:
        dates = pd.to_datetime(series, format="ISO8601", errors="coerce", utc=True)
        days = np.array((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), dtype=np.float64)
    except pd.errors.OutOfBoundsDatetime:
        days = np.full(len(series), np.nan)
    # pandas may know no year 9999, a common way to say "never"; Python does.
    unread = np.flatnonzero(np.isnan(days) & series.notna().to_numpy())
    days[unread] = [_day(word) for word in series.iloc[unread]]
    return days, np.isnan(days) & series.notna().to_numpy()


def _day(word: Any) -> float:
    """Days from 1970 to an ISO date, with or without a time; NaN where it is none."""
    try:
        when = datetime.fromisoformat(str(word).strip())
    except ValueError:
        return np.nan
    when = when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    return (when - datetime(1970, 1, 1)) / timedelta(days=1)


def _describe(table: Table, name: str, keep: bool) -> Column:
    words = texts(table, name)
    given = words.dropna()
    missing, distinct = len(words) - len(given), int(given.nunique())
    seen = (missing, distinct)
    ticked = distinct == 1 and min(missing, len(given)) > 1  # a value or a blank: which rows have it may say something
    if distinct < 2 and not ticked and not (keep and distinct):
        words_of_it = tuple(given.unique())
        left_out = f"left out: {'one value only' if distinct else 'no values'}"
        return Column(name, "constant", left_out, *seen, categories=words_of_it)
    gap = f"; {missing} missing: median, and a column that says so" if missing else ""
    if _is_date(table, name, given):
        low, high = _range(_days(table, name)[0])
        return Column(name, "date", f"days since 1970{gap}", *seen, low=low, high=high)
    lowered = set(given.str.lower().unique()) if distinct <= 4 else set()  # "True", "true", "False", "FALSE"
    for no, yes in BOOLEANS:
        if lowered and lowered <= {no, yes}:
            return Column(name, "boolean", f"1 for {yes}, 0 for {no}{gap}", *seen, categories=(no, yes))
    values, odd = numbers(table, name)
    several = len(np.unique(values[~np.isnan(values)])) > FEWEST
    if not odd.any() or (several and odd.sum() <= (1 - MOSTLY) * len(given)):
        return _number(name, values, given[odd[given.index]], keep, seen)
    return _category(name, given, len(words), keep, seen)


def _is_date(table: Table, name: str, given: Any) -> bool:
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(table.frame[name].dtype):
        return True
    if not re.fullmatch(ISO_DATE, given.iloc[0]) or not given.str.fullmatch(ISO_DATE).all():
        return False
    return not _days(table, name)[1].any()


def _range(values: np.ndarray) -> tuple[float, float]:
    return float(np.nanmin(values)), float(np.nanmax(values))


def _number(name: str, values: np.ndarray, odd: Any, keep: bool, seen: tuple[int, int]) -> Column:
    """A column of numbers: an identifier where they only count the rows."""
    low, high = _range(values)
    known = values[~np.isnan(values)]
    different = len(known) == len(values) == len(np.unique(known)) and bool((known == np.round(known)).all())
    counting = len(values) >= FEWEST and high - low == len(values) - 1
    if different and not keep and (counting or _is_id_name(name)):
        return Column(name, "identifier", "left out: a different whole number in every row", *seen)
    words, missing = tuple(sorted(odd.unique())), seen[0] + len(odd)
    treatment = "as it is" if not missing else f"{missing} missing: median, and a column that says so"
    if words:
        treatment += f"; {some_of(map(repr, words), 3)} read as missing"
    return Column(name, "number", treatment, missing, seen[1], low=low, high=high, categories=words)


def _category(name: str, given: Any, n_rows: int, keep: bool, seen: tuple[int, int]) -> Column:
    """A column of words: an identifier where all differ, text where most do."""
    missing, distinct = seen
    if not keep and distinct == n_rows and (n_rows >= FEWEST or _is_id_name(name)):
        return Column(name, "identifier", "left out: a different value in every row", *seen)
    if not keep and distinct > max(FEWEST, 0.5 * len(given)):
        return Column(name, "text", f"left out: {distinct} different values in {len(given)} rows", *seen)
    counts = given.value_counts().sort_index()
    rare = int((counts < 2).sum())
    treatment = f"a column for each of {distinct - rare} categories" + (f", one for {rare} rare ones" if rare else "")
    if missing:
        treatment += f"; {missing} missing: a category of their own"
    return Column(name, "category", treatment, *seen, categories=tuple(counts.index), counts=tuple(map(int, counts)))


def _is_id_name(name: str) -> bool:
    """Whether a name says "identifier": id, ID, customer_id, customerId, Unnamed: 0."""
    words = re.split(r"[^A-Za-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name))
    return any(word.lower() in ID_WORDS for word in words)


def prepare(columns: Sequence[Column], rows: Any) -> tuple[Any, list[Finding]]:
    """The used columns as numbers and words, and what is new in them compared with the training table.

    A column that is not there is an error, and so is text where numbers were.

    Parameters
    ----------
    columns : sequence of Column
        Of the training table.
    rows : Table or pandas.DataFrame

    Returns
    -------
    frame : pandas.DataFrame
        Numbers, booleans and dates as floats; categories as objects, NaN where there is none.
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
            f"{table.source} lacks the column{'s' if len(absent) > 1 else ''} {some_of(map(repr, absent), 10)}, which "
            f"the model was trained with. It has: {some_of(table.names, 20)}."
        )
    parts, findings = {}, []
    for column in used:
        parts[column.name], news = _as_trained(table, column)
        findings += news
    for column in columns:  # not used, but if it varies now, something has changed
        if column.kind == "constant" and column.categories and column.name in table.frame.columns:
            words = texts(table, column.name)
            findings += _findings(table, column, {"new category": words.notna() & ~words.isin(column.categories)})
    return pd.DataFrame(parts, columns=[column.name for column in used], index=range(len(table))), findings


def _as_trained(table: Table, column: Column) -> tuple[Any, list[Finding]]:
    """A column in the form that its record asks for."""
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
    values, odd = _days(table, column.name) if column.kind == "date" else numbers(table, column.name)
    if odd.any():
        words = texts(table, column.name)
        odd = odd & ~words.isin(column.categories).to_numpy()
    if odd.any():
        row = int(odd.argmax())
        noun = "dates (YYYY-MM-DD)" if column.kind == "date" else "numbers"
        raise ValueError(
            f"Column {column.name!r} held {noun} in training, but {table.source} has {words[row]!r} in "
            f"{table.place(row)}."
        )
    masks = {"missing": np.isnan(values), "below range": values < column.low, "above range": values > column.high}
    return pd.Series(values), _findings(table, column, masks)


def _findings(table: Table, column: Column, masks: dict[str, Any]) -> list[Finding]:
    """What is new in a column, with a few examples and the first few rows of each kind."""
    found, rows = [], table.row_numbers()
    for what, mask in masks.items():
        places = np.flatnonzero(np.asarray(mask))
        if len(places):
            words = dict.fromkeys(texts(table.take(places[:1000]), column.name))
            example = "" if what == "missing" else some_of(map(repr, words), 3)
            found.append(Finding(column.name, what, len(places), example, tuple(map(int, rows[places[:5]]))))
    return found
