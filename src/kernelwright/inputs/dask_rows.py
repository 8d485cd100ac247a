"""Rows in a Dask collection: checked, sampled and summed on the workers."""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length

from kernelwright.errors import WorkerLostError
from kernelwright.inputs.blocks import Block, Chunks, _joined, _some
from kernelwright.inputs.labels import class_labels
from kernelwright.inputs.numbers import check_numbers
from kernelwright.inputs.weights import ClassTotals
from kernelwright.numerics.threads import on_one_thread

__all__ = ["ChunkReader", "DaskRows", "dask_mean", "example_row", "is_dask", "lazily"]

FAN_IN = 8  # sums added at once in the reduction tree


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array, data frame or series."""
    return type(X).__module__.partition(".")[0].startswith("dask")


@dataclass(frozen=True)
class ChunkReader:
    """Turns a chunk into a :class:`Block` on a worker; it is sent to the workers once."""

    classes: np.ndarray
    factors: np.ndarray  # class weights: row weights are multiplied by these
    n_features: int
    dtype: Any = np.float64
    allow_nd: bool = False

    def __call__(self, X: Any, y: Any, weights: Any, number: int) -> Block:
        """Check one chunk; errors name it."""
        try:
            X, y = check_array(X, dtype=self.dtype, allow_nd=self.allow_nd, ensure_min_samples=0), np.asarray(y)
            check_consistent_length(X, y)
            if X.shape[1] != self.n_features:
                raise ValueError(f"X has {X.shape[1]} features, but {self.n_features} were expected.")
            kept, weights = _counted(y, weights)
            kept &= np.isin(y, self.classes)  # rows of other classes have weight zero
        except ValueError as error:
            raise ValueError(f"In chunk {number} of the data: {error}") from error
        labels = np.searchsorted(self.classes, y[kept])
        return Block(X[kept], labels, weights[kept] * self.factors[labels])


@dataclass(frozen=True)
class NumberReader:
    """Turns a chunk with a number as target into a :class:`Block` on a worker."""

    factor: float  # that makes the mean weight one
    n_features: int

    def __call__(self, X: Any, y: Any, weights: Any, number: int) -> Block:
        """Check one chunk; errors name it. Rows without a target are left out."""
        try:
            X, (y, _) = check_array(X, dtype=np.float64, ensure_min_samples=0), check_numbers(y)
            check_consistent_length(X, y)
            if X.shape[1] != self.n_features:
                raise ValueError(f"X has {X.shape[1]} features, but {self.n_features} were expected.")
            kept, weights = _counted(y, weights)
            kept &= ~np.isnan(y).any(1)
        except ValueError as error:
            raise ValueError(f"In chunk {number} of the data: {error}") from error
        return Block(X[kept], y[kept], weights[kept] * self.factor)


class DaskRows(Chunks):
    """The chunks of Dask collections. The cluster of the current client does all work, or local threads do."""

    def __init__(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        X = _whole_rows(X)
        self.X, self.y = _delayed_blocks(X), _delayed_blocks(_like(X, y, "y"))
        self.weights = [None] * len(self.X)
        if sample_weight is not None:
            self.weights = _delayed_blocks(_like(X, sample_weight, "sample_weight"))
        self.row_bytes = 8 * int(np.prod(X.shape[1:]))
        self.factors = np.ones(0)  # class weights, set when the labels are read
        self.lengths = []
        self._blocks: list[Any] = []

    @classmethod
    def read(
        cls, X: Any, y: Any, sample_weight: Any, class_weight: Any, owner: Any, **options: Any
    ) -> tuple[DaskRows, np.ndarray, bool]:
        """Return the rows, their classes, and whether weights differ: one pass over labels and weights only."""
        chunks = cls(X, y, sample_weight)
        by_chunk = chunks._class_totals()
        totals = reduce(operator.add, by_chunk)
        factors = totals.factors(class_weight)
        classes, _ = class_labels(totals.classes[factors > 0], owner)
        chunks.lengths = [int(own.rows[np.isin(own.classes, classes)].sum()) for own in by_chunk]
        chunks.factors = factors[factors > 0]
        chunks._read_by(ChunkReader(classes, chunks.factors, int(X.shape[1]), **options))
        varied = np.ptp(factors) > 0 or (totals.largest * totals.rows > totals.weight * (1 + 1e-12)).any()
        return chunks, classes, bool(varied)

    @classmethod
    def read_numbers(cls, X: Any, y: Any, sample_weight: Any) -> tuple[DaskRows, bool]:
        """Return rows with numbers as targets, and whether weights differ: one pass over targets and weights only."""
        from dask import delayed

        chunks = cls(X, y, sample_weight)
        parts = zip(chunks.y, chunks.weights, strict=True)
        counted = _computed([delayed(_number_totals)(*part) for part in parts], chunks.row_bytes)
        by_chunk, gaps = [each for each, _ in counted], sum(n for _, n in counted)
        totals = reduce(operator.add, by_chunk)
        if not totals.n_rows:
            raise ValueError("No row of the Dask collection has a target and a positive weight.")
        if gaps:
            warnings.warn(f"{gaps} rows have no target and are left out.", stacklevel=4)
        chunks.lengths = [own.n_rows for own in by_chunk]
        chunks.factors = totals.factors(None)
        chunks._read_by(NumberReader(float(chunks.factors[0]), int(X.shape[1])))
        varied = (totals.largest * totals.rows > totals.weight * (1 + 1e-12)).any()
        return chunks, bool(varied)

    def _class_totals(self) -> list[ClassTotals]:
        from dask import delayed

        parts = zip(self.y, self.weights, strict=True)
        return _computed([delayed(_totals)(*part) for part in parts], self.row_bytes)

    def _read_by(self, reading: ChunkReader | NumberReader) -> None:
        from dask import delayed

        shipped = delayed(reading, traverse=False)
        chunks = enumerate(zip(self.X, self.y, self.weights, strict=True))
        self._blocks = [shipped(*parts, number) for number, parts in chunks]

    def map_reduce(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Sum over the chunks in a tree: no worker ever holds more than a few chunks or sums."""
        return _computed([self._tree(function, *arguments)], self.row_bytes)[0]

    def take(self, rows: np.ndarray) -> Block:  # noqa: D102
        return _joined(_computed(self._parts(rows), self.row_bytes))

    def take_and_reduce(  # noqa: D102
        self, rows: np.ndarray, function: Callable[..., Any], *arguments: Any
    ) -> tuple[Block, Any]:
        *parts, total = _computed([*self._parts(rows), self._tree(function, *arguments)], self.row_bytes)
        return _joined(parts), total

    def _tree(self, function: Callable[..., Any], *arguments: Any) -> Any:
        from dask import delayed

        shipped = [delayed(argument, traverse=False) for argument in arguments]
        level = [
            delayed(on_one_thread)(function, block, *shipped)
            for block, length in zip(self._blocks, self.lengths, strict=True)
            if length
        ]
        while len(level) > 1:
            level = [delayed(_sum)(level[start : start + FAN_IN]) for start in range(0, len(level), FAN_IN)]
        return level[0]

    def _parts(self, rows: np.ndarray) -> list[Any]:
        from dask import delayed

        ends = np.cumsum(self.lengths)
        wanted = np.split(rows, np.searchsorted(rows, ends[:-1]))
        return [
            delayed(_some)(block, own - (end - length))
            for block, own, end, length in zip(self._blocks, wanted, ends, self.lengths, strict=True)
            if len(own)
        ]


