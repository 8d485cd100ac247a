"""Synthetic tables of known difficulty: every task is a small function of a generator and a number of rows.

The order of the rows is random, so the first rows of a table are for training and the others for testing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator
from scipy.special import expit


@dataclass(frozen=True)
class Table:
    """Rows, labels and, if it is known, the true probability of class 1 of two."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray | None = None

    def rows(self, some: slice) -> Table:
        """Take some of the rows."""
        return Table(self.X[some], self.y[some], None if self.truth is None else self.truth[some])


class Draw(Protocol):
    """A task: draws a table of n rows."""

    def __call__(self, rng: Generator, n: int) -> Table: ...


def split(table: Table, n: int) -> tuple[Table, Table]:
    """Split into the first n rows and the others."""
    return table.rows(slice(None, n)), table.rows(slice(n, None))


def drawn(rng: Generator, X: np.ndarray, truth: np.ndarray) -> Table:
    """Draw labels from known probabilities."""
    return Table(X, (rng.random(len(X)) < truth).astype(int), truth)


# Nothing to learn ----------------------------------------------------------------------------------------------


def noise(rng: Generator, n: int, *, columns: int = 2, classes: int = 2) -> Table:
    """Draw columns of four kinds that are independent of the labels; every class is among the first rows."""
    kinds = [rng.normal, rng.random, rng.lognormal, lambda size: rng.poisson(3.0, size).astype(float)]
    X = np.column_stack([kinds[int(rng.integers(len(kinds)))](size=n) for _ in range(columns)])
    y = rng.integers(classes, size=n)
    y[:classes] = np.arange(classes)
    return Table(X, y)


# A line, a margin, a cloud for each class ----------------------------------------------------------------------


def logistic(rng: Generator, n: int, *, d: int = 5, slope: float = 2.0, start: float = 0.0) -> Table:
    """Draw labels whose logit is linear, in a random direction."""
    direction = rng.normal(size=d)
    X = rng.normal(size=(n, d))
    return drawn(rng, X, expit(start + slope * X @ direction / np.linalg.norm(direction)))


def shifted_column(rng: Generator, n: int, *, columns: int = 2, classes: int = 2, shift: float = 1.5) -> Table:
    """Draw a weak signal: one column is shifted for one class, the others are noise."""
    y = rng.integers(classes, size=n)
    y[:classes] = np.arange(classes)
    X = rng.normal(size=(n, columns))
    X[:, 0] += shift * (y == 0)
    return Table(X, y)


def blobs(rng: Generator, n: int, *, d: int = 4, classes: int = 3, apart: float = 1.5) -> Table:
    """Draw a round cloud for each class, at centres that are ``apart`` times a standard normal draw."""
    centres = apart * rng.normal(size=(classes, d))
    y = rng.integers(classes, size=n)
    return Table(centres[y] + rng.normal(size=(n, d)), y)


def class_blobs(rng: Generator, n: int, *, classes: int, d: int = 20, apart: float = 3.0) -> Table:
    """Draw clouds with classes in turn: the first ``k * classes`` rows have k of each."""
    centres = apart * rng.normal(size=(classes, d))
    y = np.arange(n) % classes
    return Table(centres[y] + rng.normal(size=(n, d)), y)


def unbalanced(rng: Generator, n: int, *, d: int = 3, share: float = 0.1, shift: float = 1.2) -> Table:
    """Draw two overlapping clouds, one of them with few rows."""
    y = (rng.random(n) < share).astype(int)
    y[:4] = [0, 0, 1, 1]
    return Table(rng.normal(size=(n, d)) + shift * y[:, None], y)


def minority(rng: Generator, n: int, *, share: float) -> Table:
    """Draw a small class of exactly this share: shifted in two columns, narrower in two others.

    A line finds the shift and a kernel the spread, so neither has an advantage.
    """
    y = (np.arange(n) % round(1 / share) == 0).astype(int)
    X = rng.normal(size=(n, 4))
    X[:, :2] *= np.where(y == 1, 0.4, 1.0)[:, None]
    X[:, 2:] += y[:, None]
    return Table(X, y)


def long_tails(rng: Generator, n: int, *, d: int = 4) -> Table:
    """Draw log-normal columns; the logit is linear in their logarithms."""
    logarithms = rng.normal(size=(n, d))
    truth = expit(2.0 * (logarithms[:, 0] - logarithms[:, 1]))
    return drawn(rng, np.exp(1.5 * logarithms), truth)


# Bends ---------------------------------------------------------------------------------------------------------


