"""Data of all kinds that make numerical software fail, each drawn from a generator.

A kind is a function that changes an ordinary sample in one way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

__all__ = ["KINDS", "Sample", "ordinary"]

Random = np.random.Generator


@dataclass(frozen=True)
class Sample:
    """Rows to learn from and rows to predict, as a user would pass them."""

    X: Any
    y: np.ndarray
    new: Any
    weights: np.ndarray | None = None

    def both(self, change: Callable[[Any], Any]) -> Sample:
        """Apply the same change to old and new rows."""
        return replace(self, X=change(self.X), new=change(self.new))


def ordinary(rng: Random, n: int, d: int, m: int) -> Sample:
    """Draw normal columns; the class is the largest of m random linear functions of the first columns, plus noise."""
    X, new = rng.normal(size=(n, d)), rng.normal(size=(8, d))
    new[:2] = X[:2]  # known rows, and one that is far from all
    new[2] *= 1e3
    slopes = rng.normal(size=(min(d, 5), m))
    y = (X[:, : len(slopes)] @ slopes + 0.3 * rng.normal(size=(n, m))).argmax(1)
    return Sample(X, with_all_classes(y, m), new)


def with_all_classes(y: np.ndarray, m: int) -> np.ndarray:
    """Make the first m labels all different, so that every class has a row."""
    y = y.copy()
    y[: min(m, len(y))] = np.arange(m)[: len(y)]
    return y


# Kinds ---------------------------------------------------------------------------------------------------------


def plain(sample: Sample, rng: Random) -> Sample:
    """Change nothing."""
    return sample


def nothing_to_learn(sample: Sample, rng: Random) -> Sample:
    """Shuffle the labels."""
    return replace(sample, y=rng.permutation(sample.y))


def duplicated_rows(sample: Sample, rng: Random) -> Sample:
    """Make most rows copies of a few, with the label of the row they copy."""
    rows = rng.integers(0, max(2, len(sample.y) // 5), len(sample.y))
    rows[:2] = (0, 1)
    return replace(sample, X=sample.X[rows], y=with_all_classes(sample.y[rows], 2))


def contradictory_rows(sample: Sample, rng: Random) -> Sample:
    """Copy rows without their labels."""
    rows = rng.integers(0, max(1, len(sample.y) // 4), len(sample.y))
    return replace(sample, X=sample.X[rows])


def nearly_equal_rows(sample: Sample, rng: Random) -> Sample:
    """Make pairs of rows that differ in the tenth to the sixteenth digit."""
    rows = np.arange(len(sample.y)) // 2
    return replace(sample, X=sample.X[rows] * (1.0 + 10.0 ** rng.uniform(-16, -10) * rng.normal(size=sample.X.shape)))


def collinear_columns(sample: Sample, rng: Random) -> Sample:
    """Replace all columns by combinations of one or two."""
    d = sample.X.shape[1]
    mixing = rng.normal(size=(min(2, d), d))
    return sample.both(lambda X: X[:, : len(mixing)] @ mixing)


def constant_columns(sample: Sample, rng: Random) -> Sample:
    """Make some columns, or all but one, constant."""
    still = np.arange(sample.X.shape[1]) > rng.integers(0, sample.X.shape[1])
    number = float(rng.choice([0.0, 1.0, -7.5, 1e9]))
    return sample.both(lambda X: np.where(still, number, X))


def all_constant(sample: Sample, rng: Random) -> Sample:
    """Make all rows equal."""
    return replace(sample, X=np.full_like(sample.X, float(rng.choice([0.0, 1.0, 1e-5, 12345.678]))))


def huge_numbers(sample: Sample, rng: Random) -> Sample:
    """Multiply everything by 1e20 to 1e300."""
    size = 10.0 ** rng.uniform(20, 300)
    return sample.both(lambda X: X * min(size, 1e304 / np.abs(X).max()))


def tiny_numbers(sample: Sample, rng: Random) -> Sample:
    """Multiply everything by 1e-20 to 1e-320, which leaves numbers of few digits."""
    size = 10.0 ** rng.uniform(-320, -20)
    return sample.both(lambda X: X * size)


def mixed_scales(sample: Sample, rng: Random) -> Sample:
    """Give each column its own scale, from 1e-15 to 1e15."""
    scales = 10.0 ** rng.uniform(-15, 15, sample.X.shape[1])
    return sample.both(lambda X: X * scales)


def far_from_zero(sample: Sample, rng: Random) -> Sample:
    """Add 1e3 to 1e15, so that differences have few digits."""
    far = 10.0 ** rng.uniform(3, 15)
    return sample.both(lambda X: X + far)


def outliers(sample: Sample, rng: Random) -> Sample:
    """Move a few rows a million or more standard deviations away."""
    X = sample.X.copy()
    X[rng.integers(0, len(X), 1 + len(X) // 20)] *= 10.0 ** rng.uniform(6, 200)
    return replace(sample, X=X)


def heavy_tails(sample: Sample, rng: Random) -> Sample:
    """Draw cubed Cauchy columns."""
    return replace(sample, X=rng.standard_cauchy(sample.X.shape) ** 3)


def integers_as_floats(sample: Sample, rng: Random) -> Sample:
    """Round to small integers, as floats."""
    return sample.both(np.round)


def lattice(sample: Sample, rng: Random) -> Sample:
    """Round to zeros and ones."""
    return sample.both(lambda X: (X > 0).astype(float))


def whole_numbers(sample: Sample, rng: Random) -> Sample:
    """Convert to integers or booleans."""
    kind = rng.choice(["int8", "int64", "uint8", "bool"])
    return sample.both(lambda X: np.clip(np.abs(np.round(3 * X)), 0, 100).astype(kind))


def half_precision(sample: Sample, rng: Random) -> Sample:
    """Convert to float16."""
    return sample.both(lambda X: np.clip(X, -6e4, 6e4).astype(np.float16))


def single_precision(sample: Sample, rng: Random) -> Sample:
    """Convert to float32."""
    return sample.both(lambda X: X.astype(np.float32))


def column_order(sample: Sample, rng: Random) -> Sample:
    """Convert to Fortran order."""
    return sample.both(np.asfortranarray)


def strided(sample: Sample, rng: Random) -> Sample:
    """Pass views of every other entry, reversed."""
    return sample.both(lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::-2, ::-2])


def read_only(sample: Sample, rng: Random) -> Sample:
    """Pass read-only arrays."""

    def locked(X: np.ndarray) -> np.ndarray:
        X = X.copy()
        X.flags.writeable = False
        return X

    y = sample.y.copy()
    y.flags.writeable = False
    return replace(sample.both(locked), y=y)


def data_frame(sample: Sample, rng: Random) -> Sample:
    """Convert to a pandas data frame, with labels as strings."""
    names = [f"column {number}" for number in range(sample.X.shape[1])]
    words = np.array([f"class {label}" for label in sample.y])
    return replace(sample.both(lambda X: pd.DataFrame(X, columns=names)), y=words)


def sparse(sample: Sample, rng: Random) -> Sample:
    """Convert to a sparse matrix, which some estimators are documented to refuse."""
    return sample.both(csr_array)


def one_row_classes(sample: Sample, rng: Random) -> Sample:
    """Give one class most rows, and every other class one."""
    y = np.zeros_like(sample.y)
    others = rng.integers(1, max(2, len(y) // 2))
    y[:others] = np.arange(1, others + 1)
    return replace(sample, y=y)


def unbalanced(sample: Sample, rng: Random) -> Sample:
    """Give all rows but one the same class."""
    y = np.zeros_like(sample.y)
    y[0] = 1
    return replace(sample, y=y)


def weights_of_zero(sample: Sample, rng: Random) -> Sample:
    """Give half of the rows weight zero; sometimes a whole class."""
    weights = rng.integers(0, 2, len(sample.y)).astype(float)
    weights[:2] = 1.0
    return replace(sample, weights=weights)


def uneven_weights(sample: Sample, rng: Random) -> Sample:
    """Draw weights over up to forty orders of magnitude."""
    return replace(sample, weights=10.0 ** (rng.uniform(0, 20) * rng.uniform(-1, 1, len(sample.y))))


def repeated_weights(sample: Sample, rng: Random) -> Sample:
    """Draw integer weights, some of them large."""
    return replace(sample, weights=rng.choice([1, 2, 3, 1000], len(sample.y)))


Kind = Callable[[Sample, Random], Sample]

KINDS: list[Kind] = [
    plain,
    nothing_to_learn,
    duplicated_rows,
    contradictory_rows,
    nearly_equal_rows,
    collinear_columns,
    constant_columns,
    all_constant,
    huge_numbers,
    tiny_numbers,
    mixed_scales,
    far_from_zero,
    outliers,
    heavy_tails,
    integers_as_floats,
    lattice,
    whole_numbers,
    half_precision,
    single_precision,
    column_order,
    strided,
    read_only,
    data_frame,
    sparse,
    one_row_classes,
    unbalanced,
    weights_of_zero,
    uneven_weights,
    repeated_weights,
]