def lazily(method: Callable[..., np.ndarray], X: Any, *arguments: Any, **options: Any) -> Any:
    """Apply ``method`` to every chunk of X; return a lazy Dask array."""
    import dask.array as da
    from dask import delayed

    X = _whole_rows(X)
    example = method(example_row(X), *arguments, **options)
    shipped = delayed(partial(_unless_empty, method, example[:0]), traverse=False)  # sent together with the model
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * X.npartitions
    answers = [
        da.from_delayed(shipped(block, *arguments, **options), (length, *example.shape[1:]), example.dtype)
        for block, length in zip(_delayed_blocks(X), lengths, strict=True)
    ]
    return da.concatenate(answers, allow_unknown_chunksizes=True)


def _unless_empty(method: Callable[..., np.ndarray], nothing: np.ndarray, X: Any, *rest: Any, **options: Any) -> Any:
    """Apply ``method`` unless the chunk is empty: estimators reject empty input, but filters may leave empty chunks."""
    return method(X, *rest, **options) if len(X) else nothing


def dask_mean(values: Callable[[Any, Any], np.ndarray], X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the weighted mean of ``values(X, y)`` over all rows, computed chunk by chunk."""
    from dask import delayed

    rows = DaskRows(X, y, sample_weight)
    shipped = delayed(partial(_unless_empty, values, np.empty(0)), traverse=False)
    parts = zip(rows.X, rows.y, rows.weights, strict=True)
    found = _computed([delayed(_weighted_sum)(shipped(X, y), w) for X, y, w in parts], rows.row_bytes)
    total, weight = np.sum(found, axis=0)
    return float(total / weight)


def example_row(X: Any) -> Any:
    """Return one row of zeros, with column names if X has any."""
    if hasattr(X, "chunks"):
        return np.zeros((1, *X.shape[1:]))
    import pandas as pd

    return pd.DataFrame(0.0, index=[0], columns=X.columns)


def _whole_rows(X: Any) -> Any:
    return X.rechunk(dict.fromkeys(range(1, X.ndim), -1)) if hasattr(X, "rechunk") else X


def _like(X: Any, column: Any, name: str) -> Any:
    """Return a column in the chunks of X."""
    known = hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any()
    if not is_dask(column):
        if not known:
            raise ValueError(
                f"X has chunks of unknown length, so {name} cannot be split to match: pass {name} as a Dask collection "
                "with the same partitions."
            )
        import dask.array as da

        column = da.from_array(np.asarray(column))
    if getattr(column, "ndim", 1) == 2:
        column = column[:, 0] if hasattr(column, "chunks") else column.iloc[:, 0]
    if known and hasattr(column, "chunks") and not np.isnan(column.chunks[0]).any():
        if column.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and {name} has {column.shape[0]}: the numbers must be equal.")
        return column.rechunk((X.chunks[0],))
    if column.npartitions != X.npartitions:
        raise ValueError(
            f"X has {X.npartitions} chunks and {name} has {column.npartitions}, of unknown lengths: "
            "repartition one to match the other, or call compute_chunk_sizes() on both."
        )
    return column


def _delayed_blocks(collection: Any) -> list[Any]:
    return list(np.ravel(collection.to_delayed()))


def _counted(y: np.ndarray, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the rows with non-zero weight, and the weights."""
    if weights is None:
        weights = np.ones(len(y))
    weights = check_array(weights, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="sample_weight")
    check_consistent_length(y, weights)
    if (weights < 0).any():
        raise ValueError("Negative values in sample_weight.")
    return weights > 0, weights


def _totals(y: Any, weights: Any) -> ClassTotals:
    y = np.asarray(y)
    if len(y):
        check_classification_targets(y)
    kept, weights = _counted(y, weights)
    return ClassTotals.of(y[kept], weights[kept])


def _number_totals(y: Any, weights: Any) -> tuple[ClassTotals, int]:
    """Return the number and the weights of rows with a target, and the number of those without."""
    y, _ = check_numbers(y)
    kept, weights = _counted(y, weights)
    gaps = np.isnan(y).any(1)
    kept &= ~gaps
    return ClassTotals.of(np.zeros(int(kept.sum())), weights[kept]), int(gaps.sum())


def _weighted_sum(values: np.ndarray, weights: Any) -> tuple[float, float]:
    weights = np.ones(len(values)) if weights is None else np.asarray(weights)
    return float(values @ weights), float(weights.sum())


def _sum(parts: list[Any]) -> Any:
    return reduce(operator.add, parts)


def _computed(tasks: list[Any], row_bytes: int) -> Any:
    """Compute the tasks. On an exception (also Ctrl-C) the remaining work is released, and the cluster drops it."""
    import dask

    try:
        return dask.compute(*tasks)
    except MemoryError as error:
        raise WorkerLostError(_memory_advice("A worker could not get the memory for a chunk", row_bytes)) from error
    except Exception as error:
        if not _is_killed_worker(error):
            raise
        said = f"Workers died again and again over the same chunk ({error})"
        raise WorkerLostError(_memory_advice(said, row_bytes)) from error


def _is_killed_worker(error: Exception) -> bool:
    distributed = sys.modules.get("distributed")  # missing if the work was done by threads
    return distributed is not None and isinstance(error, distributed.scheduler.KilledWorker)


def _memory_advice(said: str, row_bytes: int) -> str:
    return (
        f"{said}. The chunk probably does not fit: a thousand rows take {row_bytes / 1048.576:.3g} MiB as numbers of 8 "
        "bytes, and a worker holds two or three copies of a chunk. Use smaller chunks (X.rechunk({0: 10_000}) for an "
        "array, X.repartition(partition_size='64MB') for a data frame), or raise memory_limit of the workers."
    )
