"""Rival methods with the face of an estimator, for honest comparisons."""

from kernelwright.baselines.grid_svm import GridSearchSVC

__all__ = ["GridSearchSVC"]
