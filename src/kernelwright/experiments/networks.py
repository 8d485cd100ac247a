"""The networks of Table 1 of [Hsu2018]_ (CEN-1 and CEN-2), and this library's own settings beside them.

Protocol: every attribute of the whole data set scaled to [0, 1], ten shuffled folds, fully connected layers under ReLU
with biases of 0.1 and truncated normal weights of deviation 0.1, lambda = 1 at the start, 1000 full steps of Adam at
rate 0.1. As for the other methods of the table, the *sum* of the losses is meant (tau = 4e/n on the mean); alpha is
left out of the complexity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.model_selection import KFold
from sklearn.preprocessing import minmax_scale
from torch import nn

from kernelwright import datasets
from kernelwright.estimators import EmbeddingNetworkClassifier
from kernelwright.experiments.table1 import Cell, published
from kernelwright.network import mlp

__all__ = ["NETWORKS", "SETS", "Row", "as_published", "cells", "means", "rows_of", "run"]

NETWORKS = {"CEN-1": (16, 32, 8), "CEN-2": (96, 32)}
SETS = ("wine", "ecoli", "iris", "heart", "sonar", "wdbc")
DEFAULT = "default"


@dataclass(frozen=True)
class Row:
    """Test accuracies in percent, over ten folds, of one method on one data set."""

    data_set: str
    method: str  # "CEN-1" and "CEN-2" as published, or "default"
    mean: float
    deviation: float


def run(
    data_sets: Iterable[str] = SETS, *, n_jobs: int | None = None, progress: Callable[[str], Any] = lambda name: None
) -> list[Row]:
    """Both networks as published and the library's default; ``progress`` is told each data set that is done."""
    rows = []
    for name in data_sets:
        for method in (*NETWORKS, DEFAULT):
            tasks = (delayed(_fold)(name, method, fold) for fold in range(10))
            accuracies = 100.0 * np.array(Parallel(n_jobs)(tasks))
            rows.append(Row(name, method, float(accuracies.mean()), float(accuracies.std())))
        progress(name)
    return rows


def cells(rows: Iterable[Row]) -> list[Cell]:
    """Those rows of which there are published numbers, beside them."""
    found = []
    for row in rows:
        theirs = published(row.method).get(row.data_set)
        if theirs is not None:
            numbers = theirs["mean"], theirs["deviation"], row.mean, row.deviation, theirs["tolerance"]
            found.append(Cell(row.data_set, *numbers))
    return found


def rows_of(rows: Sequence[Row]) -> list[dict[str, str]]:
    """A row of words for each data set, published numbers in brackets."""
    table = []
    for name in dict.fromkeys(row.data_set for row in rows):
        words = {"data": name}
        for row in (row for row in rows if row.data_set == name):
            theirs = published(row.method).get(name)
            suffix = f" ({theirs['mean']:.1f} ± {theirs['deviation']:.1f})" if theirs else ""
            words[row.method] = f"{row.mean:.1f} ± {row.deviation:.1f}{suffix}"
        table.append(words)
    return table


def means(rows: Sequence[Row]) -> dict[str, float]:
    """Mean accuracy of each method over the data sets."""
    methods = dict.fromkeys(row.method for row in rows)
    return {method: float(np.mean([row.mean for row in rows if row.method == method])) for method in methods}


def as_published(n_inputs: int, hidden: Sequence[int], seed: int) -> EmbeddingNetworkClassifier:
    """A network with the published start and the published settings."""
    generator = torch.Generator().manual_seed(seed)
    module = mlp(n_inputs, hidden, generator=generator)
    for layer in module:
        if isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=0.1, a=-0.2, b=0.2, generator=generator)
            nn.init.constant_(layer.bias, 0.1)
    return EmbeddingNetworkClassifier(
        module,
        intercept=False,
        sup="published",
        complexity_weight="4e/n",
        epsilon=1e-15,
        ridge=1.0,
        validation=0.0,
        max_epochs=1000,
        learning_rate=0.1,
        schedule=None,
        early_stopping=None,
        probability="clip",
        random_state=seed,
    )


def _fold(name: str, method: str, fold: int) -> float:
    X, y = datasets.load(name)
    train, test = list(KFold(10, shuffle=True, random_state=0).split(X))[fold]
    if method == DEFAULT:
        model = EmbeddingNetworkClassifier(random_state=fold)
    else:
        X = minmax_scale(X)
        model = as_published(X.shape[1], NETWORKS[method], fold)
    return model.fit(X[train], y[train]).score(X[test], y[test])
