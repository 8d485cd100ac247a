"""A torch network as a feature map."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from kernelwright.kernels.feature import FeatureMap
from kernelwright.storage.saved import saved

__all__ = ["Network"]


@saved("network-features", fields="module _n_features")
class Network(FeatureMap):
    """The outputs of a ``torch.nn.Module`` as features; its weights are learned with the rest, in evaluation mode.

    To train networks at length, with mini-batches and dropout, see
    :class:`kernelwright.EmbeddingNetworkClassifier`.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = copy.deepcopy(module).double().eval()  # features must be the same in every call
        self._n_features: int | None = None

    @property
    def n_features(self) -> int:
        if self._n_features is None:
            raise ValueError("The number of features of a network is known once it has seen inputs: call fit(X) first.")
        return self._n_features

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        with torch.no_grad():
            self._n_features = self.module(X[:2]).shape[1]

    def forward(self, X: Tensor) -> Tensor:
        return self.module(X)
