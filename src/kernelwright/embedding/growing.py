"""Trees that take more rows, and lose old ones: only the leaves concerned are solved again.

A row that comes is routed to a leaf of each tree; a leaf that has become too large is split by the rule of
:func:`kernelwright.embedding.partition.grow`. With one block of ``B = K + diag(noise / w)`` for each leaf, two
solutions are kept for each row: ``B^-1 Y`` of the targets, and ``B^-1 1`` of a constant. For any prior the coefficients
are

    V = B^-1 Y - (B^-1 1) prior^T,

so the prior may follow all rows although most leaves stay as they are. The absolute ridge ``noise`` (n lambda) does not
change with the number of rows, so the solution is that of all rows solved at once in the same partition.

While memory allows, ``B^-1`` of each leaf is kept, and follows from its last value: with ``C = B^-1 K_on`` for rows n
that come and ``S = B_nn - K_no C``

    [B  K_on; K_no  B_nn]^-1 = [B^-1 + C S^-1 C^T, -C S^-1; -S^-1 C^T, S^-1],

and without rows d it is ``(B^-1)_rr - (B^-1)_rd ((B^-1)_dd)^-1 (B^-1)_dr``. That costs ``n^2`` a row, not ``n^3``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kernelwright.embedding.dual import leave_one_out_divisor
from kernelwright.embedding.partition import Axes, RowPartition, all_axes, grow, random_axes
from kernelwright.embedding.regrowth import LeafRows, regrown
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.embedding.tree import SolvedTree
from kernelwright.kernels import Kernel
from kernelwright.numerics.linalg import factorise
from kernelwright.numerics.memory import free_memory

__all__ = ["ColumnBlock", "GrowingTree", "GrowingTrees"]

BLOCK_ROWS = 64  # rows of a kernel matrix read at once
UPDATED = 0.25  # of the rows of a leaf: with more changes since it was last factorised, it is factorised anew
STABLE = 1e-6  # least noise, relative to the trace, with which an inverse is updated: rounding would add up
KEPT_SHARE = 0.15  # of the free memory, for the inverses of a block of columns


@dataclass(frozen=True)
class ColumnBlock:
    """Columns of targets that share their n lambda."""

    targets: Tensor
    noise: float


@dataclass(frozen=True)
class _LeafInverse:
    """``B^-1`` of a leaf, and how many of its rows have come or gone since it was computed afresh."""

    matrix: Tensor
    n_changed: int = 0


@dataclass(frozen=True)
class _SolvedBlock:
    """The solutions of a block in one tree, a row for each row of the data."""

    of_targets: Tensor
    of_one: Tensor
    diagonal: Tensor  # of B^-1
    inverses: tuple[_LeafInverse | None, ...]  # of each leaf
    jitter: float = 0.0


@dataclass(frozen=True)
class _Change:
    """What has happened to a leaf since it was solved."""

    origin: int | None  # its number then; None if it is new
    kept: Tensor  # the places of its rows in the leaf as it was; the others follow


@dataclass(frozen=True)
class GrowingTree:
    """One tree with its solutions; ``changes`` are of the leaves that are still to be solved."""

    partition: RowPartition
    nearest: Tensor  # the largest local kernel value of each row with another one of its leaf
    neighbour: Tensor  # the row that it has it with
    changes: tuple[_Change | None, ...]
    blocks: tuple[_SolvedBlock, ...] = ()

    @classmethod
    def of(cls, partition: RowPartition) -> GrowingTree:
        """Return a tree no leaf of which is solved."""
        new, n = tuple(_Change(None, partition.order[:0]) for _ in range(partition.n_leaves)), len(partition.order)
        return cls(partition, torch.zeros(n, dtype=torch.float64), torch.full((n,), -1), new)

    def forgotten(self) -> GrowingTree:
        """Return the tree with all leaves to be solved."""
        return GrowingTree.of(self.partition)

    def with_rows(
        self, kernel: Kernel, points: Tensor, kept: Tensor, size: int, generator: torch.Generator, *, first: bool
    ) -> GrowingTree:
        """Return the tree of other rows: those that are kept, by index, and then new ones."""
        n_new, n_old = len(points) - len(kept), len(self.partition.order)
        place = torch.full((n_old,), -1)
        place[kept] = torch.arange(len(kept))
        leaf_of_new = self.partition.route(points[len(kept) :])
        leaves, changes = [], []
        for number in range(self.partition.n_leaves):
            rows = place[self.partition.rows(number)]
            new = (leaf_of_new == number).nonzero()[:, 0] + len(kept)
            stay = (rows >= 0).nonzero()[:, 0]
            changed = len(new) > 0 or len(stay) < len(rows)
            leaves.append(torch.cat([rows[stay], new]))
            changes.append(_Change(number, stay) if changed else None)

        def axes(rows: Tensor) -> Axes:
            return all_axes(kernel, points[rows]) if first else random_axes(kernel, points[rows], generator)

        partition, found = regrown(self.partition, leaves, size, axes, points)
        near = self.neighbour[kept]
        return GrowingTree(
            partition,
            torch.cat([self.nearest[kept], torch.zeros(n_new, dtype=torch.float64)]),
            torch.cat([torch.where(near >= 0, place[near.clamp(min=0)], -1), torch.full((n_new,), -1)]),
            tuple(self._change(leaf, changes) for leaf in found),
            tuple(self._carried(block, kept, n_new, found) for block in self.blocks),
        )

    def _change(self, leaf: LeafRows, changes: Sequence[_Change | None]) -> _Change | None:
        return _Change(None, leaf.rows[:0]) if leaf.origin is None else changes[leaf.origin]

    def _carried(self, block: _SolvedBlock, kept: Tensor, n_new: int, leaves: Sequence[LeafRows]) -> _SolvedBlock:
        """Return a block in the order of the rows now; inverses still are those of the rows before."""
        columns = (block.of_targets, block.of_one, block.diagonal)
        Y, one, diagonal = (torch.cat([each[kept], each.new_zeros(n_new, *each.shape[1:])]) for each in columns)
        inverses = tuple(None if leaf.origin is None else block.inverses[leaf.origin] for leaf in leaves)
        return _SolvedBlock(Y, one, diagonal, inverses, block.jitter)

    def solved(self, kernel: Kernel, data: TrainingSet, number: int, block: ColumnBlock, room: float) -> GrowingTree:
        """Return the tree with a block solved in all leaves that have changed; ``room`` is memory for inverses."""
        before = self.blocks[number] if number < len(self.blocks) else None
        n, columns = block.targets.shape
        if before is None or before.of_targets.shape[1] != columns:
            zeros = torch.zeros(n, columns + 2, dtype=torch.float64)
            before = _SolvedBlock(zeros[:, :columns], zeros[:, -2], zeros[:, -1], (None,) * self.partition.n_leaves)
            pending: Sequence[_Change | None] = self.forgotten().changes
        else:
            pending = self.changes
        of_targets, of_one, diagonal = before.of_targets.clone(), before.of_one.clone(), before.diagonal.clone()
        inverses, jitter = list(before.inverses), before.jitter
        nearest, neighbour = self.nearest.clone(), self.neighbour.clone()
        used = 8.0 * sum(each.matrix.numel() for each in inverses if each is not None)
        for leaf, change in enumerate(pending):
            if change is None:
                continue
            at, old = self.partition.rows(leaf), inverses[leaf]
            used -= 0.0 if old is None else 8.0 * old.matrix.numel()
            keeps = used + 8.0 * len(at) ** 2 <= room
            right = torch.cat([block.targets[at], torch.ones(len(at), 1, dtype=torch.float64)], 1)
            solver = _LeafSolver(kernel, data.subset(at), block.noise)
            result = solver.solve(right, old, change.kept, keeps=keeps)
            of_targets[at], of_one[at] = result.solution[:, :-1], result.solution[:, -1]
            diagonal[at] = result.diagonal
            if number == 0:
                known = neighbour[at] >= 0
                known[len(change.kept) :] = False
                largest, column, rows = solver.nearest(result.K, nearest[at], known)
                nearest[at], neighbour[at[rows]] = largest, torch.where(column >= 0, at[column], -1)
            inverses[leaf], jitter = result.inverse, max(jitter, result.jitter)
            used += 8.0 * len(at) ** 2 if result.inverse is not None else 0.0
        solved = _SolvedBlock(of_targets, of_one, diagonal, tuple(inverses), jitter)
        blocks = (*self.blocks[:number], solved, *self.blocks[number + 1 :])
        return replace(self, nearest=nearest, neighbour=neighbour, blocks=blocks)

    def settled(self) -> GrowingTree:
        """Return the tree with nothing left to solve."""
        return replace(self, changes=(None,) * self.partition.n_leaves)

    def solution(self, data: TrainingSet, number: int, block: ColumnBlock, prior: Tensor) -> SolvedTree:
        """Return the embedding of a block with this prior."""
        own, row_noise = self.blocks[number], block.noise / data.weights
        V = own.of_targets - own.of_one[:, None] * prior
        fitted = block.targets - row_noise[:, None] * V
        divisor = leave_one_out_divisor(own.diagonal, data.one_of_equals, row_noise)
        left_out = block.targets - V / divisor[:, None]
        squared_norm = max(float((V * (fitted - prior)).sum()), 0.0)
        return SolvedTree(V, V[:0], fitted, left_out, self.nearest, squared_norm, own.jitter)


@dataclass(frozen=True)
class _LeafResult:
    solution: Tensor
    diagonal: Tensor
    inverse: _LeafInverse | None
    jitter: float
    K: Tensor  # local kernel values of all rows, or of those that are new, with all


@dataclass(frozen=True)
class _LeafSolver:
    """A leaf with the rows that it has now."""

    kernel: Kernel
    rows: TrainingSet
    noise: float

    def solve(self, right: Tensor, inverse: _LeafInverse | None, kept: Tensor, *, keeps: bool) -> _LeafResult:
        """Return ``B^-1`` times some columns; by the inverse of the rows before, if there is one and few changed.

        ``kept`` are the places among the rows before of those that still are there; ``keeps`` says whether there is
        memory for the inverse.
        """
        if inverse is not None:
            n_changed = inverse.n_changed + len(inverse.matrix) + len(self.rows) - 2 * len(kept)
            if n_changed <= UPDATED * len(self.rows):
                points = self.rows.points
                K = self.kernel.local.forward(points[len(kept) :], points)
                matrix = self._updated(inverse.matrix, kept, K)
                new = _LeafInverse(matrix, n_changed) if keeps else None
                return _LeafResult(matrix @ right, matrix.diagonal().clone(), new, 0.0, K)
        local = self.kernel.local.matrix(self.rows.points)
        whole = local if self.kernel.local is self.kernel else self.kernel.completed_(local.clone(), self.rows.points)
        row_noise = self.noise / self.rows.weights
        factor = factorise(whole, row_noise)
        stable = float(row_noise.min()) >= STABLE * float(whole.diagonal().sum())
        if not keeps or factor.jitter or not stable:
            return _LeafResult(factor.solve(right), factor.inverse_diagonal(), None, factor.jitter, local)
        matrix = factor.into_inverse_()
        return _LeafResult(matrix @ right, matrix.diagonal().clone(), _LeafInverse(matrix), 0.0, local)

    def nearest(self, K: Tensor, largest: Tensor, known: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the largest kernel value of each row with another one; and for rows where it is new, which one it is.

        ``K`` are kernel values of all rows, or of those that are new; others known before stay, unless a new row is
        nearer.
        """
        points, n, n_old = self.rows.points, len(self.rows), len(self.rows) - len(K)
        lost = (~known[:n_old]).nonzero()[:, 0]  # the nearest one is gone
        some = torch.cat([lost, torch.arange(n_old, n)])
        if len(lost):
            K = torch.cat([self.kernel.local.forward(points[lost], points), K])
        found, column = _largest_other(K, some, self.rows)
        result = largest.clone()
        result[some] = found
        old = known[:n_old].nonzero()[:, 0]
        if not len(old) or not len(some):
            return result, column, some
        nearer, by = K[:, old].max(0)
        closer = nearer > result[old]
        result[old[closer]] = nearer[closer]
        return result, torch.cat([column, some[by[closer]]]), torch.cat([some, old[closer]])

    def _updated(self, inverse: Tensor, kept: Tensor, local: Tensor) -> Tensor:
        """Return the inverse of the rows now from that of the rows before, and local kernel values of new ones."""
        n_kept = len(kept)
        if n_kept < len(inverse):
            gone = torch.ones(len(inverse), dtype=torch.bool)
            gone[kept] = False
            lost = inverse[gone]
            inner, outer = lost[:, gone], lost[:, kept]
            inverse = inverse[kept][:, kept]
            inverse.addmm_(outer.T, factorise(inner).solve(outer), alpha=-1.0)
        if n_kept == len(self.rows):
            return inverse
        whole = self.kernel.completed_(local.clone(), self.rows.points[n_kept:], self.rows.points)
        K, S = whole[:, :n_kept], whole[:, n_kept:]
        C = inverse @ K.T
        S.diagonal().add_(self.noise / self.rows.weights[n_kept:])
        S = S - K @ C
        S = factorise(0.5 * (S + S.T)).into_inverse_()
        grown = inverse.new_empty(len(self.rows), len(self.rows))
        right = C @ S
        grown[:n_kept, :n_kept] = torch.addmm(inverse, right, C.T)
        grown[:n_kept, n_kept:] = -right
        grown[n_kept:, :n_kept] = -right.T
        grown[n_kept:, n_kept:] = S
        return grown


