"""The embedding in the span of landmarks: ``f(x) = prior + alpha^T k(x)``, k(x) the kernel values with M landmarks.

alpha minimises ``sum_i w_i |t_i - alpha^T k(x_i)|^2 + noise tr(alpha^T K_MM alpha)`` over all n rows: the ridge
regression of the dual form, restricted to the span of the landmarks (identical if every row is a landmark).
The normal equations ``(K_Mn W K_nM + noise K_MM) alpha = K_Mn W T`` are solved by conjugate gradients with the
preconditioner of [Rudi2017]_, which estimates ``K_Mn K_nM`` from the landmarks alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.numerics.linalg import factorise, triangular_solve
from kernelwright.numerics.memory import free_memory

__all__ = ["KernelRows", "NystroemEmbedding", "embed_by_landmarks"]

LANDMARK_KERNEL_VALUES = 2**20  # computed at once, and still in the cache for a product and its transpose
DOUBLE_UP_TO = 2**24  # kernel values; if there are more, they are kept in single precision
MOST_STEPS = 200
FLOOR = {torch.float32: 1e-6, torch.float64: 1e-10}  # of the eigenvalues of K_MM, relative to its diagonal
RESIDUAL = {torch.float32: 1e-3, torch.float64: 1e-6}  # relative; single precision does not reach further


@dataclass(frozen=True)
class NystroemEmbedding:
    """An embedding in the span of landmarks."""

    coefficients: Tensor  # alpha, a row for each landmark
    squared_norm: float  # tr(alpha^T K_MM alpha)
    n_iter: int
    residual: float  # of the preconditioned equations, relative


class KernelRows:
    """The n x M kernel matrix, by blocks of rows: kept if it fits a share of the free memory, else recomputed.

    A large matrix is in single precision by default: rounding kernel values by 1e-7 is far below the noise of so many
    rows. Sums over blocks and solves are in double precision.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Tensor,
        landmarks: Tensor,
        share: float = 0.5,
        dtype: torch.dtype | None = None,
    ) -> None:
        usual = torch.float32 if len(points) * len(landmarks) > DOUBLE_UP_TO else torch.float64
        self.dtype = usual if dtype is None else dtype
        self.kernel = copy.deepcopy(kernel).to(self.dtype)
        self.points, self.landmarks = points, landmarks.to(self.dtype)
        self.rows = max(1, LANDMARK_KERNEL_VALUES // len(landmarks))
        # One piece of memory for all blocks: many small pieces would fragment memory and take twice as much.
        fits = self.dtype.itemsize * len(points) * len(landmarks) < share * free_memory()
        self.kept = torch.empty(len(points), len(landmarks), dtype=self.dtype) if fits else None
        self._filled = 0  # number of rows filled so far

    def __iter__(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield row ranges and their kernel values."""
        for start in range(0, len(self.points), self.rows):
            rows = slice(start, min(start + self.rows, len(self.points)))
            if self.kept is not None and rows.stop <= self._filled:
                yield rows, self.kept[rows]
                continue
            with torch.no_grad():
                block = self.kernel.forward(self.points[rows].to(self.dtype), self.landmarks).to(self.dtype)
            if self.kept is not None:
                self.kept[rows], self._filled = block, rows.stop
            yield rows, block


def embed_by_landmarks(
    kernel: Kernel, data: TrainingSet, ridge: float, landmarks: Tensor, *, rows: KernelRows | None = None
) -> NystroemEmbedding:
    """Solve for the coefficients of ``landmarks`` on all rows of ``data``."""
    noise, w = ridge * data.total_weight, data.weights[:, None]
    rows = KernelRows(kernel, data.points, landmarks) if rows is None else rows
    # If the targets of each row sum to zero, so do its coefficients: the last column follows from the others.
    balanced = float(data.centred.sum(1).abs().max()) < 1e-9
    T, weights = (w * (data.centred[:, :-1] if balanced else data.centred)).to(rows.dtype), w.to(rows.dtype)
    K_MM = kernel.matrix(landmarks)
    # Directions below the rounding error carry no information; without a floor, all steps would be spent on them.
    K_MM.diagonal().add_(FLOOR[rows.dtype] * float(K_MM.diagonal().mean()))
    precondition = _Preconditioner(K_MM, noise, data.total_weight)

    def normal(v: Tensor) -> Tensor:
        """Return ``(K_Mn W K_nM + noise K_MM) v``."""
        total, v = noise * (K_MM @ v), v.to(rows.dtype)
        for at, block in rows:
            total += block.T @ (weights[at] * (block @ v))
        return total

    right = torch.zeros(len(landmarks), T.shape[1], dtype=torch.float64)
    for at, block in rows:
        right += block.T @ T[at]
    beta, n_iter, residual = _conjugate_gradients(
        lambda b: precondition.left(normal(precondition.right(b))), precondition.left(right), RESIDUAL[rows.dtype]
    )
    alpha = precondition.right(beta)
    if balanced:
        alpha = torch.cat([alpha, -alpha.sum(1, keepdim=True)], 1)
    return NystroemEmbedding(alpha, float((alpha * (K_MM @ alpha)).sum()), n_iter, residual)


class _Preconditioner:
    """``B B^T ~ (K_Mn W K_nM + noise K_MM)^-1``, from ``K_Mn W K_nM ~ (n / M) K_MM^2``.

    With ``K_MM = L L^T`` and ``(n / M) L^T L + noise I = R R^T`` it is ``B = L^-T R^-T``.
    """

    def __init__(self, K_MM: Tensor, noise: float, n: float) -> None:
        self.L = factorise(K_MM)
        self.R = factorise(self.L.transposed_product().mul_(n / len(K_MM)), noise)

    def right(self, v: Tensor) -> Tensor:
        """``B v``."""
        return triangular_solve(self.L, triangular_solve(self.R, v, transposed=True), transposed=True)

    def left(self, v: Tensor) -> Tensor:
        """``B^T v``."""
        return triangular_solve(self.R, triangular_solve(self.L, v))


def _conjugate_gradients(apply: Callable[[Tensor], Tensor], right: Tensor, tol: float) -> tuple[Tensor, int, float]:
    """Solve ``apply(x) = right`` for each column; stop when all residuals are small."""
    x, r = torch.zeros_like(right), right.clone()
    p, size = r.clone(), (r * r).sum(0)
    goal = tol**2 * size.clamp(min=1e-300)
    n_iter = 0
    while n_iter < MOST_STEPS:
        n_iter += 1
        q = apply(p)
        a = size / (p * q).sum(0).clamp(min=1e-300)
        x, r = x + a * p, r - a * q
        size, old = (r * r).sum(0), size
        if bool((size <= goal).all()):
            break
        p = r + size / old.clamp(min=1e-300) * p
    return x, n_iter, float((size / goal).max().sqrt() * tol)
