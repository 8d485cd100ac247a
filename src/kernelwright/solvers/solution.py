"""The result of a solver: an embedding with its outputs at fitted and left-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.primal import FeatureSums
from kernelwright.embedding.support import KernelSupport, Support
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.embedding.tree import Trees
from kernelwright.kernels import Kernel
from kernelwright.kernels.feature import FeatureMap
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["LEFT_OUT_ROWS", "Columns", "Solution", "SolvedColumns", "judged_by_new_rows"]

LEFT_OUT_ROWS = 5000  # rows whose leave-one-out outputs are enough for calibration


@dataclass(frozen=True)
class Solution:
    """An embedding, its outputs at fitted rows, and its outputs at left-out rows."""

    points: Tensor | None  # points of the coefficients; None if they belong to features
    coefficients: Tensor
    squared_norm: float
    fitted: Tensor  # outputs at ``fitted_rows``
    fitted_rows: TrainingSet
    left_out: LeftOutOutputs  # probabilities are calibrated on these
    support: Support
    jitter: float = 0.0  # number added to the diagonal of the system so that it could be factorised
    precision: str = "double"  # or "single": precision of the kernel values in the system
    features: FeatureMap | None = None  # the feature map of the coefficients, if there are no points
    sums: FeatureSums | None = None  # sums over all rows, if there are features
    trees: Trees | None = None  # where the coefficients belong, if the points are in leaves


@dataclass(frozen=True)
class Columns:
    """More targets of the fitted rows of a solution."""

    targets: Tensor
    prior: Tensor
    ridge: float
    rule: Callable[[np.ndarray, Tensor], Tensor] | None = None  # what their targets are at any rows, see ``of_rows``

    def of_rows(self, y: np.ndarray, left_out: np.ndarray) -> Tensor:
        """Return these targets for other rows, by their own targets and the left-out outputs of the solution."""
        assert self.rule is not None
        return self.rule(y, torch.from_numpy(left_out))


@dataclass(frozen=True)
class SolvedColumns:
    """Coefficients of more targets, at the points or features of a solution, and outputs at its left-out rows."""

    coefficients: Tensor
    left_out: Tensor


def judged_by_new_rows(
    kernel: Kernel, rows: TrainingSet, points: Tensor, coefficients: Tensor
) -> tuple[LeftOutOutputs, Support]:
    """Return outputs and support, by coefficients at some points, of rows that were not used to solve for them."""
    with torch.no_grad():
        K = kernel.local.forward(rows.points, points)
        support = KernelSupport.of(K.max(1).values, rows.weights)
        near = support(K)
        outputs = kernel.completed_(K, rows.points, points) @ coefficients + rows.prior
    return LeftOutOutputs(outputs, rows, near), support
