"""The conditional distribution of any target in the span of landmarks, for many rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.conditional import MergedRows
from kernelwright.embedding.representatives import Representatives
from kernelwright.embedding.target_space import TargetSpace
from kernelwright.kernels import Kernel
from kernelwright.numerics.linalg import Factor, factorise, triangular_solve
from kernelwright.numerics.products import weighted_gram
from kernelwright.storage.saved import saved

__all__ = ["LandmarkEmbedding", "LandmarkSystem", "embed_any_by_landmarks"]

BLOCK_VALUES = 2**22  # kernel values of rows with landmarks computed at once
FLOOR = 1e-10  # of the diagonal of K_MM: landmarks may be close to each other


@saved("landmark-system")
@dataclass(frozen=True)
class LandmarkSystem:
    """The ridge regression of any function of the target, in the span of M landmarks.

    With ``K_MM = L L^T``, features ``z(x) = L^-1 k(x)`` and ``S = sum_i w_i z_i z_i^T + noise I``, the coefficients of
    k(x) for values g are ``L^-T S^-1 sum_i w_i z_i g_i``. The rows are kept: every new g needs a pass over them.
    """

    kernel: Kernel
    rows: MergedRows
    landmarks: Tensor
    root: Factor  # of K_MM
    factor: Factor  # of S

    @classmethod
    def of(cls, kernel: Kernel, rows: MergedRows, landmarks: Tensor, ridge: float) -> LandmarkSystem:
        """Sum up the rows and factorise."""
        K = kernel.matrix(landmarks)
        root = factorise(K, FLOOR * float(K.diagonal().mean()))
        gram = torch.zeros_like(K)
        for weights, Z, _ in _features(kernel, rows, landmarks, root):
            gram += weighted_gram(Z, weights[:, None], whole=False)
        return cls(kernel, rows, landmarks, root, factorise(gram, ridge * float(rows.counts.sum())))

    def features(self) -> Iterator[tuple[Tensor, Tensor, slice]]:
        """Yield the weights and features of some rows, and their places."""
        return _features(self.kernel, self.rows, self.landmarks, self.root)

    def whitened(self, sums: Tensor) -> Tensor:
        """Return ``S^-1 sums``: the coefficients of the features z."""
        return self.factor.solve(sums)

    def coefficients(self, sums: Tensor) -> Tensor:
        """Return the coefficients of k(x), for sums over the rows of w z times values."""
        return triangular_solve(self.root, self.whitened(sums), transposed=True)

    def sums(self, values: Tensor) -> Tensor:
        """Return ``sum_i w_i z_i g_i`` for values of the points."""
        total = torch.zeros(len(self.landmarks), values.shape[1], dtype=torch.float64)
        for weights, Z, at in self.features():
            total += Z.T @ (weights[:, None] * values[at])
        return total


def _features(
    kernel: Kernel, rows: MergedRows, landmarks: Tensor, root: Factor
) -> Iterator[tuple[Tensor, Tensor, slice]]:
    counts, size = torch.from_numpy(rows.counts).double(), max(1, BLOCK_VALUES // len(landmarks))
    for start in range(0, len(counts), size):
        at = slice(start, start + size)
        with torch.no_grad():
            K = kernel.forward(rows.points[at], landmarks)
        yield counts[at], triangular_solve(root, K.T).T.contiguous(), at


@saved("landmark-embedding")
@dataclass(frozen=True)
class LandmarkEmbedding:
    """An embedding in the span of landmarks; its distribution has masses at representative targets."""

    system: LandmarkSystem
    ridge: float
    space: TargetSpace  # of the representatives
    filled: Tensor  # coefficients of their masses, less the marginal ones
    total: Tensor  # coefficients of the sum of all weights
    fills: bool = False  # whether the mass that the weights lack to sum to one is spread evenly over all rows

    @property
    def kernel(self) -> Kernel:
        """The kernel with its learned parameters."""
        return self.system.kernel

    @property
    def rows(self) -> MergedRows:
        """All training rows."""
        return self.system.rows

    @property
    def scaler(self) -> Any:
        """The transform applied to inputs before the kernel."""
        return self.rows.scaler

    @property
    def points(self) -> Tensor:
        """The landmarks, encoded for the kernel."""
        return self.system.landmarks

    @property
    def factor(self) -> Factor:
        """The factor of the normal equations."""
        return self.system.factor

    @property
    def jitter(self) -> float:
        """The number added to the diagonal so that it could be factorised."""
        return max(self.system.root.jitter, self.system.factor.jitter)

    def whole_masses(self, K: Tensor) -> Tensor:
        """Return masses of the representatives that sum to one."""
        return self.space.marginal() + K @ self.filled

    def masses(self, K: Tensor) -> Tensor:
        """Return the masses of the representatives, given kernel values with the landmarks."""
        found = self.whole_masses(K)
        return found if self.fills else found - (1.0 - K @ self.total) * self.space.marginal()

    def row_weights(self, K: Tensor) -> Tensor:
        """Return ``w_i z_i^T S^-1 z(x)`` for the rows as given: the weights of their targets."""
        system, place = self.system, torch.from_numpy(self.rows.place)
        solved = system.factor.solve(triangular_solve(system.root, K.T))  # S^-1 z(x), a column for each new row
        found = torch.cat([Z @ solved for _, Z, _ in system.features()])[place].T  # equal rows share their weight
        return found + (1.0 - found.sum(1, keepdim=True)) / len(place) if self.fills else found

    def solve(self, values: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return the value of ``E[g(Y) | x]`` far from all data, and the coefficients of k(x) in it."""
        merged = torch.from_numpy(self.rows.means(values))
        counts = torch.from_numpy(self.rows.counts).double()
        means = counts @ merged / counts.sum() * self.fills
        return means, self.system.coefficients(self.system.sums(merged - means))


def embed_any_by_landmarks(
    kernel: Kernel, rows: MergedRows, landmarks: Tensor, ridge: float, space: TargetSpace, *, fills: bool
) -> LandmarkEmbedding:
    """Solve the embedding of targets of any kind in the span of landmarks."""
    system, few = LandmarkSystem.of(kernel, rows, landmarks, ridge), Representatives.of(space)
    number = torch.from_numpy(rows.number)
    total = torch.zeros(len(landmarks), 1, dtype=torch.float64)
    masses = torch.zeros(len(landmarks), len(few.space.values), dtype=torch.float64)
    for weights, Z, at in system.features():
        weighted = weights[:, None] * Z
        total += weighted.sum(0)[:, None]
        masses += few.sums(weighted, number[at])
    filled = system.coefficients(masses - total * few.space.marginal())
    return LandmarkEmbedding(system, ridge, few.space, filled, system.coefficients(total), fills)
