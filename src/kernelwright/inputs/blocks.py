"""Rows in blocks, mapped and reduced one block at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Block", "Chunks", "SlicedRows"]


GATHERED_ROWS, GATHERED_BYTES = 50_000, 2**29  # the most that comes to where the fit was called
SLICE_ROWS = 65_536


class Block(NamedTuple):
    """Checked rows: numbers, the number of each row's class, and weights that are not zero."""

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
        """How many rows are enough to learn a kernel from, and small enough for one place."""
        return max(1, min(GATHERED_ROWS, GATHERED_BYTES // max(self.row_bytes, 1)))

    def map_reduce(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function(block, *arguments)`` of every chunk, added up."""
        raise NotImplementedError

    def take(self, rows: np.ndarray) -> Block:
        """Some of the rows, by their numbers in rising order."""
        raise NotImplementedError

    def take_and_reduce(self, rows: np.ndarray, function: Callable[..., Any], *arguments: Any) -> tuple[Block, Any]:
        """Both, reading every chunk once."""
        return self.take(rows), self.map_reduce(function, *arguments)

    def some_rows(self, random: np.random.Generator) -> np.ndarray:
        """Numbers of random rows. Which ones depends on how many there are, not on how they are cut into chunks."""
        n, size = len(self), self.n_gathered
        return np.arange(n) if n <= size else np.sort(random.choice(n, size, replace=False, shuffle=False))


class SlicedRows(Chunks):
    """Arrays in memory, or mapped into it."""

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
