"""Warnings if learning has collapsed."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from kernelwright.embedding.dual import embed
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import CollapseWarning
from kernelwright.kernels import Kernel

__all__ = ["warn_of_collapse", "warn_of_collapsed_network"]

ALIKE = 0.02  # mean deviation below which the outputs of all rows count as equal
SHARE_OF_VARIANCE = 2e-3  # of the targets, which may have any scale: the same for outputs of less variance than that


def warn_of_collapse(kernel: Kernel, data: TrainingSet, ridge: float, tau: float) -> None:
    """Warn if the complexity term dominates, so that the outputs are the same for every row.

    At that point ``r = 1 / tau`` (if tau exceeds one over the norm of the class frequencies, nothing is better).
    """
    sample = data.sample(1000, torch.Generator().manual_seed(0))
    with torch.no_grad():
        embedding = embed(kernel.matrix(sample.points), sample, ridge)
        complexity = math.sqrt(float(kernel.sup_diag(sample.points)) * embedding.squared_norm)
    published = 4 * math.e / data.total_weight
    advice = f" ('4e/n' is {published:.3g} here)" if published < tau else ""
    if tau > 0 and _explain_nothing(embedding.fitted, sample.targets) and complexity * tau < 1.2:
        _warn(
            f"The complexity weight tau = {tau:.3g} on the mean loss is too strong for these data (complexity "
            f"{complexity:.3g}, 1/tau = {1 / tau:.3g}). Use a smaller complexity_weight{advice}, or learn='auto'.",
            stacklevel=6,
        )


def warn_of_collapsed_network(left_out: Tensor, complexity: float, tau: float) -> None:
    """Warn if outputs of left-out rows are all the same because of the complexity term."""
    if _alike(left_out) and tau * complexity > 0.5:  # otherwise there may just be nothing to learn
        _warn(
            f"Use a smaller complexity_weight (tau is {tau:.3g}), a wider network or a lower learning rate.",
            stacklevel=5,
        )


def _explain_nothing(outputs: Tensor, targets: Tensor) -> bool:
    of_outputs, of_targets = (float((each - each.mean(0)).square().sum()) for each in (outputs, targets))
    return of_outputs <= SHARE_OF_VARIANCE * of_targets


def _alike(outputs: Tensor) -> bool:
    return float((outputs - outputs.mean(0)).abs().mean()) < ALIKE


def _warn(advice: str, stacklevel: int) -> None:
    collapsed = "Learning collapsed to the overall frequencies: the outputs are the same for all rows."
    warnings.warn(f"{collapsed} {advice}", CollapseWarning, stacklevel=stacklevel)
