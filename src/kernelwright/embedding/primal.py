"""The embedding in its primal form: p x p algebra for explicit features, Algorithm 2 of [Hsu2018]_.

With features Z (n x p), weights w (ones unless given) and ``noise = n lambda``, the embedding is
``W = S^-1 Z^T diag(w) T`` with ``S = Z^T diag(w) Z + noise I`` and targets T; the outputs at x are ``W^T z(x)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernelwright.embedding.dual import rows_by_group
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.numerics.linalg import Factor, factorise, triangular_solve
from kernelwright.numerics.products import thin_product, weighted_gram
from kernelwright.storage.saved import saved

__all__ = [
    "FeatureSums",
    "Moments",
    "RidgeSystem",
    "left_out_residuals",
    "ridge_weights",
    "ridge_weights_and_influence",
    "ridge_weights_and_leverages",
]

# A sum of single precision products errs by about 1e-7 of the trace: at most a hundredth of such a noise.
SINGLE_FROM = 1e-5


def ridge_weights(Z: Tensor, T: Tensor, noise: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return ``W`` for features Z and targets T, differentiable in all arguments but the weights.

    The backward pass is in closed form: with ``G = dq/dW``, ``H = S^-1 G`` and ``R = T - Z W``,
    ``dq/dZ = w (R H^T) - (w Z H) W^T``, ``dq/dT = w Z H`` and ``dq/dnoise = -<H, W>``. Features may have any precision
    and device; the solve is in float64 on the CPU. (Products of float32 features are in float32 if the noise is far
    above their rounding error.) If p > n, an n x n system is solved.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.embedding.primal import ridge_weights
    >>> ridge_weights(torch.eye(2), torch.tensor([[2.0], [4.0]]), torch.tensor(1.0))
    tensor([[1.],
            [2.]])
    """
    W, _ = _Ridge.apply(Z, T, noise, weights, False)
    return W


def ridge_weights_and_leverages(
    Z: Tensor, T: Tensor, noise: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return ``W`` and the leverages ``q_i = z_i^T S^-1 z_i``, which give leave-one-out outputs in closed form.

    With ``g = dq/dq_i``, ``U = Z S^-1`` and ``M = U^T diag(g) U``, the leverages add ``2 g U - 2 w Z M`` to the
    gradient in Z and ``-tr M`` to that in the noise.
    """
    return _Ridge.apply(Z, T, noise, weights, True)


def ridge_weights_and_influence(
    Z: Tensor, T: Tensor, noise: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return ``W`` and ``U = Z S^-1``, which give leave-one-group-out outputs in closed form.

    With ``E = dq/dU`` and ``Q = U^T E S^-1``, U adds ``E S^-1 - w Z (Q + Q^T)`` to the gradient in Z and ``-tr Q`` to
    that in the noise.
    """
    return _Influence.apply(Z, T, noise, weights)


def left_out_residuals(Z: Tensor, U: Tensor, residuals: Tensor, data: TrainingSet) -> Tensor:
    """Return leave-one-out (or leave-one-group-out) residuals of each row: ``(I - Z_g U_g^T W_g)^-1 R_g``.

    Z and U belong to the rows of ``data``, which hold complete groups; only products of Z and U matter.
    """
    if data.groups is None:
        leverages = (data.weights * data.one_of_equals * (Z * U).sum(1)).clamp(max=1.0 - 1e-10)
        return residuals / (1.0 - leverages)[:, None]
    parts, order = [], []
    for rows in rows_by_group(data.groups):
        weighted = U[rows] * data.weights[rows][:, :, None]
        left = torch.eye(rows.shape[1], dtype=Z.dtype) - Z[rows] @ weighted.transpose(1, 2)
        parts.append(torch.linalg.solve(left, residuals[rows]).flatten(0, 1))
        order.append(rows.flatten())
    return torch.cat(parts)[torch.cat(order).argsort()]


@dataclass(frozen=True)
class RidgeSystem:
    """The system ``S = Z^T diag(w) Z + noise I`` with a factor of the smaller of its two forms."""

    z: Tensor  # features, in the working precision
    w: Tensor | None  # a column
    noise: float
    factor: Factor  # of S, or if p > n of diag(root) Z Z^T diag(root) + noise with root = sqrt(w)

    @classmethod
    def of(cls, Z: Tensor, noise: float, weights: Tensor | None = None, *, primal: bool = False) -> RidgeSystem:
        """Factorise the system; ``primal`` requests the factor of S itself."""
        dual = not primal and Z.shape[1] > Z.shape[0]
        z = _solvable(Z) if primal or dual else _workable(Z, noise)
        w = None if weights is None else weights.detach().to(z)[:, None]
        rows = _rooted(z, w)
        gram = weighted_gram(rows.T.contiguous() if dual else rows, whole=False)
        return cls(z, w, noise, factorise(gram, noise))

    @property
    def dual(self) -> bool:
        """Whether the factor is n x n."""
        return len(self.factor) != self.z.shape[1]

    def weighted(self, rows: Tensor) -> Tensor:
        """Return the rows times their weights."""
        return rows if self.w is None else self.w * rows

    def weights(self, t: Tensor) -> Tensor:
        """Return ``W = S^-1 Z^T diag(w) t``."""
        if self.dual:
            return _rooted(self.z, self.w).T @ self.factor.solve(_rooted(t, self.w))
        return self.factor.solve((self.weighted(t).T @ self.z).T.double())

    def solve(self, G: Tensor) -> Tensor:
        """Return ``S^-1 G``; with the n x n factor it is ``(G - Z^T A^-1 Z G) / noise`` with weighted rows."""
        if not self.dual:
            return self.factor.solve(G)
        rows = _rooted(self.z, self.w)
        return (G - rows.T @ self.factor.solve(rows @ G)) / self.noise


class _Ridge(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, Z: Tensor, T: Tensor, noise: Tensor, weights: Tensor | None, leverages: bool) -> Any:
        system = RidgeSystem.of(Z, float(noise.detach()), weights, primal=leverages)
        t = T.detach().to(system.z)
        W = system.weights(t)
        U = system.solve(system.z.T).T if leverages else system.z.new_empty(0)
        q = (system.z * U).sum(1) if leverages else system.z.new_empty(0)
        ctx.like, ctx.parts = (Z, T, noise), (system, t, W, U)
        return W.to(Z), q.to(Z)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        system, t, W, U = ctx.parts
        G, g = (_solvable(slope) for slope in slopes)
        H = system.solve(G)
        both = torch.cat([H, W], 1).to(system.z)
        ZH, ZW = thin_product(system.z, both).tensor_split(2, 1)
        ZH = system.weighted(ZH)
        d_z = torch.cat([system.weighted(t - ZW), -ZH], 1) @ both.T
        d_noise = -(H * W).sum()
        if len(U):
            M = U.T @ (g[:, None] * U)
            d_z += 2.0 * (g[:, None] * U - system.weighted(system.z @ M))
            d_noise = d_noise - M.trace()
        Z, T, noise = ctx.like
        return d_z.to(Z), ZH.to(T), d_noise.to(noise), None, None


class _Influence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, Z: Tensor, T: Tensor, noise: Tensor, weights: Tensor | None) -> Any:
        system = RidgeSystem.of(Z, float(noise.detach()), weights, primal=True)
        t = T.detach().to(system.z)
        W, U = system.weights(t), system.solve(system.z.T).T
        ctx.like, ctx.parts = (Z, T, noise), (system, t, W, U)
        return W.to(Z), U.to(Z)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        system, t, W, U = ctx.parts
        G, E = (_solvable(slope) for slope in slopes)
        H, through = system.solve(G), system.solve(E.T).T
        Q = U.T @ through
        ZH = system.weighted(system.z @ H)
        d_z = system.weighted(t - system.z @ W) @ H.T - ZH @ W.T
        d_z += through - system.weighted(system.z @ (Q + Q.T))
        Z, T, noise = ctx.like
        return d_z.to(Z), ZH.to(T), (-(H * W).sum() - Q.trace()).to(noise), None


