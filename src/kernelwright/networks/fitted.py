"""A trained network with its solved embedding, ready for new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kernelwright.embedding.support import Support
from kernelwright.kernels import Kernel
from kernelwright.networks.heads import EmbeddingNetwork, KernelHead
from kernelwright.storage.saved import saved

__all__ = ["FittedNetwork", "InputReader"]


@saved("input-reader")
@dataclass(frozen=True)
class InputReader:
    """Turns checked rows into inputs of a network: scaled, and flat if the network is fully connected."""

    scaler: Any
    shape: tuple[int, ...]  # of one row, as passed to fit
    flat: bool

    def __call__(self, X: np.ndarray) -> Tensor:
        """Return the rows as inputs of the network."""
        if X.shape[1:] != self.shape:
            raise ValueError(f"Expected inputs of shape {self.shape}, as in fit. Got {X.shape[1:]} instead.")
        if self.scaler is not None:
            values = self.scaler.transform(X.reshape(len(X), -1))
            X = values.reshape(X.shape) if values.size == X.size else values  # categories have several columns
        if self.flat:
            X = X.reshape(len(X), -1)
        return torch.from_numpy(np.require(X, requirements=["C", "W"]))  # torch does not support read-only memory


@saved("fitted-network")
@dataclass(frozen=True)
class FittedNetwork:
    """A trained network with the embedding of all training rows on top of it.

    Parameters
    ----------
    reader : InputReader
    network : EmbeddingNetwork
        In evaluation mode.
    coefficients : Tensor
        W, one row for each feature (the last for the intercept); with a kernel V, one row for each of ``points``.
    points : Tensor or None
        Features of the training rows, if a kernel needs them.
    support : Support
    ridge : float
    jitter : float
        Number added to the diagonal of the final system so that it could be factorised.
    n_features : int
        Number of features of the network, without the intercept.
    """

    reader: InputReader
    network: EmbeddingNetwork
    coefficients: Tensor
    points: Tensor | None
    support: Support
    ridge: float
    jitter: float
    n_features: int

    @property
    def module(self) -> nn.Module:
        """The network without its head."""
        return self.network.module

    @property
    def kernel(self) -> Kernel | None:
        """The kernel on the features; None is the linear kernel."""
        return self.network.head.kernel if isinstance(self.network.head, KernelHead) else None

    @property
    def scaler(self) -> Any:
        """The scaler that is applied to the inputs before the network."""
        return self.reader.scaler

    @property
    def n_support_rows(self) -> int:
        """The number of training rows behind the unit of support, a quantile that needs many rows to be accurate."""
        return self.support.n_rows

    def features(self, X: np.ndarray) -> Tensor:
        """Return the features of checked rows, without the intercept."""
        return self.network.features(self.reader(X))

    def outputs(self, X: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return the raw outputs and the support of checked rows."""
        return self.network.head.apply_solution(self.features(X), self.coefficients, self.points, self.support)
