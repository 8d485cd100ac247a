"""The first rows of a stream, from which a kernel is learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelwright.estimators.batches import joined_rows
from kernelwright.inputs.arrays import plain
from kernelwright.solvers import Tree

__all__ = ["FirstRows"]

ENOUGH_TO_LEARN = 2000  # rows of a stream; before, the kernel is learned again whenever they have doubled


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a stream as they were passed, until the kernel has been learned from enough of them."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    enough: float  # rows from which the kernel is learned for good
    n_learned: int = 0

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, settings: Tree) -> FirstRows:
        """Keep the first rows."""
        y, enough = np.asarray(plain(y)), min(ENOUGH_TO_LEARN, settings.max_age or ENOUGH_TO_LEARN)
        weights = None if sample_weight is None else np.broadcast_to(np.asarray(plain(sample_weight)), len(y))
        return cls(X, y, weights, enough)

    def __len__(self) -> int:
        return len(self.y)

    def joined(self, X: Any, y: Any, sample_weight: Any, settings: Tree) -> FirstRows:
        """Return these rows and more, without those that are too old."""
        new, weights = FirstRows.of(X, y, sample_weight, settings), None
        if self.weights is not None or new.weights is not None:
            parts = (np.ones(len(each)) if each.weights is None else each.weights for each in (self, new))
            weights = np.concatenate(list(parts))
        X, y = joined_rows([self.X, X]), np.concatenate([self.y, new.y])
        some = np.arange(len(y))[-int(min(settings.max_age or len(y), len(y))) :]
        weights = None if weights is None else weights[some]
        return FirstRows(_safe_indexing(X, some), y[some], weights, new.enough, self.n_learned)

    @property
    def teaches(self) -> bool:
        """Whether the kernel is to be learned from these rows: it never was, or from half as many."""
        return len(self) >= min(2 * self.n_learned, self.enough)

    def learned(self) -> FirstRows | None:
        """Return the rows after the kernel was learned from them; nothing if they were enough."""
        return None if len(self) >= self.enough else replace(self, n_learned=len(self))
