"""The embedding in a kernel that is exact within the leaves of a tree.

With ``q(x, x') = k_M(x)^T K_MM^-1 k_M(x')``, the kernel in the span of M landmarks, the kernel of one tree is

    k_T(x, x') = q(x, x') + k(x, x') if x and x' are in one leaf, and q(x, x') otherwise:

a function of all rows, plus one of each leaf. The embedding is that of [Hsu2018]_ with this kernel: solutions, norms
and leave-one-out outputs keep their closed forms, with every row in them. With features ``Z Z^T = q`` of the rows its
system is ``A = B + Z Z^T`` with one block of ``B = K + diag(noise)`` for each leaf, and

    A^-1 = B^-1 - U (I + Z^T U)^-1 U^T,  U = B^-1 Z.

So the cost is that of one exact embedding a leaf. Without landmarks q is zero, and leaves know nothing of each other.
The outputs of several trees are averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kernelwright.embedding.dual import DualEmbedding, embed, leave_one_out_divisor
from kernelwright.embedding.partition import RowPartition
from kernelwright.embedding.support import nearest_other
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.numerics.linalg import Factor, factorise, finite, triangular_solve
from kernelwright.numerics.products import thin_product
from kernelwright.numerics.threads import each_on_one_thread
from kernelwright.storage.saved import saved

__all__ = ["GlobalPart", "Leaf", "SolvedTree", "Trees", "averaged", "solve_leaf", "solve_tree"]

FLOOR = 1e-6  # added to the diagonal of the landmarks' kernel matrix, relative to its mean
KERNEL_VALUES = 2**20  # held at once in predictions: more would not stay in the cache
TOGETHER = 2**13  # new rows whose kernel values with landmarks are held at once


@dataclass(frozen=True)
class GlobalPart:
    """Landmarks, with features z of any point such that ``z^T z' = q``."""

    kernel: Kernel
    landmarks: Tensor
    root: Factor  # of K_MM

    @classmethod
    def of(cls, kernel: Kernel, landmarks: Tensor) -> GlobalPart:
        """Factorise the kernel matrix of the landmarks."""
        K = kernel.matrix(landmarks)
        return cls(kernel, landmarks, factorise(K, FLOOR * float(K.diagonal().mean())))

    def features(self, points: Tensor) -> Tensor:
        """Return Z, a row for each point."""
        with torch.no_grad():
            return triangular_solve(self.root, self.kernel.forward(self.landmarks, points)).T.contiguous()

    def coefficients(self, weights: Tensor) -> Tensor:
        """Return the coefficients of the landmarks from those of the features."""
        return triangular_solve(self.root, weights, transposed=True)


@dataclass(frozen=True)
class Leaf:
    """A leaf by itself: ``B^-1`` times its targets and features."""

    embedding: DualEmbedding
    nearest: Tensor  # the largest local kernel value of each row with another one
    Z: Tensor | None = None
    U: Tensor | None = None


def solve_leaf(kernel: Kernel, rows: TrainingSet, noise: float, global_part: GlobalPart | None = None) -> Leaf:
    """Solve one leaf with ``noise``, the n lambda of all rows."""
    K = kernel.local.matrix(rows.points)
    nearest = nearest_other(K, rows)
    kernel.completed_(K, rows.points)
    ridge = noise / rows.total_weight
    if global_part is None:
        return Leaf(embed(K, rows, ridge), nearest)
    leaf, Z = embed(K, rows, ridge), global_part.features(rows.points)
    return Leaf(leaf, nearest, Z, leaf.factor.solve(Z))


@dataclass(frozen=True)
class SolvedTree:
    """The embedding of one tree; rows are in the order of the training set."""

    coefficients: Tensor  # of the rows
    of_landmarks: Tensor
    fitted: Tensor
    left_out: Tensor
    nearest: Tensor
    squared_norm: float
    jitter: float


def solve_tree(
    kernel: Kernel, data: TrainingSet, ridge: float, partition: RowPartition, global_part: GlobalPart | None = None
) -> SolvedTree:
    """Solve the embedding of all rows in the kernel of one tree."""
    noise = ridge * data.total_weight

    def solved(number: int) -> _SolvedLeaf:
        rows = partition.rows(number)
        return _SolvedLeaf.of(rows, solve_leaf(kernel, data.subset(rows), noise, global_part))

    leaves: list[_SolvedLeaf] = each_on_one_thread(solved, range(partition.n_leaves))
    V, left_out, nearest, inverse = (
        _in_order([getattr(leaf, name) for leaf in leaves], partition.order)
        for name in ("coefficients", "left_out", "nearest", "inverse")
    )
    row_noise, of_landmarks = data.noise(ridge), V[:0]
    if global_part is not None:
        of_landmarks = _join_(V, inverse, [leaf.joint for leaf in leaves if leaf.joint is not None], global_part)
        left_out = data.targets - V / leave_one_out_divisor(inverse, data.one_of_equals, row_noise)[:, None]
    fitted = data.targets - row_noise[:, None] * V
    squared_norm = max(float((V * (fitted - data.prior)).sum()), 0.0)
    return SolvedTree(V, of_landmarks, fitted, left_out, nearest, squared_norm, max(leaf.jitter for leaf in leaves))


def _in_order(parts: Sequence[Tensor], order: Tensor) -> Tensor:
    """Return the rows of all leaves in the order of the training set."""
    joined = torch.cat(list(parts))
    found = torch.empty_like(joined)
    found[order[: len(joined)]] = joined
    return found


