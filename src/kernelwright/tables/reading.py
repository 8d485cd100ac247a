"""Read tables from CSV, TSV and Parquet files, compressed or not; any problem is reported in one sentence.

A file is read in two steps. :func:`scan_table` checks it without pandas, whose import takes longer than the check;
``scan_table(path).table()`` then builds the data frame.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import sys
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kernelwright.inputs.frames.gaps import MISSING
from kernelwright.inputs.frames.numerals import is_number
from kernelwright.inputs.frames.table import Table, check_name, some_of
from kernelwright.inputs.parquet_rows import PARQUET_EXTRA, parquet_faults
from kernelwright.numerics.memory import check_memory

__all__ = [
    "BYTE_ORDER_MARK",
    "PARQUET_MARK",
    "TEXT_FACTOR",
    "ParquetTable",
    "TextTable",
    "checked_header",
    "open_zstd",
    "read_table",
    "scan_table",
    "sniffed",
]

STANDARD_INPUT = "-"
DELIMITERS = (",", ";", "\t", "|")
SNIFFED = 20  # rows from which the delimiter is inferred

CHUNK = 1 << 24
TEXT_FACTOR = 6  # memory that a table needs, as a multiple of its text
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PARQUET_MARK = b"PAR1"
NOT_TEXT = {
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"\xd0\xcf\x11\xe0": "a spreadsheet; save it as CSV",
}


def read_table(path: str | Path, *, header: bool = True, required: Mapping[str, str] | None = None) -> Table:
    r"""Read a table from a file, or from standard input if ``path`` is "-".

    Text must be UTF-8, with columns separated by commas, semicolons, tabs or bars. Blank cells and NA, NaN, null, None
    or ? are missing values. Compressed files (gzip, bzip2, xz, zstd, zip) and Parquet are recognised by their content.

    Parameters
    ----------
    path : str or Path
    header : bool, default=True
        Whether the first line holds the column names.
    required : mapping of str to str, optional
        Columns that must exist, each with its name in error messages: ``{"age": "target column"}``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelwright.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("name;age\nAda;36\nAlan;41\n")
    ...     read_table(file).frame["age"].tolist()
    ['36', '41']
    """
    return scan_table(path, header=header, required=required).table()


def scan_table(
    path: str | Path, *, header: bool = True, required: Mapping[str, str] | None = None
) -> TextTable | ParquetTable:
    """Read a file and check that it is a table with the required columns; see :func:`read_table`.

    The method ``table`` of the result returns the :class:`~kernelwright.tables.Table`.
    """
    source = "standard input" if str(path) == STANDARD_INPUT else str(path)
    content = _unpacked(_content(path, source), source)
    if content.startswith(PARQUET_MARK):
        return ParquetTable.of(content, source, required or {})
    if source.endswith((".parquet", ".pq")) and content:
        raise ValueError(f"{source} has the name of a Parquet file, but is not one: it does not begin with 'PAR1'.")
    return TextTable.of(content, source, header, required or {})


# bytes -------------------------------------------------------------------------------------------------


def _content(path: str | Path, source: str) -> bytes:
    if source == "standard input":
        return _all_of(sys.stdin.buffer, source)
    if Path(path).is_dir():
        raise ValueError(f"{source} is a folder, not a table.")
    try:
        with open(path, "rb") as file:
            return _all_of(file, source)
    except FileNotFoundError:
        raise ValueError(f"There is no file {source}.") from None


def _all_of(file: BinaryIO | Any, source: str) -> bytes:
    """Read everything; raise MemoryError before the memory is full."""
    parts, total = [], 0
    while part := file.read(CHUNK):
        parts.append(part)
        total += len(part)
        check_memory(float(TEXT_FACTOR * total), f"The table in {source}", "Take a part of its rows.")
    return b"".join(parts)


def _unpacked(content: bytes, source: str) -> bytes:
    openers: dict[bytes, Callable[[BinaryIO], Any]]
    openers = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open, b"\x28\xb5\x2f\xfd": open_zstd}
    try:
        if content.startswith(b"PK\x03\x04"):
            return _unzipped(content, source)
        for magic, opener in openers.items():
            if content.startswith(magic):
                with opener(io.BytesIO(content)) as file:
                    return _all_of(file, source)
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise ValueError(f"{source} is a damaged compressed file: {str(error).splitlines()[0]}.") from None
    return content


def _unzipped(content: bytes, source: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as folder:
        names = [name for name in folder.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
        if "[Content_Types].xml" in names:
            raise ValueError(f"{source} is a spreadsheet; save it as CSV.")
        if len(names) != 1:
            raise ValueError(f"{source} must contain exactly one file. It has {len(names)}: {some_of(names)}.")
        with folder.open(names[0]) as file:
            return _all_of(file, source)


def open_zstd(file: BinaryIO) -> Any:
    """Open a file that is compressed with zstd; this needs pyarrow."""
    try:
        import pyarrow
    except ImportError:
        raise ValueError(f"The file is compressed with zstd. {PARQUET_EXTRA}") from None
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")


# Parquet -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file whose columns have been checked."""

    file: Any  # a pyarrow.parquet.ParquetFile
    names: tuple[str, ...]
    source: str

    @classmethod
    def of(cls, content: bytes, source: str, required: Mapping[str, str]) -> ParquetTable:
        """Check names and size, which are stored before the cells."""
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise ValueError(f"{source} is Parquet. {PARQUET_EXTRA}") from None
        with parquet_faults(source):
            file = parquet.ParquetFile(pyarrow.BufferReader(content))
            n_rows, n_columns = file.metadata.num_rows, file.metadata.num_columns
            schema = file.schema_arrow
        check_memory(
            3 * 8.0 * n_rows * n_columns, f"{source}, which claims to have {n_rows} rows,", "Take a part of its rows."
        )
        names = [str(name) for name in schema.names]
        nested = [name for name, kind in zip(names, schema.types, strict=True) if kind.num_fields]
        if nested:
            raise ValueError(f"{source}: column {nested[0]!r} has lists or records; a cell must hold one value.")
        names = _checked_names(names, source, required)
        if n_rows == 0:
            raise ValueError(f"{source} has columns but no rows.")
        return cls(file, tuple(names), source)

    def table(self) -> Table:
        """Read the cells."""
        with parquet_faults(self.source):
            frame = self.file.read().to_pandas(ignore_metadata=True)
        frame.columns = list(self.names)
        return Table(frame, self.source)


