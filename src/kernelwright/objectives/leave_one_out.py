"""The leave-one-out objective, for rows or groups."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.embedding.dual import leave_one_out_divisor, rows_by_group, without_groups
from kernelwright.embedding.primal import (
    left_out_residuals,
    ridge_weights_and_influence,
    ridge_weights_and_leverages,
)
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.numerics.linalg import factorise, factorise_in_single
from kernelwright.numerics.products import symmetric_outer
from kernelwright.objectives.base import Objective
from kernelwright.objectives.losses import BRIER, Loss
from kernelwright.objectives.single import Solve, go_on_in_double, refined
from kernelwright.objectives.terms import DualTerms, PrimalTerms, Setting

__all__ = ["LeaveOneOutObjective"]

INVERSE_ERROR = 1e-5  # of a single precision inverse, relative to its diagonal: too small to affect learning


@dataclass(frozen=True)
class LeaveOneOutObjective(Objective):
    """The mean leave-one-out loss, in closed form, plus tau r."""

    loss: Loss = BRIER

    def dual(self, K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None = None) -> DualTerms:  # noqa: D102
        return _dual(K, data, at, memory)

    def primal(self, Z: Tensor, data: TrainingSet, at: Setting) -> PrimalTerms:  # noqa: D102
        return _primal(Z, data, at)


def _primal(Z: Tensor, data: TrainingSet, at: Setting) -> PrimalTerms:
    """Evaluate with leverages; the solve inside is differentiated in closed form (``embedding/primal.py``)."""
    with torch.enable_grad():
        z = Z.detach().requires_grad_()
        noise = torch.tensor(at.ridge * data.total_weight, dtype=torch.float64, requires_grad=True)
        if data.groups is None:
            W, q = ridge_weights_and_leverages(z, data.centred, noise, data.weights)
            residuals = (data.centred - z @ W) / (1.0 - data.weights * data.one_of_equals * q)[:, None]
        else:
            W, U = ridge_weights_and_influence(z, data.centred, noise, data.weights)
            residuals = left_out_residuals(z, U, data.centred - z @ W, data)
        F, squared_norm = data.targets - residuals, (W * W).sum()
        loss, G = at.loss(F.detach(), data)
        complexity, c = at.complexity_and_slope(float(squared_norm.detach()))
        d_z, d_noise = torch.autograd.grad((G * F).sum() + c * squared_norm, [z, noise])
    return PrimalTerms(loss, complexity, d_z, float(d_noise) * data.total_weight, at.slope_in_sup(complexity))


def _dual(K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None) -> DualTerms:
    """Evaluate at leave-one-out outputs ``F = Y - R``, ``R = V / b`` with b from the diagonal of ``A^-1``.

    With G = dloss/dF and ``H = G / b``: ``dq/dA = A^-1 H V^T - A^-1 D A^-1``, D the diagonal of ``H R^T`` (times the
    share of one row in its point). If whole groups are left out, b stands for the blocks of ``A^-1`` and D
    for the blocks of ``H R^T``.

    In single precision the solutions are refined; the inverse is not, but some of its entries are checked.
    """
    noise = data.noise(at.ridge)
    if at.precision != "double":
        try:
            inverse = factorise_in_single(K, noise, memory).into_inverse_()
            solve = refined(lambda B: (inverse @ B.float()).double(), K, noise)
            _check_inverse(inverse, solve)
            return _by_inverse_(inverse, solve, data, at)
        except NumericalError as error:
            go_on_in_double(error, at)
    inverse = factorise(K, noise, memory).into_inverse_()
    return _by_inverse_(inverse, inverse.matmul, data, at)


def _check_inverse(inverse: Tensor, solve: Solve) -> None:
    """Raise an error if columns of a single precision inverse are wrong: the extreme ones, the first and the last."""
    diagonal = inverse.diagonal()
    some = torch.tensor([0, len(inverse) - 1, int(diagonal.argmin()), int(diagonal.argmax())])
    units = torch.zeros(len(inverse), len(some), dtype=torch.float64)
    units[some, torch.arange(len(some))] = 1.0
    error = float(((inverse[:, some] - solve(units)) / diagonal[some]).abs().max())
    if not error <= INVERSE_ERROR:
        raise NumericalError(f"An inverse in single precision has entries that are wrong by {error:.0e}.")


def _by_inverse_(inverse: Tensor, solve: Solve, data: TrainingSet, at: Setting) -> DualTerms:
    """Evaluate with ``A^-1``, which is overwritten, and a function that multiplies by it."""
    noise = data.noise(at.ridge)
    V = solve(data.centred)
    left_out = (
        _WholeGroups(inverse, data.groups)
        if data.groups is not None
        else _SingleRows(inverse, data.one_of_equals, noise)
    )
    R = left_out.solve(V)
    loss, G = at.loss(data.targets - R, data)
    H = left_out.solve(G)
    complexity, c = at.complexity_and_slope(float((V * (data.centred - noise[:, None] * V)).sum()))
    B = solve(H + 2.0 * c * noise[:, None] * V) - c * V
    d_noise = -c * (V * V).sum(1) + left_out.slope_in_noise(H, R)
    d_K = left_out.sandwich_(H, R).double().addmm_(B, V.T)
    d_noise += d_K.diagonal()
    return DualTerms(loss, complexity, d_K, float(d_noise @ noise) / at.ridge, at.slope_in_sup(complexity))


@dataclass(frozen=True)
class _SingleRows:
    """Rows that are left out one at a time: ``R = V / b``."""

    inverse: Tensor
    share: Tensor
    noise: Tensor

    def solve(self, B: Tensor) -> Tensor:
        divisor = leave_one_out_divisor(self.inverse.diagonal().double(), self.share, self.noise)
        return B / divisor[:, None]

    def slope_in_noise(self, H: Tensor, R: Tensor) -> Tensor:
        """Return the derivative of b in the noise, if only a share of a point is left out."""
        return -(H * R).sum(1) * (1.0 - self.share) / self.noise**2

    def sandwich_(self, H: Tensor, R: Tensor) -> Tensor:
        """Return ``-A^-1 diag(g) A^-1`` with ``g = share sum_k H_ik R_ik``; the inverse is overwritten."""
        return _sandwich_(self.inverse, self.share * (H * R).sum(1))


@dataclass(frozen=True)
class _WholeGroups:
    """Groups that are left out as a whole: ``R_g = (A^-1)_gg^-1 V_g``."""

    inverse: Tensor
    groups: Tensor

    def solve(self, B: Tensor) -> Tensor:
        return without_groups(lambda rows: self.inverse[rows[:, :, None], rows[:, None, :]], B, self.groups)

    def slope_in_noise(self, H: Tensor, R: Tensor) -> Tensor:
        """Return zero: b depends on the noise only through A."""
        return torch.zeros(len(H), dtype=torch.float64)

    def sandwich_(self, H: Tensor, R: Tensor) -> Tensor:
        """Return ``-A^-1 D A^-1`` with blocks ``D_g = H_g R_g^T``."""
        middle = torch.empty_like(self.inverse)
        for rows in rows_by_group(self.groups):
            columns = torch.einsum("gsm,gsn->gmn", R[rows].to(self.inverse.dtype), self.inverse[rows])
            middle[rows] = H[rows].to(self.inverse.dtype) @ columns
        return -(self.inverse @ middle)


def _sandwich_(inverse: Tensor, g: Tensor) -> Tensor:
    """Return ``-A^-1 diag(g) A^-1`` by half a product, with one triangle counted twice (see ``symmetric_outer``).

    Columns with positive and negative g are handled separately (for the Brier loss there is one sign only). The inverse
    is overwritten.
    """
    g = g.to(inverse.dtype)
    falling = g <= 0
    if bool(falling.all()):
        return symmetric_outer(inverse.mul_((-g).sqrt()))
    parts = (symmetric_outer(inverse[:, side] * g[side].abs().sqrt()) for side in (falling, ~falling))
    return next(parts).sub_(next(parts))
