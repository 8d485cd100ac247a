"""Which rows learn the kernel, solve the embedding, and are held out for bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernelwright.inputs.arrays import generator
from kernelwright.inputs.dataset import Dataset
from kernelwright.learning import LearningMethod

__all__ = ["RowSplit", "split", "split_units"]


@dataclass(frozen=True)
class RowSplit:
    """Indices of the rows that learn the kernel, that solve the embedding, and that are held out for bounds."""

    learned: np.ndarray
    solved: np.ndarray
    held: np.ndarray

    @classmethod
    def nothing(cls) -> RowSplit:
        """Return the split of rows in chunks, of which none is set aside."""
        return cls(*(np.arange(0) for _ in range(3)))


def split(rows: Dataset, method: LearningMethod, random_state: Any) -> RowSplit:
    """Split the rows as the learning method requires.

    Rows (or groups) are drawn at random, not stratified by class, because bounds need independent rows.
    """
    everything = np.arange(len(rows))
    if method.kernel_share is None and method.holdout_share is None:
        return RowSplit(everything, everything, np.arange(0))
    if rows.groups is None:
        return split_units(len(rows), method, random_state)
    names = np.unique(rows.groups)
    units = split_units(len(names), method, random_state)
    learned, solved, held = (
        np.flatnonzero(np.isin(rows.groups, names[part])) for part in (units.learned, units.solved, units.held)
    )
    return RowSplit(learned, learned if method.kernel_share is None else solved, held)


def split_units(n: int, method: LearningMethod, random_state: Any) -> RowSplit:
    """Split n rows, or groups, at random by the shares of a learning method."""
    order = torch.randperm(n, generator=generator(random_state)).numpy()
    n_held = round((method.holdout_share or 0.0) * n)
    held, used = np.sort(order[:n_held]), order[n_held:]
    if method.kernel_share is None:
        used = np.sort(used)
        return RowSplit(used, used, held)
    n_learned = round(method.kernel_share * len(used))
    return RowSplit(np.sort(used[:n_learned]), np.sort(used[n_learned:]), held)
