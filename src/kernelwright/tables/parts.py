"""Tables in large files, or in many, read part by part; any problem is reported in one sentence that names the file."""

from __future__ import annotations

import bz2
import csv
import glob
import gzip
import io
import itertools
import lzma
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kernelwright.inputs.frames.table import Table, check_name, some_of
from kernelwright.inputs.parquet_rows import ParquetRows
from kernelwright.inputs.sources import PART_ROWS
from kernelwright.numerics.memory import free_memory
from kernelwright.tables.reading import BYTE_ORDER_MARK, PARQUET_MARK, TEXT_FACTOR, checked_header, open_zstd, sniffed

__all__ = ["ParquetParts", "TableParts", "TextParts", "WholeParts", "in_parts", "table_parts"]

SHARE = 0.5  # of the free memory that a table in one file may need before it is read in parts
HEAD = 1 << 18  # bytes by which the delimiter is found
SMALL = 1 << 26  # bytes of several files that are read together
OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": open_zstd,
}


def in_parts(path: str) -> bool:
    """Return whether a table is read in parts: a folder, a pattern of names, or a file too large for the memory."""
    if path == "-":
        return False
    if os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path)):
        return True
    return os.path.isfile(path) and TEXT_FACTOR * os.path.getsize(path) > SHARE * free_memory()


def table_parts(path: str, required: Mapping[str, str] | None = None) -> TableParts:
    """Return the table in a file, a folder, or the files of a pattern, whose rows are read in parts."""
    paths = _files(path)
    marks = {each: _mark(each) for each in paths}
    parquet = [each for each in paths if marks[each].startswith(PARQUET_MARK)]
    if parquet and len(parquet) < len(paths):
        other = next(each for each in paths if each not in parquet)
        raise ValueError(f"{parquet[0]} is Parquet and {other} is not: the files of a table must be of one kind.")
    found: TableParts = ParquetParts(path, ParquetRows(paths)) if parquet else TextParts.of(path, paths)
    for name, noun in (required or {}).items():
        check_name(name, found.names, path, noun)
    return found


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(
            str(each) for each in Path(path).rglob("*") if each.is_file() and not each.name.startswith((".", "_"))
        )
        if not found:
            raise ValueError(f"There is no file in the folder {path}.")
        return found
    found = (
        [path]
        if os.path.exists(path)
        else sorted(each for each in glob.glob(path, recursive=True) if os.path.isfile(each))
    )
    if not found:
        raise ValueError(f"There is no file {path}.")
    return found


def _mark(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(8)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None


class TableParts(ABC):
    """A table that is read in parts."""

    source: str
    names: Sequence[str]

    @property
    @abstractmethod
    def size(self) -> int:
        """The bytes of the files."""

    @property
    def small(self) -> bool:
        """Whether all files together are read as one table."""
        return self.size <= min(SMALL, SHARE * free_memory() / TEXT_FACTOR)

    @property
    @abstractmethod
    def identity(self) -> str:
        """The names, sizes and times of the files."""

    @abstractmethod
    def tables(self, columns: Sequence[str] | None = None) -> Iterator[Table]:
        """Read the parts; of some columns only, if that is quicker."""

    def table(self) -> Table:
        """Read all parts as one table."""
        import pandas as pd

        found = list(self.tables())
        alone = len({each.source.partition(",")[0] for each in found}) == 1
        lines = [each.lines for each in found if each.lines is not None]
        joined = np.concatenate(lines) if alone and lines else None
        return Table(pd.concat([each.frame for each in found], ignore_index=True), self.source, joined)


@dataclass(frozen=True)
class WholeParts:
    """Parts that are few, to be read as one table."""

    parts: TableParts

    def table(self) -> Table:
        """Read the cells."""
        return self.parts.table()


@dataclass(frozen=True)
class ParquetParts(TableParts):
    """A table in Parquet files."""

    source: str
    rows: ParquetRows

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]  # noqa: D102
        return self.rows.columns

    @property
    def size(self) -> int:  # noqa: D102
        return 8 * int(self.rows.n_rows or 0) * len(self.names)

    @property
    def identity(self) -> str:  # noqa: D102
        return self.rows.identity

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[Table]:  # noqa: D102
        rows = self.rows if columns is None else self.rows.only(columns)
        return (Table(part.X, part.place, start=part.start) for part in rows.parts())


@dataclass(frozen=True)
class TextParts(TableParts):
    """A table in text files, with the same columns in each."""

    source: str
    paths: tuple[str, ...]
    delimiters: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, source: str, paths: Sequence[str]) -> TextParts:
        """Check the beginning of every file."""
        delimiters, names = [], None
        for path in paths:
            with _bytes_of(path) as file:
                delimiter, header = sniffed(file.read(HEAD).removeprefix(BYTE_ORDER_MARK), path)
            if names is not None and set(header) != set(names):
                differ = some_of(sorted(set(header) ^ set(names)))
                raise ValueError(f"{path} and {paths[0]} have different columns: {differ}.")
            names = header if names is None else names
            delimiters.append(delimiter)
        return cls(source, tuple(paths), tuple(delimiters), tuple(names or ()))

    @property
    def size(self) -> int:  # noqa: D102
        return sum(os.path.getsize(path) for path in self.paths)

    @property
    def identity(self) -> str:  # noqa: D102
        return repr([(os.path.basename(path), os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in self.paths])

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[Table]:  # noqa: D102
        for path, delimiter in zip(self.paths, self.delimiters, strict=True):
            with _bytes_of(path) as file, _text_faults(path):
                text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
                yield from self._tables_of(path, text, delimiter, list(self.names if columns is None else columns))

    def _tables_of(self, path: str, text: io.TextIOWrapper, delimiter: str, wanted: list[str]) -> Iterator[Table]:
        import pandas as pd

        rows = _numbered_rows(path, text, delimiter)
        names = checked_header(next(rows)[1], path, {})
        places = [names.index(name) for name in wanted]
        while some := list(itertools.islice(rows, PART_ROWS)):
            for line, row in some:
                if len(row) != len(names):
                    raise ValueError(f"{path} has {len(row)} values in line {line}, but {len(names)} in its header.")
            cells = np.array([[row[place] for place in places] for _, row in some], dtype=object)
            lines = np.array([line for line, _ in some])
            frame = pd.DataFrame(cells, columns=wanted, dtype=object)
            yield Table(frame, f"{path}, lines {lines[0]} to {lines[-1]}", lines)


def _numbered_rows(path: str, text: io.TextIOWrapper, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the line on which it begins."""
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True, strict=True)
    begun = 1
    try:
        for row in reader:
            begins, begun = begun, reader.line_num + 1
            if row and (len(row) > 1 or row[0].strip()):
                yield begins, row
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read after line {reader.line_num}: {error}.") from None


@contextmanager
def _bytes_of(path: str) -> Iterator[BinaryIO]:
    """Open a file, unpacked if it is compressed."""
    mark = _mark(path)
    if mark.startswith(b"PK\x03\x04"):
        raise ValueError(f"{path} is a zip file, which is not read in parts. Unpack it first.")
    opener = next((each for magic, each in OPENERS.items() if mark.startswith(magic)), None)
    with open(path, "rb") as file:
        if opener is None:
            yield file
            return
        with _text_faults(path), opener(file) as unpacked:
            yield unpacked


@contextmanager
def _text_faults(path: str) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: byte {error.object[error.start]:#04x}. Save it as UTF-8.") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is a damaged compressed file: {error}.") from None
