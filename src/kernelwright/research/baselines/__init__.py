"""Rival methods as scikit-learn estimators, for fair comparisons."""

from kernelwright.research.baselines.alignment import AlignmentKernel
from kernelwright.research.baselines.bayesian_mkl import BayesianMKL
from kernelwright.research.baselines.data_adaptive import DataAdaptiveKernel
from kernelwright.research.baselines.distributed_mkl import DistributedBayesianMKL
from kernelwright.research.baselines.grid_svm import GridSearchSVC
from kernelwright.research.baselines.hyper_as_printed import HyperKernelAsPrinted
from kernelwright.research.baselines.indefinite_mkl import IndefiniteMKL
from kernelwright.research.baselines.random_alignment import RandomFeatureAlignment

__all__ = [
    "AlignmentKernel",
    "BayesianMKL",
    "DataAdaptiveKernel",
    "DistributedBayesianMKL",
    "GridSearchSVC",
    "HyperKernelAsPrinted",
    "IndefiniteMKL",
    "RandomFeatureAlignment",
]
