"""Partitions of rows by trees of splits; new rows follow the very same rule as training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kernelwright.kernels import Kernel, Tabular
from kernelwright.kernels.vector import HasLengthScales
from kernelwright.storage.saved import saved

__all__ = [
    "Axes",
    "RowPartition",
    "all_axes",
    "divisible",
    "grafted",
    "grow",
    "grow_along",
    "random_axes",
    "with_used_axes",
]

LEAST_SHARES = (0.2, 0.02)  # of the rows on each side of a split: the first that some axis can offer
RANKED_ROWS = 4000  # rows of a node by which its axes are ranked
ROUTED_ROWS = 2**15  # rows whose values along all axes are held at once
MIXED = 4  # columns in a random axis
RANDOM_AXES = 12
SAME = 2.0  # times the size of a leaf: up to so many rows that are (almost) equal stay together


@saved("split-axes")
@dataclass(frozen=True)
class Axes:
    """Directions along which rows are split: each a sum of few columns, so that a row's values depend on it alone."""

    columns: Tensor  # axes x terms
    factors: Tensor

    def __len__(self) -> int:
        return len(self.columns)

    def __call__(self, points: Tensor) -> Tensor:
        """Return the value of each point along each axis.

        A matrix product would round a row differently in another batch, and could send it to another leaf.
        """
        values = points[:, self.columns[:, 0]] * self.factors[:, 0]
        for columns, factors in zip(self.columns.T[1:], self.factors.T[1:], strict=True):
            values += points[:, columns] * factors
        return values

    def some(self, chosen: Tensor) -> Axes:
        """Return some of the axes."""
        return Axes(self.columns[chosen], self.factors[chosen])


@saved("row-partition")
@dataclass(frozen=True)
class RowPartition:
    """A binary tree: at an inner node, rows with a value below the threshold along its axis go left."""

    axes: Axes
    axis: Tensor  # from here on: one entry for each inner node
    threshold: Tensor
    children: Tensor  # left and right: the number of an inner node, or -1 - leaf
    order: Tensor  # the training rows, leaf by leaf
    starts: Tensor  # where each leaf starts in this order; the last entry is the number of rows

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return len(self.starts) - 1

    def rows(self, leaf: int) -> Tensor:
        """Return the indices of the training rows in a leaf."""
        return self.order[self.starts[leaf] : self.starts[leaf + 1]]

    def route(self, points: Tensor) -> Tensor:
        """Return the leaf of each point."""
        if not len(self.axis):
            return torch.zeros(len(points), dtype=torch.int64)
        return torch.cat([self._route(some) for some in points.split(ROUTED_ROWS)])

    def _route(self, points: Tensor) -> Tensor:
        values, at = self.axes(points), torch.zeros(len(points), dtype=torch.int64)
        inner = torch.arange(len(points))
        while len(inner):
            node = at[inner]
            right = values[inner, self.axis[node]] >= self.threshold[node]
            at[inner] = self.children[node, right.long()]
            inner = inner[at[inner] >= 0]
        return -1 - at


def divisible(kernel: Kernel, points: Tensor) -> bool:
    """Return whether points can be split: they are rows of numbers, and not sparse."""
    return kernel.takes_vectors and torch.is_tensor(points)


def all_axes(kernel: Kernel, points: Tensor) -> Axes:
    """Return each column of the points, divided by its length scale, as an axis."""
    factors = _inverse_scales(kernel, points)
    return Axes(torch.arange(len(factors))[:, None], factors[:, None])


def random_axes(kernel: Kernel, points: Tensor, generator: torch.Generator) -> Axes:
    """Return random mixtures of a few columns, drawn by their widths in length scales."""
    factors = _inverse_scales(kernel, points)
    some = torch.randint(len(points), (min(RANKED_ROWS, len(points)),), generator=generator)
    widths = (points[some][:, : len(factors)] * factors).std(0).nan_to_num(0.0)
    n_terms = max(1, min(MIXED, int((widths > 0).sum())))
    chances = widths.expand(RANDOM_AXES, -1) if bool((widths > 0).any()) else torch.ones(RANDOM_AXES, len(factors))
    columns = torch.multinomial(chances, n_terms, generator=generator)
    mixture = torch.randn(columns.shape, dtype=torch.float64, generator=generator)
    return Axes(columns, mixture * factors[columns])


def _inverse_scales(kernel: Kernel, points: Tensor) -> Tensor:
    """Return one over the length scale of each column, summed over the parts of the kernel that have some."""
    parts = list(kernel.modules())
    views = any(isinstance(part, Tabular) for part in parts)  # the second view ranks the columns of the first
    width = points.shape[1] // 2 if views else points.shape[1]
    with torch.no_grad():
        scales = [part.feature_scale() for part in parts if isinstance(part, HasLengthScales)]
        inverse = [(1.0 / scale).expand(width) for scale in scales]
    return torch.stack(inverse).mean(0) if inverse else torch.ones(width, dtype=torch.float64)


