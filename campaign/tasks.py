"""Made-up tables whose difficulty is known: every task is a small function of a generator and a number of rows.

The order of the rows means nothing, so the first rows of a table are to be learned from and the others are new rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator
from scipy.special import expit

__all__ = [
    "Draw",
    "Table",
    "blobs",
    "class_blobs",
    "label_noise",
    "logistic",
    "long_tails",
    "minority",
    "noise",
    "rings",
    "shifted_column",
    "split",
    "unbalanced",
    "xor",
]


@dataclass(frozen=True)
class Table:
    """Rows, labels and, where it is known of two classes, the true probability of class 1."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray | None = None

    def rows(self, some: slice) -> Table:
        return Table(self.X[some], self.y[some], None if self.truth is None else self.truth[some])


class Draw(Protocol):
    """A task."""

    def __call__(self, rng: Generator, n: int) -> Table: ...


def split(table: Table, n: int) -> tuple[Table, Table]:
    """The first n rows, and the others."""
    return table.rows(slice(None, n)), table.rows(slice(n, None))


def drawn(rng: Generator, X: np.ndarray, truth: np.ndarray) -> Table:
    """A table whose labels are drawn from known probabilities."""
    return Table(X, (rng.random(len(X)) < truth).astype(int), truth)


# Nothing to learn ----------------------------------------------------------------------------------------------


def noise(rng: Generator, n: int, *, columns: int = 2, classes: int = 2) -> Table:
    """Columns of four kinds that say nothing of the labels; every class is among the first rows."""
    kinds = [rng.normal, rng.random, rng.lognormal, lambda size: rng.poisson(3.0, size).astype(float)]
    X = np.column_stack([kinds[int(rng.integers(len(kinds)))](size=n) for _ in range(columns)])
    y = rng.integers(classes, size=n)
    y[:classes] = np.arange(classes)
    return Table(X, y)


# A line, a margin, a cloud for each class ----------------------------------------------------------------------


def logistic(rng: Generator, n: int, *, d: int = 5, slope: float = 2.0, start: float = 0.0) -> Table:
    """The logit is a line: its slope is along a random direction."""
    direction = rng.normal(size=d)
    X = rng.normal(size=(n, d))
    return drawn(rng, X, expit(start + slope * X @ direction / np.linalg.norm(direction)))


def shifted_column(rng: Generator, n: int, *, columns: int = 2, classes: int = 2, shift: float = 1.5) -> Table:
    """A weak signal: one column is shifted for one class, the others are noise."""
    y = rng.integers(classes, size=n)
    y[:classes] = np.arange(classes)
    X = rng.normal(size=(n, columns))
    X[:, 0] += shift * (y == 0)
    return Table(X, y)


def blobs(rng: Generator, n: int, *, d: int = 4, classes: int = 3, apart: float = 1.5) -> Table:
    """A round cloud for each class, at centres that lie ``apart`` times a standard normal draw."""
    centres = apart * rng.normal(size=(classes, d))
    y = rng.integers(classes, size=n)
    return Table(centres[y] + rng.normal(size=(n, d)), y)


def class_blobs(rng: Generator, n: int, *, classes: int, d: int = 20, apart: float = 3.0) -> Table:
    """The same with as many rows of each class, in turn: the first ``k * classes`` rows have k of each."""
    centres = apart * rng.normal(size=(classes, d))
    y = np.arange(n) % classes
    return Table(centres[y] + rng.normal(size=(n, d)), y)


def unbalanced(rng: Generator, n: int, *, d: int = 3, share: float = 0.1, shift: float = 1.2) -> Table:
    """Two overlapping clouds, one of them small."""
    y = (rng.random(n) < share).astype(int)
    y[:4] = [0, 0, 1, 1]
    return Table(rng.normal(size=(n, d)) + shift * y[:, None], y)


def minority(rng: Generator, n: int, *, share: float, d: int = 5, shift: float = 1.0) -> Table:
    """The same, with exactly the share of the small class among the first rows, too, and a bend in the border."""
    y = (np.arange(n) % round(1 / share) == 0).astype(int)
    X = rng.normal(size=(n, d))
    X[:, :2] *= np.where(y == 1, 0.5, 1.0)[:, None]
    X[:, 2:] += shift * y[:, None]
    return Table(X, y)


def long_tails(rng: Generator, n: int, *, d: int = 4) -> Table:
    """Columns with a few very large values; what counts are their logarithms."""
    logarithms = rng.normal(size=(n, d))
    truth = expit(2.0 * (logarithms[:, 0] - logarithms[:, 1]))
    return drawn(rng, np.exp(1.5 * logarithms), truth)


# Bends ---------------------------------------------------------------------------------------------------------


def xor(rng: Generator, n: int, *, d: int = 2, spread: float = 0.5) -> Table:
    """Clouds at the corners of a square, of one class where they face each other; further columns are noise."""
    signs = rng.choice([-1.0, 1.0], size=(n, 2))
    X = rng.normal(size=(n, d))
    X[:, :2] = signs + spread * X[:, :2]
    return Table(X, (signs[:, 0] * signs[:, 1] > 0).astype(int))


def rings(rng: Generator, n: int, *, d: int = 2, spread: float = 0.25) -> Table:
    """A sphere of radius 1 within one of radius 2."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, d))
    X *= ((1.0 + y) / np.linalg.norm(X, axis=1))[:, None]
    return Table(X + spread * rng.normal(size=(n, d)), y)


def label_noise(rng: Generator, n: int, *, wrong: float = 0.2) -> Table:
    """Rings, with a share of the labels turned."""
    table = rings(rng, n)
    return Table(table.X, np.where(rng.random(n) < wrong, 1 - table.y, table.y))
