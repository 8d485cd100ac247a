"""Kernels made from data: embeddings that learn their own kernel, and kernel functions learned from pairs."""

from kernelwright import baselines, datasets, features, hyperkernels, kernels, objectives
from kernelwright.baselines import AlignmentKernel
from kernelwright.errors import (
    CollapseWarning,
    MemoryBudgetError,
    ModelFileError,
    NumericalError,
    NumericalRepairWarning,
    PrecisionWarning,
    WorkerLostError,
)
from kernelwright.estimators import (
    ConditionalMeanEmbedding,
    EmbeddingClassifier,
    EmbeddingNetworkClassifier,
    HyperKernelRidge,
    HyperKernelSVR,
    KreinSVC,
    LearnedKernelClassifier,
    PredictionSets,
)
from kernelwright.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "AlignmentKernel",
    "CollapseWarning",
    "ConditionalMeanEmbedding",
    "EmbeddingClassifier",
    "EmbeddingNetworkClassifier",
    "HyperKernelRidge",
    "HyperKernelSVR",
    "KreinSVC",
    "LearnedKernelClassifier",
    "MemoryBudgetError",
    "ModelFileError",
    "NumericalError",
    "NumericalRepairWarning",
    "PrecisionWarning",
    "PredictionSets",
    "WorkerLostError",
    "baselines",
    "datasets",
    "features",
    "hyperkernels",
    "kernels",
    "load",
    "objectives",
    "save",
]
