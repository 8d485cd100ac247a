"""Rows of a source, read part by part: checked, sampled, summed up, and brought together in buckets on disk."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

import joblib
import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from kernelwright.inputs.blocks import Block, Chunks, Gathered
from kernelwright.inputs.dask_readers import BlockReader, ChunkReader, NumberReader, RowReader
from kernelwright.inputs.dask_rows import OF_EACH_CLASS, joined_blocks, number_totals, some_of_block, totals_of
from kernelwright.inputs.disk_buckets import PROBED, DiskBuckets
from kernelwright.inputs.frames.given_rows import GivenRows
from kernelwright.inputs.labels import class_labels
from kernelwright.inputs.sources import RowPart, RowSource
from kernelwright.inputs.weights import ClassTotals
from kernelwright.storage.fit_folder import FitFolder

__all__ = ["SourceRows"]


class SourceRows(Chunks):
    """The rows of a source that count, with class indices or numbers as targets.

    With a folder, what was done is kept there; ``settings`` are those of the fit that it belongs to.
    """

    def __init__(self, source: RowSource, folder: FitFolder | None = None, settings: str = "", seed: int = 0) -> None:
        self.source, self.folder, self.settings, self.seed = source, folder, settings, seed
        self.example = next(iter(source.parts())).X[:1]
        self.lengths: list[int] = []
        self.factors = np.ones(0)  # class weights, set when the labels are read
        self.row_bytes = 8 * self.example.shape[1]
        self._reading: BlockReader
        self._sample: tuple[np.ndarray, Block] | None = None

    def read(self, class_weight: Any, owner: Any) -> tuple[np.ndarray, bool]:
        """Read all labels and weights; return the classes, and whether weights differ."""
        by_part = [_named(part, totals_of, part.y, part.weights) for part in self.source.target_parts()]
        totals = reduce(operator.add, by_part)
        factors = totals.factors(class_weight)
        classes, _ = class_labels(totals.classes[factors > 0], owner)
        self.lengths = [int(own.rows[np.isin(own.classes, classes)].sum()) for own in by_part]
        self.factors = factors[factors > 0]
        self._reading = ChunkReader(RowReader(self.example.shape[1]), classes, self.factors)
        return classes, bool(np.ptp(factors) > 0 or _differ(totals))

    def read_numbers(self) -> bool:
        """Read all targets and weights; return whether weights differ."""
        found = [_named(part, number_totals, part.y, part.weights) for part in self.source.target_parts()]
        by_part, gaps = [each for each, _ in found], sum(n for _, n in found)
        totals = reduce(operator.add, by_part)
        if not totals.n_rows:
            raise ValueError("No row has a target and a positive weight.")
        if gaps:
            warnings.warn(f"{gaps} rows have no target and are left out.", stacklevel=5)
        self.lengths = [own.n_rows for own in by_part]
        self.factors = totals.factors(None)
        self._reading = NumberReader(RowReader(self.example.shape[1]), float(self.factors[0]))
        return _differ(totals)

    # reading -----------------------------------------------------------------------------------------------

    def _blocks(self, *, as_given: bool = False) -> Iterator[Block]:
        """Yield the rows that count of each part, which must be as many as there were targets."""
        n_parts = 0
        for number, part in enumerate(self.source.parts()):
            block = _named(part, self._block, part, as_given=as_given)
            if number >= len(self.lengths) or len(block.labels) != self.lengths[number]:
                raise ValueError(f"{part.place} has changed since its targets were read: the rows must stay the same.")
            n_parts += 1
            yield block
        if n_parts != len(self.lengths):
            raise ValueError(f"There were {len(self.lengths)} parts of rows, but now there are {n_parts}.")

    def _block(self, part: RowPart, *, as_given: bool) -> Block:
        X = part.X if as_given else self._reading.rows(part.X)
        check_consistent_length(X, part.y)
        kept, targets, weights = self._reading.targets(part.y, part.weights)
        return Block(X if kept.all() else _safe_indexing(X, np.flatnonzero(kept)), targets, weights)

    def described(self, describe: Callable[[Any], GivenRows], random: np.random.Generator) -> None:
        """Let a function describe random rows, as they were given. All rows are then read by its description.

        The sample is kept, with rows of every class, and one with a gap of each column that has some: from now on,
        only its rows can be taken.
        """
        rows = self.some_rows(random)
        numbers, sample = self._sampled(rows)
        given = describe(sample.X)
        self._reading = replace(self._reading, rows=replace(self._reading.rows, frames=given.reader, gaps=given.gaps))
        X = given.X if given.reader is not None else self._reading.rows(given.X)
        self.layout, self._sample = given.layout(X), (numbers, sample._replace(X=X))
        if self.folder is not None:
            job = [self.settings, self.source.identity, len(self), numbers, *self._sample[1]]
            self.folder.claim(joblib.hash(job), self.seed)

    def _sampled(self, rows: np.ndarray) -> tuple[np.ndarray, Block]:
        """Return the given rows and those that they lack, with their indices, in order."""
        wanted, extra = [], _Extra(isinstance(self._reading, ChunkReader))
        start = 0
        for block in self._blocks(as_given=True):
            end = start + len(block.labels)
            own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)]
            wanted.append(some_of_block(block, own - start))
            extra.look_at(block, start, wanted[-1])
            start = end
        sample = joined_blocks(wanted)
        more = extra.needed(sample.labels)
        more = [(row, block) for row, block in more if row not in set(rows.tolist())]
        if not more:
            return rows, sample
        numbers = np.append(rows, [row for row, _ in more])
        order = numbers.argsort()
        return numbers[order], some_of_block(joined_blocks([sample, *(block for _, block in more)]), order)

    # what a fit asks for -----------------------------------------------------------------------------------

    def some_rows(self, random: np.random.Generator) -> np.ndarray:  # noqa: D102
        return super().some_rows(random) if self._sample is None else self._sample[0]

    def map_reduce(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: D102
        return reduce(operator.add, (function(block, *arguments) for block in self._blocks() if len(block.labels)))

    def reduce_targets(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Sum ``function(labels, weights, *arguments)`` over all parts, without reading the inputs."""
        found = (self._reading.targets(part.y, part.weights)[1:] for part in self.source.target_parts())
        return reduce(operator.add, (function(*each, *arguments) for each in found if len(each[0])))

    def take(self, rows: np.ndarray) -> Block:  # noqa: D102
        if self._sample is not None:
            known, sample = self._sample
            return sample if rows is known else some_of_block(sample, np.searchsorted(known, rows))
        found, start = [], 0
        for block in self._blocks():
            own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + len(block.labels))]
            found.append(some_of_block(block, own - start))
            start += len(block.labels)
        return joined_blocks(found)

    def gathered(self, route: Callable[[Block], np.ndarray], n_buckets: int) -> Gathered:  # noqa: D102
        if self._sample is None:
            probe = self.take(np.arange(min(PROBED, len(self))))
        else:
            probe = some_of_block(self._sample[1], np.arange(min(PROBED, len(self._sample[0]))))
        return DiskBuckets.of(self._blocks(), len(self), route, n_buckets, probe, self.folder)


