"""Training on a table that is read in parts: a sample says what its columns are, all rows are learned from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelwright.inputs.frames.cells import texts
from kernelwright.inputs.frames.preparing import prepare
from kernelwright.inputs.frames.table import Table
from kernelwright.inputs.sources import RowPart, RowSource
from kernelwright.tables.examples import ExampleRows
from kernelwright.tables.labels import labelled
from kernelwright.tables.model import TabularModel, versions
from kernelwright.tables.parts import TableParts
from kernelwright.tables.pipelines import make_number_pipeline, make_pipeline
from kernelwright.tables.quantities import TrainingNumbers, numbered, read_target
from kernelwright.tables.training import TrainingTable

__all__ = ["BigTable"]

SAMPLED = 20_000  # rows that say what the columns are
MOST_CLASSES = 5000


@dataclass(frozen=True)
class BigTable:
    """A table whose rows are read in parts, and what is to be learned from it.

    Parameters
    ----------
    parts : TableParts
    sample : TrainingTable
        Some random rows, with the columns as they are treated.
    words : dict of str to int
        The index of the class of each word in the target column; empty for numbers.
    classes : tuple of str
    counts : tuple of int
        Number of rows in each class.
    rows : int
        Number of rows with a target.
    numbers : TrainingNumbers or None
    notes : tuple of str
    """

    parts: TableParts
    sample: TrainingTable
    words: dict[str, int]
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    rows: int
    numbers: TrainingNumbers | None
    notes: tuple[str, ...]

    @classmethod
    def of(cls, parts: TableParts, target: str, *, seed: int = 0, **options: Any) -> BigTable:
        """Read all rows once for a sample and the classes; a target of numbers is read once more.

        ``options`` are those of :meth:`TrainingTable.of`, but for groups and times.
        """
        drawn, found = _sampled(parts, target, np.random.default_rng(seed))
        sample = TrainingTable.of(drawn, target, **options)
        if sample.numbers is not None:
            return cls(parts, sample, {}, (), (), *_number_totals(parts, target, sample.numbers), sample.notes)
        if len(found) > MOST_CLASSES:
            raise ValueError(
                f"The target column {target!r} has more than {MOST_CLASSES} classes. Is it the right one? To predict "
                "numbers, use --task numbers."
            )
        words, classes, notes = _classes(found, target, parts.source)
        counts = np.bincount([words[word] for word in found], [float(n) for n in found.values()], len(classes))
        told = tuple(dict.fromkeys([*sample.notes, *notes]))
        return cls(parts, sample, words, classes, tuple(map(int, counts)), sum(found.values()), None, told)

    def source(self) -> RowSource:
        """Return the rows as an estimator takes them."""
        return _Prepared(self)

    def fit(self, seed: int = 0, checkpoint: str | os.PathLike[str] | None = None) -> TabularModel:
        """Fit a model to all rows."""
        sample = self.sample
        make = make_pipeline if self.numbers is None else make_number_pipeline
        name, estimator = make(sample.columns, seed).steps[-1]
        pipeline = Pipeline([(name, estimator.fit(self.source(), checkpoint=checkpoint))])
        return TabularModel(
            pipeline,
            sample.columns,
            sample.target,
            self.classes,
            self.counts,
            notes=self.notes,
            settings={"table": self.parts.source, "rows": self.rows, "seed": seed},
            versions=versions(),
            numbers=self.numbers,
            examples=ExampleRows.of(sample.frame, self._targets(sample), sample.rows, sample.row_word),
        )

    def _targets(self, sample: TrainingTable) -> np.ndarray:
        """Return the targets of the sample, as they are among all rows."""
        if self.numbers is not None:
            return sample.labels
        return np.array([self.words[name] for name in sample.classes])[sample.labels]


class _Prepared(RowSource):
    """The rows with a target of a table that is read in parts."""

    def __init__(self, table: BigTable) -> None:
        self.table, self.n_rows = table, table.rows

    @property
    def identity(self) -> str:
        return self.table.parts.identity

    def parts(self) -> Iterator[RowPart]:
        for table in self.table.parts.tables():
            rows, y = self._with_target(table)
            if len(y):
                yield RowPart(prepare(self.table.sample.columns, rows)[0], y, None, table.source)

    def target_parts(self) -> Iterator[RowPart]:
        for table in self.table.parts.tables([self.table.sample.target]):
            _, y = self._with_target(table)
            if len(y):
                yield RowPart(None, y, None, table.source)

    def _with_target(self, table: Table) -> tuple[Table, np.ndarray]:
        target = self.table.sample.target
        if self.table.numbers is not None:
            return _numbers(table, target, self.table.numbers)
        words = texts(table, target)
        known = words.notna().to_numpy()
        return table.take(known), words[known].map(self.table.words).to_numpy(dtype=np.int64)


def _sampled(parts: TableParts, target: str, random: np.random.Generator) -> tuple[Table, Counter[str]]:
    """Return random rows, in order, and how often each word is in the target column (of the first some thousand)."""
    import pandas as pd

    kept, keys, places, found, start = [], np.empty(0), np.empty(0, dtype=np.int64), Counter[str](), 0
    for table in parts.tables():
        table.column(target, "target column")
        own = random.uniform(size=len(table))
        limit = np.partition(keys, SAMPLED - 1)[SAMPLED - 1] if len(keys) >= SAMPLED else 1.0
        chosen = np.flatnonzero(own < limit)
        kept.append(table.frame.iloc[chosen])
        keys, places = np.append(keys, own[chosen]), np.append(places, start + chosen)
        if len(keys) > 4 * SAMPLED:
            kept, keys, places = _least([pd.concat(kept, ignore_index=True)], keys, places)
        if len(found) <= MOST_CLASSES:
            found.update(texts(table, target).dropna().value_counts().to_dict())
        start += len(table)
    kept, _, places = _least([pd.concat(kept, ignore_index=True)], keys, places)
    return Table(kept[0], parts.source), found


def _least(frames: list[Any], keys: np.ndarray, places: np.ndarray) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Return the rows with the smallest keys, in their order."""
    best = np.sort(keys.argsort(kind="stable")[:SAMPLED])
    return [frames[0].iloc[best].reset_index(drop=True)], keys[best], places[best]


