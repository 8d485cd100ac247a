"""Rows that need not fit into memory: they are read in parts, one after the other, as often as they are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from kernelwright.inputs.blocks import gathered_rows

__all__ = ["PART_ROWS", "ArrayParts", "ChunkedRows", "RowPart", "RowSource", "joined_rows"]

PART_ROWS = 65_536


class RowPart(NamedTuple):
    """Some rows as they were given, with their targets and weights, or None; ``place`` names them in errors.

    ``start`` is the number of rows before them in their file.
    """

    X: Any
    y: Any
    weights: Any
    place: str
    start: int = 0


class RowSource(ABC):
    """Rows that are read in parts."""

    n_rows: int | None = None  # if it is known before the rows are read

    @abstractmethod
    def parts(self) -> Iterator[RowPart]:
        """Read all parts, in the same order each time."""

    def target_parts(self) -> Iterator[RowPart]:
        """Read the targets and weights of all parts; X may be None."""
        return self.parts()

    @property
    def identity(self) -> str:
        """What is known about the source before its rows are read, for checkpoints: names and times of its files."""
        return ""

    def whole(self) -> RowPart | None:
        """Return all rows in one part, or None if there are too many to be gathered."""
        found, n = [], 0
        for part in self.parts():
            found.append(part)
            n += len(part.X)
            if max(n, self.n_rows or 0) > gathered_rows(8 * part.X.shape[1]):
                return None
        if not found:
            raise ValueError("The source has no rows.")
        X, y, weights = (joined_rows([part[place] for part in found]) for place in range(3))
        return RowPart(X, y, weights, "the data")


def joined_rows(columns: list[Any]) -> Any:
    """Join arrays, data frames or series; None if there are none."""
    if columns[0] is None:
        return None
    if not hasattr(columns[0], "iloc"):
        return np.concatenate([np.asarray(column) for column in columns])
    import pandas as pd

    return pd.concat(columns, ignore_index=True)


class ArrayParts(RowSource):
    """Arrays that are too large to be copied, such as memory-mapped files."""

    def __init__(self, X: Any, y: Any, weights: Any = None) -> None:
        for name, column in (("y", y), ("sample_weight", weights)):
            if column is not None and len(column) != len(X):
                raise ValueError(f"X has {len(X)} rows and {name} has {len(column)}: the numbers must be equal.")
        if X.ndim != 2:
            raise ValueError(f"Expected a 2-D array of numbers (rows are points). Got shape {X.shape} instead.")
        self.X, self.y, self.weights, self.n_rows = X, y, weights, len(X)

    @property
    def identity(self) -> str:  # noqa: D102
        return f"{self.X.shape} {self.X.dtype}"

    def _slices(self) -> Iterator[slice]:
        return (slice(start, min(start + PART_ROWS, len(self.X))) for start in range(0, len(self.X), PART_ROWS))

    def parts(self) -> Iterator[RowPart]:  # noqa: D102
        return (part._replace(X=np.array(self.X[own])) for own, part in zip(self._slices(), self.target_parts()))  # noqa: B905

    def target_parts(self) -> Iterator[RowPart]:  # noqa: D102
        for own in self._slices():
            y, weights = (None if column is None else np.asarray(column[own]) for column in (self.y, self.weights))
            yield RowPart(None, y, weights, f"rows {own.start} to {own.stop - 1} of the arrays")


class ChunkedRows(RowSource):
    """Chunks of rows that are read again and again: a list of them, or a function that returns an iterator.

    Parameters
    ----------
    chunks : sequence of tuples, or callable
        Each chunk is (X, y) or (X, y, sample_weight), with arrays or data frames. A function is called without
        arguments whenever the rows are read, and must return the same chunks in the same order each time. Only
        as much as fits into memory a few times should be in one chunk: 50,000 rows, say.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import EmbeddingClassifier
    >>> from kernelwright.inputs import ChunkedRows
    >>> def chunks():
    ...     for seed in range(3):  # files, say
    ...         X = np.random.default_rng(seed).normal(size=(200, 2))
    ...         yield X, X[:, 0] > X[:, 1]
    >>> model = EmbeddingClassifier(random_state=0).fit(ChunkedRows(chunks))
    >>> bool(model.predict([[1.0, 0.0]])[0])
    True
    """

    def __init__(self, chunks: Iterable[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]]) -> None:
        if not callable(chunks) and iter(chunks) is chunks:
            raise ValueError(
                "The chunks can be read only once, but are needed several times. Pass a list of chunks, or a function "
                "that returns a new iterator each time."
            )
        self.chunks = chunks

    def parts(self) -> Iterator[RowPart]:  # noqa: D102
        for number, chunk in enumerate(self.chunks() if callable(self.chunks) else self.chunks, 1):
            if not isinstance(chunk, (tuple, list)) or len(chunk) not in (2, 3):
                raise ValueError(
                    f"Chunk {number} must be a tuple (X, y) or (X, y, sample_weight). Got {type(chunk).__name__}."
                )
            X, y, weights = (*chunk, None)[:3]
            if len(X):
                yield RowPart(X if hasattr(X, "iloc") else np.asarray(X), np.asarray(y), weights, f"chunk {number}")
