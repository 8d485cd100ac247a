"""Rows of Parquet files, read in batches."""

from __future__ import annotations

import copy
import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.inputs.frames.table import check_name, some_of
from kernelwright.inputs.sources import PART_ROWS, RowPart, RowSource

__all__ = ["PARQUET_EXTRA", "ParquetRows", "parquet_faults"]

PARQUET_EXTRA = "It needs pyarrow: pip install 'kernelwright[parquet]'."
SUFFIXES = (".parquet", ".pq")


@contextmanager
def parquet_faults(source: str) -> Iterator[None]:
    """Turn pyarrow's errors into one sentence that names the file."""
    import pyarrow

    try:
        yield
    except FileNotFoundError:
        raise ValueError(f"There is no file {source}.") from None
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, MemoryError):
            raise
        raise ValueError(
            f"{source} is a damaged Parquet file: {(str(error).splitlines() or ['unreadable'])[0]}."
        ) from None


@dataclass(frozen=True)
class _File:
    """A Parquet file whose columns have been checked; ``constants`` are columns in the names of its folders."""

    path: str
    system: Any  # the file system of pyarrow, or None
    n_rows: int
    kinds: dict[str, str]
    constants: dict[str, Any]

    @classmethod
    def of(cls, path: str, system: Any = None, constants: dict[str, Any] | None = None) -> _File:
        file = _opened(path, system)
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        file.close()
        constants = _folder_values(path) if constants is None else constants
        kinds = {name: "text" if isinstance(value, str) else "numbers" for name, value in constants.items()}
        names = [str(name) for name in schema.names]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{path} has several columns called {twice[0]!r}.")
        for name, kind in zip(names, schema.types, strict=True):
            kinds[name] = _kind(kind)
            if kinds[name] == "lists or records":
                raise ValueError(f"{path}: column {name!r} has lists or records; a cell must hold one value.")
        return cls(path, system, n_rows, kinds, {k: v for k, v in constants.items() if k not in names})

    @property
    def time(self) -> int:
        """When it was last written, if it is on this machine."""
        return os.stat(self.path).st_mtime_ns if self.system is None else 0

    def batches(self, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield the first row and a data frame of each batch."""
        stored, start = [name for name in names if name not in self.constants], 0
        with parquet_faults(self.path):
            file = _opened(self.path, self.system)
            batches = file.iter_batches(PART_ROWS, columns=stored, use_threads=False)
        try:
            while True:
                with parquet_faults(self.path):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    frame = batch.to_pandas(ignore_metadata=True)
                for name, value in self.constants.items():
                    frame[name] = value
                yield start, frame[list(names)]
                start += len(frame)
        finally:
            file.close()


class ParquetRows(RowSource):
    """The rows of Parquet files, which need not fit into memory together.

    Parameters
    ----------
    files : str, path, list of these, or pyarrow.dataset.Dataset
        A file, a folder (with its subfolders), a pattern such as ``"big/*.parquet"``, or a data set of pyarrow. Names
        of folders such as ``year=2020`` are columns.
    target : str, optional
        The column to predict. It may be missing where only predictions are wanted.
    weight : str, optional
        A column of row weights.
    columns : list of str, optional
        The columns to learn from; by default all others.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> from kernelwright import EmbeddingClassifier
    >>> from kernelwright.inputs import ParquetRows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(3):
    ...         X = np.random.default_rng(part).normal(size=(100, 2))
    ...         frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=X[:, 0] > X[:, 1])
    ...         frame.to_parquet(f"{folder}/part-{part}.parquet")
    ...     rows = ParquetRows(f"{folder}/*.parquet", target="y")
    ...     model = EmbeddingClassifier(random_state=0).fit(rows)
    >>> rows.n_rows, model.feature_names_in_.tolist()
    (300, ['a', 'b'])
    """

    def __init__(
        self,
        files: Any,
        target: str | None = None,
        *,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise ValueError(f"The rows are Parquet. {PARQUET_EXTRA}") from None
        found = _files_of(files)
        self.files = [file for file in found if file.n_rows]
        if not self.files:
            raise ValueError(f"{some_of([file.path for file in found])}: no row in {_count(found)}.")
        self.target, self.weight, first = target, weight, self.files[0]
        aside = [name for name in (target, weight) if name is not None]
        for name, what in (
            (target, "target column"),
            (weight, "weight column"),
            *((c, "column") for c in columns or ()),
        ):
            if name is not None:
                check_name(name, list(first.kinds), first.path, what)
        self.columns = [name for name in first.kinds if name not in aside] if columns is None else list(columns)
        if not self.columns or (set(self.columns) & set(aside)):
            raise ValueError(f"{first.path} needs columns to learn from besides {some_of(aside)}. Got {self.columns}.")
        _check_alike(self.files, [*self.columns, *aside])
        self.n_rows = sum(file.n_rows for file in self.files)

    @property
    def identity(self) -> str:  # noqa: D102
        return repr([(os.path.basename(file.path), file.n_rows, file.time) for file in self.files])

    def only(self, columns: Sequence[str]) -> ParquetRows:
        """Return the same rows, of some columns."""
        found = copy.copy(self)
        found.columns = list(columns)
        return found

    def parts(self) -> Iterator[RowPart]:  # noqa: D102
        return self._parts(self.columns)

    def target_parts(self) -> Iterator[RowPart]:  # noqa: D102
        return self._parts([])

    def _parts(self, names: Sequence[str]) -> Iterator[RowPart]:
        wanted = [*names, *(name for name in (self.target, self.weight) if name is not None)]
        for file in self.files:
            for start, frame in file.batches(wanted):
                y, weights = (None if name is None else frame[name].to_numpy() for name in (self.target, self.weight))
                place = f"{file.path}, rows {start + 1} to {start + len(frame)}"
                yield RowPart(frame[list(names)] if names else None, y, weights, place, start)


def _opened(path: str, system: Any) -> Any:
    from pyarrow import parquet

    with parquet_faults(path):
        return parquet.ParquetFile(path if system is None else system.open_input_file(path))


def _files_of(files: Any) -> list[_File]:
    if hasattr(files, "get_fragments"):
        return _of_dataset(files)
    given = files if isinstance(files, (list, tuple)) else [files]
    paths = [path for each in given for path in _paths(each)]
    return [_File.of(path) for path in paths]


def _paths(given: str | os.PathLike[str]) -> list[str]:
    """Return the files that a name stands for, in order."""
    if not isinstance(given, (str, os.PathLike)):
        raise ValueError(f"A Parquet source is a path, a folder or a pattern. Got {type(given).__name__} instead.")
    path = os.path.expanduser(given)
    if os.path.isdir(path):
        found = sorted(str(each) for each in Path(path).rglob("*") if each.suffix in SUFFIXES and each.is_file())
        if not found:
            raise ValueError(f"There is no Parquet file (*.parquet or *.pq) in the folder {path}.")
        return found
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(each for each in glob.glob(path, recursive=True) if os.path.isfile(each))
    if not found:
        raise ValueError(f"There is no file {path}.")
    return found


def _of_dataset(dataset: Any) -> list[_File]:
    from pyarrow.dataset import get_partition_keys

    fragments = list(dataset.get_fragments())
    if not all(getattr(fragment, "path", "") for fragment in fragments):
        raise ValueError("A data set in memory is not read in parts: pass dataset.to_table().")
    return [
        _File.of(fragment.path, fragment.filesystem, get_partition_keys(fragment.partition_expression))
        for fragment in fragments
    ]


def _folder_values(path: str) -> dict[str, Any]:
    """Return the columns in the names of folders: {"year": 2020} of "year=2020/part.parquet"."""
    pairs = [part.split("=", 1) for part in Path(path).parent.parts if part.count("=") == 1]
    return {name: int(word) if word.isdecimal() else word for name, word in pairs}


def _kind(kind: Any) -> str:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _kind(kind.value_type)
    tests = {
        "": types.is_null,
        "truth values": types.is_boolean,
        "numbers": lambda kind: types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind),
        "text": lambda kind: types.is_string(kind) or types.is_large_string(kind),
        "dates": lambda kind: types.is_date(kind) or types.is_timestamp(kind),
        "lists or records": types.is_nested,
    }
    return next((word for word, holds in tests.items() if holds(kind)), str(kind))


def _check_alike(files: Sequence[_File], names: Sequence[str]) -> None:
    """Raise ValueError unless every file has the columns, and what they hold is of one kind."""
    known: dict[str, tuple[str, str]] = {}
    for file in files:
        for name in names:
            check_name(name, list(file.kinds), file.path)
            kind = file.kinds[name]
            first, where = known.setdefault(name, (kind, file.path)) if kind else ("", "")
            if kind != first:
                raise ValueError(
                    f"Column {name!r} holds {kind} in {file.path}, but {first} in {where}. Write both files with the "
                    "same type."
                )


def _count(files: Sequence[Any]) -> str:
    return f"{len(files)} file{'s' * (len(files) != 1)}"
