"""The space of targets: distinct values, and the kernel l between them."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.inputs.any_targets import DistinctTargets, kind_of
from kernelwright.inputs.scaling import fit_scaler
from kernelwright.kernels import Gaussian, Kernel, KroneckerDelta
from kernelwright.numerics.linalg import low_rank_root
from kernelwright.storage.saved import saved

__all__ = ["TargetFeatures", "TargetSpace"]

ROOT_TOLERANCE = 1e-10  # relative to the largest l(y, y): what the target features may leave out


@dataclass(frozen=True)
class TargetFeatures:
    """Features of distinct targets, in units of the mean l(y, y) of the rows.

    With this unit, the result of learning does not depend on the scale of the target kernel.
    """

    table: Tensor  # a row for each distinct target
    unit: float


@saved("target-space")
@dataclass(frozen=True)
class TargetSpace:
    """The distinct targets of some rows, and the kernel between them.

    Parameters
    ----------
    values : ndarray
        The distinct targets, sorted.
    counts : ndarray
        Number of rows with each target.
    kernel : Kernel
        The kernel l, with its length scale set.
    scaler : transformer or None
        Transform applied to numbers before the kernel.
    """

    values: np.ndarray
    counts: np.ndarray
    kernel: Kernel
    scaler: Any = None

    @classmethod
    def of(cls, targets: DistinctTargets, kernel: Kernel | None = None) -> TargetSpace:
        """Choose the kernel between targets.

        ``None`` is a Gaussian at the median distance between standardised numbers, and the Kronecker delta for labels.
        A given kernel is copied and applied to the targets as they are.
        """
        labels = targets.kind == "labels"
        if kernel is not None and kernel.takes_vectors == labels and not isinstance(kernel, KroneckerDelta):
            raise ValueError(
                f"target_kernel={kernel!r} does not fit the targets, which are {'labels' if labels else 'numbers'}. "
                "Leave target_kernel=None, or pass a kernel on such targets."
            )
        default = KroneckerDelta() if labels else Gaussian(lengthscale="median")
        scaler = None
        if kernel is None and not labels:
            scaler = fit_scaler("standard", targets.values.reshape(len(targets.values), -1), targets.counts)
        found = cls(targets.values, targets.counts, default if kernel is None else copy.deepcopy(kernel), scaler)
        found.kernel.prepare_(found.points(found.values), torch.from_numpy(found.counts).double())
        return found

    @property
    def kind(self) -> str:
        """The kind of the targets: "labels", "numbers" or "vectors"."""
        return kind_of(self.values)

    def points(self, Y: np.ndarray) -> Tensor:
        """Return targets as their kernel sees them, scaled and encoded."""
        if self.kind != "labels":
            Y = Y.reshape(len(Y), -1)
            return self.kernel.encode(Y if self.scaler is None else self.scaler.transform(Y))
        if not isinstance(self.kernel, KroneckerDelta):
            return self.kernel.encode(Y)
        place = {label: i for i, label in enumerate(self.values.tolist())}
        return torch.tensor([[place.get(label, -1)] for label in Y.tolist()], dtype=torch.float64)

    def gram(self) -> Tensor:
        """Return the kernel matrix L of the distinct targets."""
        with torch.no_grad():
            return self.kernel.forward(self.points(self.values))

    def marginal(self) -> Tensor:
        """Return the share of each distinct target in the rows."""
        return torch.from_numpy(self.counts / self.counts.sum())

    def features(self) -> TargetFeatures:
        """Return features Psi of the distinct targets, with ``Psi Psi^T = L`` up to their unit."""
        root = low_rank_root(self.gram(), ROOT_TOLERANCE)
        unit = float(self.marginal() @ (root * root).sum(1)) or 1.0
        return TargetFeatures(root / math.sqrt(unit), unit)

    def refuse_others(self, Y: np.ndarray) -> None:
        """Raise an error for targets of another kind or shape."""
        if kind_of(Y) != self.kind or Y.shape[1:] != self.values.shape[1:]:
            raise ValueError(
                "The targets to score are not of the kind and shape that this model was fitted on: it expects "
                f"{self.kind}{_length(self.values)}. Got {kind_of(Y)}{_length(Y)} instead."
            )

    def squared_distances(self, masses: Tensor, Y: np.ndarray, gram: Tensor) -> Tensor:
        """Return ``|l(y, .) - mu|^2`` for targets y and embeddings mu, each a row of masses of distinct targets."""
        points, known = self.points(Y), self.points(self.values)
        with torch.no_grad():
            cross = self.kernel.forward(points, known)
            return ((masses @ gram - 2.0 * cross) * masses).sum(1) + self.kernel.diag(points)


def _length(Y: np.ndarray) -> str:
    return f" of length {Y.shape[1]}" if Y.ndim == 2 else ""
