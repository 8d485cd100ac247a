"""Find columns that are copies of another column: the same number in another unit, the same category renamed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.table import Table
from kernelwright.inputs.frames.values import values_of

__all__ = ["without_copies"]

FEWEST_ROWS = 20  # in fewer rows, two columns may be equal by chance
EQUAL = 1e-9  # largest difference of standardised values that rounding explains
SKETCHED = 1000  # rows that are compared first
SAME = {"number": "a linear function of", "category": "the same categories as", "words": "the same text as"}


def without_copies(table: Table, columns: Sequence[Column], keep: Collection[str] = ()) -> tuple[Column, ...]:
    """Leave out each column that is a copy of one before it; the columns in ``keep`` stay.

    A number is a copy if it is a linear function of another one: the same length in metres and in feet. A category is
    one if its values are those of another one under different names. Gaps must be in the same rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables import as_table, describe_columns
    >>> frame = pd.DataFrame({"feet": [1.0, 5.0, 2.0, 3.0] * 5})
    >>> columns = describe_columns(as_table(frame.assign(metres=0.3048 * frame["feet"])))
    >>> columns[1].treatment
    'left out: a linear function of feet'
    """
    if len(table) < FEWEST_ROWS:
        return tuple(columns)
    found, alike = list(columns), dict[tuple[str, int, int], list[int]]()
    for place, column in enumerate(columns):
        if column.used and not column.ordered:
            alike.setdefault((_kind(column), column.missing, column.distinct), []).append(place)
    for (kind, *_), places in alike.items():
        for later, first in _equal(table, [columns[place] for place in places]) if len(places) > 1 else ():
            column, name = columns[places[later]], columns[places[first]].name
            if column.name not in keep:
                treatment = f"left out: {SAME[kind]} {name}"
                found[places[later]] = replace(column, kind="copy", treatment=treatment, remark="")
    return tuple(found)


def _kind(column: Column) -> str:
    return column.kind if column.kind in ("category", "words") else "number"


def _outline(table: Table, column: Column) -> np.ndarray:
    """Return what all copies of a column have in common: standardised values, the number of each word, or a text."""
    import pandas as pd

    values = values_of(table, column).values
    if column.kind == "words":  # texts may all differ, in any two columns
        words = np.array([word if isinstance(word, str) else "" for word in values], dtype=object)
        return pd.util.hash_array(words, categorize=False) / 2.0**64
    if values.dtype == object:
        return pd.factorize(values)[0].astype(np.float64)
    gaps = np.isnan(values)
    given = values[~gaps]
    with np.errstate(over="ignore", invalid="ignore"):
        given = given / max(float(np.abs(given).max(initial=0.0)), 1e-300)  # squares of the numbers might overflow
        given = given - given.mean()
        given = given / max(float(given.std()), 1e-300)
    way = np.sign(given[np.argmax(np.abs(given) > 0.1)]) if len(given) else 1.0
    outline = np.full(len(values), 1e3)  # a gap
    outline[~gaps] = way * given
    return outline


def _equal(table: Table, columns: Sequence[Column]) -> list[tuple[int, int]]:
    """Return pairs of equal columns, by place: each later one with the first."""
    some = np.unique(np.linspace(0, len(table) - 1, min(len(table), SKETCHED)).astype(int))
    sketches = np.stack([_outline(table, column)[some] for column in columns])
    marks = sketches @ np.random.default_rng(0).standard_normal(len(some))
    original, found = np.ones(len(columns), dtype=bool), []
    for place in range(1, len(columns)):
        near = np.flatnonzero(original[:place] & (np.abs(marks[:place] - marks[place]) <= EQUAL * len(some)))
        same = [other for other in near if np.abs(sketches[other] - sketches[place]).max() <= EQUAL]
        same = [other for other in same if _all_equal(table, columns[int(other)], columns[place])]
        if same:
            original[place] = False
            found.append((place, int(same[0])))
    return found


def _all_equal(table: Table, one: Column, other: Column) -> bool:
    return bool(np.abs(_outline(table, one) - _outline(table, other)).max() <= EQUAL)
