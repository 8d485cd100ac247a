"""Find leaks: columns that predict the target almost perfectly by themselves, often because they were made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

__all__ = ["LEAK", "Leak", "find_leaks", "find_number_leaks"]

LEAK = "Possible leak"  # the first words of the sentence about a leak

FEWEST = 30  # with fewer rows, a perfect column may be chance
MOST = 2000  # rows that are examined
ERROR = 0.02  # largest error of a leak, absolute
RELATIVE = 0.1  # and relative to the error of the most frequent class
TIMES = 3  # the best of the other columns must have at least this many times ERROR


@dataclass(frozen=True)
class Leak:
    """A column that alone predicts the class, or the number, of almost every row.

    Parameters
    ----------
    column, target : str
    accuracy : float
        Share of rows that it predicts correctly, by a rule learned from the other rows; for numbers, the share of the
        variance of their ranks that it explains.
    best_other : str
        The best of the columns that are not leaks; "" if there is none.
    other_accuracy : float
        Accuracy of that column.
    numbers : bool
        Whether the target is a number.
    """

    column: str
    target: str
    accuracy: float
    best_other: str = ""
    other_accuracy: float = 0.0
    numbers: bool = False

    def __str__(self) -> str:
        other = f" (the next best, {self.best_other}, {100 * self.other_accuracy:.1f} %)" if self.best_other else ""
        share = f"{100 * self.accuracy:.1f} %"
        done = f"predicts {self.target!r} in {share} of the rows"
        if self.numbers:
            done = f"explains {share} of the variance of the ranks of {self.target!r}"
        return (
            f"{LEAK}: {self.column} alone {done}{other}. If it was made from {self.target!r}, or is known only "
            "afterwards, the model will be worse on new rows than it seems: leave the column out with --drop."
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


def find_number_leaks(frame: Any, y: np.ndarray, target: str = "the target") -> tuple[Leak, ...]:
    """Find the columns that alone predict a number almost exactly, much better than the other columns do.

    The rank of each number is predicted by the mean rank of the other rows with the same value; if there are none, of
    the rows with the two nearest values. Ranks make the answer independent of the unit and of far-away numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from kernelwright.tables.leaks import find_number_leaks
    >>> random = np.random.default_rng(0)
    >>> wage = random.lognormal(size=200)
    >>> frame = pd.DataFrame({"log_wage": np.log(wage), "age": random.integers(20, 60, size=200)})
    >>> [leak.column for leak in find_number_leaks(frame, wage, "wage")]
    ['log_wage']
    """
    if len(y) < FEWEST:
        return ()
    rows = np.random.default_rng(0).permutation(len(y))[:MOST]
    ranks, frame = rankdata(y[rows]), frame.iloc[rows]
    ranks -= ranks.mean()
    errors = {name: float(np.square(_told_rank(frame[name], ranks) - ranks).mean()) for name in frame.columns}
    errors = {name: error / float(np.square(ranks).mean()) for name, error in errors.items()}
    leaks = [name for name, error in errors.items() if error <= ERROR]
    best = min((name for name in errors if name not in leaks), key=errors.__getitem__, default="")
    if best and errors[best] < TIMES * ERROR:
        return ()  # others are nearly as good: the numbers are easy to predict
    rest = (best, max(0.0, 1.0 - errors[best])) if best else ("", 0.0)
    return tuple(Leak(name, target, 1.0 - errors[name], *rest, numbers=True) for name in leaks)


def _told_rank(column: Any, ranks: np.ndarray) -> np.ndarray:
    """Predict each rank by the mean of the others with the same value, else with the two nearest, else by zero."""
    import pandas as pd

    codes, values = pd.factorize(column, sort=True, use_na_sentinel=False)
    counts, sums = np.bincount(codes), np.bincount(codes, ranks)
    others = counts[codes] - 1
    told = np.where(others > 0, (sums[codes] - ranks) / np.maximum(others, 1), 0.0)
    if len(values) > 2 and column.dtype.kind == "f":
        means = sums / counts
        around = 0.5 * (np.append(means[1], means[:-1]) + np.append(means[1:], means[-2]))
        told = np.where(others > 0, told, around[codes])
    return told


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