# text --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextTable:
    """The bytes of a text file whose lines have been checked.

    ``lines`` holds the line number of each row, ``missing_words`` the words in each column that mean a missing value.
    """

    content: bytes
    source: str
    delimiter: str
    header: bool
    names: tuple[str, ...]
    lines: np.ndarray
    missing_words: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, content: bytes, source: str, header: bool, required: Mapping[str, str]) -> TextTable:
        """Check the text, its header and the length of every row."""
        content = content.removeprefix(BYTE_ORDER_MARK)
        _refuse_what_is_no_text(content, source)
        delimiter = _delimiter(content)
        rows = _rows(content, source, delimiter)
        first = next(rows, None)
        if first is None:
            raise ValueError(f"{source} has a header but no rows.")
        if header:
            names = checked_header(first[1], source, required)
        else:
            names = [f"column {k + 1}" for k in range(len(first[1]))]
            rows = itertools.chain([first], rows)
        lines, missing = _checked_rows(rows, names, source, "header" if header else "first line")
        return cls(content, source, delimiter, header, tuple(names), lines, missing)

    def table(self) -> Table:
        """Read the cells."""
        import pandas as pd

        frame = pd.read_csv(
            io.BytesIO(self.content),
            sep=self.delimiter,
            names=list(self.names),
            header=0 if self.header else None,
            dtype=str,
            na_values=["", *MISSING, *(f"{word} " for word in MISSING)],
            keep_default_na=False,
            index_col=False,
            skipinitialspace=True,
            encoding="utf-8",
        )
        if len(frame) != len(self.lines):
            raise ValueError(
                f"{self.source} has ambiguous quotation marks: it can be read as {len(self.lines)} or as {len(frame)} "
                "rows."
            )
        return Table(frame, self.source, self.lines, self.missing_words)


