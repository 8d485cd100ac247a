"""Find leaks: columns that predict the class almost perfectly by themselves, often because they were made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LEAK", "Leak", "find_leaks"]

LEAK = "Possible leak"  # the first words of the sentence about a leak

FEWEST = 30  # with fewer rows, a perfect column may be chance
MOST = 2000  # rows that are examined
ERROR = 0.02  # largest error of a leak, absolute
RELATIVE = 0.1  # and relative to the error of the most frequent class
TIMES = 3  # the best of the other columns must have at least this many times ERROR


@dataclass(frozen=True)
class Leak:
    """A column that alone predicts the class of almost every row.

    Parameters
    ----------
    column, target : str
    accuracy : float
        Share of rows that it predicts correctly, by a rule learned from the other rows.
    best_other : str
        The best of the columns that are not leaks; "" if there is none.
    other_accuracy : float
        Accuracy of that column.
    """

    column: str
    target: str
    accuracy: float
    best_other: str = ""
    other_accuracy: float = 0.0

    def __str__(self) -> str:
        other = f" (the next best, {self.best_other}, {100 * self.other_accuracy:.1f} %)" if self.best_other else ""
        return (
            f"{LEAK}: {self.column} alone predicts {self.target!r} in {100 * self.accuracy:.1f} % of the "
            f"rows{other}. If it was made from {self.target!r}, or is known only afterwards, the model will be worse "
            "on new rows than it seems: leave the column out with --drop."
        )


def find_leaks(frame: Any, labels: np.ndarray, target: str = "the class") -> tuple[Leak, ...]:
    """Find the columns that alone predict the class of almost every row, much better than the other columns do.

    Each row is predicted by the most frequent class of the other rows with the same value; if there are none, of the
    rows with the nearest value. At most 2000 rows are examined; tables with fewer than 30 rows are skipped.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from kernelwright.tables.leaks import find_leaks
    >>> random = np.random.default_rng(0)
    >>> wage = random.lognormal(size=200)
    >>> frame = pd.DataFrame({"log_wage": np.log(wage), "age": random.integers(20, 60, size=200)})
    >>> [leak.column for leak in find_leaks(frame, (wage > 1).astype(int), "rich")]
    ['log_wage']
    """
    if len(labels) < FEWEST:
        return ()
    rows = np.random.default_rng(0).permutation(len(labels))[:MOST]
    labels, frame = labels[rows], frame.iloc[rows]
    errors = {name: float(np.mean(_told(frame[name], labels) != labels)) for name in frame.columns}
    usual = 1.0 - np.bincount(labels).max() / len(labels)
    leaks = [name for name, error in errors.items() if error <= min(ERROR, RELATIVE * usual)]
    best = min((name for name in errors if name not in leaks), key=errors.__getitem__, default="")
    if best and errors[best] < TIMES * ERROR:
        return ()  # others are nearly as good: the classes are easy to predict
    rest = (best, 1.0 - errors[best]) if best else ()
    return tuple(Leak(name, target, 1.0 - errors[name], *rest) for name in leaks)


def _told(column: Any, labels: np.ndarray) -> np.ndarray:
    """Predict each row from the others with the same value, else with the nearest one, else the largest class."""
    import pandas as pd

    codes, values = pd.factorize(column, sort=True, use_na_sentinel=False)
    m, n_values = int(labels.max()) + 1, len(values)
    counts = np.bincount(codes * m + labels, minlength=n_values * m).reshape(n_values, m)
    others = counts[codes]
    others[np.arange(len(labels)), labels] -= 1
    told = others.argmax(1)
    alone = np.flatnonzero(others.sum(1) == 0)
    told[alone] = np.bincount(labels).argmax()
    if len(alone) and n_values > 1 and column.dtype.kind == "f":
        told[alone] = counts.argmax(1)[_nearest(np.asarray(values, dtype=np.float64))[codes[alone]]]
    return told


def _nearest(values: np.ndarray) -> np.ndarray:
    """Return the index of the nearest other value for each of the sorted values; NaN is last and far away."""
    with np.errstate(invalid="ignore"):
        gaps = np.diff(values)
    gaps = np.where(np.isnan(gaps), np.inf, gaps)
    before, after = np.append(np.inf, gaps), np.append(gaps, np.inf)
    step = np.where(before < after, -1, 1)
    return np.clip(np.arange(len(values)) + step, 0, len(values) - 1)
