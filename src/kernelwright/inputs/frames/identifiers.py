"""Find identifiers: columns with the name of one, counters, and row numbers that another program wrote."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

__all__ = ["FEWEST", "counter", "is_id_name", "is_person_name", "is_unnamed", "is_whole"]

FEWEST = 10  # rows from which a column with only different values is an identifier, whatever its name
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
PERSON_NAMES = {"surname", "firstname", "lastname", "fullname", "givenname", "familyname", "forename"}
UNNAMED = re.compile(r"(column 1|Unnamed: \d+(\.\d+)*|)")

# Expected number of equal pairs if the whole numbers were drawn at random from the same range. The probability that
# there is no such pair is then exp(-12), or exp(-3) if the rows are also sorted by the numbers.
EQUAL_PAIRS, EQUAL_PAIRS_IN_ORDER = 12.0, 3.0


def is_unnamed(name: str) -> bool:
    """Return whether the first column of a file has no name, like the row numbers that pandas and R write."""
    return UNNAMED.fullmatch(name) is not None


def is_id_name(name: str) -> bool:
    """Return whether a name means "identifier": id, ID, customer_id, customerId, CUSTOMERID, RowNumber, Unnamed: 0."""
    words = _words(name)
    owned = any(word.removesuffix("id") in OWNERS for word in words if word.endswith("id"))
    return owned or not ID_WORDS.isdisjoint(words) or "".join(words) in ROW_NAMES


def is_person_name(name: str) -> bool:
    """Return whether a column holds names of persons: Surname, first_name, LastName."""
    words = _words(name)
    return not PERSON_NAMES.isdisjoint([*words, *("".join(pair) for pair in pairwise(words))])


def is_whole(values: np.ndarray) -> bool:
    """Return whether there is a whole number in every row."""
    return bool((values == np.round(values)).all())  # NaN equals nothing


def counter(name: str, values: np.ndarray) -> str:
    """Return why a column of numbers is an identifier, or "" if it is not.

    A counter has a different whole number in every row, and uses most of the whole numbers between its smallest and
    its largest: all of them, or those of a sample of a larger table. Among ages, counts or years, some are equal by
    chance; amounts of money are spread over a wide range.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.inputs.frames.identifiers import counter
    >>> random = np.random.default_rng(0)
    >>> counter("x", random.permutation(1000)[:700].astype(float))
    'a different whole number in every row, as in a sample of a numbered table'
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
    grid = steps.min() == steps.max() > 1  # such as doses, or settings of a machine
    if len(values) < FEWEST or grid or not TIME_WORDS.isdisjoint(_words(name)):
        return ""
    places = ordered[-1] - ordered[0] + 1
    if places == len(values):
        return "a different whole number in every row"
    along = np.diff(values)
    most = EQUAL_PAIRS_IN_ORDER if (along > 0).all() or (along < 0).all() else EQUAL_PAIRS
    pairs = len(values) * (len(values) - 1) / (2 * places)
    return "a different whole number in every row, as in a sample of a numbered table" if pairs > most else ""


def _words(name: str) -> list[str]:
    parts = re.split(r"[^A-Za-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name))
    return [part.lower() for part in parts if part]
