"""Read data frames as a matrix of codes, in the way that was settled in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.inputs.frames.columns import Column, left_out, remarks
from kernelwright.inputs.frames.describing import describe_columns
from kernelwright.inputs.frames.paying import texts_that_pay
from kernelwright.inputs.frames.preparing import check_columns
from kernelwright.inputs.frames.table import Table, as_table, check_name
from kernelwright.inputs.frames.values import values_of
from kernelwright.inputs.frames.words import WordBag
from kernelwright.inputs.layout import CodedColumn, TableLayout
from kernelwright.storage.saved import saved

__all__ = ["FrameReader", "categorical_columns", "named_columns"]

FROM_DTYPE = "from_dtype"


@saved("frame-reader")
@dataclass(frozen=True)
class FrameReader:
    """What the columns of a training frame are, and how frames like it become codes.

    Parameters
    ----------
    columns : tuple of Column
        All columns of the training frame.
    bags : tuple of WordBag
        For each column of free text that is used.
    """

    columns: tuple[Column, ...]
    bags: tuple[WordBag, ...] = ()

    @classmethod
    def of(
        cls,
        frame: Any,
        *,
        categorical: str | Sequence[str | int] | None = FROM_DTYPE,
        keep: Sequence[str | int] = (),
        decimal: str | None = None,
        dates: str | None = None,
        y: Any = None,
    ) -> FrameReader:
        """Find out what the columns of a frame are.

        Parameters
        ----------
        frame : data frame of pandas or polars, or table of pyarrow
        categorical : "from_dtype", None or sequence of names, positions or truth values, default="from_dtype"
            Text, objects and categorical columns are categories, and numbers are numbers; or the columns that are
            categories although they hold numbers.
        keep : sequence of names or positions, default=()
            Columns that are used although they look useless: identifiers, constants, copies, text.
        decimal, dates : str, optional
            See :func:`~kernelwright.tables.describe_columns`.
        y : array-like of shape (n,), optional
            Targets. With them, free text whose words tell nothing about them is left out.

        Examples
        --------
        >>> import pandas as pd
        >>> from kernelwright.inputs.frames.reader import FrameReader
        >>> frame = pd.DataFrame({"size": [3.0, None, 1.0], "town": ["Ulm", "Bonn", "Ulm"]})
        >>> reader = FrameReader.of(frame)
        >>> reader.codes(pd.DataFrame({"town": ["Bonn", "Rome", None], "size": [2.0, 5.0, None]})).tolist()
        [[2.0, 0.0], [5.0, -1.0], [nan, nan]]
        """
        table = _table(frame)
        forced = categorical_columns(categorical, table.names)
        kept = named_columns(keep, table.names, "keep")
        columns = describe_columns(table, keep=kept, categorical=forced, decimal=decimal, dates=dates)
        return cls(*texts_that_pay(table, columns, y, keep=kept))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the training frame."""
        return tuple(column.name for column in self.columns)

    @property
    def layout(self) -> TableLayout:
        """What the columns of the codes stand for."""
        found = []
        for column in self.columns:
            if column.kind == "words":
                found += [CodedColumn(column.name)] * sum(b.n_numbers for b in self.bags if b.source == column.name)
            elif column.kind == "category":
                found.append(CodedColumn(column.name, "category", column.categories, column.ordered))
            elif column.used:
                found.append(CodedColumn(column.name, "date" if column.kind == "date" else "number"))
        return TableLayout(tuple(found))

    @property
    def plain(self) -> bool:
        """Whether the codes are the frame itself: all its columns are numbers without gaps, and all are used."""
        return all(column.kind == "number" and column.treatment == "as it is" for column in self.columns)

    def notes(self) -> tuple[str, ...]:
        """Return sentences about the columns that were left out, and about choices that the user may want to change."""
        out = left_out(self.columns)
        return ((f"Left out: {out}. keep=[...] uses them anyway.",) if out else ()) + remarks(self.columns)

    def codes(self, frame: Any) -> np.ndarray:
        """Return the codes of a frame: a float64 matrix with the columns of :attr:`layout`, NaN for gaps.

        New categories get the code -1. The columns may be in any order, and others beside them are ignored. A missing
        column is an error, and so is text where numbers were.
        """
        table = _table(frame)
        check_columns(self.columns, table)
        parts = [self._codes(table, column) for column in self.columns if column.used]
        return np.ascontiguousarray(np.column_stack([np.empty((len(table), 0)), *parts]))

    def _codes(self, table: Table, column: Column) -> np.ndarray:
        import pandas as pd

        values = values_of(table, column).values
        if column.kind == "words":
            bags = [bag(values) for bag in self.bags if bag.source == column.name]
            return np.column_stack([np.empty((len(table), 0)), *bags])
        if column.kind != "category":
            return values
        codes = pd.Index(column.categories, dtype=object).get_indexer(pd.Index(values, dtype=object))
        return np.where(pd.isna(values), np.nan, codes.astype(np.float64))


def _table(frame: Any) -> Table:
    """Return the frame as a table; infinite numbers are an error."""
    table = as_table(frame)
    for place, dtype in enumerate(table.frame.dtypes):
        if getattr(dtype, "kind", "O") == "f":
            values = table.frame.iloc[:, place].to_numpy()
            if not np.isfinite(values.sum()) and np.isinf(values).any():
                row, name = int(np.isinf(values).argmax()), table.names[place]
                raise ValueError(
                    f"Input X contains infinity: column {name!r}, {table.place(row)}. Leave such rows out, or cap the "
                    "column; a missing value is NaN or None."
                )
    return table


def categorical_columns(categorical: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns that the user calls categories; None are no more than ``dtypes`` say."""
    if categorical is None:
        return ()
    if isinstance(categorical, str):
        if categorical != FROM_DTYPE:
            raise ValueError(
                f"categorical must be {FROM_DTYPE!r} or a list of columns, such as [{categorical!r}]. Got "
                f"{categorical!r} instead."
            )
        return ()
    return named_columns(categorical, names, "categorical")


def named_columns(chosen: Any, names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the names of columns given by name, position or a mask; raise ValueError if one does not exist."""
    if isinstance(chosen, str):
        raise ValueError(f"{what} must be a list of columns, such as [{chosen!r}]. Got {chosen!r} instead.")
    chosen = list(chosen)
    if masks := [isinstance(each, (bool, np.bool_)) for each in chosen]:
        if all(masks) and len(chosen) == len(names):
            return tuple(name for name, taken in zip(names, chosen, strict=True) if taken)
        if any(masks):
            raise ValueError(f"{what} must be names, positions, or True or False for each of the {len(names)} columns.")
    found = []
    for each in chosen:
        if isinstance(each, (int, np.integer)) and str(each) not in names:
            if not -len(names) <= each < len(names):
                raise ValueError(f"{what} has the position {each}, but there are {len(names)} columns.")
            found.append(names[int(each)])
        else:
            check_name(str(each), names, "the table")
            found.append(str(each))
    return tuple(found)
