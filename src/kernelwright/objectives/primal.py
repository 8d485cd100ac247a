"""Objectives in the primal form: for explicit features, with p x p solves (Algorithm 2 of [Hsu2018]_).

The factorised part is differentiated in closed form (:mod:`kernelwright.embedding.primal`); what is left, products of features
and weights, goes through autograd, which also reaches whatever made the features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.primal import (
    left_out_residuals,
    ridge_weights,
    ridge_weights_and_influence,
    ridge_weights_and_leverages,
)
from kernelwright.embedding.training_set import TrainingSet

__all__ = ["ExplicitTerms", "explicit_terms"]

Score = Callable[[Tensor, TrainingSet], tuple[float, Tensor]]  # outputs -> loss and its slope in them


@dataclass(frozen=True)
class ExplicitTerms:
    """Loss and complexity; ``slope`` is a scalar tensor whose gradient is that of ``loss + tau * complexity``."""

    loss: float
    complexity: float
    slope: Tensor


def explicit_terms(
    name: str, Z: Tensor, data: TrainingSet, *, ridge: Tensor, sup: Tensor, tau: float, score: Score, folds: np.ndarray
) -> ExplicitTerms:
    """The objective called ``name`` for features Z of the rows of ``data``; see :mod:`kernelwright.objectives`."""
    noise = ridge * data.total_weight

    def complexity(W: Tensor) -> Tensor:
        return (sup * (W * W).sum()).clamp(min=1e-300).sqrt()

    def terms(parts: list[tuple[float, Tensor, TrainingSet, Tensor]]) -> ExplicitTerms:
        """The sum over (share of the loss, outputs, their rows, weights W)."""
        loss, r, slope = 0.0, 0.0, Z.new_zeros(())
        for share, F, rows, W in parts:
            value, G = score(F.detach(), rows)
            bound = complexity(W) / len(parts)
            loss, r = loss + share * value, r + float(bound.detach())
            slope = slope + share * (G * F).sum() + tau * bound
        return ExplicitTerms(loss, r, slope)

    if name == "leave-one-out":
        if data.groups is None:
            W, q = ridge_weights_and_leverages(Z, data.centred, noise, data.weights)
            left = 1.0 - data.weights * data.one_of_equals * q
            return terms([(1.0, data.targets - (data.centred - Z @ W) / left[:, None], data, W)])
        W, U = ridge_weights_and_influence(Z, data.centred, noise, data.weights)
        residuals = left_out_residuals(Z, U, data.centred - Z @ W, data)
        return terms([(1.0, data.targets - residuals, data, W)])
    if name in ("rademacher", "empirical-risk"):
        W = ridge_weights(Z, data.centred, noise, data.weights)
        return terms([(1.0, data.prior + Z @ W, data, W)])
    trains = [folds == 0] if name == "held-out" else [folds != fold for fold in np.unique(folds)]
    tested = sum(float(data.weights[torch.from_numpy(~train)].sum()) for train in trains)
    parts = []
    for train in trains:
        T, B = torch.from_numpy(np.flatnonzero(train)), torch.from_numpy(np.flatnonzero(~train))
        fitting, testing = data.subset(T), data.subset(B)
        own = ridge * fitting.total_weight if name == "held-out" else noise  # n in Eq. (13) is the training part's
        W = ridge_weights(Z[T], fitting.centred, own, fitting.weights)
        parts.append((testing.total_weight / tested, data.prior + Z[B] @ W, testing, W))
    return terms(parts)
