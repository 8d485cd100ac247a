"""Learning the parameters of a hyper-kernel by gradient descent on the error at held-out points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from torch import Tensor

from kernelwright.hyper.bases import Basis, landmarks_among, whitening
from kernelwright.hyper.kernels import HyperKernel, PointPairs
from kernelwright.hyper.moments import fold_moments, point_splits
from kernelwright.hyper.pairs import Pairs, some_pairs
from kernelwright.hyper.regression import folds_of
from kernelwright.hyper.ridge import RIDGES, PrimalPath, largest_good, leave_points_out
from kernelwright.hyper.solvers import LandmarkPairs, Midpoints
from kernelwright.hyper.targets import Target
from kernelwright.learning.loop import Step, train
from kernelwright.learning.optimisers import LBFGS
from kernelwright.numerics.linalg import Workspace, factorise
from kernelwright.objectives import ObjectiveValue
from kernelwright.storage.saved import saved

__all__ = ["HeldOutMetric", "HeldOutPoints", "PairSplit", "as_learning", "learned_hyperkernel", "split_points"]

LEARNING_PAIRS, LEARNING_CENTRES, LEARNING_ROUNDS, LEARNING_RIDGE = 6000, 20, 3, 1e-3


@saved("held-out-metric")
class HeldOutMetric(BaseEstimator):
    """Learn the hyper-kernel by gradient, with one length scale for each feature. Its short form is "held-out".

    It minimises the squared error at held-out points.

    Parameters
    ----------
    max_iter : int, default=30
        Maximum number of steps.

    Examples
    --------
    >>> from kernelwright import HyperKernelRidge, hyper
    >>> HyperKernelRidge(learn=hyper.HeldOutMetric()).set_params(learn__max_iter=10).learn
    HeldOutMetric(max_iter=10)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"max_iter": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, max_iter: int = 30) -> None:
        self.max_iter = max_iter


def as_learning(learn: str | HeldOutMetric | None) -> HeldOutMetric | None:
    """Return the object that a short form stands for, with checked parameters."""
    found = HeldOutMetric() if isinstance(learn, str) else learn
    if found is not None:
        found._validate_params()
    return found


def learned_hyperkernel(
    start: HyperKernel, X: Tensor, goal: Target, learn: HeldOutMetric, *, rule: str, random: torch.Generator
) -> tuple[HyperKernel, list[Step]]:
    """Learn the parameters on a sample of pairs, in rounds, each with the best ridge at its start.

    ``start`` is not changed. ``rule`` says how landmarks are chosen among the points.
    """
    hyper = start.with_free_metric(X.shape[1])
    some = torch.randperm(len(X), generator=random)[: LEARNING_PAIRS // 4].sort().values
    points, target = X[some], goal.subset(some)
    pairs = some_pairs(target, points, LEARNING_PAIRS, random)
    seed = int(torch.randint(2**31 - 1, (), generator=random))
    solver = LandmarkPairs() if hyper.widths() is None else Midpoints()
    basis = solver.basis(hyper, points, pairs, landmarks_among(points, LEARNING_CENTRES, rule, seed), seed)
    split, folds = split_points(points, pairs, random), folds_of(len(points), random)
    rounds = min(LEARNING_ROUNDS, learn.max_iter)
    history: list[Step] = []
    for _ in range(rounds):
        with torch.no_grad():
            solve = partial(PrimalPath, T=whitening(basis.gram()), bias=True)
            splits = point_splits(fold_moments(basis, points, pairs, folds))
            ridge = largest_good(RIDGES, leave_points_out(splits, solve))
        # If the first parameters fit nothing, all ridges are equally good, and a large one would hide later progress.
        objective = HeldOutPoints(basis, min(ridge, LEARNING_RIDGE))
        steps = LBFGS(learn.max_iter // rounds)
        history += train(objective, hyper, split, optimizer=steps).history  # type: ignore[arg-type]
    return hyper, history


@dataclass(frozen=True)
class PairSplit:
    """Pairs to fit on, and held-out pairs with at least one other point."""

    points: Tensor
    fit: Pairs
    judge: Pairs

    def __len__(self) -> int:
        return len(self.points)


def split_points(X: Tensor, pairs: Pairs, generator: torch.Generator, share: float = 0.5) -> PairSplit:
    """Hold out a share of the points, together with all their pairs."""
    out = torch.zeros(len(X), dtype=torch.bool)
    out[torch.randperm(len(X), generator=generator)[: int(share * len(X))]] = True
    judged = out[pairs.first] | out[pairs.second]
    return PairSplit(X, pairs.subset((~judged).nonzero()[:, 0]), pairs.subset(judged.nonzero()[:, 0]))


@dataclass(frozen=True)
class HeldOutPoints:
    """The relative squared error of the ridge regression at held-out points, with its gradient in closed form.

    With ``S = Phi^T W Phi + N ridge G``, ``w = S^-1 Phi^T W y``, residuals r (fitted) and r' (held out) and the adjoint
    ``h = S^-1 Phi'^T W' r'``, the derivative is
    ``<W' r' w^T, dPhi'> + <W r h^T - W Phi h w^T, dPhi> - N ridge h^T dG w``. Autograd runs once through the
    hyper-kernel's formula, and never through a factorisation.
    """

    basis: Basis  # basis functions of the hyper-kernel that is learned
    ridge: float

    def __call__(self, hyper: HyperKernel, data: PairSplit, workspace: Workspace | None = None) -> ObjectiveValue:
        """Return the value, and its gradient with respect to the raw parameters of the hyper-kernel."""
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
        return ObjectiveValue(value, value, 0.0, gradients)

    def _at(self, X: Tensor, pairs: Pairs) -> Tensor:
        return self.basis.at(PointPairs(X[pairs.first], X[pairs.second]))


def _adjoint(
    Phi: Tensor, Phi_out: Tensor, G: Tensor, data: PairSplit, ridge: float
) -> tuple[float, Tensor, Tensor, Tensor]:
    """Return the value, and its derivatives with respect to Phi, Phi' and G."""
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
