"""Tables of any kind with columns taken from other rows: arrays, sparse matrices and data frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["columns_of", "rows_of_table", "tabular", "with_columns_from"]


def tabular(X: Any) -> Any:
    """Return rows as an object with a ``shape``: data frames as they are, sparse rows in CSR form, arrays otherwise."""
    if sparse.issparse(X):
        return X.tocsr()
    if hasattr(X, "columns"):  # of pandas, polars and pyarrow
        return X
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"The columns of a table are compared, so X must have rows and columns. Got shape {X.shape}.")
    return X


def columns_of(X: Any) -> list[str]:
    """Return the names of the columns: those of a data frame, and x0, x1, ... otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.inputs.permuting import columns_of
    >>> columns_of(np.ones((3, 2)))
    ['x0', 'x1']
    """
    if not hasattr(X, "columns"):
        return [f"x{place}" for place in range(X.shape[1])]
    names = X.column_names if hasattr(X, "column_names") else X.columns  # pyarrow's ``columns`` are the data
    return [str(name) for name in names]


def rows_of_table(X: Any, rows: np.ndarray) -> Any:
    """Return some rows, which may repeat."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if hasattr(X, "column_names") else X[rows]


def with_columns_from(X: Any, rows: np.ndarray, sources: Mapping[int, np.ndarray]) -> Any:
    """Return some rows, with the values of some columns taken from other rows; data types stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.inputs.permuting import with_columns_from
    >>> with_columns_from(np.array([[1, 10], [2, 20]]), np.array([0, 1]), {1: np.array([1, 0])}).tolist()
    [[1, 20], [2, 10]]
    """
    if sparse.issparse(X):
        columns = X.tocsc()
        mixed = [columns[:, [place]].tocsr()[sources.get(place, rows)] for place in range(X.shape[1])]
        return sparse.hstack(mixed, format="csr")
    taken = rows_of_table(X, rows)
    taken = taken.copy() if hasattr(X, "iloc") else taken
    for place, source in sources.items():
        if hasattr(X, "iloc"):
            taken.isetitem(place, X.iloc[source, place].array)
        elif hasattr(X, "column_names"):
            taken = taken.set_column(place, X.schema.field(place), X.column(place).take(source))
        elif hasattr(X, "columns"):
            taken = taken.with_columns(X.to_series(place)[source])
        else:
            taken[:, place] = X[source, place]
    return taken
