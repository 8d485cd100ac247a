"""Read similarities of objects: from a square matrix with or without labels, or from a list of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kernelwright.inputs.frames.cells import texts
from kernelwright.inputs.frames.notation import decimal_sign, read_numbers
from kernelwright.inputs.frames.numerals import is_number
from kernelwright.inputs.frames.table import Table, nearest_name
from kernelwright.tables.reading import read_table

__all__ = ["Similarities", "read_similarities", "similarities_of"]

SYMMETRY = 1e-6  # tolerance relative to the largest entry, for rounding in text files


@dataclass(frozen=True)
class Similarities:
    """A symmetric matrix (NaN for unknown pairs), the indices of its objects, and the form in which it was given.

    ``remark`` is a sentence about ambiguous numbers, or "".
    """

    values: np.ndarray
    places: np.ndarray
    form: str
    remark: str = ""


def read_similarities(
    path: str | Path, objects: Sequence[str], *, named: bool, decimal: str | None = None
) -> Similarities:
    r"""Read a similarity table for objects that have names (``named``) or are in the same order.

    A blank cell is an unknown similarity. A pair that is given in one direction only is taken to be symmetric.

    Parameters
    ----------
    path : str or Path
    objects : sequence of str
        Names or numbers of the objects.
    named : bool
        Whether labels in the table must be these names.
    decimal : {"comma", "point"}, optional
        The decimal sign, for a table that can be read with both.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelwright.tables import read_similarities
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "pairs.csv"
    ...     _ = file.write_text("a,b,value\nAda,Alan,0.8\nAda,Kurt,0.3\nAda,Ada,1\n")
    ...     read_similarities(file, ["Ada", "Alan", "Emmy", "Kurt"], named=True).values[0].tolist()
    [1.0, 0.8, 0.3]
    """
    return similarities_of(read_table(path, header=False), objects, named=named, decimal=decimal)


def similarities_of(table: Table, objects: Sequence[str], *, named: bool, decimal: str | None = None) -> Similarities:
    """Extract the similarities from a table that was read without a header; see :func:`read_similarities`."""
    sign = decimal_sign(decimal) or "."
    n_rows, n_columns = table.frame.shape
    if n_columns == 3 and len(objects) != 3:
        found = _from_pairs(table, objects, named, sign)
        return replace(found, remark="") if decimal else found
    names = list(objects) if named else None
    cells = np.array([texts(table, name) for name in table.names], dtype=object).T
    top, left = _has_labels(cells, len(objects), names)
    if (n_rows - top) != (n_columns - left):
        raise ValueError(
            f"{table.source} is not square: {n_rows - top} rows and {n_columns - left} columns of similarities."
        )
    labels = _labels(table, cells, top, left)
    if names is None or labels is None:
        if n_rows - top != len(objects):
            raise ValueError(
                f"{table.source} has {n_rows - top} rows and columns of similarities, but there are {len(objects)} "
                f"objects{' and no labels' if names is not None else ''}."
            )
        places = np.arange(len(objects))
    else:
        places = _places(labels, objects, table.source)
    body = Table(table.frame.iloc[top:, left:].reset_index(drop=True), table.source, table.row_numbers()[top:])
    values, remark = _matrix(body, [objects[int(k)] for k in places], sign)
    form = "a matrix with labels" if labels is not None else "a matrix"
    return Similarities(values, places, form, "" if decimal else remark)


def _has_labels(cells: np.ndarray, n: int, names: list[str] | None) -> tuple[int, int]:
    """Return whether (0 or 1) the first row and the first column are labels."""
    across, down = cells[0, 1:], cells[1:, 0]
    if _are_names(across, down, names or ()) and _all_words(cells[:1, 0], or_blank=True):
        return 1, 1  # even if labels are numbers and an object is missing
    if cells.shape == (n, n) and not _all_words(across) and not _all_words(down):
        return 0, 0
    top, left = cells.shape[0] - n, cells.shape[1] - n
    if names is None and (top, left) in ((1, 1), (1, 0), (0, 1)):
        return top, left
    known = set(names or ())  # labels may be numbers
    return int(_all_words(across) or known.issuperset(across)), int(_all_words(down) or known.issuperset(down))


def _are_names(across: np.ndarray, down: np.ndarray, names: Sequence[str]) -> bool:
    """Return whether the first row and the first column name the same objects in the same order."""
    labels = set(across)
    return len(labels) == len(across) > 0 and list(across) == list(down) and labels.issubset(names)


def _all_words(cells: np.ndarray, *, or_blank: bool = False) -> bool:
    """Return whether no cell is a number; blank cells count as numbers unless ``or_blank``."""
    for cell in cells:
        blank = isinstance(cell, float)  # NaN
        if (blank and not or_blank) or (not blank and is_number(cell)):
            return False
    return True


def _labels(table: Table, cells: np.ndarray, top: int, left: int) -> list[str] | None:
    across = [str(cell) for cell in cells[0, left:]] if top else None
    down = [str(cell) for cell in cells[top:, 0]] if left else None
    if across is not None and down is not None and across != down:
        k = next(k for k, (a, b) in enumerate(zip(across, down, strict=True)) if a != b)
        raise ValueError(
            f"The labels of {table.source} differ: column {k + 1 + left} is {across[k]!r}, but {table.place(k + top)} "
            f"is {down[k]!r}."
        )
    return across if across is not None else down


def _places(labels: Sequence[str], objects: Sequence[str], source: str) -> np.ndarray:
    place = {name: k for k, name in enumerate(objects)}
    for k, label in enumerate(labels):
        if label not in place:
            raise ValueError(
                f"{source} has similarities of {label!r}, which is not among the objects"
                f"{nearest_name(label, objects).replace('It has', 'These are')}"
            )
        if label in labels[:k]:
            raise ValueError(f"{source} has the label {label!r} twice.")
    return np.array([place[label] for label in labels])


def _matrix(body: Table, objects: Sequence[str], decimal: str) -> tuple[np.ndarray, str]:
    """Read all entries in the same notation; return them with a remark if the notation is ambiguous."""
    import pandas as pd

    columns = [texts(body, name) for name in body.names]
    reading = read_numbers(pd.concat(columns, ignore_index=True), decimal)
    odd = reading.odd.reshape(len(columns), -1).T
    if odd.any():
        k = int(odd.any(0).argmax())
        row = int(odd[:, k].argmax())
        raise ValueError(
            f"{body.source} has {columns[k][row]!r} in {body.place(row)}, column of {objects[k]!r}, where a number "
            "is expected."
        )
    values = reading.values.reshape(len(columns), -1).T
    return _symmetric(values, objects, body.source), reading.remark(body.source)


def _symmetric(values: np.ndarray, objects: Sequence[str], source: str) -> np.ndarray:
    if np.isnan(values).all():
        raise ValueError(f"{source} has no similarities.")
    gap = np.nan_to_num(np.abs(values - values.T), nan=0.0)
    if gap.max() > SYMMETRY * np.nanmax(np.abs(values)):
        i, j = np.unravel_index(gap.argmax(), gap.shape)
        raise ValueError(
            f"{source} is not symmetric: {objects[i]!r} with {objects[j]!r} is {values[i, j]:g}, but the reverse is "
            f"{values[j, i]:g}."
        )
    return np.where(np.isnan(values), values.T, np.where(np.isnan(values.T), values, 0.5 * (values + values.T)))


def _from_pairs(table: Table, objects: Sequence[str], named: bool, decimal: str) -> Similarities:
    """Read lines of (object, object, value), with or without a header."""
    first, second = (texts(table, name).to_numpy(dtype=object) for name in table.names[:2])
    reading = read_numbers(texts(table, table.names[2]), decimal)
    values, odd = reading.values, reading.odd
    begin = int(odd[0])
    if odd[begin:].any():
        row = begin + int(odd[begin:].argmax())
        raise ValueError(
            f"{table.source} has {texts(table, table.names[2])[row]!r} in {table.place(row)}, third column, where a "
            "number is expected."
        )
    if begin == len(values):
        raise ValueError(f"{table.source} has no similarities.")
    from_zero = "0" in first[begin:] or "0" in second[begin:]
    names = list(objects) if named else [str(k + (not from_zero)) for k in range(len(objects))]
    used = dict.fromkeys([*first[begin:], *second[begin:]])
    places = np.sort(_places([str(name) for name in used], names, table.source))
    place = {names[k]: number for number, k in enumerate(places)}
    matrix = np.full((len(places), len(places)), np.nan)
    lines: dict[tuple[int, int], int] = {}
    for row in range(begin, len(values)):
        i, j = place[first[row]], place[second[row]]
        if (i, j) in lines and not np.isclose(matrix[i, j], values[row], rtol=SYMMETRY, equal_nan=True):
            raise ValueError(
                f"{table.source} gives {first[row]!r} with {second[row]!r} twice with different values: "
                f"{table.place(row)} and {table.place(lines[i, j])}."
            )
        matrix[i, j], lines[i, j] = values[row], row
    matrix = _symmetric(matrix, [names[k] for k in places], table.source)
    return Similarities(matrix, places, "a list of pairs", reading.remark(table.source))
