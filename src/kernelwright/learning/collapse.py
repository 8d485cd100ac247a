"""Warnings if learning has collapsed."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from kernelwright.embedding.dual import embed
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import CollapseWarning
from kernelwright.kernels import FeatureKernel, Kernel
from kernelwright.kernels.vector import HasLengthScales

__all__ = ["warn_of_collapse", "warn_of_collapsed_network", "warn_of_equal_rows", "warn_of_lonely_rows"]

ALIKE = 0.02  # mean deviation below which the outputs of all rows count as equal
LONELY = 1e-3  # similarity with the nearest other row, of rows that say nothing about each other
LOOKED_AT = 200  # rows whose nearest other row is looked for
EQUAL = 1e-3  # share of the largest kernel value by which all values differ if rows look the same
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


def warn_of_lonely_rows(kernel: Kernel, data: TrainingSet) -> None:
    """Warn if length scales are so short that most rows are similar to no other: then nothing can be learned.

    Random features err by about ``1/sqrt(p)``, the largest of n such errors by ``sqrt(2 log n / p)``.
    """
    rows = data.sample(2000, torch.Generator().manual_seed(0)).points
    if not any(isinstance(part, HasLengthScales) for part in kernel.modules()) or not torch.is_tensor(rows):
        return
    level, n = LONELY, len(rows)
    if isinstance(kernel, FeatureKernel):
        level = max(LONELY, 1.5 * math.sqrt(2.0 * math.log(n + 1.0) / kernel.features.n_features))
    if n < 3 or level > 0.5:
        return
    chosen = torch.linspace(0, n - 1, min(n, LOOKED_AT)).long()
    with torch.no_grad():
        sizes = kernel.diag(rows).clamp(min=1e-300).sqrt()
        nearest = (kernel.forward(rows[chosen], rows) / sizes / sizes[chosen, None]).abs()
        nearest[torch.arange(len(chosen)), chosen] = 0.0
    if float(nearest.amax(1).median()) < level:
        warnings.warn(
            "Most rows are similar to no other row, so the outputs are nearly the same for all new rows. The length "
            "scales of the kernel are far shorter than the distances between rows. Set scale='standard', start with "
            "lengthscale='median', or use the default kernel, which finds its scales.",
            CollapseWarning,
            stacklevel=4,
        )


def warn_of_equal_rows(kernel: Kernel, data: TrainingSet, ridge: float) -> None:
    """Warn if length scales are so long that all rows look the same, and explain nothing.

    A smooth function may have such length scales, too, but then it explains something.
    """
    sample = data.sample(LOOKED_AT, torch.Generator().manual_seed(0))
    if not any(isinstance(part, HasLengthScales) for part in kernel.modules()) or not torch.is_tensor(sample.points):
        return
    with torch.no_grad():
        K = kernel.matrix(sample.points)
        if not float(K.min()) > (1.0 - EQUAL) * float(K.diagonal().max()):
            return
        ridge = ridge * data.total_weight / sample.total_weight  # the absolute ridge carries over
        fitted = embed(K, sample, ridge).fitted
    if _explain_nothing(fitted, sample.targets):
        warnings.warn(
            "All rows look the same to the kernel, so the outputs are the same: its length scales are far longer than "
            "the distances between rows. Either the inputs say nothing about the target, or learning has not found "
            "their scales: set scale='standard', start with lengthscale='median', or use the default kernel.",
            CollapseWarning,
            stacklevel=4,
        )


def _explain_nothing(outputs: Tensor, targets: Tensor) -> bool:
    of_outputs, of_targets = (float((each - each.mean(0)).square().sum()) for each in (outputs, targets))
    return of_outputs <= SHARE_OF_VARIANCE * of_targets


def _alike(outputs: Tensor) -> bool:
    return float((outputs - outputs.mean(0)).abs().mean()) < ALIKE


def _warn(advice: str, stacklevel: int) -> None:
    collapsed = "Learning collapsed to the overall frequencies: the outputs are the same for all rows."
    warnings.warn(f"{collapsed} {advice}", CollapseWarning, stacklevel=stacklevel)
