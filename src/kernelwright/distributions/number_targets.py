"""Numbers in the form that an embedding needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from kernelwright.distributions.target import TargetScale
from kernelwright.storage.saved import saved

__all__ = ["NumberTargets"]

STRATA, ROWS_OF_A_STRATUM = 20, 5


@saved("number-targets")
@dataclass(frozen=True)
class NumberTargets:
    """Standardised numbers, a column for each target; strata are ranges of the first target."""

    scales: tuple[TargetScale, ...]
    edges: np.ndarray  # between the strata

    needs_two_values: ClassVar[bool] = False

    @classmethod
    def of(cls, scales: tuple[TargetScale, ...], y: np.ndarray) -> NumberTargets:
        """Return targets with these scales, and strata that hold equal numbers of the rows y."""
        n_strata = max(1, min(STRATA, len(y) // ROWS_OF_A_STRATUM))
        return cls(scales, np.unique(np.quantile(y[:, 0], np.arange(1, n_strata) / n_strata)))

    def encode(self, y: np.ndarray) -> Tensor:
        """Return a row of standardised numbers for each row of targets."""
        columns = [scale.encode(column) for scale, column in zip(self.scales, y.T, strict=True)]
        return torch.from_numpy(np.column_stack(columns))

    def decode(self, targets: Tensor) -> np.ndarray:
        """Return the numbers with these standardised values."""
        columns = [scale.decode(column.numpy()) for scale, column in zip(self.scales, targets.T, strict=True)]
        return np.column_stack(columns)

    def prior(self, targets: Tensor, weights: Tensor) -> Tensor:
        """Return the weighted mean."""
        return weights @ targets / weights.sum()

    def strata(self, y: np.ndarray) -> Tensor:
        """Return the stratum of each row."""
        return torch.from_numpy(np.searchsorted(self.edges, y[:, 0], side="left"))

    @property
    def n_strata(self) -> int:
        """The number of ranges between the edges."""
        return len(self.edges) + 1
