"""Checks of the rows that a user passes to a network classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelwright.estimators.arrows import MERGE_UP_TO
from kernelwright.inputs.arrays import seed_of, validate_data
from kernelwright.inputs.blocks import Block, Chunks
from kernelwright.inputs.dask_rows import DaskRows, example_row, is_dask
from kernelwright.inputs.dataset import ClassInfo, Dataset, check_classes, check_rows, counted_groups
from kernelwright.inputs.frames.given_rows import training_rows
from kernelwright.inputs.layout import TableLayout

__all__ = ["INPUTS", "check_network_rows"]

INPUTS: dict[str, Any] = {"dtype": [np.float64, np.float32], "allow_nd": True}  # images and sequences too


def check_network_rows(
    model: Any, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Dataset, ClassInfo, Chunks | None]:
    """Check the rows; return those to learn from, their class information, and all rows if they are in chunks."""
    if is_dask(X):
        return _check_chunks(model, X, y, sample_weight, groups)
    given = training_rows(X, y, categorical=model.categorical, keep=model.keep)
    X, y = check_rows(model, given.X, y, vectors=True, finite=given.finite, **INPUTS)
    given.settle(model)
    info, labels, weights, kept = check_classes(y, sample_weight, model.class_weight, model)
    return _merged(Block(X[kept], labels, weights), counted_groups(groups, kept), given.layout(X)), info, None


def _check_chunks(
    model: Any, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Dataset, ClassInfo, Chunks | None]:
    if groups is not None:
        raise ValueError("'groups' is not supported for Dask collections: a group would have to be in one place.")
    validate_data(model, example_row(X), skip_check_array=True)  # names and number of columns
    chunks, classes, weighted = DaskRows.read(X, y, sample_weight, model.class_weight, model, **INPUTS)
    many = len(chunks) > chunks.n_gathered
    if many and model.kernel is not None:
        raise ValueError(
            f"A kernel on top of the network needs all {len(chunks)} rows in one place. Use kernel=None, which needs "
            "only sums over the rows."
        )
    some = chunks.take(chunks.some_rows(np.random.default_rng(seed_of(model.random_state))))
    return _merged(some), ClassInfo(classes, chunks.factors, weighted), chunks if many else None


def _merged(block: Block, groups: np.ndarray | None = None, layout: TableLayout | None = None) -> Dataset:
    """Return the rows; equal rows of a table are merged."""
    rows = replace(Dataset.of(block, groups), layout=layout).with_mean_weight_one()
    return rows.merged()[0] if block.X.ndim == 2 and len(block.X) <= MERGE_UP_TO else rows
