"""Files that are never seen half-written, by whichever of several processes, and however one of them ends."""

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
except ImportError:  # Windows: an open file cannot be removed there, which is all that is needed
    fcntl = None  # type: ignore[assignment]

__all__ = ["locked_folder", "whole_file", "write_whole"]

NAMED = 50  # letters of a file's name that the name of its temporary file repeats: names may not be long


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write to that takes its place at ``path`` once all is written and on the disk.

    If writing fails, nothing is left of it, and a file that was at ``path`` before is still there; those who may read
    it are the same afterwards. A process that is killed outright leaves a hidden ``.NAME.*.part`` behind, which the
    next one to write the same file removes.
    """
    path = Path(path)
    path = path.resolve() if path.is_symlink() else path  # the file behind a link, not the link
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
            os.fsync(file.fileno())  # or a power cut could leave the new name with no content
            if fcntl is not None:  # while it is still locked, so that nobody takes it for stale
                os.replace(temporary, path)
        if fcntl is None:  # Windows moves no open file
            os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # a folder that is read-only has nothing to remove
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and str(error.filename) in ("None", str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from error  # the name that the user knows
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it is never seen half-written.

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
    """One process at a time, where the system has such locks; that of a process that ends is free again."""
    if fcntl is None:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def _prefix(path: Path) -> str:
    return f".{path.name[-NAMED:]}."


def _part(path: Path) -> Path:
    """Return a new name in the folder of ``path``, so on the same disk."""
    return path.parent / f"{_prefix(path)}{secrets.token_hex(8)}.part"


def _locked(temporary: Path) -> BinaryIO:
    """Open a new file that is locked for as long as it is open."""
    while True:
        # Not a file of `tempfile`, which others may not read; the caller closes it.
        file = open(temporary, "xb")  # noqa: SIM115
        if fcntl is None:
            return file
        with suppress(OSError):  # a file system without locks: nobody there can take it for stale
            fcntl.flock(file, fcntl.LOCK_EX)
        if temporary.exists():
            return file
        file.close()  # another process took it for stale before it was locked: once more


def _remove_stale(path: Path) -> None:
    """Remove what killed processes left of this file: temporary files that no process has locked."""
    with suppress(OSError):
        for each in list(os.scandir(path.parent)):
            if _is_part(each.name, _prefix(path)):
                with suppress(OSError):  # it is in use
                    _remove_unlocked(each.path)


def _remove_unlocked(temporary: str) -> None:
    if fcntl is None:
        os.unlink(temporary)
        return
    with open(temporary, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), os.stat(temporary)):  # not a new one of the same name
            os.unlink(temporary)


def _is_part(name: str, prefix: str) -> bool:
    token = name.removeprefix(prefix).removesuffix(".part")
    return name == f"{prefix}{token}.part" and len(token) == 16 and set(token) <= set("0123456789abcdef")
