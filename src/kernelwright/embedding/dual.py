"""The conditional mean embedding in its dual form: one regularised solve with the kernel matrix.

With weights w (ones unless given), ``noise_i = ridge * sum(w) / w_i`` and ``A = K + diag(noise)``, the
coefficients are ``V = A^-1 (Y - prior)`` and the outputs at x are ``f(x) = prior + V^T k(x)``: Eq. (5) of
[Hsu2018]_ where the prior is zero. A weight says how much a row counts in the loss: a row of weight two moves the
embedding as two equal rows would. What is left out is always a row that was given, with its whole weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.numerics.linalg import Factor, factorise, factorise_in_single, refined_solution, solve_blocks

__all__ = [
    "DualEmbedding",
    "clip_normalise",
    "embed",
    "embed_in_single",
    "leave_one_out_divisor",
    "rows_by_group",
    "without_groups",
]


BLOCK_ROWS = 256  # of a matrix in single precision, held in double at once


@dataclass(frozen=True)
class DualEmbedding:
    """The solution of one embedding problem."""

    coefficients: Tensor  # V
    noise: Tensor
    data: TrainingSet
    factor: Factor

    @property
    def fitted(self) -> Tensor:
        """Outputs at the training points, ``prior + K V``, without a product: ``Y - noise V``."""
        return self.data.targets - self.noise[:, None] * self.coefficients

    @property
    def squared_norm(self) -> float:
        """``tr(V^T K V)``, the squared Hilbert-Schmidt norm of the embedding operator."""
        K_V = self.data.centred - self.noise[:, None] * self.coefficients
        return max(float((self.coefficients * K_V).sum()), 0.0)

    def outputs(self, K: Tensor) -> Tensor:
        """Raw outputs (Eq. 5) for rows of kernel values with the training points."""
        return self.data.prior + K @ self.coefficients

    def weights(self, K: Tensor) -> Tensor:
        """``A^-1 k(x)`` for each row: the weights of the training targets in Eq. (2)."""
        return self.factor.solve(K.T.contiguous()).T

    def leave_one_out(self) -> Tensor:
        """Outputs at each training row by the embedding of all the others, in closed form.

        Where there are groups, by the embedding of all other groups.
        """
        data = self.data
        if data.groups is not None:
            return data.targets - without_groups(self.factor.inverse_blocks, self.coefficients, data.groups)
        divisor = leave_one_out_divisor(self.factor.inverse_diagonal(), data.one_of_equals, self.noise)
        return data.targets - self.coefficients / divisor[:, None]


def embed(K: Tensor, data: TrainingSet, ridge: float) -> DualEmbedding:
    """Solve the embedding for the kernel matrix K of the training points."""
    noise = data.noise(ridge)
    factor = factorise(K, noise)
    return DualEmbedding(factor.solve(data.centred), noise, data, factor)


def embed_in_single(K: Tensor, data: TrainingSet, ridge: float) -> DualEmbedding:
    """The same for a matrix K of single precision, with a factor of single precision; coefficients are refined."""
    noise = data.noise(ridge)
    factor = factorise_in_single(K, noise)

    def apply(V: Tensor) -> Tensor:
        product = torch.cat([rows.double() @ V for rows in K.split(BLOCK_ROWS)])
        return product + noise[:, None] * V

    return DualEmbedding(refined_solution(factor.solve, apply, data.centred), noise, data, factor)


def leave_one_out_divisor(inverse_diagonal: Tensor, share: Tensor, noise: Tensor) -> Tensor:
    """What ``V`` is divided by to give the leave-one-out residual ``Y - F``.

    A point that stands for one row goes as a whole (``share`` one), and the divisor is the diagonal a of ``A^-1``.
    Where equal rows were merged, the share s of one row in the weight of the point goes. That is a change of one
    diagonal entry of A, from ``noise`` to ``noise / (1 - s)``, hence ``s a + (1 - s) / noise``.
    """
    return share * inverse_diagonal + (1.0 - share) / noise


def without_groups(inverse_blocks: Callable[[Tensor], Tensor], V: Tensor, groups: Tensor) -> Tensor:
    """Residuals ``Y - F`` at each row by the embedding of all other groups: ``R_g = (A^-1)_gg^-1 V_g``.

    ``inverse_blocks`` gives the blocks of ``A^-1`` for the rows of some groups of equal size.
    """
    residuals = torch.empty_like(V)
    for rows in rows_by_group(groups):
        residuals[rows] = solve_blocks(inverse_blocks(rows), V[rows])
    return residuals


def rows_by_group(groups: Tensor) -> list[Tensor]:
    """Numbers of the rows of each group, one group in a row: a matrix for each size that groups have."""
    _, number, sizes = groups.unique(return_inverse=True, return_counts=True)
    order, starts = number.argsort(stable=True), sizes.cumsum(0) - sizes
    return [order[starts[sizes == size][:, None] + torch.arange(int(size))] for size in sizes.unique()]


def clip_normalise(outputs: Tensor) -> Tensor:
    """Negative outputs to zero, then sum one: Eq. (6) of [Hsu2018]_; uniform where nothing is left."""
    positive = outputs.clamp(min=0.0)
    largest = positive.max(1, keepdim=True).values
    positive = positive / largest.where(largest > 0, 1.0)  # so that the sum can neither vanish nor overflow
    return torch.where(largest > 0, positive / positive.sum(1, keepdim=True).clamp(min=1.0), 1.0 / outputs.shape[1])
