"""A folder in which a long fit keeps what it has done, so that it goes on after it was killed."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.storage.files import fcntl, whole_file, write_whole

__all__ = ["FitFolder", "KeptResults"]

ABOUT, ROUTED = "fit.json", "routed.npz"
SAME = 1e-6  # relative difference of results up to which a function is the same
OURS = (ABOUT, ROUTED, "bucket-", "solved-", ".fit.json.", ".routed.npz.", ".solved-")


class FitFolder:
    """The checkpoint of a fit.

    Every file is written completely or not at all, and the rows of buckets count only once all of them are written.
    ``fit.json`` says which fit it belongs to. The folder is locked while a process uses it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"The checkpoint {path} is a file. Give the name of a folder.")
        self.path.mkdir(parents=True, exist_ok=True)
        strange = [each.name for each in self.path.iterdir() if not each.name.startswith(OURS)]
        if strange:
            raise ValueError(
                f"The folder {path} holds other files ({strange[0]}), so it cannot be a checkpoint. Name an empty or a "
                "new folder."
            )
        self._lock = self._locked()

    def _locked(self) -> int | None:
        if fcntl is None:
            return None
        place = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(place)
            raise ValueError(
                f"Another process uses the checkpoint {self.path}. Wait for it, or name another folder."
            ) from None
        except OSError:  # the file system has no locks
            pass
        return place

    def close(self) -> None:
        """Let other processes use the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> FitFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # which fit it is ---------------------------------------------------------------------------------------

    def _about(self) -> dict[str, Any] | None:
        with suppress(FileNotFoundError):
            try:
                found = json.loads((self.path / ABOUT).read_text())
                if {"job", "seed"} <= set(found):
                    return found
            except (ValueError, TypeError):
                pass
            raise ValueError(f"{self.path / ABOUT} is not that of a checkpoint. Remove the folder, or name another.")
        return None

    def seed(self, fresh: int) -> int:
        """Return the seed of the fit that the folder belongs to, or ``fresh`` for a new one."""
        found = self._about()
        return fresh if found is None else int(found["seed"])

    def claim(self, job: str, seed: int) -> None:
        """Note which fit the folder belongs to; raise ValueError if it belongs to another one."""
        found = self._about()
        if found is None:
            write_whole(self.path / ABOUT, json.dumps({"job": job, "seed": seed}).encode())
        elif found["job"] != job:
            raise ValueError(
                f"The checkpoint {self.path} belongs to another fit: the data, the settings or the version were "
                "different. Remove the folder, or name another one."
            )

    # rows --------------------------------------------------------------------------------------------------

    def routed(self, routes: np.ndarray) -> np.ndarray | None:
        """Return the sizes of all buckets, if all rows were written, and some rows had these routes."""
        found = _arrays(self.path / ROUTED)
        return found["sizes"] if found is not None and np.array_equal(found["routes"], routes) else None

    def keep_routed(self, routes: np.ndarray, sizes: np.ndarray) -> None:
        """Note that all rows are in the files of their buckets."""
        for each in self.path.glob("bucket-*.rows"):
            _sync(each)
        _write_arrays(self.path / ROUTED, {"routes": routes, "sizes": sizes})

    def clear(self) -> None:
        """Remove rows and results."""
        (self.path / ROUTED).unlink(missing_ok=True)
        for each in [*self.path.glob("bucket-*"), *self.path.glob("solved-*")]:
            each.unlink()

    def results(self, call: int, example: Any, kind: type) -> KeptResults:
        """Return the kept results of a function: records of arrays of this kind.

        ``example`` is a result for some fixed rows, by which it is recognised that the function is the same.
        """
        return KeptResults(self.path, call, _digest(example), kind)


@dataclass(frozen=True, eq=False)
class KeptResults:
    """The results of a function for each bucket; they count only for the same function and the same argument.

    A run that goes on may round differently from the one that was killed, so digests need only be nearly equal.
    """

    path: Path
    call: int
    example: np.ndarray
    kind: type

    def _file(self, number: int) -> Path:
        return self.path / f"solved-{self.call}-{number:06d}.npz"

    def read(self, number: int, given: Any) -> Any | None:
        """Return the result of a bucket, or None if there is none."""
        found = _arrays(self._file(number))
        if found is None or not _alike(found.pop("digest", None), self._digest_with(given)):
            return None
        return self.kind(**found)

    def write(self, number: int, result: Any, given: Any) -> None:
        """Keep the result of a bucket."""
        _write_arrays(self._file(number), _parts(result) | {"digest": self._digest_with(given)})

    def _digest_with(self, given: Any) -> np.ndarray:
        return self.example if given is None else np.vstack([self.example, _digest(given)])


def _digest(value: Any) -> np.ndarray:
    """Describe an array, or the arrays of a record, by a row each: length, mean size, and a sum with fixed weights."""
    arrays = _parts(value).values() if is_dataclass(value) else [np.asarray(value)]
    rows = []
    for array in arrays:
        numbers = np.nan_to_num(np.asarray(array, dtype=np.float64).ravel(), posinf=1.0, neginf=-1.0)
        weights = np.cos(np.arange(len(numbers)))
        rows.append((len(numbers), np.abs(numbers).sum() / max(len(numbers), 1), numbers @ weights))
    return np.array(rows)


def _alike(one: np.ndarray | None, other: np.ndarray) -> bool:
    """Return whether two digests differ by rounding only."""
    if one is None or one.shape != other.shape or not np.array_equal(one[:, 0], other[:, 0]):
        return False
    total = other[:, 0] * other[:, 1]
    return bool((np.abs(one[:, 1:] - other[:, 1:]) <= SAME * np.column_stack([other[:, 1], total])).all())


def _parts(record: Any) -> dict[str, np.ndarray]:
    return {field.name: np.asarray(getattr(record, field.name)) for field in fields(record)}


def _arrays(path: Path) -> dict[str, np.ndarray] | None:
    """Return the arrays in a file, or None if there is none; a damaged one is as good as none."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return dict(found)
    except (OSError, ValueError, EOFError, KeyError):
        return None


def _write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with whole_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
