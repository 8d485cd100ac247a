"""A warning where learning has collapsed."""

from __future__ import annotations

import math
import warnings

import torch

from kernelwright.embedding.dual import embed
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import CollapseWarning
from kernelwright.kernels import Kernel

__all__ = ["warn_of_collapse"]


def warn_of_collapse(kernel: Kernel, data: TrainingSet, ridge: float, tau: float) -> None:
    """Warn when the complexity term has won: the outputs are the same for every row.

    At that point ``r = 1 / tau`` (if tau exceeds one over the norm of the class frequencies nothing is better).
    """
    sample = data.sample(1000, torch.Generator().manual_seed(0))
    with torch.no_grad():
        embedding = embed(kernel.matrix(sample.points), sample, ridge)
        complexity = math.sqrt(float(kernel.sup_diag(sample.points)) * embedding.squared_norm)
    outputs = embedding.fitted
    varied = float((outputs - outputs.mean(0)).abs().mean())
    published = 4 * math.e / len(data)
    advice = f" ('4e/n' is {published:.3g} here)" if published < tau else ""
    if tau > 0 and varied < 0.02 and complexity * tau < 1.2:
        warnings.warn(
            "Learning collapsed to the class frequencies: the outputs are the same for all rows. The complexity "
            f"weight tau = {tau:.3g} on the mean loss is too strong for these data (complexity {complexity:.3g}, "
            f"1/tau = {1 / tau:.3g}). Use a smaller complexity_weight{advice}, or learn='auto'.",
            CollapseWarning,
            stacklevel=5,
        )
