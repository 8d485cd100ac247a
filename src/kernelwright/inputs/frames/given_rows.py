"""Rows that a user passes to an estimator: arrays as they are, data frames as codes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_X_y

from kernelwright.errors import ColumnWarning
from kernelwright.inputs.arrays import plain, validate_data
from kernelwright.inputs.frames.cells import has_dates, is_duration, numbers
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.given import is_frame, pandas_frame
from kernelwright.inputs.frames.notation import notation_of
from kernelwright.inputs.frames.reader import FROM_DTYPE, FrameReader
from kernelwright.inputs.frames.table import Table, as_table, some_of
from kernelwright.inputs.layout import TableLayout

__all__ = [
    "GivenRows",
    "check_more_rows",
    "check_new_rows",
    "described_columns",
    "new_rows",
    "training_rows",
]


@dataclass(frozen=True)
class GivenRows:
    """Training rows, and how new rows are read.

    Parameters
    ----------
    X : array-like or data frame
        A matrix of codes if there is a reader, else the rows as they were passed.
    reader : FrameReader or None
        None for arrays, and for frames that are the same as arrays: all columns are numbers without gaps, and used.
    names : tuple of str
        The columns of the user's frame, if there is a reader.
    gaps : bool
        Whether NaN is a missing value.
    centre : ndarray or None
        The means of the columns of a frame without gaps, for a kernel that knows none: there lie gaps of new rows.
    """

    X: Any
    reader: FrameReader | None = None
    names: tuple[Any, ...] = ()
    gaps: bool = False
    centre: np.ndarray | None = None

    @property
    def finite(self) -> bool | str:
        """What scikit-learn is to check."""
        return "allow-nan" if self.gaps else True

    def layout(self, X: np.ndarray) -> TableLayout | None:
        """Return what the columns of the checked rows stand for; None for numbers without gaps."""
        if self.reader is not None:
            return self.reader.layout
        if X.size and np.isnan(X).all():
            raise ValueError("Input X contains only NaN: there are no values to learn from.")
        return TableLayout.of_numbers(X.shape[1]) if self.gaps and np.isnan(X).any() else None

    def settle(self, owner: Any) -> None:
        """Store the reader and, if there is one, the names of the user's columns in an estimator."""
        owner.reader_, owner.centre_ = self.reader, self.centre
        if self.reader is not None:
            owner.n_features_in_ = len(self.names)
            vars(owner).pop("feature_names_in_", None)
            if all(isinstance(name, str) for name in self.names):
                owner.feature_names_in_ = np.array(self.names, dtype=object)


def training_rows(
    X: Any,
    y: Any = None,
    *,
    categorical: str | Sequence[Any] | None = FROM_DTYPE,
    keep: Sequence[Any] = (),
    gaps: bool = False,
) -> GivenRows:
    """Read a training frame as codes, with a warning that names the columns that are left out.

    Arrays stay as they are; ``gaps`` says whether NaN in them is a missing value. The targets ``y`` decide whether free
    text pays.
    """
    if not is_frame(X):
        if not (categorical is None or isinstance(categorical, str)) or len(keep):
            raise ValueError("'categorical' and 'keep' name columns of a data frame. Got an array: pass a data frame.")
        return GivenRows(X, gaps=gaps)
    named = all(isinstance(name, str) for name in X.columns) or not hasattr(X, "iloc")
    frame = pandas_frame(X)
    names = tuple(frame.columns) if named else tuple(X.columns)
    given = frame if named else frame.set_axis(X.columns, axis=1)
    if not frame.columns.is_unique and all(dtype.kind in "iuf" for dtype in frame.dtypes):
        return GivenRows(given, gaps=gaps)  # columns that cannot be told apart, but need not be
    table = as_table(frame)
    reader = FrameReader.of(table, categorical=categorical, keep=keep, y=y)
    if not any(column.used for column in reader.columns) and len(table):
        columns = some_of([f"{column.name} ({column.treatment})" for column in reader.columns], 10)
        raise ValueError(f"The table has no column to learn from: {columns}. keep=[...] uses a column anyway.")
    if reader.plain or not len(table):
        centre = None if gaps or not len(table) else frame.to_numpy(dtype=np.float64).mean(0)
        return GivenRows(given, gaps=gaps, centre=centre)
    if notes := reader.notes():
        warnings.warn(" ".join(notes), ColumnWarning, stacklevel=6)
    return GivenRows(reader.codes(table), reader, names, gaps=True)


