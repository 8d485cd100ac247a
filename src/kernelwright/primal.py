"""The embedding in its primal form: p x p algebra for explicit features, Algorithm 2 of [Hsu2018]_.

With features Z (n x p), weights w (ones unless given) and ``noise = n lambda``, the embedding is
``W = S^-1 Z^T diag(w) T`` with ``S = Z^T diag(w) Z + noise I`` and targets T; the outputs at x are ``W^T z(x)``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelwright.linalg import Factor, factorise, weighted_gram

__all__ = ["ridge_weights", "ridge_weights_and_leverages"]


def ridge_weights(Z: Tensor, T: Tensor, noise: Tensor, weights: Tensor | None = None) -> Tensor:
    """``W`` for features Z and targets T, differentiable in all arguments but the weights.

    The backward pass is in closed form: with ``G = dq/dW``, ``H = S^-1 G`` and ``R = T - Z W``,
    ``dq/dZ = w (R H^T) - (w Z H) W^T``, ``dq/dT = w Z H`` and ``dq/dnoise = -<H, W>``. Features of any precision and
    device are taken and given back; the solve is in float64 on the CPU. Where p > n it is one of size n x n.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.primal import ridge_weights
    >>> ridge_weights(torch.eye(2), torch.tensor([[2.0], [4.0]]), torch.tensor(1.0))
    tensor([[1.],
            [2.]])
    """
    W, _ = _Ridge.apply(Z, T, noise, weights, False)
    return W


def ridge_weights_and_leverages(
    Z: Tensor, T: Tensor, noise: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """``W`` and ``q_i = z_i^T S^-1 z_i``, by which leave-one-out outputs are in closed form.

    With ``g = dq/dq_i``, ``U = Z S^-1`` and ``M = U^T diag(g) U``, the leverages add ``2 g U - 2 w Z M`` to the
    gradient in Z and ``-tr M`` to that in the noise.
    """
    return _Ridge.apply(Z, T, noise, weights, True)


class _Ridge(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, Z: Tensor, T: Tensor, noise: Tensor, weights: Tensor | None, leverages: bool) -> Any:
        ctx.like, ctx.dual = (Z, T, noise), not leverages and Z.shape[1] > Z.shape[0]
        z, t = _solvable(Z), _solvable(T)
        w = None if weights is None else _solvable(weights)[:, None]
        level = float(noise.detach())
        if ctx.dual:  # W = Z^T diag(root) A^-1 diag(root) T with A = diag(root) Z Z^T diag(root) + noise
            root = z.new_ones(1, 1) if w is None else w.sqrt()
            ctx.factor = factorise(weighted_gram((root * z).T.contiguous()), level)
            W = (root * z).T @ ctx.factor.solve(root * t)
        else:
            ctx.factor = factorise(weighted_gram(z, w), level)
            W = ctx.factor.solve(z.T @ (t if w is None else w * t))
        U = ctx.factor.solve(z.T).T if leverages else z.new_empty(0)
        ctx.level, ctx.parts = level, (z, t, w, W, U)
        q = (z * U).sum(1) if leverages else z.new_empty(0)
        return W.to(Z), q.to(Z)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        z, t, w, W, U = ctx.parts
        G, g = (_solvable(slope) for slope in slopes)
        H = _inverse_times(ctx.factor, z, w, ctx.level, G) if ctx.dual else ctx.factor.solve(G)
        weighted = (lambda a: a) if w is None else (lambda a: w * a)
        ZH = weighted(z @ H)
        d_z = weighted(t - z @ W) @ H.T
        d_z.addmm_(ZH, W.T, alpha=-1.0)
        d_noise = -(H * W).sum()
        if len(U):
            M = U.T @ (g[:, None] * U)
            d_z += 2.0 * (g[:, None] * U - weighted(z @ M))
            d_noise = d_noise - M.trace()
        Z, T, noise = ctx.like
        return d_z.to(Z), ZH.to(T), d_noise.to(noise), None, None


def _inverse_times(factor: Factor, z: Tensor, w: Tensor | None, noise: float, G: Tensor) -> Tensor:
    """``S^-1 G`` from the n x n factor: ``(G - Z^T A^-1 Z G) / noise`` with weighted rows."""
    rows = z if w is None else w.sqrt() * z
    return (G - rows.T @ factor.solve(rows @ G)) / noise


def _solvable(A: Tensor) -> Tensor:
    return A.detach().to("cpu", torch.float64)
