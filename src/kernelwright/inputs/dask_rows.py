"""Rows in a Dask collection: checked, sampled and summed on the workers."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets

from kernelwright.inputs.blocks import Block, Chunks, Gathered, _joined
from kernelwright.inputs.dask_buckets import DaskBuckets
from kernelwright.inputs.dask_readers import BlockReader, ChunkReader, NumberReader, RowReader, counted
from kernelwright.inputs.dask_work import computed, shipped
from kernelwright.inputs.frames.given_rows import GivenRows
from kernelwright.inputs.labels import class_labels
from kernelwright.inputs.numbers import check_numbers
from kernelwright.inputs.weights import ClassTotals
from kernelwright.numerics.threads import on_one_thread

__all__ = [
    "OF_EACH_CLASS",
    "DaskRows",
    "dask_mean",
    "example_row",
    "is_dask",
    "joined_blocks",
    "lazily",
    "number_totals",
    "some_of_block",
    "totals_of",
]

FAN_IN = 8  # sums added at once in the reduction tree
OF_EACH_CLASS = 2  # rows in the sample, at least: one to leave out, and one that still represents the class


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array, data frame or series."""
    return type(X).__module__.partition(".")[0].startswith("dask")


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
        self._sample: tuple[np.ndarray, Block] | None = None

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
        chunks._read_by(ChunkReader(RowReader(int(X.shape[1]), **options), classes, chunks.factors))
        varied = np.ptp(factors) > 0 or (totals.largest * totals.rows > totals.weight * (1 + 1e-12)).any()
        return chunks, classes, bool(varied)

    @classmethod
    def read_numbers(cls, X: Any, y: Any, sample_weight: Any) -> tuple[DaskRows, bool]:
        """Return rows with numbers as targets, and whether weights differ: one pass over targets and weights only."""
        from dask import delayed

        chunks = cls(X, y, sample_weight)
        parts = zip(chunks.y, chunks.weights, strict=True)
        found = computed([delayed(number_totals)(*part) for part in parts], chunks.row_bytes)
        by_chunk, gaps = [each for each, _ in found], sum(n for _, n in found)
        totals = reduce(operator.add, by_chunk)
        if not totals.n_rows:
            raise ValueError("No row of the Dask collection has a target and a positive weight.")
        if gaps:
            warnings.warn(f"{gaps} rows have no target and are left out.", stacklevel=4)
        chunks.lengths = [own.n_rows for own in by_chunk]
        chunks.factors = totals.factors(None)
        chunks._read_by(NumberReader(RowReader(int(X.shape[1])), float(chunks.factors[0])))
        varied = (totals.largest * totals.rows > totals.weight * (1 + 1e-12)).any()
        return chunks, bool(varied)

    def _class_totals(self) -> list[ClassTotals]:
        from dask import delayed

        parts = zip(self.y, self.weights, strict=True)
        return computed([delayed(totals_of)(*part) for part in parts], self.row_bytes)

    def _read_by(self, reading: BlockReader, **options: Any) -> None:
        from dask import delayed

        self._reading, shipped = reading, delayed(reading, traverse=False)
        chunks = enumerate(zip(self.X, self.y, self.weights, strict=True))
        self._blocks = [shipped(*parts, number, **options) for number, parts in chunks]

    def described(self, describe: Callable[[Any], GivenRows], random: np.random.Generator) -> None:
        """Let a function describe random rows, as they were given. All chunks are then read by its description.

        The sample is kept, with rows of every class: from now on, only its rows can be taken.
        """
        rows, reading = self.some_rows(random), self._reading
        self._read_by(reading, as_given=True)
        sample = self._taken(rows)
        if isinstance(reading, ChunkReader) and len(more := np.setdiff1d(self._of_rare_classes(sample.labels), rows)):
            rows, sample = np.append(rows, more), joined_blocks([sample, self._taken(more)])
            rows, sample = np.sort(rows), some_of_block(sample, rows.argsort())
        given = describe(sample.X)
        row_reader = replace(reading.rows, frames=given.reader, gaps=given.gaps)
        self._read_by(replace(reading, rows=row_reader))
        X = given.X if given.reader is not None else row_reader(given.X)
        self.layout, self._sample = given.layout(X), (rows, sample._replace(X=X))

    def _of_rare_classes(self, labels: np.ndarray) -> np.ndarray:
        """Return the indices of the first rows of the classes that some labels lack."""
        from dask import delayed

        assert isinstance(self._reading, ChunkReader)
        rare = np.flatnonzero(np.bincount(labels, minlength=len(self._reading.classes)) < OF_EACH_CLASS)
        if not len(rare):
            return rare
        parts = zip(self.y, self.weights, strict=True)
        found = computed([delayed(_rows_of_classes)(self._reading, *part, rare) for part in parts], self.row_bytes)
        starts = np.cumsum([0, *self.lengths])
        rows = np.concatenate([start + own for start, (own, _) in zip(starts, found, strict=False)])
        names = np.concatenate([labels for _, labels in found])
        return np.concatenate([rows[names == label][:OF_EACH_CLASS] for label in rare])

    def some_rows(self, random: np.random.Generator) -> np.ndarray:  # noqa: D102
        return super().some_rows(random) if self._sample is None else self._sample[0]

    def map_reduce(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Sum over the chunks in a tree: no worker ever holds more than a few chunks or sums."""
        return computed([self._tree(function, *arguments)], self.row_bytes)[0]

    def take(self, rows: np.ndarray) -> Block:  # noqa: D102
        if self._sample is None:
            return self._taken(rows)
        known, sample = self._sample
        return sample if rows is known else some_of_block(sample, np.searchsorted(known, rows))

    def reduce_targets(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: D102
        from dask import delayed

        shipped = delayed(partial(_function_of_targets, self._reading, function), traverse=False)
        parts = zip(self.y, self.weights, self.lengths, strict=True)
        level = [shipped(y, weights, *arguments) for y, weights, length in parts if length]
        return computed([_summed(level)], self.row_bytes)[0]

    def _taken(self, rows: np.ndarray) -> Block:
        return joined_blocks(computed(self._parts(rows), self.row_bytes))

    def take_and_reduce(  # noqa: D102
        self, rows: np.ndarray, function: Callable[..., Any], *arguments: Any
    ) -> tuple[Block, Any]:
        *parts, total = computed([*self._parts(rows), self._tree(function, *arguments)], self.row_bytes)
        return joined_blocks(parts), total

    def gathered(self, route: Callable[[Block], np.ndarray], n_buckets: int) -> Gathered:  # noqa: D102
        n_trees = route(self.take(self.some_rows(np.random.default_rng(0))[:1])).shape[1]
        return DaskBuckets.of(self._blocks, self.lengths, route, n_buckets, self.row_bytes + 8, n_trees)

    def _tree(self, function: Callable[..., Any], *arguments: Any) -> Any:
        from dask import delayed

        shipped = [delayed(argument, traverse=False) for argument in arguments]
        level = [
            delayed(on_one_thread)(function, block, *shipped)
            for block, length in zip(self._blocks, self.lengths, strict=True)
            if length
        ]
        return _summed(level)

    def _parts(self, rows: np.ndarray) -> list[Any]:
        from dask import delayed

        ends = np.cumsum(self.lengths)
        wanted = np.split(rows, np.searchsorted(rows, ends[:-1]))
        return [
            delayed(some_of_block)(block, own - (end - length))
            for block, own, end, length in zip(self._blocks, wanted, ends, self.lengths, strict=True)
            if len(own)
        ]


def lazily(method: Callable[..., np.ndarray], n_bytes: float, X: Any, *arguments: Any, **options: Any) -> Any:
    """Apply ``method``, of a model of some bytes, to every chunk of X; return a lazy Dask array."""
    import dask.array as da
    from dask import delayed

    X = _whole_rows(X)
    example = method(example_row(X), *arguments, **options)
    there = shipped(partial(_unless_empty, method, example[:0]), n_bytes)
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * X.npartitions
    answers = [
        da.from_delayed(
            delayed(_answer)(there, block, *arguments, **options), (length, *example.shape[1:]), example.dtype
        )
        for block, length in zip(_delayed_blocks(X), lengths, strict=True)
    ]
    return da.concatenate(answers, allow_unknown_chunksizes=True)


def _answer(method: Callable[..., np.ndarray], X: Any, *rest: Any, **options: Any) -> np.ndarray:
    return method(X, *rest, **options)


def _unless_empty(method: Callable[..., np.ndarray], nothing: np.ndarray, X: Any, *rest: Any, **options: Any) -> Any:
    """Apply ``method`` unless the chunk is empty: estimators reject empty input, but filters may leave empty chunks."""
    return method(X, *rest, **options) if len(X) else nothing


def dask_mean(values: Callable[[Any, Any], np.ndarray], X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the weighted mean of ``values(X, y)`` over all rows, computed chunk by chunk."""
    from dask import delayed

    rows = DaskRows(X, y, sample_weight)
    shipped = delayed(partial(_unless_empty, values, np.empty(0)), traverse=False)
    parts = zip(rows.X, rows.y, rows.weights, strict=True)
    found = computed([delayed(_weighted_sum)(shipped(X, y), w) for X, y, w in parts], rows.row_bytes)
    total, weight = np.sum(found, axis=0)
    return float(total / weight)


def example_row(X: Any) -> Any:
    """Return one made-up row, with the columns of X if these have names."""
    if hasattr(X, "chunks"):
        return np.zeros((1, *X.shape[1:]))
    from dask.dataframe.utils import meta_nonempty

    return meta_nonempty(X._meta).iloc[:1]


def joined_blocks(parts: list[Block]) -> Block:
    """Join blocks whose rows are numbers, or as they were given: data frames, perhaps."""
    X = [part.X for part in parts]
    if not hasattr(X[0], "iloc"):
        return _joined(parts)
    import pandas as pd

    return Block(pd.concat(X, ignore_index=True), *map(np.concatenate, list(zip(*parts, strict=True))[1:]))


def some_of_block(block: Block, rows: np.ndarray) -> Block:
    """Return some rows of a block, whose rows may be as they were given."""
    return Block(*(_safe_indexing(column, rows) for column in block))


def _rows_of_classes(reading: ChunkReader, y: Any, weights: Any, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of some classes in a chunk, as indices among the rows that count, and their classes."""
    labels = reading.targets(y, weights)[1]
    rows = np.concatenate([np.flatnonzero(labels == label)[:OF_EACH_CLASS] for label in classes])
    return rows, labels[rows]


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


def totals_of(y: Any, weights: Any) -> ClassTotals:
    """Return the classes and weights of labels."""
    y = np.asarray(y)
    if len(y):
        check_classification_targets(y)
    kept, weights = counted(y, weights)
    return ClassTotals.of(y[kept], weights[kept])


def number_totals(y: Any, weights: Any) -> tuple[ClassTotals, int]:
    """Return the number and the weights of rows with a target, and the number of those without."""
    y, _ = check_numbers(y)
    kept, weights = counted(y, weights)
    gaps = np.isnan(y).any(1)
    kept &= ~gaps
    return ClassTotals.of(np.zeros(int(kept.sum())), weights[kept]), int(gaps.sum())


def _weighted_sum(values: np.ndarray, weights: Any) -> tuple[float, float]:
    weights = np.ones(len(values)) if weights is None else np.asarray(weights)
    return float(values @ weights), float(weights.sum())


def _function_of_targets(
    reading: BlockReader, function: Callable[..., Any], y: Any, weights: Any, *arguments: Any
) -> Any:
    return function(*reading.targets(y, weights)[1:], *arguments)


def _summed(level: list[Any]) -> Any:
    """Sum delayed objects in a tree."""
    from dask import delayed

    while len(level) > 1:
        level = [delayed(_sum)(level[start : start + FAN_IN]) for start in range(0, len(level), FAN_IN)]
    return level[0]


def _sum(parts: list[Any]) -> Any:
    return reduce(operator.add, parts)
