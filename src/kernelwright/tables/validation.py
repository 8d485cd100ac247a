"""Rows of a table that depend on each other, by groups or in time, and how a model of them is validated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelwright.evaluation.folds import Split, forward_folds, grouped_folds, number_folds, stratified_folds
from kernelwright.inputs.frames.cells import texts
from kernelwright.inputs.frames.describing import decimal_of, describe_columns
from kernelwright.inputs.frames.notation import DECIMALS
from kernelwright.inputs.frames.table import Table
from kernelwright.inputs.frames.values import values_of

__all__ = ["RowValues", "Validation", "groups_of", "times_of", "validation_of"]


@dataclass(frozen=True)
class RowValues:
    """A number for each row: that of its group, or its time; and the column that it comes from."""

    column: str
    values: np.ndarray


@dataclass(frozen=True)
class Validation:
    """The training and test rows of each fold, and how they were chosen, in words."""

    splits: list[Split]
    protocol: str


def groups_of(table: Table, name: str) -> RowValues:
    """Return the group of each row: rows with the same cell; raise ValueError for a gap, or a single group.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables import as_table
    >>> from kernelwright.tables.validation import groups_of
    >>> groups_of(as_table(pd.DataFrame({"patient": ["b", "a", "b"]})), "patient").values.tolist()
    [0, 1, 0]
    """
    import pandas as pd

    cells = texts(table, name)
    _refuse_gaps(table, name, cells.isna().to_numpy(), "group")
    codes, different = pd.factorize(cells)
    if len(different) < 2:
        raise ValueError(f"The group column {name!r} has only one value, {different[0]!r}: there must be two groups.")
    return RowValues(name, codes)


def times_of(table: Table, name: str, *, decimal: str | None = None, dates: str | None = None) -> RowValues:
    """Return the time of each row, from a column of dates or numbers; raise ValueError for a gap or anything else."""
    _refuse_gaps(table, name, texts(table, name).isna().to_numpy(), "time")
    sign = decimal_of(table, decimal)
    word = next(word for word, each in DECIMALS.items() if each == sign)
    column = describe_columns(table.only(name), keep=[name], decimal=word, dates=dates)[0]
    if column.kind not in ("date", "number") or column.form == "clock":
        what = "holds times of day without a date" if column.form == "clock" else f"is taken as a {column.kind}"
        raise ValueError(f"The time column {name!r} must hold dates or numbers. It {what}.")
    values = values_of(table, column)
    _refuse_gaps(table, name, values.missing, "time")  # words that are no dates
    return RowValues(name, values.values)


def _refuse_gaps(table: Table, name: str, missing: np.ndarray, what: str) -> None:
    """Raise ValueError if a row has no group, or no time."""
    if n := int(missing.sum()):
        more = f" and {n - 1} more row{'s' * (n > 2)}" if n > 1 else ""
        raise ValueError(
            f"The {what} column {name!r} has no value in {table.place(int(missing.argmax()))}{more}: every row needs a "
            f"{what}."
        )


def validation_of(
    y: np.ndarray,
    folds: int,
    *,
    classes: bool,
    groups: RowValues | None = None,
    times: RowValues | None = None,
    seed: int = 0,
) -> Validation:
    """Return folds for targets: whole groups, forward in time, or at random; and the protocol in words.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.tables.validation import RowValues, validation_of
    >>> days = RowValues("day", np.arange(12.0))
    >>> print(validation_of(np.arange(12.0), 3, classes=False, times=days).protocol)  # doctest: +ELLIPSIS
    validation forward in time, in 3 windows by 'day': each of 9 rows was predicted by a model ...
    """
    labels = y if classes else None
    if times is not None:
        splits = forward_folds(times.values, folds, labels=labels)
    elif groups is not None:
        splits = grouped_folds(groups.values, folds, labels=labels, seed=seed)
    else:
        splits = stratified_folds(y, folds, seed=seed) if classes else number_folds(len(y), folds, seed=seed)
    few = f" ({folds} were requested, but {_scarce(classes, groups, times)})" if len(splits) < folds else ""
    return Validation(splits, _protocol(len(y), splits, classes, groups, times) + few)


def _scarce(classes: bool, groups: RowValues | None, times: RowValues | None) -> str:
    """Say why there are fewer folds than were requested."""
    if times is not None:
        return "there are few times" + (", or one class only before some of them" if classes else "")
    if groups is not None:
        return "a class is in fewer groups" if classes else "there are few groups"
    return "a class has fewer rows" if classes else "there are few rows"


def _protocol(
    n_rows: int, splits: list[Split], classes: bool, groups: RowValues | None, times: RowValues | None
) -> str:
    """Say how the rows are divided, and which of them are tested."""
    n_tested = sum(len(test) for _, test in splits)
    rows = "every row" if n_tested == n_rows else f"each of {n_tested} rows"
    if times is not None:
        untested = n_rows - n_tested
        return (
            f"validation forward in time, in {len(splits)} window{'s' * (len(splits) > 1)} by {times.column!r}: {rows} "
            f"was predicted by a model of earlier rows only; the {untested} earliest rows were not tested"
        )
    kind = "stratified cross-validation" if classes else "cross-validation"
    if groups is not None:
        n_groups = len(np.unique(groups.values))
        return (
            f"{kind} with {len(splits)} folds of whole groups ({n_groups} by {groups.column!r}): {rows} was predicted "
            "by a model that was trained without any row of its group; the intervals of scores count rows, not groups"
        )
    return f"{kind} with {len(splits)} folds: {rows} was predicted by a model that was trained without it"