def _refuse_what_is_no_text(content: bytes, source: str) -> None:
    for magic, what in NOT_TEXT.items():
        if content.startswith(magic):
            raise ValueError(f"{source} is {what}.")
    if not content.strip():
        raise ValueError(f"{source} is empty.")
    if (place := content.find(b"\0")) >= 0:
        raise ValueError(
            f"{source} has a NUL byte at position {place} (line {_line(content, place)}), so it is not a text table."
        )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{source} is not UTF-8: byte {content[error.start]:#04x} at position {error.start} "
            f"(line {_line(content, error.start)}). Save it as UTF-8."
        ) from None


def _line(content: bytes, place: int) -> int:
    return content.count(b"\n", 0, place) + 1


def _stream(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")


def _delimiter(content: bytes) -> str:
    """Infer the delimiter: equally long rows count first, then the share of numbers, then the number of columns."""

    def fits(delimiter: str) -> tuple[bool, float, int]:
        reader = csv.reader(_stream(content), delimiter=delimiter, skipinitialspace=True)
        try:
            rows = list(itertools.islice((row for row in reader if row), SNIFFED))
        except csv.Error:
            return False, 0.0, 0
        width = len(rows[0]) if rows else 0
        if width < 2 or any(len(row) != width for row in rows):
            return False, 0.0, width
        cells = [cell for row in rows for cell in row[:SNIFFED]]
        return True, sum(map(is_number, cells)) / len(cells), width

    return max(DELIMITERS, key=fits)  # the first one wins a tie


def _rows(content: bytes, source: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the line on which it begins."""
    reader = csv.reader(_stream(content), delimiter=delimiter, skipinitialspace=True, strict=True)
    begun = 1
    try:
        for row in reader:
            begins, begun = begun, reader.line_num + 1
            if row and (len(row) > 1 or row[0].strip()):
                yield begins, row
    except csv.Error as error:
        raise ValueError(f"{source} cannot be read after line {reader.line_num}: {error}.") from None


def _checked_rows(
    rows: Iterator[tuple[int, list[str]]], names: Sequence[str], source: str, first: str
) -> tuple[np.ndarray, dict[str, tuple[str, ...]]]:
    """Return the line number of each row and the words for missing values; raise ValueError if lengths differ.

    pandas would silently pad short rows, and does not report line numbers.
    """
    lines = array("q")
    missing: dict[str, dict[str, None]] = {}
    for begins, row in rows:
        if len(row) != len(names):
            raise ValueError(f"{source} has {len(row)} values in line {begins}, but {len(names)} in its {first}.")
        lines.append(begins)
        if not MISSING.isdisjoint(row):
            for name, word in zip(names, row, strict=True):
                if word in MISSING:
                    missing.setdefault(name, {})[word] = None
    if not lines:
        raise ValueError(f"{source} has a header but no rows.")
    return np.array(lines), {name: tuple(words) for name, words in missing.items()}


def sniffed(head: bytes, source: str) -> tuple[str, list[str]]:
    """Return the delimiter and the names of the columns of a text file, by its first bytes."""
    whole = head[: head.rfind(b"\n") + 1] or head
    _refuse_what_is_no_text(whole, source)
    delimiter = _delimiter(whole)
    return delimiter, checked_header(next(_rows(whole, source, delimiter))[1], source, {})


def checked_header(row: Sequence[str], source: str, required: Mapping[str, str]) -> list[str]:
    """Return the names of the columns in the first line; raise ValueError if it cannot be a header."""
    if len(row) > 1 and all(map(is_number, row)):
        raise ValueError(f"The first line of {source} holds numbers. It must hold the names of the columns.")
    return _checked_names(row, source, required)


def _checked_names(row: Sequence[str], source: str, required: Mapping[str, str]) -> list[str]:
    """Return the column names, which must differ; a column without a name is called by its number."""
    names = [name.strip() or f"column {k + 1}" for k, name in enumerate(row)]
    twice = [name for k, name in enumerate(names) if name in names[:k]] if len(set(names)) < len(names) else []
    if twice:
        places = [str(k + 1) for k, name in enumerate(names) if name == twice[0]]
        raise ValueError(f"{source} has several columns called {twice[0]!r} (number {' and '.join(places)}).")
    for name, noun in required.items():
        check_name(name, names, source, noun)
    return names
