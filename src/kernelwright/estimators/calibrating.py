"""The last steps of a fit: the link, the complexity, and the terms of risk bounds."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.errors import NumericalRepairWarning
from kernelwright.estimators.arrows import FitPlan, has_fixed_kernel
from kernelwright.features.nystroem import Nystroem
from kernelwright.inputs.dataset import Dataset
from kernelwright.kernels.feature import FeatureMap
from kernelwright.learning import Auto, clip_of
from kernelwright.similarity.indefinite import signature
from kernelwright.solvers import Solution
from kernelwright.uncertainty.calibration import Link
from kernelwright.uncertainty.links import fit_link
from kernelwright.uncertainty.risk import HERDED, UNBOUNDED, WEIGHTED, RiskTerms

__all__ = ["Calibrated", "calibrate", "complexity_of", "has_lines", "judge", "risk_terms", "warn_if_flipped"]


@dataclass(frozen=True)
class Calibrated:
    """An embedding with a link, and its leave-one-out probabilities."""

    embedding: FittedEmbedding
    link: Link
    shift: Tensor  # the change of the embedding's prior
    log_p: Tensor


def calibrate(solution: Solution, embedding: FittedEmbedding, plan: FitPlan, probability: Any) -> Calibrated:
    """Fit the link to leave-one-out outputs; the embedding's prior is shifted with it."""
    how = "power" if isinstance(probability, str) and probability == "auto" else probability
    frequencies = plan.targets.prior(solution.fitted_rows.targets, solution.fitted_rows.weights)
    # With a shift the prior would depend on the rows of the fixed-kernel bound, which must not happen.
    shifts = plan.method.shrinks_to_frequencies and plan.method.kernel_share is None
    # Not beside a map that was asked for by name.
    for_line = solution.fitted_rows if has_lines(plan) and probability == "auto" else None
    found = fit_link(how, solution.left_out, frequencies, n=_n_units(embedding, plan), shifts=shifts, for_line=for_line)
    moved = replace(embedding, prior=embedding.prior + found.shift)
    return Calibrated(moved, found.link, found.shift, found.log_p)


def judge(embedding: FittedEmbedding, link: Link, rows: Dataset) -> tuple[Tensor, Tensor]:
    """Return outputs and log probabilities of rows that were held out."""
    points = embedding.encode(rows.X) if rows.points is None else rows.points
    outputs, support = embedding.outputs(rows.X, points)
    return outputs, link(outputs, support, link.of_line(points))


def has_lines(plan: FitPlan) -> bool:
    """Return whether a line in the columns may stand beside the kernel: points are views of a table, and it may."""
    return plan.default_kernel and isinstance(plan.method, Auto) and plan.method.trend


def _n_units(embedding: FittedEmbedding, plan: FitPlan) -> float:
    """Return the n of the formulas: the number of rows or groups."""
    if plan.explicit:
        assert embedding.sums is not None
        return embedding.sums.moments.total
    return float(embedding.rows.weights.sum())


def complexity_of(solution: Solution, plan: FitPlan, embedding: FittedEmbedding) -> float:
    """Return the bound r of Eq. (11): ``alpha |V|`` with ``alpha^2 = sup k(x, x)``."""
    if plan.explicit:
        assert embedding.features is not None
        assert embedding.sums is not None
        bound = embedding.features.bound
        sup = embedding.sums.moments.largest if bound is None else bound
    else:
        with torch.no_grad():
            sup = float(embedding.kernel.sup_diag(solution.fitted_rows.points))
    return math.sqrt(sup) * math.sqrt(solution.squared_norm)


def risk_terms(solution: Solution, found: Calibrated, plan: FitPlan, *, weighted: bool) -> RiskTerms:
    """Return the terms that risk bounds need."""
    embedding, fitted, rows = found.embedding, solution.fitted + found.shift, solution.fitted_rows
    herded, unbounded = embedding.solver == "herding", not embedding.kernel.bounded
    return RiskTerms.of(
        (fitted, rows),
        (solution.left_out.outputs + found.shift, found.log_p, solution.left_out.rows),
        epsilon=clip_of(plan.method),
        n_rows=_n_units(embedding, plan),
        prior=float(np.linalg.norm(embedding.prior.numpy())),
        fixed_kernel=has_fixed_kernel(plan, embedding.scaler) and embedding.trees is None,  # leaves follow the rows
        faults=(WEIGHTED,) * weighted + (HERDED,) * herded + (UNBOUNDED,) * unbounded,
    )


def warn_if_flipped(features: FeatureMap | None) -> None:
    """Warn if the kernel is indefinite and its negative eigenvalues were flipped."""
    assert isinstance(features, Nystroem)
    signs = signature(features.kernel.matrix(features.points))
    if not signs.definite:
        warnings.warn(
            f"The kernel is indefinite. The embedding uses features of the kernel with flipped eigenvalues, with "
            f"{len(features.points)} landmarks. The kernel matrix of the landmarks: {signs}.",
            NumericalRepairWarning,
            stacklevel=4,
        )
