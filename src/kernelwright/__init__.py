"""Kernels made from data: embeddings that learn their own kernel, and kernel functions learned from pairs.

Names are loaded when they are first used: importing torch takes seconds, and not all who import this need it at once.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwright import (
        datasets,
        features,
        hyper,
        hyperkernels,
        kernels,
        learning,
        objectives,
        research,
        solvers,
    )
    from kernelwright.errors import (
        CalibrationWarning,
        CollapseWarning,
        DistanceMatrixWarning,
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
        HyperKernelRidge,
        HyperKernelSVR,
        KreinSVC,
        LearnedKernelClassifier,
        PredictionSets,
    )
    from kernelwright.persistence import load, save
    from kernelwright.research.baselines import AlignmentKernel

__version__ = "0.1.0"

__all__ = [
    "AlignmentKernel",
    "CalibrationWarning",
    "CollapseWarning",
    "ConditionalMeanEmbedding",
    "DistanceMatrixWarning",
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
    "OverfitWarning",
    "PrecisionWarning",
    "PredictionSets",
    "WorkerLostError",
    "datasets",
    "features",
    "hyper",
    "hyperkernels",
    "kernels",
    "learning",
    "load",
    "objectives",
    "research",
    "save",
    "solvers",
]

_ROOMS = ("estimators", "errors", "persistence", "research.baselines")  # where names without a room of their own live


def __getattr__(name: str) -> Any:
    if name not in __all__ or (name.islower() and name not in ("load", "save")):
        return _room(name)
    rooms = (import_module(f"{__name__}.{room}") for room in _ROOMS)
    found = next(getattr(room, name) for room in rooms if name in getattr(room, "__all__", dir(room)))
    globals()[name] = found  # the next time it is simply there
    return found


def _room(name: str) -> Any:
    path = f"{__name__}.{name}"
    if name.startswith("_") or find_spec(path) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(path)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