def _classes(found: Counter[str], target: str, source: str) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Return the index of the class of each word, the classes, and notes about them."""
    import pandas as pd

    words = sorted(found)
    _, labels, classes, notes = labelled(Table(pd.DataFrame({target: pd.Series(words, dtype=object)}), source), target)
    if len(classes) < 2:
        raise ValueError(f"The target column {target!r} has only one value, {classes[0]!r}: a classifier needs two.")
    return dict(zip(words, labels.tolist(), strict=True)), classes, notes


def _numbers(table: Table, target: str, known: TrainingNumbers) -> tuple[Table, np.ndarray]:
    """Return the rows with a number, and the numbers."""
    reading = read_target(table, target, known.notation)
    if np.isnan(reading.values).all() and not reading.odd.any():
        return table.take(np.zeros(len(table), dtype=bool)), np.empty(0)
    return numbered(table, target, reading)[:2]


def _number_totals(parts: TableParts, target: str, sample: TrainingNumbers) -> tuple[int, TrainingNumbers]:
    """Return the number of rows with a target, and the sample's numbers with the range and the moments of all."""
    n, mean, squares, low, high = 0, 0.0, 0.0, np.inf, -np.inf
    for table in parts.tables([target]):
        y = _numbers(table, target, sample)[1]
        if len(y):
            own = float(y.mean())
            squares += float(((y - own) ** 2).sum()) + (own - mean) ** 2 * n * len(y) / (n + len(y))
            mean += (own - mean) * len(y) / (n + len(y))
            n, low, high = n + len(y), min(low, float(y.min())), max(high, float(y.max()))
    values = sample.values.copy()
    values[0], values[-1] = low, high
    return n, replace(sample, rows=n, values=values, mean=mean, std=float(np.sqrt(squares / n)))
