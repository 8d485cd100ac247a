"""Targets as an embedding takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor

from kernelwright.inputs.labels import one_hot

__all__ = ["ClassTargets", "Targets"]


class Targets(Protocol):
    """How targets become features, and what is known of them without inputs."""

    def encode(self, y: np.ndarray) -> Tensor:
        """Return a row of target features for each target."""

    def prior(self, targets: Tensor, weights: Tensor) -> Tensor:
        """Return what outputs are drawn to far from all data."""


@dataclass(frozen=True)
class ClassTargets:
    """One-hot rows for the numbers of classes."""

    n_classes: int

    def encode(self, y: np.ndarray) -> Tensor:
        """Return a one-hot row for each class number."""
        return one_hot(y, self.n_classes)

    def prior(self, targets: Tensor, weights: Tensor) -> Tensor:
        """Return class frequencies with one extra row that is shared by all classes, so that none is zero."""
        counts = weights @ targets
        return (counts + 1.0 / targets.shape[1]) / (weights.sum() + 1.0)
