"""Gather what bounds on the risk of a regressor need."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from kernelwright.distributions.transforms import IdentityMap
from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.estimators.compressing import refuse_if_compressed
from kernelwright.uncertainty.bounds import RiskBound
from kernelwright.uncertainty.number_risk import (
    FittedLocation,
    NumberLoss,
    check_number_method,
    held_out_numbers,
    left_out_numbers,
    norm_bound,
)
from kernelwright.uncertainty.risk import UNBOUNDED, WEIGHTED

__all__ = ["number_bound"]

TOGETHER = "But rows came in groups: they are not independent."


def number_bound(
    model: Any, method: str, X: Any, y: Any, *, beta: float, loss: str, limit: float | None, target: int
) -> RiskBound:
    """Return a bound on the loss of one target of a fitted regressor."""
    check_number_method(method)
    refuse_if_compressed(model, method)
    if not 0 <= target < len(model.links_):
        raise ValueError(f"The 'target' of risk_bound must be an index below {len(model.links_)}. Got {target!r}.")
    rows = model.left_out_[target]
    mean = np.average(rows.y, weights=rows.weights)
    deviation = math.sqrt(float(np.average((rows.y - mean) ** 2, weights=rows.weights)))
    chosen = NumberLoss.of(loss, limit, deviation)
    if method == "holdout":
        predicted, numbers, groups = _held_out(model, X, y)
        return held_out_numbers(chosen, predicted[:, target], numbers[:, target], beta, groups)
    if method == "leave-one-out":
        predicted = model.links_[target](rows.location, rows.log_scale, rows.direct, rows.support).mean()
        kept = model.embedding_.rows
        every = len(rows.y) == len(kept.weights)
        counts, groups = (kept.counts, kept.groups) if every else (None, None)
        return left_out_numbers(chosen, predicted, rows.y, beta, weights=rows.weights, counts=counts, groups=groups)
    return norm_bound(method, chosen, fitted_location(model, method, target), beta)


def _held_out(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return means, targets and groups of given rows, or of those that ``fit`` has held out."""
    if X is None and y is None:
        if model._holdout is None:
            raise ValueError(
                "A held-out bound needs rows that were not fitted. Pass them, risk_bound('holdout', X, y), or fit "
                "EmbeddingRegressor(learn=learning.Auto(holdout_share=0.3)), which holds some out."
            )
        return model._holdout
    if X is None or y is None:
        raise ValueError("Held-out rows need both X and y.")
    means = np.asarray(model.predict(X))
    return means.reshape(len(means), -1), model.given_numbers(y, len(means)), None


def fitted_location(model: Any, method: str, target: int) -> FittedLocation:
    """Return the location of a target at all rows of an embedding that leaves each of them out."""
    embedding, scale, rows = model.embedding_, model.links_[target].scale, model.left_out_[target]
    sums = embedding.sums
    many = embedding.trees is not None or len(rows.y) != len(embedding.rows.weights)
    if many or (sums is not None and sums.n_rows != len(rows.y)):
        raise ValueError(
            f"method={method!r} needs an exact solution, or features of up to 5000 rows. Got "
            f"{embedding.solver!r} of more; use method='holdout'."
        )
    if not isinstance(scale.target_map, IdentityMap):
        raise ValueError(
            f"method={method!r} needs a target that is learned as it is. This one was learned by its "
            f"{scale.target_map.word}; set distribution=Stacked(transform='identity'), or use method='holdout'."
        )
    points = embedding.points if sums is None else sums.sample.points
    outputs = embedding.outputs(None, points)[0][:, target]
    norm, faults = _norm(embedding, outputs, target), []
    for wrong, why in (
        (model._info.weighted, WEIGHTED),
        (embedding.rows.groups is not None, TOGETHER),
        (not embedding.kernel.bounded, UNBOUNDED),
    ):
        faults += [why] * wrong
    return FittedLocation(
        predicted=outputs.numpy() * scale.unit + scale.centre,
        y=rows.y,
        weights=rows.weights,
        offset=float(embedding.prior[target]) * scale.unit + scale.centre,
        complexity=norm * scale.unit,
        fixed_kernel=model._fixed_kernel,
        faults=faults,
    )


def _norm(embedding: FittedEmbedding, outputs: torch.Tensor, target: int) -> float:
    """Return ``alpha |w|`` of a column, with ``alpha^2 = sup k(x, x)``."""
    column = embedding.coefficients[:, target]
    if embedding.features is not None:
        assert embedding.sums is not None
        bound = embedding.features.bound
        sup = embedding.sums.moments.largest if bound is None else bound
        return math.sqrt(sup) * float(column.norm())
    with torch.no_grad():
        sup = float(embedding.kernel.sup_diag(embedding.points))
    squared = float(column @ (outputs - embedding.prior[target]))  # v K v
    return math.sqrt(sup * max(squared, 0.0))
