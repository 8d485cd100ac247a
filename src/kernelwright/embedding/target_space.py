"""The space of targets: distinct values, and the kernel l between them."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.inputs.any_targets import DistinctTargets, kind_of
from kernelwright.inputs.scaling import fit_scaler
from kernelwright.kernels import Gaussian, Kernel, KroneckerDelta
from kernelwright.numerics.linalg import factorise, low_rank_root
from kernelwright.storage.saved import saved

__all__ = ["TargetFeatures", "TargetSpace", "spread_over"]

ROOT_TOLERANCE = 1e-10  # relative to the largest l(y, y): what the target features may leave out
COARSE_TOLERANCE = 1e-6  # the same, if features are extended from some of the targets to the others
ROOT_TARGETS = 2000  # distinct targets whose kernel matrix is held to find features
MOST_FEATURES = 200  # of a target; more change what is learned by less than the noise does


@dataclass(frozen=True)
class TargetFeatures:
    """Features of distinct targets, in units of the mean l(y, y) of the rows.

    With this unit, the result of learning does not depend on the scale of the target kernel.
    """

    table: Tensor  # a row for each distinct target
    unit: float
    missing: float = 0.0  # mean over the rows of what the features leave out of l(y, y), in the same unit


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

    def subset(self, chosen: np.ndarray) -> TargetSpace:
        """Return the space of some of the targets, with the same kernel and scale."""
        return replace(self, values=self.values[chosen], counts=self.counts[chosen])

    def counted(self, counts: np.ndarray) -> TargetSpace:
        """Return the space with other counts."""
        return replace(self, counts=counts)

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
        """Return features Psi of the distinct targets, with ``Psi Psi^T = L`` up to their unit.

        At most 200 columns are kept (except for the Kronecker delta): the first ones of a pivoted Cholesky
        factor, which leave out least. With more than 2000 distinct targets, features are those of some targets,
        extended to the others: ``Psi(y) = l(y, some) R (R^T R)^-1`` with ``L_some = R R^T``.
        """
        some, most = spread_over(len(self.values), ROOT_TARGETS), MOST_FEATURES
        if isinstance(self.kernel, KroneckerDelta):
            most = ROOT_TARGETS
        if len(some) == len(self.values):
            table = low_rank_root(self.gram(), ROOT_TOLERANCE)[:, :most]
        else:
            known = self.points(self.values[some])
            with torch.no_grad():
                root = low_rank_root(self.kernel.forward(known), COARSE_TOLERANCE)[:, :most]
                extend = factorise(root.T @ root).solve(root.T.contiguous()).T
                table = torch.cat([self.kernel.forward(y, known) @ extend for y in self._blocks()])
        with torch.no_grad():
            total = float(self.marginal() @ self.kernel.diag(self.points(self.values)))
        found = float(self.marginal() @ (table * table).sum(1))
        unit = found or 1.0
        return TargetFeatures(table / math.sqrt(unit), unit, max(total - found, 0.0) / unit)

    def _blocks(self) -> Iterator[Tensor]:
        """Yield the distinct targets as their kernel sees them, some at a time."""
        return iter(self.points(self.values).split(ROOT_TARGETS))

    def of_rows(self, targets: DistinctTargets) -> TargetSpace:
        """Return the space of other targets, with the same kernel and scale."""
        return replace(self, values=targets.values, counts=targets.counts)

    def refuse_others(self, Y: np.ndarray) -> None:
        """Raise an error for targets of another kind or shape."""
        if kind_of(Y) != self.kind or Y.shape[1:] != self.values.shape[1:]:
            raise ValueError(
                "The targets to score are not of the kind and shape that this model was fitted on: it expects "
                f"{self.kind}{_length(self.values)}. Got {kind_of(Y)}{_length(Y)} instead."
            )

    def largest(self) -> float:
        """Return ``sup l(y, y)``; for an unbounded kernel, the largest value over the targets."""
        with torch.no_grad():
            return float(self.kernel.sup_diag(None if self.kernel.bounded else self.points(self.values)))

    def squared_distances(self, masses: Tensor, Y: np.ndarray, gram: Tensor) -> Tensor:
        """Return ``|l(y, .) - mu|^2`` for targets y and embeddings mu, each a row of masses of distinct targets.

        One row of masses serves all targets.
        """
        points, known = self.points(Y), self.points(self.values)
        with torch.no_grad():
            cross = self.kernel.forward(points, known)
            return ((masses @ gram - 2.0 * cross) * masses).sum(1) + self.kernel.diag(points)


def spread_over(n: int, size: int) -> np.ndarray:
    """Return at most ``size`` of n indices, evenly spread."""
    return np.arange(n) if n <= size else np.linspace(0, n - 1, size).astype(np.int64)


def _length(Y: np.ndarray) -> str:
    return f" of length {Y.shape[1]}" if Y.ndim == 2 else ""