def _rooted(rows: Tensor, w: Tensor | None) -> Tensor:
    return rows if w is None else w.sqrt() * rows


def _workable(Z: Tensor, noise: float) -> Tensor:
    """Return features on the CPU, in single precision if they have it and the noise covers its rounding error."""
    z = Z.detach().cpu()
    covered = z.dtype == torch.float32 and noise >= SINGLE_FROM * float(z.square().sum())
    return z if covered else z.double()


def _solvable(A: Tensor) -> Tensor:
    return A.detach().to("cpu", torch.float64)


@saved("feature-moments")
@dataclass(frozen=True)
class Moments:
    """All that an explicit embedding needs of its rows: sums and a maximum, so batches are combined by ``+``.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.embedding.primal import Moments
    >>> Z, w = torch.eye(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    >>> halves = Moments.of(Z[:1], Z[:1], w[:1]) + Moments.of(Z[1:], Z[1:], w[1:])
    >>> halves.weights(halves.factor(ridge=0.5))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """

    gram: Tensor  # Z^T diag(w) Z
    cross: Tensor  # Z^T diag(w) Y
    sums: Tensor  # Z^T w
    total: float  # sum w
    largest: float  # max |z|^2

    @classmethod
    def of(cls, Z: Tensor, targets: Tensor, w: Tensor) -> Moments:
        """Compute the moments of some rows."""
        Z = Z.double()
        weighted = w[:, None] * Z
        gram = weighted_gram(Z, w[:, None])
        return cls(gram, weighted.T @ targets, weighted.sum(0), float(w.sum()), float(Z.square().sum(1).max()))

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.gram + other.gram,
            self.cross + other.cross,
            self.sums + other.sums,
            self.total + other.total,
            max(self.largest, other.largest),
        )

    def factor(self, ridge: float) -> Factor:
        """Return the factor of S, for a ridge relative to the number of rows."""
        return factorise(self.gram, ridge * self.total)

    def weights(self, factor: Factor, prior: Tensor | float = 0.0) -> Tensor:
        """Return ``W``, the embedding of all summed rows, for targets minus the prior."""
        return factor.solve(self.cross - self.sums[:, None] * prior)

    def left_out(self, factor: Factor, Z: Tensor, rows: TrainingSet) -> Tensor:
        """Return leave-one-out outputs at some of the rows, with features Z, in closed form.

        With ``q = z^T S^-1 z`` the residual is ``(y - prior - W^T z) / (1 - w q)``, w the row weight. Groups must be
        complete.
        """
        fitted = rows.prior + Z @ self.weights(factor, rows.prior)
        half = triangular_solve(factor, Z.T.contiguous()).T  # half half^T = Z S^-1 Z^T
        return rows.targets - left_out_residuals(half, half, rows.targets - fitted, rows)


@saved("feature-sums")
@dataclass(frozen=True)
class FeatureSums:
    """All that an embedding of features keeps of its rows: it can be solved again, and rows can be added."""

    moments: Moments
    sample: TrainingSet  # a random sample of the rows, to calibrate on
    n_rows: int
    low: Tensor  # the range of the points
    high: Tensor
