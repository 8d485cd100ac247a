"""Checks of user input: arrays, labels, weights, groups, scaling, Dask collections, and rows that are read in parts."""

from kernelwright.inputs.parquet_rows import ParquetRows
from kernelwright.inputs.sources import ChunkedRows

__all__ = ["ChunkedRows", "ParquetRows"]