def xor(rng: Generator, n: int, *, d: int = 2, spread: float = 0.5) -> Table:
    """Draw clouds at the corners of a square, opposite ones of the same class; further columns are noise."""
    signs = rng.choice([-1.0, 1.0], size=(n, 2))
    X = rng.normal(size=(n, d))
    X[:, :2] = signs + spread * X[:, :2]
    return Table(X, (signs[:, 0] * signs[:, 1] > 0).astype(int))


def rings(rng: Generator, n: int, *, d: int = 2, spread: float = 0.25) -> Table:
    """Draw a sphere of radius 1 inside one of radius 2."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, d))
    X *= ((1.0 + y) / np.linalg.norm(X, axis=1))[:, None]
    return Table(X + spread * rng.normal(size=(n, d)), y)


def label_noise(rng: Generator, n: int, *, wrong: float = 0.2) -> Table:
    """Draw rings, with a share of the labels flipped."""
    table = rings(rng, n)
    return Table(table.X, np.where(rng.random(n) < wrong, 1 - table.y, table.y))


def spirals(rng: Generator, n: int) -> Table:
    """Draw two arms of one and a half turns each."""
    y = rng.integers(2, size=n)
    angle = 3 * np.pi * np.sqrt(rng.random(n))
    arm = angle + np.pi * y
    X = (angle / np.pi)[:, None] * np.column_stack([np.cos(arm), np.sin(arm)])
    return Table(X + 0.1 * rng.normal(size=(n, 2)), y)


def checkerboard(rng: Generator, n: int, *, fields: int = 4) -> Table:
    """Draw points on a checkerboard, labelled by colour."""
    X = rng.uniform(0, fields, size=(n, 2))
    return Table(X, X.astype(int).sum(1) % 2)


def periodic(rng: Generator, n: int, *, d: int = 1) -> Table:
    """Draw labels by the sign of a wave along the first column, three periods; further columns are noise."""
    X = rng.uniform(-1, 1, size=(n, d))
    return Table(X, (np.sin(3 * np.pi * X[:, 0]) > 0).astype(int))


def moons(rng: Generator, n: int, *, spread: float = 0.3) -> Table:
    """Draw two interleaved half circles."""
    y = rng.integers(2, size=n)
    angle = np.pi * rng.random(n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[y == 1] = [1.0, 0.5] - X[y == 1]
    return Table(X + spread * rng.normal(size=(n, 2)), y)


def unequal_spreads(rng: Generator, n: int, *, d: int = 5) -> Table:
    """Draw two clouds with the same centre, one of them wider."""
    y = rng.integers(2, size=n)
    return Table(np.where(y == 1, 2.0, 1.0)[:, None] * rng.normal(size=(n, d)), y)


def rolled(rng: Generator, n: int, *, d: int = 30) -> Table:
    """Draw a rolled-up strip of four fields, in a random subspace of many columns."""
    angle, across = 1.5 * np.pi * (1 + 2 * rng.random(n)), rng.uniform(0, 10, size=n)
    roll = np.column_stack([angle * np.cos(angle), across, angle * np.sin(angle)])
    plane = np.linalg.qr(rng.normal(size=(d, 3)))[0]
    y = ((angle > 3 * np.pi) ^ (across > 5)).astype(int)
    return Table(roll @ plane.T + 0.1 * rng.normal(size=(n, d)), y)


# Lines without noise, and columns of all kinds -----------------------------------------------------------------


def linear(rng: Generator, n: int, *, d: int) -> Table:
    """Draw a cloud cut by a random hyperplane, without label noise."""
    X = rng.normal(size=(n, d))
    return Table(X, (X @ rng.normal(size=d) > 0).astype(int))


def heavy_line(rng: Generator, n: int, *, d: int = 5) -> Table:
    """Draw the same with heavy tails: Student's t with 1.5 degrees of freedom."""
    X = rng.standard_t(1.5, size=(n, d))
    return Table(X, (X @ rng.normal(size=d) > 0).astype(int))


def sparse_line(rng: Generator, n: int, *, d: int, used: int) -> Table:
    """Draw many columns, of which a few count."""
    X = rng.normal(size=(n, d))
    return Table(X, (X[:, :used].sum(1) + 0.3 * rng.normal(size=n) > 0).astype(int))


def any_scale(rng: Generator, n: int, *, d: int = 8) -> Table:
    """Draw columns in units from 1e-3 to 1e4, far from zero."""
    table = logistic(rng, n, d=d, slope=4.0)
    units = 10.0 ** np.linspace(-3, 4, d)
    return Table(units * (table.X + 20.0), table.y, table.truth)


