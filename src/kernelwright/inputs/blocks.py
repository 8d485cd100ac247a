"""Rows in blocks, mapped and reduced one block at a time."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:  # the command line counts rows before it imports torch
    from kernelwright.inputs.layout import TableLayout

__all__ = ["Block", "Chunks", "Gathered", "SlicedRows", "SortedRows", "gathered_rows"]


GATHERED_ROWS, GATHERED_BYTES = 50_000, 2**29  # the most that is gathered in the calling process
SLICE_ROWS = 65_536


def gathered_rows(row_bytes: int) -> int:
    """Return the most rows of this size that are gathered in the calling process."""
    return max(1, min(GATHERED_ROWS, GATHERED_BYTES // max(row_bytes, 1)))


class Block(NamedTuple):
    """Checked rows: numbers, the class index of each row (or numbers to predict), and non-zero weights."""

    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


class Gathered(ABC):
    """Rows of chunks, brought together in buckets.

    Each tree has its own buckets, so a row is in as many buckets as there are trees.
    """

    sizes: np.ndarray  # the number of rows in each bucket

    @abstractmethod
    def map(self, function: Callable[..., Any], given: Callable[[int], Any] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the number of each bucket that has rows, with ``function(number, block, rows, given(number))``.

        They may come in any order. ``rows`` are the indices of the rows among the rows of all chunks, in increasing
        order. ``given`` is called where the results are wanted; without it the last argument is None.
        """


class Chunks:
    """Rows in chunks, each a :class:`Block`."""

    lengths: Sequence[int]
    row_bytes: int
    layout: TableLayout | None = None  # what the columns stand for, if they are codes

    def __len__(self) -> int:
        return int(sum(self.lengths))

    @property
    def n_gathered(self) -> int:
        """The number of rows that are enough to learn a kernel, and few enough for one process."""
        return gathered_rows(self.row_bytes)

    def map_reduce(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Sum ``function(block, *arguments)`` over all chunks."""
        raise NotImplementedError

    def reduce_targets(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Sum ``function(labels, weights, *arguments)`` over all chunks; subclasses need not read the inputs."""
        return self.map_reduce(_of_targets, function, *arguments)

    def take(self, rows: np.ndarray) -> Block:
        """Return some of the rows, by their indices in increasing order."""
        raise NotImplementedError

    def gathered(self, route: Callable[[Block], np.ndarray], n_buckets: int) -> Gathered:
        """Bring rows together that are routed to the same bucket, reading every chunk once.

        ``route`` returns the buckets of the rows of a block, a column for each tree. No two trees share a bucket.
        """
        raise NotImplementedError

    def take_and_reduce(self, rows: np.ndarray, function: Callable[..., Any], *arguments: Any) -> tuple[Block, Any]:
        """Return some of the rows and a sum over all chunks, reading every chunk once."""
        return self.take(rows), self.map_reduce(function, *arguments)

    def some_rows(self, random: np.random.Generator) -> np.ndarray:
        """Return the indices of random rows. They depend on the number of rows, not on the chunks."""
        n, size = len(self), self.n_gathered
        return np.arange(n) if n <= size else np.sort(random.choice(n, size, replace=False, shuffle=False))


class SortedRows(Gathered):
    """Buckets of rows in memory: indices in the order of their buckets."""

    def __init__(self, rows: Block, buckets: np.ndarray, n_buckets: int) -> None:
        self.rows = rows
        self.order = buckets.T.reshape(-1).argsort(kind="stable") % len(buckets)
        self.sizes = np.bincount(buckets.reshape(-1), minlength=n_buckets)

    def map(  # noqa: D102
        self, function: Callable[..., Any], given: Callable[[int], Any] | None = None
    ) -> Iterator[tuple[int, Any]]:
        for number, rows in enumerate(np.split(self.order, self.sizes.cumsum()[:-1])):
            if not len(rows):
                continue
            more = None if given is None else given(number)
            yield number, function(number, _some(self.rows, rows), rows, more)


class SlicedRows(Chunks):
    """Rows of arrays in memory."""

    def __init__(self, rows: Block) -> None:
        self.rows, n = rows, len(rows.labels)
        self.slices = [slice(start, min(start + SLICE_ROWS, n)) for start in range(0, n, SLICE_ROWS)]
        self.lengths = [part.stop - part.start for part in self.slices]
        self.row_bytes = rows.X[:1].nbytes

    def _blocks(self) -> Iterator[Block]:
        return (Block(*(column[part] for column in self.rows)) for part in self.slices)

    def map_reduce(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: D102
        return reduce(operator.add, (function(block, *arguments) for block in self._blocks()))

    def gathered(self, route: Callable[[Block], np.ndarray], n_buckets: int) -> Gathered:  # noqa: D102
        return SortedRows(self.rows, np.concatenate([route(block) for block in self._blocks()]), n_buckets)

    def take(self, rows: np.ndarray) -> Block:  # noqa: D102
        return Block(*(column[rows] for column in self.rows))


def _of_targets(block: Block, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(block.labels, block.weights, *arguments)


def _joined(blocks: Iterable[Block]) -> Block:
    return Block(*map(np.concatenate, zip(*blocks, strict=True)))


def _some(block: Block, rows: np.ndarray) -> Block:
    return Block(*(column[rows] for column in block))
