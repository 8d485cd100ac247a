"""The conditional mean embedding in its dual form: one regularised solve with the kernel matrix.

With weights w (ones unless given), ``noise_i = ridge * sum(w) / w_i`` and ``A = K + diag(noise)``, the
coefficients are ``V = A^-1 (Y - prior)`` and the outputs at x are ``f(x) = prior + V^T k(x)``: Eq. (5) of
[Hsu2018]_ if the prior is zero. A weight says how much a row counts in the loss: a row of weight two acts like two
equal rows. Leaving out always means leaving out one given row, with its whole weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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


BLOCK_ROWS = 256  # rows of a single precision matrix converted to double at once


@dataclass(frozen=True)
class DualEmbedding:
    """The solution of one embedding problem."""

    coefficients: Tensor  # V
    noise: Tensor
    data: TrainingSet
    factor: Factor

    @property
    def fitted(self) -> Tensor:
        """The outputs at the training points, ``prior + K V``, computed without a product as ``Y - noise V``."""
        return self.data.targets - self.noise[:, None] * self.coefficients

    @property
    def squared_norm(self) -> float:
        """The squared Hilbert-Schmidt norm of the embedding operator, ``tr(V^T K V)``."""
        K_V = self.data.centred - self.noise[:, None] * self.coefficients
        return max(float((self.coefficients * K_V).sum()), 0.0)

    def outputs(self, K: Tensor) -> Tensor:
        """Return raw outputs (Eq. 5) from rows of kernel values with the training points."""
        return self.data.prior + K @ self.coefficients

    def weights(self, K: Tensor) -> Tensor:
        """Return ``A^-1 k(x)`` for each row: the weights of the training targets in Eq. (2)."""
        return self.factor.solve(K.T.contiguous()).T

    def leave_one_out(self) -> Tensor:
        """Return leave-one-out outputs at each training row, in closed form.

        If there are groups, whole groups are left out.
        """
        data = self.data
        if data.groups is not None:
            root = self.factor.inverse_root()
            return data.targets - without_groups(partial(_inverse_blocks, root), self.coefficients, data.groups)
        divisor = leave_one_out_divisor(self.factor.inverse_diagonal(), data.one_of_equals, self.noise)
        return data.targets - self.coefficients / divisor[:, None]


def embed(K: Tensor, data: TrainingSet, ridge: float) -> DualEmbedding:
    """Solve the embedding for the kernel matrix K of the training points."""
    noise = data.noise(ridge)
    factor = factorise(K, noise)
    return DualEmbedding(factor.solve(data.centred), noise, data, factor)


def embed_in_single(K: Tensor, data: TrainingSet, ridge: float) -> DualEmbedding:
    """Solve the embedding with a single precision matrix K and factor; the coefficients are refined."""
    noise = data.noise(ridge)
    factor = factorise_in_single(K, noise)

    def apply(V: Tensor) -> Tensor:
        product = torch.cat([rows.double() @ V for rows in K.split(BLOCK_ROWS)])
        return product + noise[:, None] * V

    return DualEmbedding(refined_solution(factor.solve, apply, data.centred), noise, data, factor)


def leave_one_out_divisor(inverse_diagonal: Tensor, share: Tensor, noise: Tensor) -> Tensor:
    """Return the divisor of ``V`` that gives the leave-one-out residual ``Y - F``.

    A point that stands for one row is left out completely (``share`` one); the divisor is the diagonal a of ``A^-1``.
    If equal rows were merged, only the share s of one row in the weight of the point is left out. This changes one
    diagonal entry of A from ``noise`` to ``noise / (1 - s)``, so the divisor is ``s a + (1 - s) / noise``.
    """
    return share * inverse_diagonal + (1.0 - share) / noise


def without_groups(inverse_blocks: Callable[[Tensor], Tensor], V: Tensor, groups: Tensor) -> Tensor:
    """Return leave-one-group-out residuals ``Y - F`` at each row: ``R_g = (A^-1)_gg^-1 V_g``.

    ``inverse_blocks`` returns the blocks of ``A^-1`` for the rows of groups of equal size.
    """
    residuals = torch.empty_like(V)
    for rows in rows_by_group(groups):
        residuals[rows] = solve_blocks(inverse_blocks(rows), V[rows])
    return residuals


def _inverse_blocks(root: Tensor, rows: Tensor) -> Tensor:
    """Return blocks of ``A^-1 = R R^T``, one for each row of ``rows``, a matrix of row indices."""
    own = root[rows]
    return (own @ own.mT).double()


def rows_by_group(groups: Tensor) -> list[Tensor]:
    """Return the row indices of each group, one group in a row: a matrix for each group size."""
    _, number, sizes = groups.unique(return_inverse=True, return_counts=True)
    order, starts = number.argsort(stable=True), sizes.cumsum(0) - sizes
    return [order[starts[sizes == size][:, None] + torch.arange(int(size))] for size in sizes.unique()]


def clip_normalise(outputs: Tensor) -> Tensor:
    """Set negative outputs to zero, then normalise the sum to one: Eq. (6) of [Hsu2018]_; uniform if all are zero."""
    positive = outputs.clamp(min=0.0)
    largest = positive.max(1, keepdim=True).values
    positive = positive / largest.where(largest > 0, 1.0)  # the sum can then neither vanish nor overflow
    return torch.where(largest > 0, positive / positive.sum(1, keepdim=True).clamp(min=1.0), 1.0 / outputs.shape[1])
