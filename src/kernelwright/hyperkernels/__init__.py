"""Hyper-kernels, kernels between pairs of points: the public names of :mod:`kernelwright.hyper.kernels`."""

from kernelwright.hyper.kernels import Gaussian, HyperKernel, PointPairs, Sum, Wishart

__all__ = ["Gaussian", "HyperKernel", "PointPairs", "Sum", "Wishart"]
