"""The file format: a zip archive with a manifest, a JSON document and the bytes of arrays.

::

    manifest.json   the file type, the versions that wrote it, a digest of everything
    document.json   the objects, in a table
    arrays/0 ...    raw numbers, in the order in which the document refers to them

Nothing is compressed: the numbers of a fitted model hardly shrink, arrays are read directly into their memory, and an
uncompressed archive cannot unpack to more than its own size.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import kernelwright
from kernelwright.errors import ModelFileError

__all__ = ["LARGEST_DOCUMENT", "VERSION", "Archive", "write_archive"]

FORMAT = "kernelwright model"
VERSION = 2  # of the archive and the document; classes have versions of their own, see storage/saved.py
OLDEST = 2  # format 1 was never released
MANIFEST, DOCUMENT = "manifest.json", "document.json"
LARGEST_MANIFEST, LARGEST_DOCUMENT = 2**16, 2**26  # bytes; parsed JSON takes far more memory than its text
MOST_OBJECTS, MOST_VALUES = 2**19, 2**22  # braces and commas of the document: they measure the cost of reading it
CHUNK = 2**20

DAMAGED = "copy it again from its source, or save the model again"
NOT_OURS = "expected a file written by kernelwright.save"


def write_archive(file: BinaryIO, document: dict[str, Any], arrays: Sequence[memoryview]) -> None:
    """Write a document and the bytes that it refers to."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    if too_much := _too_much(text):
        raise ValueError(
            f"The model consists of too many single objects: their description takes {too_much}. Large lists of "
            "numbers or strings should be numpy arrays."
        )
    manifest = {"format": FORMAT, "version": VERSION, "byteorder": sys.byteorder, **_versions()}
    digest = _Digest(manifest)
    with _new_zip(file) as archive:
        for name, content in [(DOCUMENT, memoryview(text)), *((_name(n), array) for n, array in enumerate(arrays))]:
            digest.start(content.nbytes)
            digest.add(content)
            _write_member(archive, name, content)
        manifest["digest"] = digest.text()
        _write_member(archive, MANIFEST, memoryview(json.dumps(manifest, indent=1).encode()))


def _versions() -> dict[str, str]:
    # Imported here, because files can be checked and rejected without them.
    import numpy as np
    import sklearn
    import torch

    return {
        "kernelwright": kernelwright.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "scikit-learn": sklearn.__version__,
        "torch": str(torch.__version__),
    }


def _too_much(document: bytes) -> str:
    """Return what a document has too much of, or "". It counts characters, because parsing may take very long."""
    for what, found, most in (
        ("bytes", len(document), LARGEST_DOCUMENT),
        ("objects", document.count(b"{") + document.count(b"["), MOST_OBJECTS),
        ("values", document.count(b","), MOST_VALUES),
    ):
        if found > most:
            return f"{found} {what}, where at most {most} are allowed"
    return ""


@contextmanager
def _new_zip(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open an archive for writing. After an error it is not closed, because closing would raise another error."""
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
    try:
        yield archive
        archive.close()
    except BaseException:
        archive.fp = None  # type: ignore[assignment]
        raise


def _name(number: int) -> str:
    return f"arrays/{number}"


def _write_member(archive: zipfile.ZipFile, name: str, content: memoryview) -> None:
    info = zipfile.ZipInfo(name)  # dated 1980, so that the same model gives the same bytes
    info.create_system, info.external_attr, info.file_size = 3, 0o644 << 16, content.nbytes
    with archive.open(info, "w") as member:
        member.write(content)


class _Digest:
    """A checksum of the manifest and of every part with its length."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        told = {name: value for name, value in manifest.items() if name != "digest"}
        self._sum = hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=32)

    def start(self, length: int) -> None:
        """Begin a part of ``length`` bytes."""
        self._sum.update(length.to_bytes(8, "little"))

    def add(self, content: memoryview | bytes) -> None:
        """Add some bytes of the part."""
        self._sum.update(content)

    def text(self) -> str:
        return self._sum.hexdigest()


