"""Kernels made from data: conditional embeddings that learn their own kernel."""

from kernelwright import baselines, datasets, features, kernels, objectives
from kernelwright.errors import CollapseWarning, MemoryBudgetError, NumericalError, NumericalRepairWarning
from kernelwright.estimators import ConditionalMeanEmbedding, EmbeddingClassifier, EmbeddingNetworkClassifier

__version__ = "0.1.0"

__all__ = [
    "CollapseWarning",
    "ConditionalMeanEmbedding",
    "EmbeddingClassifier",
    "EmbeddingNetworkClassifier",
    "MemoryBudgetError",
    "NumericalError",
    "NumericalRepairWarning",
    "baselines",
    "datasets",
    "features",
    "kernels",
    "objectives",
]
