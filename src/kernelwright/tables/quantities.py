"""Read a target column of numbers, and keep in brief what a model was trained to predict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelwright.inputs.frames.cells import read_as, texts, typed_numbers
from kernelwright.inputs.frames.describing import is_date
from kernelwright.inputs.frames.notation import Notation, Reading, read_numbers
from kernelwright.inputs.frames.table import Table
from kernelwright.storage.saved import saved
from kernelwright.tables.labels import about_empty, about_missing

__all__ = ["TrainingNumbers", "numbered", "read_target"]

KEPT = 1000  # numbers of the training table that a model keeps
LARGEST = 1e150  # the square of a larger number may be infinite
DIGITS = 5  # decimal places of predictions, relative to the standard deviation of the target
SMALLEST = 1e-10  # predictions with a smaller deviation are not rounded
INFINITIES = ("inf", "infinity")


@saved("training-numbers")
@dataclass(frozen=True)
class TrainingNumbers:
    """The numbers that a model was trained to predict, in brief.

    Parameters
    ----------
    notation : Notation
        How they were written. New tables are read in the same way.
    rows : int
        How many there were.
    values : ndarray
        At most 1000 of them, increasing and evenly spaced by rank; the first is the smallest, the last the largest.
    mean, std : float
        Mean and standard deviation of all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.tables import Notation, TrainingNumbers
    >>> kept = TrainingNumbers.of(np.array([3.0, 1.0, 2.0]), Notation())
    >>> kept.values.tolist(), kept.rows
    ([1.0, 2.0, 3.0], 3)
    """

    notation: Notation
    rows: int
    values: np.ndarray
    mean: float
    std: float

    @classmethod
    def of(cls, y: np.ndarray, notation: Notation) -> TrainingNumbers:
        """Summarise the numbers of all rows."""
        places = np.linspace(0, len(y) - 1, min(KEPT, len(y))).round().astype(int)
        return cls(notation, len(y), np.sort(y)[places], float(y.mean()), float(y.std()))

    @property
    def low(self) -> float:
        """The smallest number."""
        return float(self.values[0])

    @property
    def high(self) -> float:
        """The largest number."""
        return float(self.values[-1])

    def rounded(self, predictions: np.ndarray) -> np.ndarray:
        """Return predictions without decimal places far below the standard deviation of the numbers."""
        if self.std < SMALLEST:
            return predictions
        return predictions.round(DIGITS - int(np.floor(np.log10(self.std))))


def read_target(table: Table, target: str, notation: Notation | None = None, decimal: str = ".") -> Reading:
    """Read the target column as numbers, in a given notation or in the one that suits its cells best."""
    typed = typed_numbers(table, target, decimal)
    if typed is not None:
        return typed
    words = texts(table, target)
    return read_numbers(words, decimal) if notation is None else read_as(words, notation)


def numbered(table: Table, target: str, reading: Reading) -> tuple[Table, np.ndarray, tuple[str, ...]]:
    """Return the rows with a number, the numbers, and notes; raise ValueError if the column holds something else."""
    words = texts(table, target)
    if is_date(table, target, words.dropna()):
        raise ValueError(
            f"The target column {target!r} of {table.source} holds dates, not numbers. Add a column with the number of "
            "days from a fixed date, and predict that."
        )
    if reading.odd.any():
        row = int(reading.odd.argmax())
        raise ValueError(_about_odd(table, target, str(words[row]), row, reading.notation))
    known = ~np.isnan(reading.values)
    if not known.any():
        raise ValueError(about_empty(table, target))
    y = reading.values[known] + 0.0  # negative zero becomes zero
    if (far := np.abs(reading.values) > LARGEST).any():
        row = int(far.argmax())
        raise ValueError(
            f"The target column {target!r} of {table.source} has {words[row]} in {table.place(row)}, beyond "
            f"{LARGEST:g}. Correct it, or divide all of its numbers by a constant."
        )
    notes = [about_missing(table, target, int((~known).sum()), "number")] if not known.all() else []
    return table.take(known), y, tuple(notes)


def _about_odd(table: Table, target: str, word: str, row: int, notation: Notation) -> str:
    place = f"{word!r} in {table.place(row)}"
    if word.lstrip("+-").lower() in INFINITIES:
        return (
            f"The target column {target!r} of {table.source} has an infinite number, {place}. Correct it, or leave the "
            "cell empty: rows without a target are left out."
        )
    return (
        f"The target column {target!r} holds {notation.words}, but {table.source} has {place}. Correct it, or leave "
        "the cell empty: rows without a target are left out. If the column holds classes, use --task classes."
    )
