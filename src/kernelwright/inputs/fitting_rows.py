"""Rows for estimators of any kind: to fit, to split and to divide into folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from kernelwright.inputs.arrays import random_numbers

__all__ = ["FittingRows"]


@dataclass(frozen=True)
class FittingRows:
    """Rows to fit and to calibrate with, and the target, weight and group of each."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None  # a group index for each row: rows of a group stay together

    def __len__(self) -> int:
        return len(self.y)

    def subset(self, some: np.ndarray) -> Self:
        """Return some of the rows, by index."""
        weights, groups = (None if each is None else each[some] for each in (self.weights, self.groups))
        return replace(self, X=_safe_indexing(self.X, some), y=self.y[some], weights=weights, groups=groups)

    def counted(self) -> Self:
        """Return the rows of positive weight."""
        weights = self.weights
        return self if weights is None or (weights > 0).all() else self.subset(np.flatnonzero(weights > 0))

    def fit(self, estimator: Any) -> Any:
        """Return a copy of an estimator, fitted to the rows."""
        prefix, receiver = _receiver(estimator)
        options = {} if self.weights is None else {f"{prefix}sample_weight": self.weights}
        if self.groups is not None and has_fit_parameter(receiver, "groups"):
            options[f"{prefix}groups"] = self.groups
        return clone(estimator).fit(self.X, self.y, **options)

    def two_parts(self, share: float, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of a random share of about this size, after those of all others; groups stay together."""
        random_state = random_numbers(random_state)
        if self.groups is None:
            first, second = train_test_split(np.arange(len(self)), test_size=share, random_state=random_state)
            return first, second
        splitter = GroupShuffleSplit(1, test_size=share, random_state=random_state)
        return next(splitter.split(self.y, self.y, self.groups))

    def fold_parts(self, n_folds: int, random_state: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the indices of the other rows and of the rows of each random fold; groups stay together."""
        unit = np.arange(len(self)) if self.groups is None else self.groups
        order = random_numbers(random_state).permutation(int(unit.max()) + 1)
        for fold in range(min(n_folds, len(order))):
            inside = (order % n_folds == fold)[unit]
            if inside.any():
                yield np.flatnonzero(~inside), np.flatnonzero(inside)


def _receiver(estimator: Any) -> tuple[str, Any]:
    """Return the estimator that row weights and groups are for, and the prefix by which its wrappers pass them on."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        prefix, receiver = _receiver(last)
        return f"{name}__{prefix}", receiver
    if isinstance(estimator, TransformedTargetRegressor):
        return _receiver(estimator.regressor)
    return "", estimator
