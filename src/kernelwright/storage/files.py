"""Atomic file writes: no process ever sees a half-written file, even if the writer is killed."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: an open file cannot be removed there, so no lock is needed
    fcntl = None  # type: ignore[assignment]

__all__ = ["locked_folder", "whole_file", "write_whole"]

NAMED = 50  # characters of the file name repeated in its temporary name: the length of names is limited


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file for writing that replaces ``path`` once it is complete and on disk.

    If writing fails, the temporary file is removed, and a file already at ``path`` is unchanged. The permissions of an
    existing file are kept. A killed process leaves a hidden ``.NAME.*.part`` file behind, which the next process to
    write the same file removes.
    """
    path = Path(path)
    path = path.resolve() if path.is_symlink() else path  # write to the target of a link, do not replace the link
    if path.exists() and not path.is_file():  # a device or a pipe must not be replaced by a file
        raise OSError(errno.EISDIR if path.is_dir() else errno.EINVAL, "it is not a regular file", str(path))
    _remove_stale(path)
    temporary = _part(path)
    try:
        with _locked(temporary) as file:
            if path.exists():
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())  # otherwise a power cut could leave the new name without content
            if fcntl is not None:  # while still locked, so that no other process treats it as stale
                os.replace(temporary, path)
        if fcntl is None:  # Windows cannot rename an open file
            os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # a read-only folder has nothing to remove
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and str(error.filename) in ("None", str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from error  # name the file that the user knows
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelwright.storage.files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "page.html", b"all of it")
    ...     [file.name for file in Path(folder).iterdir()]
    ['page.html']
    """
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Let one process at a time work in a folder, where the system supports locks; a lock ends with its process."""
    if fcntl is None:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # the file system has no locks
            fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def _prefix(path: Path) -> str:
    return f".{path.name[-NAMED:]}."


def _part(path: Path) -> Path:
    """Return a new name in the folder of ``path``, hence on the same disk."""
    return path.parent / f"{_prefix(path)}{secrets.token_hex(8)}.part"


def _locked(temporary: Path) -> BinaryIO:
    """Create a new file that is locked while it is open."""
    while True:
        # Not a file of `tempfile`, which other users cannot read. The caller closes it.
        file = open(temporary, "xb")  # noqa: SIM115
        if fcntl is None:
            return file
        with suppress(OSError):  # no locks on this file system, so no process treats the file as stale
            fcntl.flock(file, fcntl.LOCK_EX)
        if temporary.exists():
            return file
        file.close()  # another process treated it as stale before it was locked: try again


def _remove_stale(path: Path) -> None:
    """Remove temporary files that killed processes left behind: those that no process has locked."""
    with suppress(OSError):
        for each in list(os.scandir(path.parent)):
            if _is_part(each.name, _prefix(path)):
                with suppress(OSError):  # the file is in use
                    _remove_unlocked(each.path)


def _remove_unlocked(temporary: str) -> None:
    if fcntl is None:
        os.unlink(temporary)
        return
    with open(temporary, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), os.stat(temporary)):  # not a new file of the same name
            os.unlink(temporary)


def _is_part(name: str, prefix: str) -> bool:
    token = name.removeprefix(prefix).removesuffix(".part")
    return name == f"{prefix}{token}.part" and len(token) == 16 and set(token) <= set("0123456789abcdef")
