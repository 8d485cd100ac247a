"""Rival methods with the face of an estimator, for honest comparisons."""

from kernelwright.baselines.alignment import AlignmentKernel
from kernelwright.baselines.bayesian_mkl import BayesianMKL
from kernelwright.baselines.data_adaptive import DataAdaptiveKernel
from kernelwright.baselines.grid_svm import GridSearchSVC
from kernelwright.baselines.indefinite_mkl import IndefiniteMKL
from kernelwright.baselines.random_alignment import RandomFeatureAlignment

__all__ = [
    "AlignmentKernel",
    "BayesianMKL",
    "DataAdaptiveKernel",
    "GridSearchSVC",
    "IndefiniteMKL",
    "RandomFeatureAlignment",
]
