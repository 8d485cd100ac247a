"""Learning the numbers of a hyper-kernel by gradient, on pairs of points that are left out of the fit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.hyper.bases import Basis
from kernelwright.hyper.pairs import Pairs
from kernelwright.hyperkernels import HyperKernel, PointPairs
from kernelwright.linalg import Workspace, factorise
from kernelwright.objectives import Evaluation

__all__ = ["HeldOutPoints", "PairSplit", "split_points"]


@dataclass(frozen=True)
class PairSplit:
    """Pairs to fit on, and pairs with at least one other point to be judged by."""

    points: Tensor
    fit: Pairs
    judge: Pairs

    def __len__(self) -> int:
        return len(self.points)


def split_points(X: Tensor, pairs: Pairs, generator: torch.Generator, share: float = 0.5) -> PairSplit:
    """Set aside a share of the points, and with them all their pairs."""
    out = torch.zeros(len(X), dtype=torch.bool)
    out[torch.randperm(len(X), generator=generator)[: int(share * len(X))]] = True
    judged = out[pairs.first] | out[pairs.second]
    return PairSplit(X, pairs.subset((~judged).nonzero()[:, 0]), pairs.subset(judged.nonzero()[:, 0]))


@dataclass(frozen=True)
class HeldOutPoints:
    """Relative squared error of the ridge regression at held-out points, with its gradient in closed form.

    With ``S = Phi^T W Phi + N ridge G``, ``w = S^-1 Phi^T W y``, residuals r (fit) and r' (judged) and the adjoint
    ``h = S^-1 Phi'^T W' r'``, the derivative is
    ``<W' r' w^T, dPhi'> + <W r h^T - W Phi h w^T, dPhi> - N ridge h^T dG w``: one pass of autograd through the
    hyper-kernel's formula, none through a factorisation.
    """

    basis: Basis  # of the hyper-kernel that is learned
    ridge: float

    def __call__(self, hyper: HyperKernel, data: PairSplit, workspace: Workspace | None = None) -> Evaluation:
        """Value and gradient in the raw parameters of the hyper-kernel."""
        parameters = {name: p for name, p in hyper.named_parameters() if p.requires_grad}
        with torch.enable_grad():
            Phi, Phi_out, G = self._at(data.points, data.fit), self._at(data.points, data.judge), self.basis.gram()
            value, d_Phi, d_out, d_G = _adjoint(Phi.detach(), Phi_out.detach(), G.detach(), data, self.ridge)
            surrogate = (d_Phi * Phi).sum() + (d_out * Phi_out).sum() + (d_G * G).sum()
        slopes = torch.autograd.grad(surrogate, list(parameters.values()), allow_unused=True)
        gradients = {
            name: torch.zeros_like(p) if slope is None else slope
            for (name, p), slope in zip(parameters.items(), slopes, strict=True)
        }
        return Evaluation(value, value, 0.0, gradients)

    def _at(self, X: Tensor, pairs: Pairs) -> Tensor:
        return self.basis.at(PointPairs(X[pairs.first], X[pairs.second]))


def _adjoint(
    Phi: Tensor, Phi_out: Tensor, G: Tensor, data: PairSplit, ridge: float
) -> tuple[float, Tensor, Tensor, Tensor]:
    """The value, and its derivatives in Phi, Phi' and G."""
    weights, weights_out = data.fit.weights[:, None], data.judge.weights[:, None]
    y, y_out = data.fit.targets[:, None], data.judge.targets[:, None]
    noise = ridge * float(weights.sum())
    S = Phi.T @ (weights * Phi) + noise * G
    factor = factorise(S, 1e-12 * float(S.diagonal().mean()))
    w = factor.solve(Phi.T @ (weights * y))
    size = float((weights_out * y_out**2).sum())
    residual, residual_out = weights * (y - Phi @ w), weights_out * (Phi_out @ w - y_out) / size
    value = float((residual_out * (Phi_out @ w - y_out)).sum())
    h = factor.solve(Phi_out.T @ (2.0 * residual_out))
    d_Phi = residual @ h.T - (weights * (Phi @ h)) @ w.T
    return value, d_Phi, 2.0 * residual_out @ w.T, -noise * (h @ w.T)
