"""Partitions whose rows come and go: leaves that are too large are split, and small neighbours merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from kernelwright.embedding.partition import Axes, RowPartition, grow_along, with_used_axes

__all__ = ["LeafRows", "regrown"]

LARGEST = 1.5  # times the size of a leaf: one of more rows is split; its parts then have room for as many again
MERGED = 0.5  # of the size of a leaf: neighbours with no more rows become one leaf, which has room for as many again


@dataclass(frozen=True)
class LeafRows:
    """The rows of a leaf, and the leaf of the partition before that it continues."""

    rows: Tensor
    origin: int | None  # None if it was split off or merged


@dataclass(frozen=True)
class _Fork:
    axis: int
    threshold: float
    left: LeafRows | _Fork
    right: LeafRows | _Fork


def regrown(
    partition: RowPartition, leaves: Sequence[Tensor], size: int, split_axes: Callable[[Tensor], Axes], points: Tensor
) -> tuple[RowPartition, list[LeafRows]]:
    """Return the partition with other rows in its leaves, each of about ``size`` rows, and its leaves.

    Parameters
    ----------
    partition : RowPartition
    leaves : sequence of Tensor
        The rows of each leaf now.
    size : int
        A leaf with half as many rows again is split by the rule of :func:`kernelwright.embedding.partition.grow`. Two
        neighbours with at most half as many rows in all become one leaf. The region of an empty leaf goes to its
        neighbour.
    split_axes : function
        Returns the axes along which some rows may be split.
    points : Tensor
        All rows.
    """
    found: list[LeafRows | _Fork | None] = [None] * len(partition.axis)

    def child(number: int) -> LeafRows | _Fork:
        node = found[number] if number >= 0 else None
        return node if node is not None else LeafRows(leaves[-1 - number], -1 - number)

    root: LeafRows | _Fork = LeafRows(leaves[0], 0)
    for number in range(len(partition.axis) - 1, -1, -1):  # children have larger numbers than their parents
        left, right = (child(each) for each in partition.children[number].tolist())
        fork = _Fork(int(partition.axis[number]), float(partition.threshold[number]), left, right)
        root = _tidied(fork, size)
        found[number] = root
    builder = _Builder(partition.axes)
    builder.add(root, size, split_axes, points)
    return builder.partition(), builder.leaves


def _tidied(fork: _Fork, size: int) -> LeafRows | _Fork:
    """Return a fork, or what is left of it if its leaves have few rows."""
    for one, other in ((fork.left, fork.right), (fork.right, fork.left)):
        if isinstance(one, LeafRows) and not len(one.rows):
            return other
    if isinstance(fork.left, LeafRows) and isinstance(fork.right, LeafRows):
        rows = torch.cat([fork.left.rows, fork.right.rows])
        if len(rows) <= MERGED * size:
            return LeafRows(rows, None)
    return fork


class _Builder:
    """The arrays of a partition, node by node; parents come before their children."""

    def __init__(self, axes: Axes) -> None:
        self.axes, self.n_axes = [axes], len(axes)
        self.axis: list[int] = []
        self.threshold: list[float] = []
        self.children: list[list[int]] = []
        self.leaves: list[LeafRows] = []

    def add(self, root: LeafRows | _Fork, size: int, split_axes: Callable[[Tensor], Axes], points: Tensor) -> None:
        """Add a node and all below it; leaves that are too large are split."""
        waiting: list[tuple[LeafRows | _Fork, list[int] | None, int]] = [(root, None, 0)]
        while waiting:
            node, siblings, side = waiting.pop()
            if isinstance(node, LeafRows) and len(node.rows) > LARGEST * size:
                node = self._split(node, grow_along(points[node.rows], split_axes(node.rows), size))
            if isinstance(node, LeafRows):
                number = -1 - len(self.leaves)
                self.leaves.append(node)
            else:
                number, pair = len(self.axis), [0, 0]
                self.axis.append(node.axis)
                self.threshold.append(node.threshold)
                self.children.append(pair)
                waiting += [(node.right, pair, 1), (node.left, pair, 0)]
            if siblings is not None:
                siblings[side] = number

    def _split(self, leaf: LeafRows, branch: RowPartition) -> LeafRows | _Fork:
        """Return the nodes of a branch in the place of a leaf; its axes are added."""
        if branch.n_leaves == 1:
            return leaf
        first, self.n_axes = self.n_axes, self.n_axes + len(branch.axes)
        self.axes.append(branch.axes)
        nodes: dict[int, LeafRows | _Fork] = {
            -1 - each: LeafRows(leaf.rows[branch.rows(each)], None) for each in range(branch.n_leaves)
        }
        for number in range(len(branch.axis) - 1, -1, -1):
            left, right = (nodes[each] for each in branch.children[number].tolist())
            nodes[number] = _Fork(first + int(branch.axis[number]), float(branch.threshold[number]), left, right)
        return nodes[0]

    def partition(self) -> RowPartition:
        """Return the partition, with the axes that it uses."""
        sizes = torch.tensor([0, *(len(leaf.rows) for leaf in self.leaves)])
        whole = RowPartition(
            _joined(self.axes),
            torch.tensor(self.axis, dtype=torch.int64),
            torch.tensor(self.threshold, dtype=torch.float64),
            torch.tensor(self.children, dtype=torch.int64).view(-1, 2),
            torch.cat([leaf.rows for leaf in self.leaves]),
            sizes.cumsum(0),
        )
        return with_used_axes(whole)


def _joined(axes: Sequence[Axes]) -> Axes:
    """Return all axes; those of fewer terms get terms of factor zero."""
    terms = max(each.columns.shape[1] for each in axes)
    columns, factors = (
        torch.cat([pad(part, (0, terms - part.shape[1])) for part in parts])
        for parts in ([each.columns for each in axes], [each.factors for each in axes])
    )
    return Axes(columns, factors)
