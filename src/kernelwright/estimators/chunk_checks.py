"""Check rows in Dask collections and other sources: few are gathered, and of many a sample says how they are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelwright.estimators.arrows import FitPlan, given_rows
from kernelwright.inputs.arrays import seed_of, validate_data
from kernelwright.inputs.blocks import Chunks
from kernelwright.inputs.dask_rows import DaskRows, example_row
from kernelwright.inputs.dataset import ClassInfo, Dataset
from kernelwright.inputs.frames.given_rows import GivenRows
from kernelwright.inputs.numbers import NumberInfo
from kernelwright.inputs.source_rows import SourceRows

__all__ = ["check_chunks", "check_chunks_of_numbers", "refuse_groups_of_chunks"]


def refuse_groups_of_chunks(groups: Any) -> None:
    """Raise an error if there are groups."""
    if groups is not None:
        raise ValueError(
            "'groups' is not supported for Dask collections, nor for files and chunks that are not all in memory: a "
            "group would have to be in one place."
        )


def _refuse_on_chunks(plan: FitPlan, *, shares: bool) -> None:
    """Raise an error if a fit cannot work on rows that stay where they are."""
    if shares:
        raise ValueError(
            "kernel_share and holdout_share divide rows that are in memory, and those of Dask collections, files and "
            "chunks are not. Leave them out, or load the rows into memory: fit(X.compute(), y.compute())."
        )
    if not plan.kernel.takes_vectors:
        raise ValueError(
            f"Dask collections, files and chunks must hold rows of numbers or tables, which {plan.kernel!r} does not "
            "take. Load them into memory: fit(X.compute(), y.compute())."
        )


def check_chunks(
    model: Any, plan: FitPlan, X: Any, y: Any, sample_weight: Any, *, shares: bool
) -> tuple[Dataset | Chunks, ClassInfo, np.ndarray]:
    """Check rows of classes; many stay where they are."""
    example = _example_for(model, plan, X, shares=shares)
    chunks: DaskRows | SourceRows
    if isinstance(X, SourceRows):
        chunks, (classes, weighted) = X, X.read(model.class_weight, model)
    else:
        chunks, classes, weighted = DaskRows.read(X, y, sample_weight, model.class_weight, model)
    rows = _few_or_chunks(model, plan, example, chunks)
    return rows, ClassInfo(classes, chunks.factors, weighted), np.ones(len(chunks), dtype=bool)


def check_chunks_of_numbers(
    model: Any, plan: FitPlan, X: Any, y: Any, sample_weight: Any, *, shares: bool
) -> tuple[Dataset | Chunks, NumberInfo, np.ndarray]:
    """Check rows with numbers as targets; many stay where they are."""
    example = _example_for(model, plan, X, shares=shares)
    chunks: DaskRows | SourceRows
    if isinstance(X, SourceRows):
        chunks, weighted = X, X.read_numbers()
    else:
        chunks, weighted = DaskRows.read_numbers(X, y, sample_weight)
    rows, unit = _few_or_chunks(model, plan, example, chunks), float(chunks.factors[0])
    return rows, NumberInfo(1, True, weighted, unit), np.ones(len(chunks), dtype=bool)


def _example_for(model: Any, plan: FitPlan, X: Any, *, shares: bool) -> Any:
    """Return a row, after checks of the names and the number of columns."""
    _refuse_on_chunks(plan, shares=shares)
    example = X.example if isinstance(X, SourceRows) else example_row(X)
    validate_data(model, example, skip_check_array=True)
    return example


def _few_or_chunks(model: Any, plan: FitPlan, example: Any, chunks: DaskRows | SourceRows) -> Dataset | Chunks:
    """Return the rows themselves if they are few. A sample says how a table, or gaps in an array, are read."""
    few = len(chunks) <= chunks.n_gathered
    if plan.explicit and not _has_words(example):
        return Dataset.of(chunks.take(np.arange(len(chunks)))) if few else chunks

    def describe(sample: Any) -> GivenRows:
        found = given_rows(model, plan, sample)
        found.settle(model)
        return found

    chunks.described(describe, np.random.default_rng(seed_of(plan.random_state)))
    if not few:
        return chunks
    return replace(Dataset.of(chunks.take(np.arange(len(chunks)))), layout=chunks.layout)


def _has_words(X: Any) -> bool:
    """Return whether some columns of a data frame do not hold numbers."""
    return hasattr(X, "dtypes") and any(dtype.kind not in "biuf" for dtype in X.dtypes)
