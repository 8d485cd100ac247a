"""Explicit feature maps: ``z(x)`` with ``<z(x), z(x')>`` equal or close to a kernel.

A map is prepared once on training points (frequencies are drawn, landmarks chosen) and then applies to any points:
``features.fit(X)(X)``. Its parameters can be learned like a kernel's: pass it as ``EmbeddingClassifier(features=...)``,
which prepares a copy.
"""

from kernelwright.features.fourier import RandomFourier, fourier_features
from kernelwright.features.network import Network
from kernelwright.features.nystroem import Nystroem
from kernelwright.features.polynomial import Polynomial
from kernelwright.kernels.feature import FeatureMap

__all__ = ["FeatureMap", "Network", "Nystroem", "Polynomial", "RandomFourier", "fourier_features"]
