"""Similarity matrices: kernel alignment, indefinite spectra, effective dimension and covering numbers."""

from kernelwright.similarity.dimension import CoveringNumbers, covering_numbers, effective_dimension

__all__ = ["CoveringNumbers", "covering_numbers", "effective_dimension"]