def _largest_other(K: Tensor, own: Tensor, rows: TrainingSet) -> tuple[Tensor, Tensor]:
    """Return the largest value in each row of K in another column than its own, and this column.

    A point that stands for two equal rows is its own neighbour. The only one has its own value, and the column -1.
    """
    largest, column = torch.empty(len(K), dtype=torch.float64), torch.empty(len(K), dtype=torch.int64)
    for start in range(0, len(K), BLOCK_ROWS):
        block, mine = K[start : start + BLOCK_ROWS].clone(), own[start : start + BLOCK_ROWS]
        place = torch.arange(len(mine))
        itself = block[place, mine]
        block[place, mine] = -torch.inf
        values, columns = block.max(1)
        alone = values.isinf() if rows.counts is None else values.isinf() | (rows.counts[mine] >= 2)
        largest[start : start + len(mine)] = torch.where(alone, itself, values)
        column[start : start + len(mine)] = torch.where(values.isinf(), -1, torch.where(alone, mine, columns))
    return largest, column


@dataclass(frozen=True)
class GrowingTrees:
    """Rows in the leaves of some trees, to which others can be added.

    Parameters
    ----------
    kernel : Kernel
    data : TrainingSet
        The rows with their present weights. They have no groups.
    size : int
        The most rows of a leaf.
    trees : tuple of GrowingTree
    """

    kernel: Kernel
    data: TrainingSet
    size: int
    trees: tuple[GrowingTree, ...]

    @classmethod
    def of(cls, kernel: Kernel, data: TrainingSet, partitions: Sequence[RowPartition], size: int) -> GrowingTrees:
        """Return trees with all leaves to be solved."""
        return cls(kernel, data, size, tuple(map(GrowingTree.of, partitions)))

    def with_rows(self, more: TrainingSet, kept: Tensor, n_trees: int, generator: torch.Generator) -> GrowingTrees:
        """Return trees with some of the rows, by index, and then more of them.

        As soon as there is more than one leaf there are ``n_trees`` trees.
        """
        data = _joined(self.data.subset(kept), more)
        trees = [
            tree.with_rows(self.kernel, data.points, kept, self.size, generator, first=number == 0)
            for number, tree in enumerate(self.trees)
        ]
        if trees[0].partition.n_leaves > 1:
            while len(trees) < n_trees:
                axes = random_axes(self.kernel, data.points, generator)
                trees.append(GrowingTree.of(grow(data.points, axes, self.size)))
        return replace(self, data=data, trees=tuple(trees))

    def weighted(self, weights: Tensor) -> GrowingTrees:
        """Return the trees with other weights of their rows, and all leaves to be solved."""
        data = replace(self.data, weights=weights)
        return replace(self, data=data, trees=tuple(tree.forgotten() for tree in self.trees))

    def solved(self, number: int, block: ColumnBlock) -> GrowingTrees:
        """Return the trees with a block of columns solved where leaves have changed."""
        room = KEPT_SHARE * free_memory() / len(self.trees)
        trees = (tree.solved(self.kernel, self.data, number, block, room) for tree in self.trees)
        return replace(self, trees=tuple(trees))

    def settled(self) -> GrowingTrees:
        """Return the trees with nothing left to solve."""
        return replace(self, trees=tuple(tree.settled() for tree in self.trees))

    def solutions(self, number: int, block: ColumnBlock, prior: Tensor) -> list[SolvedTree]:
        """Return the embedding of a block in each tree."""
        return [tree.solution(self.data, number, block, prior) for tree in self.trees]

    @property
    def n_pending(self) -> int:
        """The number of leaves that are still to be solved."""
        return sum(change is not None for tree in self.trees for change in tree.changes)


def _joined(rows: TrainingSet, more: TrainingSet) -> TrainingSet:
    """Return the rows of both; rows that were merged stay so."""
    counts = rows.counts
    if counts is not None:
        counts = torch.cat([counts, torch.ones(len(more), dtype=counts.dtype)])
    return replace(replace(rows, counts=None).joined(more), counts=counts)
