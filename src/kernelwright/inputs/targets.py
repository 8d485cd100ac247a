"""Targets in the form that an embedding needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from kernelwright.inputs.labels import one_hot

__all__ = ["ClassTargets", "Targets"]


class Targets(Protocol):
    """A way to turn targets into features, and the prior of these features."""

    def encode(self, y: np.ndarray) -> Tensor:
        """Return a row of target features for each target."""

    def prior(self, targets: Tensor, weights: Tensor) -> Tensor:
        """Return the value that outputs approach far from all data."""

    def strata(self, y: np.ndarray) -> Tensor:
        """Return the stratum of each target; samples and folds are stratified by it."""

    @property
    def n_strata(self) -> int:
        """The number of strata."""

    @property
    def needs_two_values(self) -> bool:
        """Whether nothing can be learned from targets that are all equal."""


@dataclass(frozen=True)
class ClassTargets:
    """One-hot rows for class indices."""

    n_classes: int

    needs_two_values: ClassVar[bool] = True

    def encode(self, y: np.ndarray) -> Tensor:
        """Return a one-hot row for each class index."""
        return one_hot(y, self.n_classes)

    def prior(self, targets: Tensor, weights: Tensor) -> Tensor:
        """Return class frequencies, with one extra row shared by all classes so that none is zero."""
        counts = weights @ targets
        return (counts + 1.0 / targets.shape[1]) / (weights.sum() + 1.0)

    def strata(self, y: np.ndarray) -> Tensor:
        """Return the class index."""
        return torch.from_numpy(y)

    @property
    def n_strata(self) -> int:
        """The number of classes."""
        return self.n_classes
