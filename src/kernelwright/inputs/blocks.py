"""Rows in blocks, mapped and reduced one block at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Block", "Chunks", "SlicedRows"]


GATHERED_ROWS, GATHERED_BYTES = 50_000, 2**29  # the most that is gathered in the calling process
SLICE_ROWS = 65_536


class Block(NamedTuple):
    """Checked rows: numbers, the class index of each row, and non-zero weights."""

    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


class Chunks:
    """Rows in chunks, each a :class:`Block`."""

    lengths: Sequence[int]
    row_bytes: int

    def __len__(self) -> int:
        return int(sum(self.lengths))

    @property
    def n_gathered(self) -> int:
        """The number of rows that are enough to learn a kernel, and few enough for one process."""
        return max(1, min(GATHERED_ROWS, GATHERED_BYTES // max(self.row_bytes, 1)))

    def map_reduce(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Sum ``function(block, *arguments)`` over all chunks."""
        raise NotImplementedError

    def take(self, rows: np.ndarray) -> Block:
        """Return some of the rows, by their indices in increasing order."""
        raise NotImplementedError

    def take_and_reduce(self, rows: np.ndarray, function: Callable[..., Any], *arguments: Any) -> tuple[Block, Any]:
        """Return some of the rows and a sum over all chunks, reading every chunk once."""
        return self.take(rows), self.map_reduce(function, *arguments)

    def some_rows(self, random: np.random.Generator) -> np.ndarray:
        """Return the indices of random rows. They depend on the number of rows, not on the chunks."""
        n, size = len(self), self.n_gathered
        return np.arange(n) if n <= size else np.sort(random.choice(n, size, replace=False, shuffle=False))


class SlicedRows(Chunks):
    """Rows of arrays in memory, or memory-mapped."""

    def __init__(self, rows: Block) -> None:
        self.rows, n = rows, len(rows.labels)
        self.slices = [slice(start, min(start + SLICE_ROWS, n)) for start in range(0, n, SLICE_ROWS)]
        self.lengths = [part.stop - part.start for part in self.slices]
        self.row_bytes = rows.X[:1].nbytes

    def map_reduce(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: D102
        blocks = (Block(*(column[part] for column in self.rows)) for part in self.slices)
        return reduce(operator.add, (function(block, *arguments) for block in blocks))

    def take(self, rows: np.ndarray) -> Block:  # noqa: D102
        return Block(*(column[rows] for column in self.rows))


def _joined(blocks: Iterable[Block]) -> Block:
    return Block(*map(np.concatenate, zip(*blocks, strict=True)))


def _some(block: Block, rows: np.ndarray) -> Block:
    return Block(*(column[rows] for column in block))
