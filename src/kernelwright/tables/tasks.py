"""Tell a target of classes from a target of numbers, and read either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.inputs.frames.cells import texts
from kernelwright.inputs.frames.describing import MOSTLY, decimal_of, is_date
from kernelwright.inputs.frames.notation import Reading
from kernelwright.inputs.frames.numerals import is_unit
from kernelwright.inputs.frames.table import Table
from kernelwright.tables.labels import labelled
from kernelwright.tables.quantities import TrainingNumbers, numbered, read_target

__all__ = ["TASKS", "TargetRows", "read_rows", "told_task"]

TASKS = ("classes", "numbers")
FEW = 20  # most different whole numbers that are taken as classes
CODE = r"[+-]?0\d.*"  # leading zeros mean that "007" is a name


@dataclass(frozen=True)
class TargetRows:
    """The rows with a target, and their targets.

    ``y`` are indices into ``classes``, or the numbers themselves; ``numbers`` is None for classes.
    """

    table: Table
    y: np.ndarray
    classes: tuple[str, ...]
    numbers: TrainingNumbers | None
    notes: tuple[str, ...]


def read_rows(table: Table, target: str, *, task: str | None = None, decimal: str | None = None) -> TargetRows:
    """Read the target column as classes or as numbers; raise ValueError with one sentence if it can be neither."""
    if task not in (None, *TASKS):
        raise ValueError(f"The task must be 'classes' or 'numbers'. Got {task!r} instead.")
    reading = read_target(table, target, decimal=decimal_of(table, decimal))
    told, sentence = (task, "") if task is not None else told_task(table, target, reading)
    if told == "numbers":
        return _numbers(table, target, reading, decimal, sentence)
    rows, labels, classes, notes = labelled(table, target)
    _refuse_bad_classes(target, labels, classes, reading)
    return TargetRows(rows, labels, classes, None, (*notes, sentence) if sentence else notes)


def told_task(table: Table, target: str, reading: Reading) -> tuple[str, str]:
    """Return "classes" or "numbers", and a sentence about the choice if the user may want the other.

    Text, two values, and up to 20 different whole numbers are classes; all other numbers are numbers. Up to a tenth of
    other cells among many numbers are taken for errors in numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables import as_table
    >>> from kernelwright.tables.quantities import read_target
    >>> from kernelwright.tables.tasks import told_task
    >>> table = as_table(pd.DataFrame({"price": [9.99, 4.5, 7.25], "grade": [1, 3, 1], "town": ["Ulm", "Bonn", "Ulm"]}))
    >>> [told_task(table, name, read_target(table, name))[0] for name in table.names]
    ['numbers', 'classes', 'classes']
    """
    given = texts(table, target).dropna()
    if given.nunique() > FEW and is_date(table, target, given):
        return "numbers", ""  # which refuses dates, and says what to do
    values = reading.values[~np.isnan(reading.values)]
    distinct = len(np.unique(values))
    whole = bool((values == np.round(values)).all())
    if not _are_numbers(given, reading, distinct) or distinct <= 2:
        return "classes", ""
    kind = "whole numbers" if whole else "numbers"
    found = f"{target!r} has {distinct} different {kind} in {len(given)} rows"
    if whole and distinct <= FEW and (distinct <= 0.5 * len(given) or len(given) <= 3):
        return "classes", (
            f"{found}, which are taken as classes. --task numbers (in Python, task='numbers') predicts a number with "
            "its distribution."
        )
    return "numbers", (
        f"{found}, so numbers are predicted. --task classes (in Python, task='classes') predicts one of these values."
    )


def _are_numbers(given: Any, reading: Reading, distinct: int) -> bool:
    """Return whether all cells are numbers, or most cells of a column with many numbers."""
    odd = int(reading.odd.sum())
    if odd and (distinct <= FEW or odd > (1 - MOSTLY) * len(given)):
        return False
    return all(is_unit(unit) for unit, _ in reading.units) and not given.str.fullmatch(CODE).any()


def _numbers(table: Table, target: str, reading: Reading, decimal: str | None, sentence: str) -> TargetRows:
    rows, y, notes = numbered(table, target, reading)
    if len(values := np.unique(y)) == 1:
        raise ValueError(
            f"The target column {target!r} has only one value, {values[0]:g}, in {len(y)} "
            f"row{'s' * (len(y) > 1)}: there is nothing to learn."
        )
    remarks = (sentence, "" if decimal else reading.remark(target))
    kept = TrainingNumbers.of(y, reading.notation)
    return TargetRows(rows, y, (), kept, (*notes, *(words for words in remarks if words)))


def _refuse_bad_classes(target: str, labels: np.ndarray, classes: tuple[str, ...], reading: Reading) -> None:
    n, m = len(labels), len(classes)
    if m == 1:
        raise ValueError(f"The target column {target!r} has only one value, {classes[0]!r}: a classifier needs two.")
    if m > 0.5 * n and n > 3:
        advice = "Is it the right one?" if reading.odd.any() else "To predict numbers, use --task numbers."
        raise ValueError(f"The target column {target!r} has {m} classes in {n} rows, nearly one for each row. {advice}")