def grow(points: Tensor, axes: Axes, leaf: int) -> RowPartition:
    """Split rows into leaves of at most ``leaf`` rows, each time along the axis on which they are spread most.

    A split leaves at least a fifth of the rows on each side if any axis can offer that. Rows that are equal on all axes
    stay together up to twice the size of a leaf; beyond, they are cut in the order of the rows, and new ones go left.
    """
    return with_used_axes(grow_along(points, axes, leaf))


def grow_along(points: Tensor, axes: Axes, leaf: int) -> RowPartition:
    """Split rows as :func:`grow` does, and keep all axes, so that the result can be grafted on to a tree with them."""
    values = axes(points)
    axis: list[int] = []
    threshold: list[float] = []
    children: list[list[int]] = []
    leaves: list[Tensor] = []
    waiting: list[tuple[Tensor, tuple[int, int] | None]] = [(torch.arange(len(points)), None)]
    while waiting:
        rows, parent = waiting.pop()
        split = _split(values[rows], leaf)
        if split is None:
            number = -1 - len(leaves)
            leaves.append(rows)
        else:
            number = len(axis)
            axis.append(split[0])
            threshold.append(split[1])
            children.append([0, 0])
            waiting += [(rows[split[2]], (number, 1)), (rows[~split[2]], (number, 0))]
        if parent is not None:
            children[parent[0]][parent[1]] = number
    sizes = torch.tensor([0, *map(len, leaves)])
    return RowPartition(
        axes,
        torch.tensor(axis, dtype=torch.int64),
        torch.tensor(threshold, dtype=torch.float64),
        torch.tensor(children, dtype=torch.int64).view(-1, 2),
        torch.cat(leaves),
        sizes.cumsum(0),
    )


def grafted(stem: RowPartition, branches: Sequence[RowPartition]) -> RowPartition:
    """Return the tree in which a branch takes the place of each leaf of the stem; all have the axes of the stem.

    ``order`` of a branch holds the indices of its rows among the rows of the whole tree.
    """
    inner, leaves = len(stem.axis), 0
    children, roots = [stem.children], []
    for branch in branches:
        moved = torch.where(branch.children >= 0, branch.children + inner, branch.children - leaves)
        children.append(moved)
        roots.append(inner if len(branch.axis) else -1 - leaves)
        inner, leaves = inner + len(branch.axis), leaves + branch.n_leaves
    of_leaf = torch.tensor(roots)
    stem_children = torch.where(stem.children >= 0, stem.children, of_leaf[(-1 - stem.children).clamp(min=0)])
    sizes = torch.cat([torch.zeros(1, dtype=torch.int64), *(branch.starts.diff() for branch in branches)])
    whole = RowPartition(
        stem.axes,
        torch.cat([stem.axis, *(branch.axis for branch in branches)]),
        torch.cat([stem.threshold, *(branch.threshold for branch in branches)]),
        torch.cat([stem_children, *children[1:]]),
        torch.cat([branch.order for branch in branches]),
        sizes.cumsum(0),
    )
    return with_used_axes(whole)


def with_used_axes(found: RowPartition) -> RowPartition:
    """Return the same partition without axes that no node splits."""
    used, axis = found.axis.unique(return_inverse=True)
    return replace(found, axes=found.axes.some(used), axis=axis)


def _split(values: Tensor, leaf: int) -> tuple[int, float, Tensor] | None:
    """Return axis, threshold and which rows go right; None if the rows make a leaf."""
    n = len(values)
    if n <= leaf:
        return None
    n_leaves = -(-n // leaf)
    wanted = (n_leaves // 2) / n_leaves  # so that leaves are full
    ranked = values[:: -(-n // RANKED_ROWS)].std(0)
    candidates = []
    for axis in ranked.argsort(descending=True, stable=True).tolist():
        column = values[:, axis]
        threshold, share = _threshold(column, wanted)
        candidates.append((min(share, 1.0 - share), axis, threshold))
        if candidates[-1][0] >= LEAST_SHARES[0]:
            break
    share, axis, threshold = max(candidates, key=lambda each: each[0])
    if share >= LEAST_SHARES[1]:
        return axis, threshold, values[:, axis] >= threshold
    if n <= SAME * leaf:
        return None
    return axis, torch.inf, torch.arange(n) >= round(wanted * n)


def _threshold(column: Tensor, wanted: float) -> tuple[float, float]:
    """Return a value with about the wanted share of the column below it, and that share."""
    middle = column.kthvalue(max(1, min(len(column), 1 + round(wanted * len(column))))).values
    above = column[column > middle]
    found = [float(middle)] + ([float(above.min())] if len(above) else [])
    shares = [float((column < each).double().mean()) for each in found]
    best = min(range(len(found)), key=lambda place: abs(shares[place] - wanted))
    return found[best], shares[best]
