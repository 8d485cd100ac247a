"""The base class of objectives: from hyperparameters to a value and its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import FeatureKernel
from kernelwright.kernels.feature import FeatureMap
from kernelwright.numerics.linalg import Workspace
from kernelwright.numerics.products import Outer
from kernelwright.objectives.losses import LOG_LOSS, Loss, complexity_multiplier
from kernelwright.objectives.terms import DualTerms, Hyperparameters, ObjectiveValue, PrimalTerms, Setting

__all__ = ["Objective"]


@dataclass(frozen=True)
class Objective(ABC):
    """``loss + tau * complexity``; a subclass defines the rows at which the loss is taken, and the embedding used.

    Parameters
    ----------
    complexity_weight : float or str
        tau: a number, "4e", "4e/n", "4e/sqrt(n)" or "1/n".
    loss : Loss
    shrinkage : float
        ``shrinkage / n`` weighs the kernel's own penalty and the prior on the ridge.
    precision : {"double", "single", "auto"}
        Precision of factors, in objectives that factorise the matrix of all rows. With "single", solutions are refined
        to double precision residuals; if that fails, double is used, with a warning. "auto" does not warn. The p x p
        algebra of features is always in double.
    """

    complexity_weight: float | str = 0.0
    loss: Loss = LOG_LOSS
    shrinkage: float = 0.0
    precision: str = "double"

    @abstractmethod
    def dual(self, K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None = None) -> DualTerms:
        """Evaluate at a kernel matrix of the rows, in the order of :meth:`arranged`."""

    @abstractmethod
    def primal(self, Z: Tensor, data: TrainingSet, at: Setting) -> PrimalTerms:
        """Evaluate at features of the rows, with p x p solves (Algorithm 2 of [Hsu2018]_)."""

    def arranged(self, data: TrainingSet) -> TrainingSet:
        """Return the rows in the order that :meth:`dual` and :meth:`primal` expect."""
        return data

    def tau(self, data: TrainingSet) -> float:
        """Return the weight of the complexity for these rows."""
        return complexity_multiplier(self.complexity_weight, data.total_weight)

    def __call__(self, hyper: Hyperparameters, data: TrainingSet, workspace: Workspace | None = None) -> ObjectiveValue:
        """Return value and gradient; a ``workspace`` saves allocations at each step."""
        kernel, data = hyper.kernel, self.arranged(data)
        if isinstance(kernel, FeatureKernel) and kernel.features.n_features < len(data):
            return self._at_features(hyper, kernel.features, data)
        return self._at_kernel(hyper, data, workspace)

    def _at_kernel(self, hyper: Hyperparameters, data: TrainingSet, workspace: Workspace | None) -> ObjectiveValue:
        kernel, ridge, tau = hyper.kernel, float(hyper.ridge.detach()), self.tau(data)
        memory = None if workspace is None else workspace.matrix("factor", len(data))
        K, pullback = kernel.vjp_in(workspace, data.points)
        with torch.enable_grad():
            sup = kernel.usual_diag(data.points)
        terms = self.dual(K, data, Setting(ridge, tau, float(sup.detach()), self.loss, self.precision), memory)
        d_kernel = terms.d_kernel
        if isinstance(d_kernel, Outer) and not kernel.takes_outer:
            d_kernel = d_kernel.dense(memory)
        gradients = {f"kernel.{name}": g for name, g in pullback(d_kernel).items()}
        gradients["log_ridge"] = torch.tensor(ridge * terms.d_ridge, dtype=torch.float64)
        with torch.enable_grad():  # no matrix is involved in the rest
            penalty = self._penalty(hyper, data.total_weight)
            rest = penalty + terms.d_sup * sup
        for name, g in _gradients(rest, hyper).items():
            gradients[name] = gradients[name] + g
        value = terms.loss + tau * terms.complexity + float(penalty.detach())
        return ObjectiveValue(value, terms.loss, terms.complexity, gradients)

    def _at_features(self, hyper: Hyperparameters, features: FeatureMap, data: TrainingSet) -> ObjectiveValue:
        """Use p x p algebra, for fewer features than rows; autograd reaches what made the features."""
        tau = self.tau(data)
        with torch.enable_grad():
            Z = features(data.points)
            sup = (Z * Z).sum(1).max() if features.bound is None else Z.new_tensor(features.bound)
            at = Setting(float(hyper.ridge.detach()), tau, float(sup.detach()), self.loss)
            terms = self.primal(Z.detach(), data, at)
            penalty = self._penalty(hyper, data.total_weight)
            slope = (terms.d_features * Z).sum() + terms.d_sup * sup + terms.d_ridge * hyper.ridge + penalty
        gradients = {name: torch.zeros_like(p) for name, p in _learned(hyper).items()} | _gradients(slope, hyper)
        value = terms.loss + tau * terms.complexity + float(penalty.detach())
        return ObjectiveValue(value, terms.loss, terms.complexity, gradients)

    def _penalty(self, hyper: Hyperparameters, n: float) -> Tensor:
        return self.shrinkage / n * hyper.penalty(n)


def _learned(hyper: Hyperparameters) -> dict[str, Tensor]:
    return {name: p for name, p in hyper.named_parameters() if p.requires_grad}


def _gradients(scalar: Tensor, hyper: Hyperparameters) -> dict[str, Tensor]:
    """Return the gradients of a scalar in the parameters that it depends on."""
    parameters = _learned(hyper)
    if not scalar.requires_grad:
        return {}
    grads = torch.autograd.grad(scalar, list(parameters.values()), allow_unused=True)
    return {name: g for name, g in zip(parameters, grads, strict=True) if g is not None}
