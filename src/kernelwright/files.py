"""Files that are never seen half-written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["whole_file", "write_whole"]


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes its place at ``path`` once all is written.

    If writing fails, nothing is left of it, and a file that was at ``path`` before is still there.
    """
    temporary = Path(path).parent / f".{secrets.token_hex(8)}.part"  # the same folder, so the same disk
    try:
        with open(temporary, "xb") as file:  # not a file of `tempfile`, which others may not read
            yield file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it is never seen half-written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelwright.files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "page.html", b"all of it")
    ...     [file.name for file in Path(folder).iterdir()]
    ['page.html']
    """
    with whole_file(path) as file:
        file.write(content)
