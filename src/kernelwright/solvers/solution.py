"""What a solver returns: an embedding, and what it says of rows left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.embedding.primal import FeatureSums
from kernelwright.embedding.support import KernelSupport, Support
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.kernels.feature import FeatureMap
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["LEFT_OUT_ROWS", "Solution", "judged_by_new_rows"]

LEFT_OUT_ROWS = 5000  # rows whose leave-one-out outputs are enough to calibrate on


@dataclass(frozen=True)
class Solution:
    """An embedding, what it says of rows it was solved on, and what it says of rows left out."""

    points: Tensor | None  # those the coefficients belong to; None where they belong to features
    coefficients: Tensor
    squared_norm: float
    fitted: Tensor  # outputs at ``fitted_rows``
    fitted_rows: TrainingSet
    left_out: LeftOutOutputs  # probabilities are calibrated on these
    support: Support
    jitter: float = 0.0  # what was added to the diagonal of the system so that it could be factorised
    precision: str = "double"  # or "single": of the kernel values that the system is made of
    features: FeatureMap | None = None  # those that the coefficients belong to, where there are no points
    sums: FeatureSums | None = None  # of all rows, where there are features


def judged_by_new_rows(
    kernel: Kernel, rows: TrainingSet, points: Tensor, coefficients: Tensor
) -> tuple[LeftOutOutputs, Support]:
    """Return what coefficients at some points say of rows that they were not solved on."""
    with torch.no_grad():
        K = kernel.forward(rows.points, points)
    support = KernelSupport.of(K.max(1).values, rows.weights)
    return LeftOutOutputs(K @ coefficients + rows.prior, rows, support(K)), support
