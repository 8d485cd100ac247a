"""Kernels: symmetric functions of two points, with learnable parameters."""

from kernelwright.kernels.base import Constant, ConvexSum, Kernel, Product, Scaled, Sum
from kernelwright.kernels.brownian import Brownian
from kernelwright.kernels.feature import FeatureKernel
from kernelwright.kernels.precomputed import Precomputed
from kernelwright.kernels.sparse import Angular
from kernelwright.kernels.string import Spectrum
from kernelwright.kernels.tabular import Tabular
from kernelwright.kernels.trend import WithTrend
from kernelwright.kernels.vector import Gaussian, KroneckerDelta, Laplace, Linear, Matern, Polynomial, RationalQuadratic

__all__ = [
    "Angular",
    "Brownian",
    "Constant",
    "ConvexSum",
    "FeatureKernel",
    "Gaussian",
    "Kernel",
    "KroneckerDelta",
    "Laplace",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Spectrum",
    "Sum",
    "Tabular",
    "WithTrend",
]
