"""Data frames of other libraries, and columns of unusual types, as a plain pandas frame."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["is_frame", "pandas_frame"]

OF_MODULE = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": ("Table", "RecordBatch")}


def is_frame(X: Any) -> bool:
    """Return whether this is a data frame of pandas or polars, or a table of pyarrow; none of them is imported.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.inputs.frames.given import is_frame
    >>> is_frame(pd.DataFrame({"x": [1]})), is_frame([[1]])
    (True, False)
    """
    if type(X).__name__ == "LazyFrame" and _library(type(X)) == "polars":
        raise ValueError("A LazyFrame has no rows yet: pass X.collect().")
    return any(each.__name__ in OF_MODULE.get(_library(each), ()) for each in type(X).__mro__)


def _library(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def pandas_frame(rows: Any) -> Any:
    """Return a frame whose columns are numbers, truth values, dates, durations, categories or objects.

    A shallow copy of a pandas frame: columns of plain numbers are not copied. The index stays.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.inputs.frames.given import pandas_frame
    >>> frame = pd.DataFrame(
    ...     {"n": pd.array([1, None], dtype="Int64"), "p": pd.PeriodIndex(["2020-01", None], freq="M")}
    ... )
    >>> [str(dtype.kind) for dtype in pandas_frame(frame).dtypes]
    ['f', 'M']
    """
    library = _library(type(rows))
    if library == "polars":
        frame = _of_polars(rows)
    elif library == "pyarrow":
        frame = rows.to_pandas()
    else:
        frame = rows.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    for place, dtype in enumerate(frame.dtypes):
        if not isinstance(dtype, np.dtype) or dtype.kind not in "biufM":
            frame.isetitem(place, _plain(frame.iloc[:, place]))
    return frame


def _of_polars(rows: Any) -> Any:
    """Convert a polars frame column by column; this needs no pyarrow."""
    import pandas as pd

    return pd.DataFrame({column.name: _of_polars_column(column) for column in rows.get_columns()})


def _of_polars_column(column: Any) -> Any:
    import pandas as pd

    kind = str(column.dtype).partition("(")[0]
    if kind in ("Categorical", "Enum"):  # in the order of the alphabet, since the order of neither means anything
        return pd.Categorical(column.to_list())
    if kind == "Decimal" or column.dtype.is_numeric():
        numbers = column.to_numpy()
        return numbers if numbers.dtype.kind in "iuf" else np.array(column.to_list(), dtype=np.float64)
    if kind in ("Date", "Datetime", "Duration"):
        return column.to_numpy()
    return pd.Series(column.to_list(), dtype=object)


def _plain(series: Any) -> Any:
    """Return a column of an unusual type as numbers, truth values, dates, durations, a category or objects."""
    import pandas as pd

    dtype, kind = series.dtype, getattr(series.dtype, "kind", "O")
    if isinstance(dtype, (pd.CategoricalDtype, pd.DatetimeTZDtype)) or (isinstance(dtype, np.dtype) and kind == "m"):
        return series
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {series.name!r} holds complex numbers.")
    if isinstance(dtype, pd.SparseDtype):
        return series.sparse.to_dense()
    if isinstance(dtype, pd.PeriodDtype):
        return series.dt.to_timestamp()
    if kind in "iuf":  # numbers with gaps
        return pd.Series(series.to_numpy(dtype=np.float64, na_value=np.nan), index=series.index)
    if isinstance(dtype, pd.ArrowDtype):
        values = series.array.__arrow_array__().to_pandas()
        return (
            values.set_axis(series.index) if values.dtype.kind in "mM" else _of_objects(values.set_axis(series.index))
        )
    return _of_objects(series.astype(object))


def _of_objects(series: Any) -> Any:
    """Return a column of objects of one kind, such as dates, in the dtype of that kind."""
    import pandas as pd

    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind in ("integer", "floating", "mixed-integer-float", "decimal"):
        return pd.Series(pd.to_numeric(series.map(float, na_action="ignore"), errors="coerce"), index=series.index)
    if kind == "time":
        return series.map(str, na_action="ignore")  # read as text, in hours since midnight
    if kind in ("timedelta", "timedelta64"):
        return pd.to_timedelta(series)
    if kind == "period":
        return pd.to_datetime(series.map(lambda each: each.to_timestamp(), na_action="ignore"))
    if kind in ("date", "datetime", "datetime64"):
        try:
            return pd.to_datetime(series, utc=True).astype("datetime64[us, UTC]")
        except (pd.errors.OutOfBoundsDatetime, OverflowError):
            return series  # read as text, which has no bounds
    return series
