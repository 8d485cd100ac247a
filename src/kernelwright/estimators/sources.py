"""Rows that are not arrays in memory: files, chunks and memory-mapped arrays, as they are passed to ``fit``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

import kernelwright
from kernelwright.estimators.checking import settings_of
from kernelwright.inputs.arrays import seed_of
from kernelwright.inputs.blocks import gathered_rows
from kernelwright.inputs.parquet_rows import ParquetRows
from kernelwright.inputs.source_rows import SourceRows
from kernelwright.inputs.sources import ArrayParts, RowSource
from kernelwright.storage.fit_folder import FitFolder

__all__ = ["rows_of", "source_of"]


@contextmanager
def rows_of(
    model: Any, X: Any, y: Any, sample_weight: Any, checkpoint: str | os.PathLike[str] | None
) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield X, y, the weights and the random state of a fit.

    A source with few rows is read into memory. Otherwise X becomes :class:`SourceRows`, which know their targets and
    weights, and y and the weights are None.
    """
    source = source_of(X, y, sample_weight)
    if source is None:
        if checkpoint is not None:
            raise ValueError(
                "A checkpoint is for rows that are read from files or in chunks. Leave it out, or pass such rows: see "
                "kernelwright.inputs.ParquetRows."
            )
        yield X, y, sample_weight, model.random_state
        return
    whole = source.whole()
    if whole is not None:
        yield whole.X, whole.y, whole.weights, model.random_state
        return
    settings = f"{kernelwright.__version__} {type(model).__name__} {settings_of(model)} {model.random_state}"
    with nullcontext() if checkpoint is None else FitFolder(checkpoint) as folder:
        seed = model.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = seed_of(seed) if folder is None else folder.seed(seed_of(seed))
        yield SourceRows(source, folder, settings, int(seed)), None, None, int(seed)


def source_of(X: Any, y: Any = None, sample_weight: Any = None) -> RowSource | None:
    """Return the source of rows, or None if they are in memory."""
    if isinstance(X, (str, os.PathLike)):
        if not isinstance(y, str):
            raise ValueError(
                f"{X} holds the targets, too: name their column, as in fit({os.fspath(X)!r}, 'y'). Got "
                f"{type(y).__name__} instead."
            )
        X, y = ParquetRows(X, y), None
    if isinstance(X, np.memmap) and X.ndim == 2 and len(X) > gathered_rows(8 * X.shape[1]):
        return ArrayParts(X, y, sample_weight)
    if not isinstance(X, RowSource):
        return None
    if y is not None or sample_weight is not None:
        raise ValueError(
            f"The targets and weights of {type(X).__name__} are its own: leave out y and sample_weight. For Parquet, "
            "name their columns: ParquetRows(files, target='y', weight='w')."
        )
    if isinstance(X, ParquetRows) and X.target is None:
        raise ValueError("Name the column to learn: ParquetRows(files, target='y').")
    return X
