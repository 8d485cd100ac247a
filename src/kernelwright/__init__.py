"""Kernels learned from data: embeddings that learn their own kernel, and kernel functions learned from pairs.

Names are imported when they are first used, because importing torch and scikit-learn takes seconds.
"""

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwright import (
        datasets,
        distributions,
        features,
        hyper,
        hyperkernels,
        kernels,
        learning,
        networks,
        objectives,
        research,
        solvers,
    )
    from kernelwright.errors import (
        CalibrationWarning,
        CollapseWarning,
        ColumnWarning,
        DependenceWarning,
        DistanceMatrixWarning,
        ExtrapolationWarning,
        MemoryBudgetError,
        ModelFileError,
        NumericalError,
        NumericalRepairWarning,
        OverfitWarning,
        PrecisionWarning,
        WorkerLostError,
    )
    from kernelwright.estimators import (
        ConditionalMeanEmbedding,
        EmbeddingClassifier,
        EmbeddingNetworkClassifier,
        EmbeddingRegressor,
        HyperKernelRidge,
        HyperKernelSVR,
        KreinSVC,
        LearnedKernelClassifier,
        PredictionIntervals,
        PredictionSets,
    )
    from kernelwright.persistence import load, save
    from kernelwright.research.baselines import AlignmentKernel

__version__ = "0.1.0"

__all__ = [
    "AlignmentKernel",
    "CalibrationWarning",
    "CollapseWarning",
    "ColumnWarning",
    "ConditionalMeanEmbedding",
    "DependenceWarning",
    "DistanceMatrixWarning",
    "EmbeddingClassifier",
    "EmbeddingNetworkClassifier",
    "EmbeddingRegressor",
    "ExtrapolationWarning",
    "HyperKernelRidge",
    "HyperKernelSVR",
    "KreinSVC",
    "LearnedKernelClassifier",
    "MemoryBudgetError",
    "ModelFileError",
    "NumericalError",
    "NumericalRepairWarning",
    "OverfitWarning",
    "PrecisionWarning",
    "PredictionIntervals",
    "PredictionSets",
    "WorkerLostError",
    "datasets",
    "distributions",
    "features",
    "hyper",
    "hyperkernels",
    "kernels",
    "learning",
    "load",
    "networks",
    "objectives",
    "research",
    "save",
    "solvers",
]

# The module of each public name that is not a module itself.
_MODULES = {
    "AlignmentKernel": "research.baselines",
    "CalibrationWarning": "errors",
    "CollapseWarning": "errors",
    "DependenceWarning": "errors",
    "ConditionalMeanEmbedding": "estimators",
    "ColumnWarning": "errors",
    "DistanceMatrixWarning": "errors",
    "EmbeddingClassifier": "estimators",
    "EmbeddingNetworkClassifier": "estimators",
    "EmbeddingRegressor": "estimators",
    "ExtrapolationWarning": "errors",
    "HyperKernelRidge": "estimators",
    "HyperKernelSVR": "estimators",
    "KreinSVC": "estimators",
    "LearnedKernelClassifier": "estimators",
    "MemoryBudgetError": "errors",
    "ModelFileError": "errors",
    "NumericalError": "errors",
    "NumericalRepairWarning": "errors",
    "OverfitWarning": "errors",
    "PrecisionWarning": "errors",
    "PredictionIntervals": "estimators",
    "PredictionSets": "estimators",
    "WorkerLostError": "errors",
    "load": "persistence",
    "save": "persistence",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    elif name in __all__:
        found = import_module(f"{__name__}.{name}")
    else:
        near = get_close_matches(name, __all__, n=1)
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}{f'. Did you mean {near[0]!r}?' if near else ''}"
        )
    globals()[name] = found  # so that Python finds it directly the next time
    return found


def __dir__() -> list[str]:
    return list(__all__)