def new_rows(owner: Any, X: Any) -> Any:
    """Return new rows as codes, if an estimator was fitted to a frame that needs a reader; arrays as they are.

    Of a frame whose columns are only numbers, columns that the training frame did not have are left out.
    """
    reader = vars(owner).get("reader_")
    if reader is None:
        return _numbers(owner, X) if is_frame(X) else X
    return reader.codes(X if is_frame(X) else _with_names(owner, reader, X))


def _numbers(owner: Any, X: Any) -> Any:
    """Return a frame for an estimator that was fitted to numbers without gaps: its columns, as numbers."""
    frame = pandas_frame(X)
    known = set(getattr(owner, "feature_names_in_", ()))
    if known and known < set(frame.columns):
        frame = frame.loc[:, [name in known for name in frame.columns]]
    elif hasattr(X, "iloc"):
        frame.columns = X.columns  # scikit-learn treats names that are no text in its own way
    for place, dtype in enumerate(frame.dtypes):
        if dtype.kind not in "biuf":
            frame.isetitem(place, _cells_as_numbers(frame.iloc[:, place]))
    centre = vars(owner).get("centre_")
    return frame if centre is None or len(centre) != frame.shape[1] else _filled(frame, centre)


def _cells_as_numbers(series: Any) -> np.ndarray:
    """Return a column of objects or text as numbers; a cell that is none is an error that names its row."""
    table, name = Table(series.set_axis(range(len(series))).to_frame("cells")), series.name
    if has_dates(table, "cells") or is_duration(table, "cells"):
        raise ValueError(f"Column {name!r} held numbers in training, but the table has dates or durations there.")
    table.frame["cells"] = series.map(lambda cell: float(cell) if isinstance(cell, bool) else cell).to_numpy()
    values, odd = numbers(table, "cells", notation_of("."))
    if odd.any():
        row = int(odd.argmax())
        raise ValueError(
            f"Column {name!r} held numbers in training, but the table has {series.iloc[row]!r} in row {row + 1}."
        )
    return values


def _filled(frame: Any, centre: np.ndarray) -> Any:
    """Return the frame with gaps at the centre of their column."""
    gaps = frame.isna().to_numpy()
    return frame if not gaps.any() else frame.astype(np.float64).mask(gaps, centre[None, :].repeat(len(frame), 0))


def _with_names(owner: Any, reader: FrameReader, X: Any) -> Any:
    """Return an array as a frame with the columns of the training frame, with the warning that scikit-learn gives."""
    import pandas as pd

    X = np.asarray(plain(X))
    if X.ndim != 2 or X.shape[1] != len(reader.names):
        raise ValueError(
            f"X has shape {X.shape}, but {type(owner).__name__} was fitted to a data frame with {len(reader.names)} "
            f"columns: {some_of(reader.names, 10)}. Pass a data frame."
        )
    warnings.warn(
        f"X does not have valid feature names, but {type(owner).__name__} was fitted with feature names",
        UserWarning,
        stacklevel=6,
    )
    return pd.DataFrame(X, columns=list(reader.names))


def check_new_rows(owner: Any, X: Any, *, gaps: bool = False, **options: Any) -> np.ndarray:
    """Check new rows as scikit-learn does; return them as numbers, or as codes if they are a frame with a reader."""
    found = new_rows(owner, X)
    if vars(owner).get("reader_") is not None:
        return check_array(found, ensure_all_finite="allow-nan", estimator=owner)
    return validate_data(owner, found, reset=False, ensure_all_finite="allow-nan" if gaps else True, **options)


def check_more_rows(owner: Any, X: Any, y: Any, *, gaps: bool = False, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check rows with targets that are added to those of the first fit."""
    found = new_rows(owner, X)
    if vars(owner).get("reader_") is None:
        finite = "allow-nan" if gaps else True
        return validate_data(owner, found, y, dtype=np.float64, reset=False, ensure_all_finite=finite, **options)
    return check_X_y(found, y, ensure_all_finite="allow-nan", estimator=owner, **options)


def described_columns(owner: Any) -> tuple[Column, ...]:
    """Return what was done to each column of the training table of an estimator."""
    if "n_features_in_" not in vars(owner):
        raise AttributeError(f"{type(owner).__name__} has no 'columns_' before it is fitted to rows of columns.")
    reader = vars(owner).get("reader_")
    if reader is not None:
        return reader.columns
    names = getattr(owner, "feature_names_in_", [f"x{place}" for place in range(owner.n_features_in_)])
    return tuple(Column(str(name), "number", "as it is") for name in names)
