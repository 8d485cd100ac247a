"""A table that is ready for training: its columns, its prepared rows, and the classes or numbers to learn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelwright.tables.columns import Column, describe_columns, remarks
from kernelwright.tables.labels import spelling_notes
from kernelwright.tables.leaks import find_leaks, find_number_leaks
from kernelwright.tables.preparing import prepare
from kernelwright.tables.quantities import TrainingNumbers
from kernelwright.tables.table import Table, some_of
from kernelwright.tables.tasks import read_rows

__all__ = ["TrainingTable"]

FAR = 30.0  # distance from the median that is worth a note, relative to that of nine rows in ten


@dataclass(frozen=True)
class TrainingTable:
    """A table that is ready for training: columns, prepared rows and targets.

    ``labels`` are indices into ``classes``; if ``numbers`` is not None, they are the numbers themselves, and there are
    no classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables import TrainingTable, as_table
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "b", "a", "b"]})
    >>> data = TrainingTable.of(as_table(frame), "kind")
    >>> data.classes, data.labels.tolist()
    (('a', 'b'), [0, 1, 0, 1])
    >>> TrainingTable.of(as_table(frame), "size", task="numbers").labels.tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    target: str
    columns: tuple[Column, ...]
    frame: Any
    labels: np.ndarray
    classes: tuple[str, ...]
    rows: np.ndarray
    row_word: str
    source: str
    notes: tuple[str, ...]
    numbers: TrainingNumbers | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        target: str,
        *,
        task: str | None = None,
        ids: Collection[str] = (),
        drop: Collection[str] = (),
        keep: Collection[str] = (),
        decimal: str | None = None,
    ) -> TrainingTable:
        """Split a table into columns and targets; raise ValueError with one sentence if it cannot be used.

        ``task`` is "classes", "numbers", or None: told from the target, with a note. For ``ids``, ``drop``, ``keep``
        and ``decimal`` see :func:`~kernelwright.tables.describe_columns`.
        """
        table.column(target, "target column")
        for name in (*ids, *drop, *keep):
            table.column(name)
        found = read_rows(table, target, task=task, decimal=decimal)
        table, labels = found.table, found.y
        features = replace(table, frame=table.frame.drop(columns=target))
        columns = describe_columns(features, ids=ids, drop=drop, keep=keep, decimal=decimal)
        if not any(column.used for column in columns):
            raise ValueError(
                f"{table.source} has no column to learn from: {some_of([f'{c.name} ({c.kind})' for c in columns], 10)}."
                if columns
                else f"{table.source} has no column besides the target {target!r}."
            )
        frame, _ = prepare(columns, features)
        notes = [*found.notes, *_about_columns(columns)]
        if found.numbers is None:
            notes += [*_about_classes(labels, found.classes), *map(str, find_leaks(frame, labels, target))]
        else:
            notes += [*_about_numbers(target, table, labels), *map(str, find_number_leaks(frame, labels, target))]
        rows, word, source = table.row_numbers(), table.row_word, table.source
        return cls(target, columns, frame, labels, found.classes, rows, word, source, tuple(notes), found.numbers)


def _about_columns(columns: tuple[Column, ...]) -> list[str]:
    """Return remarks about columns that a careful reader of the table would make."""
    found = []
    left = [
        column for column in columns if column.kind in ("identifier", "text") and column.distinct and not column.remark
    ]
    if left:  # only those found automatically: columns that the user named have no counts, and a remark says more
        names = some_of([f"{c.name} ({c.treatment.removeprefix('left out: ')})" for c in left], 10)
        found.append(f"Left out: {names}. Use --keep COLUMN to learn from one of them anyway.")
    found += remarks(columns)
    for column in columns:
        found += [
            f"{column.name}: {words}." for words in spelling_notes(column.categories) if column.kind == "category"
        ]
    return found


def _about_classes(labels: np.ndarray, classes: tuple[str, ...]) -> list[str]:
    """Return remarks about classes with few rows."""
    found = []
    counts = np.bincount(labels, minlength=len(classes))
    rarest, commonest = int(counts.argmin()), int(counts.argmax())
    if counts[rarest] < 0.2 * counts[commonest]:
        found.append(
            f"The classes are unbalanced: {classes[commonest]!r} has {counts[commonest]} rows, {classes[rarest]!r} "
            f"{counts[rarest]}; accuracy alone is not informative."
        )
    if counts[rarest] == 1:
        alone = [classes[k] for k in np.flatnonzero(counts == 1)]
        found.append(f"Only one row of class {some_of(map(repr, alone))}: it cannot be in training and test rows.")
    return found


def _about_numbers(target: str, table: Table, y: np.ndarray) -> list[str]:
    """Return a remark about a number so far away from the others that it decides the squared error."""
    away = np.abs(y - np.median(y))
    row = int(away.argmax())
    usual = float(np.quantile(away, 0.9))
    if len(y) < 10 or away[row] <= FAR * usual or usual == 0:
        return []
    return [
        f"{target!r} is {y[row]:g} in {table.place(row)}, far away from all other rows: if it is an error, correct it "
        "or leave the cell empty."
    ]