@dataclass(frozen=True)
class _SolvedLeaf:
    """What is kept of a leaf: its factor is not. Without a global part its rows are left out at once."""

    coefficients: Tensor
    nearest: Tensor
    jitter: float
    left_out: Tensor
    inverse: Tensor  # the diagonal of B^-1, and the rest: with a global part only
    joint: _Joint | None

    @classmethod
    def of(cls, rows: Tensor, leaf: Leaf) -> _SolvedLeaf:
        own, none = leaf.embedding, leaf.nearest[:0]
        if leaf.Z is None:
            return cls(own.coefficients, leaf.nearest, own.factor.jitter, own.leave_one_out(), none, None)
        joint = _Joint.of(rows, leaf)
        inverse = own.factor.inverse_diagonal()
        return cls(own.coefficients, leaf.nearest, own.factor.jitter, own.coefficients[:0], inverse, joint)


@dataclass(frozen=True)
class _Joint:
    """What is kept of a leaf until all leaves are joined."""

    rows: Tensor
    U: Tensor
    gram: Tensor  # Z^T U
    right: Tensor  # Z^T B^-1 Y

    @classmethod
    def of(cls, rows: Tensor, leaf: Leaf) -> _Joint:
        assert leaf.Z is not None
        assert leaf.U is not None
        return cls(rows, leaf.U, leaf.Z.T @ leaf.U, leaf.Z.T @ leaf.embedding.coefficients)


def _join_(V: Tensor, inverse: Tensor, leaves: Sequence[_Joint], global_part: GlobalPart) -> Tensor:
    """Turn ``B^-1 Y`` into ``A^-1 Y`` and the diagonal of ``B^-1`` into that of ``A^-1``, in their memory.

    Returns the coefficients of the landmarks.
    """
    gram = torch.stack([leaf.gram for leaf in leaves]).sum(0)
    root = factorise(0.5 * (gram + gram.T), 1.0)
    shift = root.solve(torch.stack([leaf.right for leaf in leaves]).sum(0))
    for leaf in leaves:
        V[leaf.rows] -= leaf.U @ shift
        inverse[leaf.rows] -= triangular_solve(root, leaf.U.T).square().sum(0)
    total = torch.stack([leaf.right - leaf.gram @ shift for leaf in leaves]).sum(0)  # Z^T V
    return global_part.coefficients(total)


@saved("tree-embedding")
@dataclass(frozen=True)
class Trees:
    """Where the coefficients of an embedding in the kernel of some trees belong.

    The rows of the coefficients are, tree by tree, those of the training rows, leaf by leaf, and then those of the
    landmarks. They are already divided by the number of trees.
    """

    partitions: tuple[RowPartition, ...]
    landmarks: Tensor

    def coefficients(self, solved: Sequence[SolvedTree]) -> Tensor:
        """Return the coefficients of the solved trees."""
        of_rows = [tree.coefficients[partition.order] for tree, partition in zip(solved, self.partitions, strict=True)]
        of_landmarks = torch.stack([tree.of_landmarks for tree in solved]).sum(0)
        return torch.cat([*of_rows, of_landmarks]) / len(solved)

    def outputs(self, kernel: Kernel, training: Tensor, coefficients: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs, without the prior, and the largest local kernel value with a training row of a leaf."""
        size = TOGETHER if len(self.landmarks) else max(1, len(points))  # leaves are read once, if that is possible
        with torch.no_grad():
            found = [self._outputs(kernel, training, coefficients, some) for some in points.split(size)]
        none = torch.zeros(0, coefficients.shape[1], dtype=torch.float64), torch.zeros(0, dtype=torch.float64)
        outputs, nearest = zip(none, *found, strict=True)
        return finite(torch.cat(outputs)), torch.cat(nearest)

    def _outputs(self, kernel: Kernel, training: Tensor, coefficients: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        nearest = torch.full((len(points),), -torch.inf, dtype=torch.float64)
        *of_rows, of_landmarks = coefficients.split(
            [len(each.order) for each in self.partitions] + [len(self.landmarks)]
        )
        outputs = torch.zeros(len(points), coefficients.shape[1], dtype=torch.float64)
        if len(self.landmarks):
            outputs += thin_product(kernel.forward(points, self.landmarks), of_landmarks)
        for partition, V in zip(self.partitions, of_rows, strict=True):
            for leaf, at in _by_leaf(partition.route(points)):
                start, stop = partition.starts[leaf : leaf + 2].tolist()
                own = training[partition.order[start:stop]].to(points.dtype)  # it may be stored in single precision
                for some in at.split(max(1, KERNEL_VALUES // len(own))):
                    K = kernel.local.forward(points[some], own)
                    nearest[some] = torch.maximum(nearest[some], K.amax(1).double())
                    outputs[some] += thin_product(kernel.completed_(K, points[some], own), V[start:stop])
        return outputs, nearest


def _by_leaf(leaves: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield each leaf that has some of the rows, and these rows."""
    order = leaves.argsort(stable=True)
    names, counts = leaves[order].unique_consecutive(return_counts=True)
    yield from zip(names.tolist(), order.split(counts.tolist()), strict=True)


def averaged(trees: Sequence[SolvedTree]) -> SolvedTree:
    """Return the mean of the outputs of some trees; a row is as near as its nearest other row in any of them.

    The norm is a bound: the mean lies in the ball of every tree's kernel that has the root mean square of the norms.
    """
    first, n = trees[0], len(trees)
    return replace(
        first,
        fitted=torch.stack([tree.fitted for tree in trees]).mean(0),
        left_out=torch.stack([tree.left_out for tree in trees]).mean(0),
        nearest=torch.stack([tree.nearest for tree in trees]).amax(0),
        squared_norm=sum(tree.squared_norm for tree in trees) / n,
        jitter=max(tree.jitter for tree in trees),
    )
