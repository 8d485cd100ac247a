"""Whether the words of a column of free text tell something about the target; if not, the column is left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata

from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.table import Table
from kernelwright.inputs.frames.values import values_of
from kernelwright.inputs.frames.words import WordBag

__all__ = ["bags_of", "gain", "texts_that_pay"]

# What words must explain of the squared error in rows that were left out: a share, and that of so many rows.
WORTH, WORTH_IN_ROWS = 0.005, 3.0
RIDGES = np.logspace(-1, 4, 6)
FEW_VALUES, MOST_TARGETS = 20, 50  # numbers with few values are taken as classes
TOLD_NOTHING = "left out: its words tell nothing about the target"


def bags_of(table: Table, columns: Sequence[Column]) -> tuple[WordBag, ...]:
    """Return a bag of words for each column of free text."""
    texts = (column for column in columns if column.kind == "words")
    found = (WordBag.of(column.name, values_of(table, column).values) for column in texts)
    return tuple(bag for bag in found if bag is not None)


def texts_that_pay(
    table: Table, columns: Sequence[Column], y: Any, *, keep: Collection[str] = ()
) -> tuple[tuple[Column, ...], tuple[WordBag, ...]]:
    """Leave out free text whose words tell nothing about the target; return the columns, and the bags of the others.

    Columns in ``keep`` stay, and so do all if ``y`` has not a target for each row.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from kernelwright.inputs.frames.describing import describe_columns
    >>> from kernelwright.inputs.frames.paying import texts_that_pay
    >>> from kernelwright.inputs.frames.table import as_table
    >>> random = np.random.default_rng(0)
    >>> words = random.choice(["late", "rude", "kind", "warm", "a", "the"], (200, 3))
    >>> table = as_table(pd.DataFrame({"note": [" ".join(each) for each in words]}))
    >>> columns, angry = describe_columns(table), np.isin(words, ["late", "rude"]).any(1)
    >>> [texts_that_pay(table, columns, y)[0][0].kind for y in (angry, random.permutation(angry))]
    ['words', 'text']
    """
    bags = bags_of(table, columns)
    targets = _as_numbers(y, len(table)) if bags else None
    if targets is None:
        return tuple(columns), bags
    idle = set()
    for bag in bags:
        texts = values_of(table, next(column for column in columns if column.name == bag.source)).values
        if bag.source not in keep and gain(bag(texts), targets) < max(WORTH, WORTH_IN_ROWS / len(table)):
            idle.add(bag.source)
    found = (replace(c, kind="text", treatment=TOLD_NOTHING) if c.name in idle else c for c in columns)
    return tuple(found), tuple(bag for bag in bags if bag.source not in idle)


def gain(Z: np.ndarray, targets: np.ndarray) -> float:
    """Return which share of the squared error of the mean a linear function explains, where each row was left out.

    Both errors are by leave-one-out in closed form, that of ridge regression with the best of a few ridges. NaN, a gap,
    is the mean of its column.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.inputs.frames.paying import gain
    >>> Z = np.random.default_rng(0).standard_normal((100, 2))
    >>> round(gain(Z, Z[:, :1]), 2)
    1.0
    """
    gaps = np.isnan(Z)
    if gaps.all(0).any():
        return 0.0
    Z = np.where(gaps, np.nanmean(Z, axis=0), Z)
    Z = (Z - Z.mean(0)) / np.maximum(Z.std(0), 1e-12)
    away, n = targets - targets.mean(0), len(Z)
    U, s, _ = np.linalg.svd(Z, full_matrices=False)
    parts = U.T @ away
    of_mean = np.square(away / (1.0 - 1.0 / n)).sum()
    errors = []
    for ridge in RIDGES:
        share = s**2 / (s**2 + ridge)
        leverage = np.square(U) @ share + 1.0 / n
        left = away - U @ (share[:, None] * parts)
        errors.append(np.square(left / np.maximum(1.0 - leverage, 1e-12)[:, None]).sum())
    return float(1.0 - min(errors) / max(of_mean, 1e-300))


def _as_numbers(y: Any, n: int) -> np.ndarray | None:
    """Return targets as columns of numbers: an indicator of each class, or normal scores; None if there are none."""
    import pandas as pd

    try:
        given = np.asarray(y)
    except ValueError:  # lists of different lengths
        return None
    given = given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given
    if len(np.shape(given)) not in (1, 2) or len(given) != n or n < 2:
        return None
    numbers = given.dtype.kind in "iuf"
    if numbers and not np.isfinite(given).all():
        return None
    if given.ndim == 2 or (numbers and len(np.unique(given)) > FEW_VALUES):
        few = numbers and given.size <= MOST_TARGETS * n
        return norm.ppf((rankdata(given, axis=0) - 0.5) / n).reshape(n, -1) if few else None
    codes, names = pd.factorize(given if numbers else given.astype(str))
    usual = np.argsort(-np.bincount(codes, minlength=len(names)), kind="stable")[:MOST_TARGETS]
    return (codes[:, None] == usual).astype(np.float64)
