"""Rows of Dask collections, brought together in buckets on the workers.

Every chunk is divided into one part for each group of buckets, and the parts of a group are joined where it will be
solved: two layers of plain tasks, so Dask spills, moves and repeats them like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kernelwright.inputs.blocks import Block, Gathered, _joined, _some
from kernelwright.inputs.dask_work import computed, persisted, streamed
from kernelwright.numerics.threads import on_one_thread

__all__ = ["DaskBuckets"]

GROUP_BYTES = 2**25  # of rows in one group of buckets, about


class _Routed(NamedTuple):
    """Rows with the bucket of each, and its index among all rows."""

    buckets: np.ndarray
    rows: np.ndarray
    block: Block


class DaskBuckets(Gathered):
    """Buckets of rows on the workers, some in each group.

    Parameters
    ----------
    groups : list of delayed objects
        The rows of each group of buckets, held by the cluster.
    firsts : ndarray
        The first bucket of each group.
    sizes : ndarray
        The number of rows in each bucket.
    row_bytes : int
    """

    def __init__(self, groups: list[Any], firsts: np.ndarray, sizes: np.ndarray, row_bytes: int) -> None:
        self.groups, self.firsts, self.sizes, self.row_bytes = groups, firsts, sizes, row_bytes

    @classmethod
    def of(
        cls,
        blocks: Sequence[Any],
        lengths: Sequence[int],
        route: Callable[[Block], np.ndarray],
        n_buckets: int,
        row_bytes: int,
        n_trees: int,
    ) -> DaskBuckets:
        """Route the rows of delayed blocks, and bring those of each group of buckets together."""
        from dask import delayed

        n_groups = min(n_buckets, -(-sum(lengths) * n_trees * row_bytes // GROUP_BYTES))
        firsts = np.arange(n_groups) * n_buckets // n_groups
        starts, shipped = np.cumsum([0, *lengths]), delayed((route, firsts), traverse=False)
        divided = [
            delayed(_divided, nout=n_groups)(shipped, block, int(start))
            for block, start, length in zip(blocks, starts, lengths, strict=False)
            if length
        ]
        groups = [delayed(_together)([parts[number] for parts in divided]) for number in range(n_groups)]
        counts = [delayed(_counts)(group, n_buckets) for group in groups]
        groups, counts = persisted(row_bytes, groups, counts)
        return cls(groups, firsts, np.sum(computed(counts, row_bytes), axis=0), row_bytes)

    def map(self, function: Callable[..., Any], given: Callable[[int], Any] | None = None) -> Iterator[tuple[int, Any]]:  # noqa: D102
        from dask import delayed

        (shipped,) = persisted(self.row_bytes, delayed(function, traverse=False))
        parts = zip(self.groups, np.split(np.arange(len(self.sizes)), self.firsts[1:]), strict=True)
        there = ((group, own[self.sizes[own] > 0].tolist()) for group, own in parts)
        tasks = (
            delayed(on_one_thread)(
                _mapped, shipped, group, delayed({number: given and given(number) for number in own}, traverse=False)
            )
            for group, own in there
            if own
        )
        for found in streamed(tasks, self.row_bytes):
            yield from found


def _divided(shipped: tuple[Callable[[Block], np.ndarray], np.ndarray], block: Block, start: int) -> list[_Routed]:
    """Route the rows of a block, and return the parts for the groups of buckets, in the order of their buckets."""
    route, firsts = shipped
    buckets = on_one_thread(route, block)
    order = buckets.T.reshape(-1).argsort(kind="stable")
    sorted_buckets, rows = buckets.T.reshape(-1)[order], order % len(buckets)
    parts = np.split(np.arange(len(order)), np.searchsorted(sorted_buckets, firsts[1:]))
    return [_Routed(sorted_buckets[own], start + rows[own], _some(block, rows[own])) for own in parts]


def _together(parts: list[_Routed]) -> _Routed:
    """Join parts of blocks that come in the order of the rows; within a bucket the rows then stay in order."""
    buckets, rows = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:2])
    order = buckets.argsort(kind="stable")
    return _Routed(buckets[order], rows[order], _some(_joined(part.block for part in parts), order))


def _counts(group: _Routed, n_buckets: int) -> np.ndarray:
    return np.bincount(group.buckets, minlength=n_buckets)


def _mapped(function: Callable[..., Any], group: _Routed, given: dict[int, Any]) -> list[tuple[int, Any]]:
    found = []
    for number, more in given.items():
        first, last = np.searchsorted(group.buckets, [number, number + 1])
        own = slice(first, last)
        block = Block(*(column[own] for column in group.block))
        found.append((number, function(number, block, group.rows[own], more)))
    return found