def near_duplicates(rng: Generator, n: int, *, signals: int = 3, copies: int = 10) -> Table:
    """Draw a few signals, each measured ten times with little noise."""
    signal = rng.normal(size=(n, signals))
    X = np.repeat(signal, copies, axis=1) + 0.1 * rng.normal(size=(n, signals * copies))
    return Table(X, (signal.sum(1) + 0.3 * rng.normal(size=n) > 0).astype(int))


def outliers(rng: Generator, n: int, *, wild: float = 0.02) -> Table:
    """Draw three clouds; a few entries are a thousand times too large."""
    table = blobs(rng, n)
    wrong = rng.random(table.X.shape) < wild
    return Table(np.where(wrong, 1000.0 * table.X, table.X), table.y)


def counts(rng: Generator, n: int, *, d: int = 6) -> Table:
    """Draw counts whose rates differ by class."""
    rates = np.exp(rng.normal(0.5, 0.5, size=(3, d)))
    y = rng.integers(3, size=n)
    return Table(rng.poisson(rates[y]).astype(float), y)


def words(rng: Generator, n: int, *, d: int = 200, length: int = 40) -> Table:
    """Draw texts as word counts: each class has its own frequencies."""
    frequencies = rng.dirichlet(np.full(d, 0.3), size=2)
    y = rng.integers(2, size=n)
    shared = 0.5 * frequencies + 0.5 * frequencies.mean(0)
    return Table(np.stack([rng.multinomial(length, shared[label]) for label in y]).astype(float), y)


def ordinal(rng: Generator, n: int, *, d: int = 5, classes: int = 5) -> Table:
    """Draw ordered classes: a linear function with little noise, cut into equal shares."""
    X, direction = rng.normal(size=(n, d)), rng.normal(size=d)
    position = X @ direction / np.linalg.norm(direction) + 0.2 * rng.normal(size=n)
    return Table(X, np.searchsorted(np.quantile(position, np.arange(1, classes) / classes), position))


def parity_of_categories(rng: Generator, n: int, *, columns: int = 3, levels: int = 4) -> Table:
    """Draw category numbers, labelled by whether their sum is odd."""
    X = rng.integers(levels, size=(n, columns))
    return Table(X.astype(float), X.sum(1) % 2)


def parity_of_bits(rng: Generator, n: int, *, used: int = 4, d: int = 8) -> Table:
    """Draw bits, labelled by the parity of the first ones; the others are noise."""
    X = rng.integers(2, size=(n, d))
    return Table(X.astype(float), X[:, :used].sum(1) % 2)


def categories(rng: Generator, n: int, *, columns: int = 2, levels: int = 30) -> Table:
    """Draw one-hot categories, each with its own effect."""
    effects = 2.0 * rng.normal(size=(columns, levels))
    codes = rng.integers(levels, size=(n, columns))
    X = np.concatenate([np.eye(levels)[codes[:, i]] for i in range(columns)], axis=1)
    return drawn(rng, X, expit(sum(effects[i, codes[:, i]] for i in range(columns))))


def steps(rng: Generator, n: int, *, d: int = 10) -> Table:
    """Draw labels by majority vote: each of five columns votes by its own threshold."""
    X, border = rng.normal(size=(n, d)), rng.normal(scale=0.7, size=d)
    return Table(X, ((X[:, :5] > border[:5]).sum(1) > 2).astype(int))


def rules(rng: Generator, n: int, *, d: int = 8) -> Table:
    """Draw labels by rules of the form (a and b) or (c and d), which suit trees."""
    X = rng.uniform(size=(n, d))
    inside = ((X[:, 0] > 0.5) & (X[:, 1] > 0.3)) | ((X[:, 2] < 0.4) & (X[:, 3] > 0.6))
    return Table(X, inside.astype(int))


def rare_classes(rng: Generator, n: int, *, d: int = 5) -> Table:
    """Draw clouds, some with very few rows."""
    shares = np.array([0.6, 0.25, 0.1, 0.04, 0.01])
    y = rng.choice(5, size=n, p=shares)
    y[:10] = np.arange(10) % 5
    centres = 1.5 * rng.normal(size=(5, d))
    return Table(centres[y] + rng.normal(size=(n, d)), y)


def bent(rng: Generator, n: int) -> Table:
    """Draw labels whose logit is the sum of a wave and a parabola."""
    X = rng.normal(size=(n, 3))
    return drawn(rng, X, expit(2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 - 1.0))


def thresholds(rng: Generator, n: int) -> Table:
    """Draw labels with probability .1, .5 or .9, by the value of one column."""
    X = rng.normal(size=(n, 3))
    return drawn(rng, X, np.select([X[:, 0] < -0.4, X[:, 0] < 0.4], [0.1, 0.5], 0.9))
