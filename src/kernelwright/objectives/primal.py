"""The primal form of objectives that score the same or other rows than they embed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelwright.embedding.primal import RidgeSystem
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.numerics.products import thin_product
from kernelwright.objectives.terms import PrimalTerms, Setting

__all__ = ["ALL_ROWS", "split_terms"]

ALL_ROWS: Any = ...  # an index that makes no copy


def split_terms(
    Z: Tensor,
    data: TrainingSet,
    at: Setting,
    *,
    noise: float,
    embedded: Any = ALL_ROWS,
    scored: Any = ALL_ROWS,
    loss_share: float = 1.0,
    complexity_share: float = 1.0,
) -> PrimalTerms:
    """Evaluate the loss at the scored rows by the embedding of the embedded rows, in closed form.

    With ``P = prior + Z W`` at the scored rows, G = dloss/dP, ``H = S^-1 dq/dW`` and ``R = T - Z W`` at the embedded
    rows, ``dq/dZ = (w R) H^T + (G - w Z H) W^T`` and ``dq/dnoise = -<H, W>``. Features may be in single precision;
    the solve is in double.
    """
    w, rows = data.weights[embedded], data.subset(scored)
    equal = bool((w == w[0]).all())
    noise = noise / float(w[0]) if equal else noise  # equal weights only scale the system
    system = RidgeSystem.of(Z[embedded], noise, None if equal else w)
    T, Z_scored = data.centred.to(system.z), Z[scored].to(system.z)
    W = system.weights(T[embedded])
    ZW = thin_product(system.z, W.to(system.z))
    P = ZW if scored is embedded else thin_product(Z_scored, W.to(system.z))
    loss, G = at.loss(rows.prior + P.double(), rows)
    G = (loss_share * G).to(system.z)
    complexity, c = at.complexity_and_slope(float(W.square().sum()))
    H = system.solve((G.T @ Z_scored).T.double() + 2.0 * complexity_share * c * W)
    ZH = thin_product(system.z, H.to(system.z))
    in_H, in_W = torch.zeros_like(T), torch.zeros_like(T)
    in_H[embedded], in_W[embedded] = system.weighted(T[embedded] - ZW), -system.weighted(ZH)
    in_W[scored] += G
    d_Z = torch.cat([in_H, in_W], 1) @ torch.cat([H.T, W.T]).to(T)
    complexity *= complexity_share
    d_ridge = -noise * float((H * W).sum()) / at.ridge
    return PrimalTerms(loss_share * loss, complexity, d_Z, d_ridge, at.slope_in_sup(complexity))
