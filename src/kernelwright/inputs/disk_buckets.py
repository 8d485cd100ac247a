"""Rows brought together in buckets on disk: every bucket is a file, which is read when the bucket is solved."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from kernelwright.inputs.blocks import Block, Gathered
from kernelwright.inputs.rows_done import RowsDone
from kernelwright.numerics.memory import in_words
from kernelwright.numerics.threads import on_one_thread
from kernelwright.storage.fit_folder import FitFolder, KeptResults

__all__ = ["DiskBuckets"]

PROBED = 32  # rows by whose routes and solution a kernel is recognised


class DiskBuckets(Gathered):
    """Buckets of rows in the files of a folder.

    A row is written as numbers: its index among all rows, its weight, its label or targets, and its columns.

    Parameters
    ----------
    folder : FitFolder or None
        Where the rows and all results are kept, so that a killed fit goes on; None for a temporary folder.
    probe : Block
        A few rows, by which it is recognised whether rows were routed in the same way.
    """

    def __init__(self, folder: FitFolder | None, probe: Block) -> None:
        self.folder, self.probe = folder, probe
        self._calls, self._example = 0, None
        self.path = Path(tempfile.mkdtemp(prefix="kernelwright-")) if folder is None else folder.path
        if folder is None:
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self.sizes = np.zeros(0, dtype=np.int64)

    @classmethod
    def of(
        cls,
        blocks: Iterable[Block],
        n_rows: int,
        route: Callable[[Block], np.ndarray],
        n_buckets: int,
        probe: Block,
        folder: FitFolder | None,
    ) -> DiskBuckets:
        """Route the rows of blocks to files; if this was done before, in the same way, nothing is read."""
        found, routed = cls(folder, probe), route(probe)
        if folder is not None and (sizes := folder.routed(routed)) is not None:
            found.sizes = sizes
            return found
        if folder is not None:
            folder.clear()
        found._check_disk(n_rows * routed.shape[1])
        found.sizes = np.zeros(n_buckets, dtype=np.int64)
        done = RowsDone("rows routed to the buckets of trees", n_rows)
        start = 0
        for block in blocks:
            found._write(on_one_thread(route, block), _as_numbers(block, start))
            start += len(block.labels)
            done.add(len(block.labels))
        if folder is not None:
            folder.keep_routed(routed, found.sizes)
        return found

    def _check_disk(self, n_copies: int) -> None:
        needed, free = 8 * n_copies * self._width, shutil.disk_usage(self.path).free
        if needed > 0.95 * free:
            raise OSError(
                f"The rows need {in_words(needed)} in {self.path} until they are solved, and {in_words(free)} are free "
                "there. Name a folder on a larger disk as the checkpoint, or set TMPDIR."
            )

    @property
    def _width(self) -> int:
        return 2 + int(np.prod(self.probe.labels.shape[1:])) + self.probe.X.shape[1]

    def _file(self, bucket: int) -> Path:
        return self.path / f"bucket-{bucket:06d}.rows"

    def _write(self, buckets: np.ndarray, rows: np.ndarray) -> None:
        """Append rows to the files of their buckets."""
        for column in buckets.T:
            order = column.argsort(kind="stable")
            names, starts = np.unique(column[order], return_index=True)
            for name, own in zip(names.tolist(), np.split(order, starts[1:]), strict=True):
                with open(self._file(name), "ab") as file:
                    file.write(rows[own].tobytes())
                self.sizes[name] += len(own)

    def _read(self, bucket: int) -> tuple[Block, np.ndarray]:
        numbers = np.fromfile(self._file(bucket)).reshape(-1, self._width)
        if len(numbers) != self.sizes[bucket]:
            raise ValueError(f"{self._file(bucket)} was changed during the fit. Remove the folder, and fit again.")
        like, end = self.probe.labels, self._width - self.probe.X.shape[1]
        labels = numbers[:, 2:end].reshape(len(numbers), *like.shape[1:]).astype(like.dtype)
        X = np.ascontiguousarray(numbers[:, end:])
        return Block(X, labels, numbers[:, 1].copy()), numbers[:, 0].astype(np.int64)

    def map(  # noqa: D102
        self, function: Callable[..., Any], given: Callable[[int], Any] | None = None
    ) -> Iterator[tuple[int, Any]]:
        kept = self._kept_results(function)
        for number in np.flatnonzero(self.sizes).tolist():
            more = None if given is None else given(number)
            found = None if kept is None else kept.read(number, more)
            if found is None:
                found = function(number, *self._read(number), more)
                if kept is not None:
                    kept.write(number, found, more)
            yield number, found

    def _kept_results(self, function: Callable[..., Any]) -> KeptResults | None:
        """Return the results of the same function in the folder, of the first call, the second, and so on."""
        if self.folder is None:
            return None
        if self._calls == 0:  # later functions follow from the results of the first
            self._example = function(0, self.probe, np.arange(len(self.probe.labels)), None)
        self._calls += 1
        return self.folder.results(self._calls, self._example, get_type_hints(function)["return"])


def _as_numbers(block: Block, start: int) -> np.ndarray:
    n = len(block.labels)
    return np.column_stack([np.arange(start, start + n), block.weights, block.labels.reshape(n, -1), block.X])