class Archive:
    """A model file opened for reading: first the manifest, then the document, then the arrays in order.

    Every problem is a ``ModelFileError``, with a message that follows "Cannot load FILE: ".
    """

    def __init__(self, file: BinaryIO) -> None:
        self._zip = _open_zip(file)
        self._members = {info.filename: info for info in self._zip.infolist()}
        if MANIFEST not in self._members:
            raise ModelFileError(f"it is a zip archive of something else; {NOT_OURS}")
        file_size = file.seek(0, 2)
        self._check_storage(file_size)
        self.manifest = self._json(MANIFEST, LARGEST_MANIFEST)
        self._check_manifest()
        self._check_names()
        self._digest = _Digest(self.manifest)
        self._n_read = 0

    def _check_storage(self, file_size: int) -> None:
        """Check that members are uncompressed and do not overlap, so nothing can unpack to more than the file."""
        infos = self._zip.infolist()
        if len(infos) != len(self._members):
            raise ModelFileError(f"two of its parts have the same name; {NOT_OURS}")
        plain = all(i.compress_type == zipfile.ZIP_STORED and i.compress_size == i.file_size for i in infos)
        if not plain or any(info.flag_bits & 1 for info in infos):
            raise ModelFileError(f"its parts are compressed or encrypted, unlike those of a model file; {NOT_OURS}")
        if sum(info.file_size for info in infos) > file_size:
            raise ModelFileError(f"its parts claim to be larger than the file; {DAMAGED}")

    def _check_manifest(self) -> None:
        version = self.manifest.get("version")
        if self.manifest.get("format") != FORMAT or type(version) is not int or version < 1:
            raise ModelFileError(f"its manifest is not that of a model; {NOT_OURS}")
        if version > VERSION:
            raise ModelFileError(
                f"it was made by a newer kernelwright (format {version}); this version reads formats up to {VERSION}; "
                "upgrade kernelwright"
            )
        if version < OLDEST:
            raise ModelFileError(
                f"it has format {version}, from before the first release of kernelwright, no longer supported; "
                "fit the model again and save it"
            )
        if self.manifest.get("byteorder") != sys.byteorder:
            raise ModelFileError(
                f"its byte order is {self.manifest.get('byteorder')!a}, but this machine uses {sys.byteorder!a}; save "
                "the model on a machine with the same byte order"
            )

    def _check_names(self) -> None:
        self._n_arrays = len(self._members) - 2
        expected = {MANIFEST, DOCUMENT, *(_name(number) for number in range(self._n_arrays))}
        if unknown := sorted(self._members.keys() - expected):
            raise ModelFileError(f"it has a part named {unknown[0]!a}, which no model file has; {NOT_OURS}")

    def document(self) -> dict[str, Any]:
        """Read the description of the objects."""
        return self._json(DOCUMENT, LARGEST_DOCUMENT, self._digest)

    def _json(self, name: str, largest: int, digest: _Digest | None = None) -> dict[str, Any]:
        size = self._members[name].file_size
        if size > largest:
            raise ModelFileError(f"its {name} takes {size} bytes, where at most {largest} are allowed; {NOT_OURS}")
        content = self._zip.read(name)
        if too_much := _too_much(content):
            raise ModelFileError(f"its {name} has {too_much}; {NOT_OURS}")
        if digest is not None:
            digest.start(size)
            digest.add(content)
        parsed = json.loads(content, parse_constant=_refuse_constant)
        if not isinstance(parsed, dict):
            raise ModelFileError(f"its {name} is not an object of JSON; {NOT_OURS}")
        return parsed

    def size(self, number: Any) -> int:
        """Return the size in bytes of the next array. Arrays must be read once and in order."""
        if type(number) is not int or number != self._n_read or number >= self._n_arrays:
            raise ModelFileError(f"its document asks for array {number!a} out of turn; {NOT_OURS}")
        return self._members[_name(number)].file_size

    def read_into(self, number: int, place: memoryview) -> None:
        """Read an array directly into its memory."""
        self._digest.start(self.size(number))
        with self._zip.open(_name(number)) as member:
            for start in range(0, len(place), CHUNK):
                chunk = member.read(CHUNK)
                place[start : start + CHUNK] = chunk
                self._digest.add(chunk)
        self._n_read += 1

    def check_digest(self) -> None:
        """Check at the end that everything was read, and that the digest is correct."""
        if self._n_read != self._n_arrays:
            raise ModelFileError(f"it has arrays that its document does not refer to; {NOT_OURS}")
        if self._digest.text() != self.manifest.get("digest"):
            raise ModelFileError(f"its content is not what was written (the digest differs); {DAMAGED}")


def _open_zip(file: BinaryIO) -> zipfile.ZipFile:
    start = file.read(4)
    file.seek(0)
    if not start:
        raise ModelFileError(f"it is empty; {NOT_OURS}")
    try:
        return zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        if start == b"PK\x03\x04":
            raise ModelFileError(f"it is cut off or damaged ({error}); {DAMAGED}") from error
        raise ModelFileError(f"it is not a model file; {NOT_OURS}") from error


def _refuse_constant(word: str) -> None:
    raise ModelFileError(f"its JSON contains {word}, which is not valid JSON; {NOT_OURS}")
