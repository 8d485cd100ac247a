"""A table that is ready for training: its columns, its prepared rows, and the classes or numbers to learn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelwright.inputs.frames.columns import Column, left_out, remarks
from kernelwright.inputs.frames.describing import describe_columns
from kernelwright.inputs.frames.paying import texts_that_pay
from kernelwright.inputs.frames.preparing import prepare, with_days
from kernelwright.inputs.frames.table import Table, some_of
from kernelwright.tables.labels import spelling_notes
from kernelwright.tables.leaks import find_leaks, find_number_leaks
from kernelwright.tables.quantities import TrainingNumbers
from kernelwright.tables.tasks import read_rows
from kernelwright.tables.validation import RowValues, Validation, groups_of, times_of, validation_of

__all__ = ["TrainingTable"]

OF_GROUPS = "left out: rows with the same value are a group"
FAR = 30.0  # distance from the median that is worth a note, relative to that of nine rows in ten


@dataclass(frozen=True)
class TrainingTable:
    """A table that is ready for training: columns, prepared rows and targets.

    ``labels`` are indices into ``classes``; if ``numbers`` is not None, they are the numbers themselves, and there are
    no classes. ``groups`` and ``times`` say which rows belong together, and when each was: for validation, and groups
    for learning, too.

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
    groups: RowValues | None = None
    times: RowValues | None = None

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
        groups: str | None = None,
        time: str | None = None,
        decimal: str | None = None,
        dates: str | None = None,
    ) -> TrainingTable:
        """Split a table into columns and targets; raise ValueError with one sentence if it cannot be used.

        ``task`` is "classes", "numbers", or None: told from the target, with a note. For ``ids``, ``drop``, ``keep``,
        ``decimal`` and ``dates`` see :func:`~kernelwright.tables.describe_columns`. Rows with the same value in the
        column ``groups`` are left out together; the column itself is left out, as an identifier. ``time`` is a column
        of dates or numbers, by which validation goes forward; it may be learned from like any other.
        """
        _check_names(table, target, (*ids, *drop, *keep), groups, time)
        if groups is not None and groups in keep:
            raise ValueError(f"The group column {groups!r} cannot be learned from: new rows are of new groups.")
        found = read_rows(table, target, task=task, decimal=decimal)
        table, labels = found.table, found.y
        features = replace(table, frame=table.frame.drop(columns=target))
        related = None if groups is None else groups_of(table, groups)
        times = None if time is None else times_of(table, time, decimal=decimal, dates=dates)
        aside = ids if groups is None else (*ids, groups)
        columns = describe_columns(features, ids=aside, drop=drop, keep=keep, decimal=decimal, dates=dates)
        columns = tuple(replace(c, treatment=OF_GROUPS) if c.name == groups else c for c in columns)
        columns, _ = texts_that_pay(features, columns, labels, keep=keep)
        if not any(column.used for column in columns):
            raise ValueError(
                f"{table.source} has no column to learn from: {some_of([f'{c.name} ({c.kind})' for c in columns], 10)}."
                if columns
                else f"{table.source} has no column besides the target {target!r}."
            )
        frame, _ = prepare(columns, features)
        notes = [*found.notes, *_about_relations(related, times, columns), *_about_columns(columns)]
        about = (
            _about_classes(labels, found.classes) if found.numbers is None else _about_numbers(target, table, labels)
        )
        notes += [*about, *_about_leaks(frame, labels, target, found.numbers is not None, related)]
        rows, word, source = table.row_numbers(), table.row_word, table.source
        parts = (target, columns, frame, labels, found.classes, rows, word, source, tuple(notes), found.numbers)
        return cls(*parts, groups=related, times=times)

    @property
    def fit_params(self) -> dict[str, np.ndarray]:
        """What a pipeline's ``fit`` takes besides the rows and targets: a group for each row, if there are groups."""
        step = "classify" if self.numbers is None else "regress"
        return {} if self.groups is None else {f"{step}__groups": self.groups.values}

    def validation(self, folds: int, seed: int = 0) -> Validation:
        """Return the folds of a validation: of whole groups, forward in time, or at random."""
        classes = self.numbers is None
        return validation_of(self.labels, folds, classes=classes, groups=self.groups, times=self.times, seed=seed)


def _check_names(table: Table, target: str, names: Collection[str], groups: str | None, time: str | None) -> None:
    """Raise ValueError unless the table has the columns, and they do not contradict each other."""
    table.column(target, "target column")
    for name in names:
        table.column(name)
    for related, what in ((groups, "group column"), (time, "time column")):
        if related is not None:
            table.column(related, what)
        if related == target:
            raise ValueError(f"The {what} {target!r} is the target column: name another one.")
    if groups is not None and time is not None:
        raise ValueError("Rows are tested by whole groups or forward in time, not both: name groups or time.")


def _about_relations(groups: RowValues | None, times: RowValues | None, columns: tuple[Column, ...]) -> list[str]:
    """Say which rows are left out together, and whether the column of times is learned from."""
    if groups is not None:
        n = len(np.unique(groups.values))
        return [
            f"Rows with the same {groups.column!r} ({n} groups) are left out together, in learning, calibration and "
            "cross-validation; the column itself is not learned from."
        ]
    if times is None:
        return []
    if any(column.name == times.column and column.used for column in columns):
        also = f"is also learned from, like any column: --drop {times.column} leaves it out"
    else:
        also = "is not learned from"
    return [f"Validation goes forward in time by {times.column!r}. The column {also}."]


def _about_leaks(frame: Any, labels: np.ndarray, target: str, numbers: bool, groups: RowValues | None) -> list[str]:
    """Return remarks about columns that tell the target; of each group, one row, since the others repeat it."""
    if groups is not None:
        rows = np.unique(groups.values, return_index=True)[1]
        frame, labels = frame.iloc[rows], labels[rows]
    find = find_number_leaks if numbers else find_leaks
    return [str(leak) for leak in find(with_days(frame), labels, target)]


def _about_columns(columns: tuple[Column, ...]) -> list[str]:
    """Return remarks about columns that a careful reader of the table would make."""
    found = []
    if names := left_out(columns):
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
