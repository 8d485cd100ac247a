"""Columns that only tell rows apart: names that say so, counters, and row numbers that another program wrote."""

from __future__ import annotations

import re

import numpy as np

__all__ = ["FEWEST", "counter", "is_id_name", "is_unnamed", "is_whole"]

FEWEST = 10  # rows from which a column of values that are all different is taken for an identifier without a name
ID_WORDS = {"id", "ids", "uuid", "guid", "rowid", "rownames", "index", "unnamed"}
ROW_NAMES = {
    "row",
    "rowno",
    "rownum",
    "rownumber",
    "recordno",
    "recordnumber",
    "serialno",
    "serialnumber",
    "obs",
    "seq",
}
OWNERS = {"account", "case", "client", "customer", "employee", "item", "loan", "member", "object", "order", "passenger"}
OWNERS |= {
    "patient",
    "person",
    "product",
    "record",
    "sample",
    "store",
    "student",
    "subject",
    "transaction",
    "unit",
    "user",
}
TIME_WORDS = {"year", "years", "yr", "month", "week", "day", "days", "hour", "time", "date", "period", "age"}
UNNAMED = re.compile(r"(column 1|Unnamed: \d+(\.\d+)*|)")

# Whole numbers drawn at random from as wide a range would hold this many equal pairs on average. Then the chance that
# there is none is exp(-12), or exp(-3) where the rows also stand in the order of the numbers.
EQUAL_PAIRS, EQUAL_PAIRS_IN_ORDER = 12.0, 3.0


def is_unnamed(name: str) -> bool:
    """Whether the first column of a file had no name, as row numbers have that pandas or R wrote."""
    return UNNAMED.fullmatch(name) is not None


def is_id_name(name: str) -> bool:
    """Whether a name says "identifier": id, ID, customer_id, customerId, CUSTOMERID, RowNumber, Unnamed: 0."""
    words = _words(name)
    owned = any(word.removesuffix("id") in OWNERS for word in words if word.endswith("id"))
    return owned or not ID_WORDS.isdisjoint(words) or "".join(words) in ROW_NAMES


def is_whole(values: np.ndarray) -> bool:
    """Whether there is a whole number in every row."""
    return bool((values == np.round(values)).all())  # NaN equals nothing


def counter(name: str, values: np.ndarray) -> str:
    """Why a column of numbers only tells rows apart; "" if it does not.

    A counter has a different whole number in every row, and hardly more of them between the smallest and the largest
    than it uses: all, or those of some of the rows of a larger table. Of ages, counts or years, some are equal by
    chance, and amounts of money are spread over a wide range.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.tables.identifiers import counter
    >>> random = np.random.default_rng(0)
    >>> counter("x", random.permutation(1000)[:700].astype(float))
    'a different whole number in every row, as in a part of a numbered table'
    >>> counter("x", random.integers(0, 100_000, size=100).astype(float))
    ''
    """
    if len(values) < 2 or not is_whole(values):
        return ""
    ordered = np.sort(values)
    steps = np.diff(ordered)
    if steps.min() == 0:
        return ""
    if is_id_name(name):
        return "a different whole number in every row"
    grid = steps.min() == steps.max() > 1  # as of doses, or of settings of a machine
    if len(values) < FEWEST or grid or not TIME_WORDS.isdisjoint(_words(name)):
        return ""
    places = ordered[-1] - ordered[0] + 1
    if places == len(values):
        return "a different whole number in every row"
    along = np.diff(values)
    most = EQUAL_PAIRS_IN_ORDER if (along > 0).all() or (along < 0).all() else EQUAL_PAIRS
    pairs = len(values) * (len(values) - 1) / (2 * places)
    return "a different whole number in every row, as in a part of a numbered table" if pairs > most else ""


def _words(name: str) -> list[str]:
    parts = re.split(r"[^A-Za-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name))
    return [part.lower() for part in parts if part]
