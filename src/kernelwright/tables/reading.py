"""Files -> tables: CSV, TSV and Parquet, compressed or not; whatever is wrong with a file is one sentence."""

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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kernelwright.numerics.memory import check_memory
from kernelwright.tables.notation import is_number
from kernelwright.tables.table import Table, some_of

__all__ = ["read_table"]

STANDARD_INPUT = "-"
DELIMITERS = (",", ";", "\t", "|")
SNIFFED = 20  # rows that tell which of them it is
MISSING = {"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
MISSING |= {"NULL", "NaN", "None", "n/a", "nan", "null", "?"}  # those of pandas, and a question mark
CHUNK = 1 << 24
TEXT_FACTOR = 6  # memory for a table, in units of its text
PARQUET_EXTRA = "Install pyarrow for it: pip install pyarrow."
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NOT_TEXT = {
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"\xd0\xcf\x11\xe0": "a spreadsheet; save it as CSV",
}


def read_table(path: str | Path, *, header: bool = True) -> Table:
    r"""Read a table from a file, or from standard input if ``path`` is "-".

    Text must be UTF-8; commas, semicolons, tabs or bars separate the columns. Blank cells and NA, NaN, null, None or ?
    are missing. Files that are compressed (gzip, bzip2, xz, zstd, zip) or Parquet are known by their first bytes.

    Parameters
    ----------
    path : str or Path
    header : bool, default=True
        Whether the first line has the names of the columns.

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
    source = "standard input" if str(path) == STANDARD_INPUT else str(path)
    content = _unpacked(_content(path, source), source)
    if content.startswith(b"PAR1"):
        return _parquet(content, source)
    if source.endswith((".parquet", ".pq")) and content:
        raise ValueError(f"{source} is called Parquet but is not: its first bytes are not 'PAR1'.")
    return _text(content, source, header)


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
    """Everything that can be read, refused while there is still memory left."""
    parts, total = [], 0
    while part := file.read(CHUNK):
        parts.append(part)
        total += len(part)
        check_memory(float(TEXT_FACTOR * total), f"The table in {source}", "Take a part of its rows.")
    return b"".join(parts)


def _unpacked(content: bytes, source: str) -> bytes:
    openers: dict[bytes, Callable[[BinaryIO], Any]]
    openers = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open, b"\x28\xb5\x2f\xfd": _open_zstd}
    try:
        if content.startswith(b"PK\x03\x04"):
            return _unzipped(content, source)
        for magic, opener in openers.items():
            if content.startswith(magic):
                with opener(io.BytesIO(content)) as file:
                    return _all_of(file, source)
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise ValueError(f"{source} is compressed and damaged: {str(error).splitlines()[0]}.") from None
    return content


def _unzipped(content: bytes, source: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as folder:
        names = [name for name in folder.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
        if "[Content_Types].xml" in names:
            raise ValueError(f"{source} is a spreadsheet; save it as CSV.")
        if len(names) != 1:
            raise ValueError(f"{source} must hold exactly one file. It has {len(names)}: {some_of(names)}.")
        with folder.open(names[0]) as file:
            return _all_of(file, source)


def _open_zstd(file: BinaryIO) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ValueError(f"The file is compressed with zstd. {PARQUET_EXTRA}") from None
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")


# Parquet -----------------------------------------------------------------------------------------------


def _parquet(content: bytes, source: str) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError(f"{source} is Parquet. {PARQUET_EXTRA}") from None
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(content))
        n_rows, n_columns = file.metadata.num_rows, file.metadata.num_columns
        check_memory(
            3 * 8.0 * n_rows * n_columns, f"{source}, which says it has {n_rows} rows,", "Take a part of its rows."
        )
        names = [str(name) for name in file.schema_arrow.names]
        nested = [name for name, kind in zip(names, file.schema_arrow.types, strict=True) if kind.num_fields]
        if nested:
            raise ValueError(f"{source}: column {nested[0]!r} holds lists or records; a table has one value in a cell.")
        frame = file.read().to_pandas(ignore_metadata=True)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, MemoryError):
            raise
        raise ValueError(f"{source} is damaged Parquet: {(str(error).splitlines() or ['unreadable'])[0]}.") from None
    frame.columns = _checked_names(names, source)
    if len(frame) == 0:
        raise ValueError(f"{source} has columns but no rows.")
    return Table(frame, source)


# text --------------------------------------------------------------------------------------------------


def _text(content: bytes, source: str, header: bool) -> Table:
    import pandas as pd

    content = content.removeprefix(BYTE_ORDER_MARK)
    _refuse_what_is_no_text(content, source)
    delimiter = _delimiter(content)
    names, lines, missing = _checked_lines(content, source, delimiter, header)
    frame = pd.read_csv(
        io.BytesIO(content),
        sep=delimiter,
        names=names,
        header=0 if header else None,
        dtype=str,
        na_values=["", *MISSING, *(f"{word} " for word in MISSING)],
        keep_default_na=False,
        index_col=False,
        skipinitialspace=True,
        encoding="utf-8",
    )
    if len(frame) != len(lines):
        raise ValueError(
            f"{source} has quotation marks that can be read in two ways: {len(lines)} or {len(frame)} rows."
        )
    return Table(frame, source, lines, missing)


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
    """The one with which the first rows are all as wide as the header, more cells are numbers, or there are most."""

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


def _checked_lines(
    content: bytes, source: str, delimiter: str, header: bool
) -> tuple[list[str], np.ndarray, dict[str, tuple[str, ...]]]:
    """Names of columns, the line on which each row begins, words that are missing values; no row of another length.

    pandas would fill short rows silently, and knows no lines.
    """
    reader = csv.reader(_stream(content), delimiter=delimiter, skipinitialspace=True, strict=True)
    names: list[str] | None = None
    lines, begun = array("q"), 1
    missing: dict[str, dict[str, None]] = {}
    try:
        for row in reader:
            begins, begun = begun, reader.line_num + 1
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            if names is None:
                if header and len(row) > 1 and all(map(is_number, row)):
                    raise ValueError(
                        f"The first line of {source} holds numbers. It must hold the names of the columns."
                    )
                names = _checked_names(row, source) if header else [f"column {k + 1}" for k in range(len(row))]
                if header:
                    continue
            if len(row) != len(names):
                raise ValueError(
                    f"{source} has {len(row)} values in line {begins}, but {len(names)} in its "
                    f"{'header' if header else 'first line'}."
                )
            lines.append(begins)
            if not MISSING.isdisjoint(row):
                for name, word in zip(names, row, strict=True):
                    if word in MISSING:
                        missing.setdefault(name, {})[word] = None
    except csv.Error as error:
        raise ValueError(f"{source} cannot be read beyond line {reader.line_num}: {error}.") from None
    if names is None or not lines:
        raise ValueError(f"{source} has a header but no rows.")
    return names, np.array(lines), {name: tuple(words) for name, words in missing.items()}


def _checked_names(row: Sequence[str], source: str) -> list[str]:
    """Names of columns, all different; one without a name is called by its place."""
    names = [name.strip() or f"column {k + 1}" for k, name in enumerate(row)]
    twice = [name for k, name in enumerate(names) if name in names[:k]] if len(set(names)) < len(names) else []
    if twice:
        places = [str(k + 1) for k, name in enumerate(names) if name == twice[0]]
        raise ValueError(f"{source} has several columns called {twice[0]!r} (number {' and '.join(places)}).")
    return names