class _Extra:
    """Rows that a sample may lack: the first ones of every class, and the first with a gap in each column."""

    def __init__(self, classes: bool) -> None:
        self.of_class: dict[int, list[tuple[int, Block]]] | None = {} if classes else None
        self.of_gap: dict[int, tuple[int, Block]] = {}
        self.sampled_gaps: set[int] = set()

    def look_at(self, block: Block, start: int, taken: Block) -> None:
        """Note the rows of a part, some of which are in the sample."""
        self.sampled_gaps |= set(np.flatnonzero(_gaps(taken.X).any(0)).tolist())
        missing = _gaps(block.X)
        for column in np.flatnonzero(missing.any(0)).tolist():
            if column not in self.of_gap:
                self.of_gap[column] = self._row(block, start, int(missing[:, column].argmax()))
        for label in [] if self.of_class is None else np.unique(block.labels).tolist():
            known = self.of_class.setdefault(label, []) if self.of_class is not None else []
            for row in np.flatnonzero(block.labels == label)[: OF_EACH_CLASS - len(known)].tolist():
                known.append(self._row(block, start, row))

    @staticmethod
    def _row(block: Block, start: int, row: int) -> tuple[int, Block]:
        return start + row, some_of_block(block, np.array([row]))

    def needed(self, labels: np.ndarray) -> list[tuple[int, Block]]:
        """Return the rows, with their indices, that a sample with these labels lacks; each once."""
        found = {row: block for column, (row, block) in self.of_gap.items() if column not in self.sampled_gaps}
        for label, rows in (self.of_class or {}).items():
            if (labels == label).sum() < OF_EACH_CLASS:
                found |= dict(rows)
        return sorted(found.items(), key=operator.itemgetter(0))


def _gaps(X: Any) -> np.ndarray:
    if hasattr(X, "iloc"):
        return X.isna().to_numpy()
    return np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, dtype=bool)


def _differ(totals: ClassTotals) -> bool:
    """Return whether the weights of the rows of a class differ."""
    return bool((totals.largest * totals.rows > totals.weight * (1 + 1e-12)).any())


@contextmanager
def _naming(part: RowPart) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"In {part.place}: {error}") from error


def _named(part: RowPart, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function; its errors name the part."""
    with _naming(part):
        return function(*arguments, **options)
