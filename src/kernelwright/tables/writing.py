"""Write tables to files, completely or not at all."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from kernelwright.inputs.parquet_rows import PARQUET_EXTRA
from kernelwright.storage.files import whole_file, write_whole

__all__ = ["check_output", "safe_for_spreadsheets", "visible", "write_bytes", "write_table", "written_in_parts"]

STANDARD_OUTPUT = "-"
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are full-width
# Characters that control a terminal or reverse the order of letters.
CODES = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
COMMANDS = {code: repr(chr(code))[1:-1] for code in CODES}
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
STREAMED: dict[str, Callable[[Any], Any]] = {  # compressed files that can be written in parts
    "": nullcontext,
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
}


def check_output(path: str | Path, *others: str | Path | None) -> None:
    """Raise ValueError if a path cannot be written to, before any work is done.

    ``others`` are further files that a command reads or writes.
    """
    path = Path(path)
    if str(path) == STANDARD_OUTPUT:
        return
    if path.resolve() in [Path(each).resolve() for each in others if each not in (None, STANDARD_OUTPUT)]:
        raise ValueError(f"{path} is given twice, and one file would overwrite the other. Give another name.")
    if path.is_dir():
        raise ValueError(f"Cannot write to {path}: it is a folder. Give the name of a file.")
    if not path.parent.is_dir():
        raise ValueError(f"Cannot write to {path}: there is no folder {path.parent}.")
    if not os.access(path if path.exists() and not path.is_file() else path.parent, os.W_OK):
        raise ValueError(f"Cannot write to {path}: the folder {path.parent} is read-only.")


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file completely or not at all; "-" is standard output."""
    if str(path) == STANDARD_OUTPUT:
        sys.stdout.flush()
        if sys.stdout.isatty():  # cells of a table must not control the terminal
            content = visible(content.decode(errors="replace"), but="\n\t").encode()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    check_output(path)
    place = Path(path).resolve()  # the file behind a link, not the link
    if place.exists() and not place.is_file():  # a device or a pipe must not be replaced by a file
        with open(place, "wb", buffering=0) as file:
            file.write(content)
        return
    write_whole(place, content)


def visible(text: str, *, but: str = "") -> str:
    r"""Escape control characters, except those in ``but``, so that text cannot control a terminal.

    Examples
    --------
    >>> from kernelwright.tables.writing import visible
    >>> print(visible("\x1b[2Jage"))
    \x1b[2Jage
    """
    return text.translate({code: spelled for code, spelled in COMMANDS.items() if chr(code) not in but})


def write_table(frame: Any, path: str | Path) -> None:
    """Write a data frame as Parquet, CSV or TSV, compressed or not, according to the file name.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> from kernelwright.tables import read_table, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ages.tsv.gz"
    ...     write_table(pd.DataFrame({"age": [36, 41]}), file)
    ...     read_table(file).frame["age"].tolist()
    ['36', '41']
    """
    name = str(path).lower()
    if name.endswith((".parquet", ".pq")):
        write_bytes(path, _parquet(frame))
        return
    packing = next((suffix for suffix in COMPRESSED if name.endswith(suffix)), "")
    inner = name.removesuffix(packing)
    text = frame.to_csv(index=False, sep="\t" if inner.endswith((".tsv", ".tab")) else ",", lineterminator="\n")
    write_bytes(path, _packed(text.encode(), packing, Path(path).name.removesuffix(packing)))


@contextmanager
def written_in_parts(path: str | Path) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends a data frame to a file, which appears once all are written.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> from kernelwright.tables.writing import written_in_parts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_in_parts(Path(folder) / "ages.csv") as write:
    ...         for age in (36, 41):
    ...             write(pd.DataFrame({"age": [age]}))
    ...     (Path(folder) / "ages.csv").read_text().split()
    ['age', '36', '41']
    """
    name = str(path).lower()
    packing = next((suffix for suffix in COMPRESSED if name.endswith(suffix)), "")
    if packing not in STREAMED:
        raise ValueError(f"Many rows are written in parts, which {packing} files do not allow. Use .gz, .bz2 or .xz.")
    if str(path) == STANDARD_OUTPUT:
        yield _text_writer(lambda content: write_bytes(path, content), ",")
        return
    check_output(path)
    with whole_file(Path(path).resolve()) as file:
        if name.endswith((".parquet", ".pq")):
            with _ParquetWriter(file) as write:
                yield write
        else:
            inner = name.removesuffix(packing)
            with STREAMED[packing](file) as packed:
                yield _text_writer(packed.write, "\t" if inner.endswith((".tsv", ".tab")) else ",")


def _text_writer(write: Callable[[bytes], Any], separator: str) -> Callable[[Any], None]:
    parts = itertools.count()

    def append(frame: Any) -> None:
        write(frame.to_csv(index=False, sep=separator, lineterminator="\n", header=next(parts) == 0).encode())

    return append


class _ParquetWriter:
    """Appends data frames to a Parquet file, all with the columns of the first."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise ValueError(f"The output is Parquet. {PARQUET_EXTRA}") from None
        self.arrow, self.parquet, self.file = pyarrow, parquet, file
        self.writer: Any = None

    def __call__(self, frame: Any) -> None:
        schema = None if self.writer is None else self.writer.schema
        try:
            table = self.arrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
        except self.arrow.ArrowException as error:
            raise ValueError(f"A column changes its type among the rows, so write text (.csv): {error}") from None
        if self.writer is None:
            self.writer = self.parquet.ParquetWriter(self.file, table.schema)
        self.writer.write_table(table)

    def __enter__(self) -> _ParquetWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self.writer is not None:
            self.writer.close()


def safe_for_spreadsheets(frame: Any) -> Any:
    """Return a copy of a data frame in which a spreadsheet finds no formula, neither in cells nor in column names.

    Text that begins like a formula gets an apostrophe, which tells spreadsheets that it is text. Numbers are left
    alone, even if they are stored as text.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables.writing import safe_for_spreadsheets
    >>> safe_for_spreadsheets(pd.DataFrame({"name": ["=1+1", "Ada"], "size": ["-1.5", "2"]})).to_numpy().tolist()
    [["'=1+1", '-1.5'], ['Ada', '2']]
    """
    safe = frame.copy()
    for place in range(safe.shape[1]):
        column = safe.iloc[:, place]
        if column.dtype.kind not in "biufcmM":
            safe.isetitem(place, column.astype(object).map(_as_text, na_action="ignore"))
    return safe.set_axis([_as_text(name) for name in safe.columns], axis=1)


def _as_text(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _parquet(frame: Any) -> bytes:
    buffer = io.BytesIO()
    try:
        frame.to_parquet(buffer, index=False)
    except ImportError:
        raise ValueError(f"The output is Parquet. {PARQUET_EXTRA}") from None
    return buffer.getvalue()


def _packed(content: bytes, packing: str, name: str) -> bytes:
    if packing == ".gz":
        return gzip.compress(content, mtime=0)  # without a time stamp, so that the same table gives the same file
    if packing == ".bz2":
        return bz2.compress(content)
    if packing == ".xz":
        return lzma.compress(content)
    if packing == ".zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as folder:
            folder.writestr(name, content)
        return buffer.getvalue()
    if packing == ".zst":
        try:
            import pyarrow
        except ImportError:
            raise ValueError(f"The output is compressed with zstd. {PARQUET_EXTRA}") from None
        return pyarrow.compress(content, codec="zstd", asbytes=True)
    return content
