"""Objectives with the loss at the training rows."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.numerics.linalg import factorise, factorise_in_single
from kernelwright.numerics.products import Outer
from kernelwright.objectives.base import Objective
from kernelwright.objectives.primal import split_terms
from kernelwright.objectives.single import Solve, go_on_in_double, refined
from kernelwright.objectives.terms import DualTerms, PrimalTerms, Setting

__all__ = ["EmpiricalRiskObjective", "RademacherObjective"]


@dataclass(frozen=True)
class InSampleObjective(Objective):
    """A loss at the rows that are embedded."""

    def dual(self, K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None = None) -> DualTerms:
        return _dual(K, data, at, memory)

    def primal(self, Z: Tensor, data: TrainingSet, at: Setting) -> PrimalTerms:
        return split_terms(Z, data, at, noise=at.ridge * data.total_weight)


@dataclass(frozen=True)
class RademacherObjective(InSampleObjective):
    """The mean training loss plus tau times the complexity bound r, Eq. (12) of [Hsu2018]_."""

    complexity_weight: float | str = "4e/n"


@dataclass(frozen=True)
class EmpiricalRiskObjective(InSampleObjective):
    """The mean training loss alone. It overfits, which shows what the complexity term is for."""

    def tau(self, data: TrainingSet) -> float:  # noqa: D102
        return 0.0


def _dual(K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None) -> DualTerms:
    noise = data.noise(at.ridge)
    if at.precision != "double":
        try:
            return _in_sample(refined(factorise_in_single(K, noise, memory).solve, K, noise), data, at)
        except NumericalError as error:
            go_on_in_double(error, at)
    return _in_sample(factorise(K, noise, memory).solve, data, at)


def _in_sample(solve: Solve, data: TrainingSet, at: Setting) -> DualTerms:
    """Evaluate with G = dloss/dP: ``B = A^-1 noise (G + 2cV) - cV``, ``dq/dA = B V^T``; ``solve`` applies ``A^-1``."""
    noise = data.noise(at.ridge)[:, None]
    V = solve(data.centred)
    P = data.targets - noise * V
    loss, G = at.loss(P, data)
    complexity, c = at.complexity_and_slope(float((V * (P - data.prior)).sum()))
    B = solve(noise * (G + 2.0 * c * V)) - c * V
    d_noise = (V * (B - G - c * V)).sum(1)
    return DualTerms(
        loss, complexity, Outer(B, V), float(d_noise @ noise[:, 0]) / at.ridge, at.slope_in_sup(complexity)
    )
