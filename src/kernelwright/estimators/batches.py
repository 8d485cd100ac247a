"""Batches of rows for a classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from kernelwright.estimators.streaming import RunningEmbedding
from kernelwright.inputs.blocks import Block
from kernelwright.inputs.dataset import ClassInfo, given_weights
from kernelwright.inputs.frames.given_rows import check_more_rows
from kernelwright.inputs.targets import ClassTargets
from kernelwright.solvers.solution import LEFT_OUT_ROWS

__all__ = [
    "WhereRowsStay",
    "WithFeatures",
    "add_rows",
    "check_named",
    "checked_block",
    "first_rows",
    "joined_rows",
    "of_every_class",
    "widened",
]

FORGETFUL = ("nystroem", "fourier", "herding")  # words of solvers that do not keep all rows


class WithFeatures:
    """A method that only estimators with explicit features have; others say what to do.

    (``available_if`` of scikit-learn would hide the advice.)
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = self.__wrapped__ = method
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, owner: type | None = None) -> Callable[..., Any]:
        if model is None:
            return self.method
        if model.features is None:
            name = type(model).__name__
            raise AttributeError(
                f"This {name} has no {self.method.__name__!r}: an embedding by a kernel must keep all its rows. "
                "Batches need explicit features, whose sums are enough: "
                f"{name}(features=features.RandomFourier(1000)), from kernelwright."
            )
        return MethodType(self.method, model)


class WhereRowsStay:
    """A method of estimators with explicit features, or with a solver that keeps all rows; others say what to do."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = self.__wrapped__ = method
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, owner: type | None = None) -> Callable[..., Any]:
        if model is None:
            return self.method
        if model.features is None and getattr(model.solver, "word", model.solver) in FORGETFUL:
            name = type(model).__name__
            raise AttributeError(
                f"This {name} has no {self.method.__name__!r}: solver={model.solver!r} does not keep all rows. "
                f"Use {name}(solver='tree'), which solves only the leaves concerned again, or explicit features, whose "
                f"sums are enough: {name}(features=features.RandomFourier(1000)), from kernelwright."
            )
        return MethodType(self.method, model)


def check_named(y: Any, classes: Any) -> None:
    """Raise an error if a label is not one of the given classes."""
    if classes is not None:
        missing = np.setdiff1d(column_or_1d(y), classes)
        if len(missing):
            raise ValueError(f"Labels {list(missing)} are not among the given classes.")


def widened(
    running: RunningEmbedding, info: ClassInfo, classes: Any, class_weight: Any
) -> tuple[RunningEmbedding, ClassInfo]:
    """Add outputs for classes that are not among the first rows."""
    info, places = of_every_class(info, classes, class_weight)
    n = len(info.classes)
    return running.widened(places, ClassTargets(n), n), info


def of_every_class(info: ClassInfo, classes: Any, class_weight: Any) -> tuple[ClassInfo, np.ndarray]:
    """Return the class information with more classes, and the new indices of the present ones."""
    every = np.unique(classes)
    if not isinstance(class_weight, str):  # also for classes without rows so far
        of_class = class_weight or {}
        info = replace(info, class_weight=np.array([float(of_class.get(label, 1.0)) for label in every]))
    return replace(info, classes=every), np.searchsorted(every, info.classes)


def add_rows(
    model: Any, running: RunningEmbedding, X: Any, y: Any, sample_weight: Any = None, *, unit: float = 1.0
) -> RunningEmbedding:
    """Check rows and add them to the sums; ``unit`` is the value of a row weight of one."""
    if running.sums.sample.groups is not None:
        raise ValueError("Rows cannot be added to a fit with 'groups'. Fit all rows at once, with their groups.")
    block = checked_block(model, X, y, sample_weight, unit=unit)
    return running.add(block, weighted=sample_weight is not None) if len(block.labels) else running


def checked_block(model: Any, X: Any, y: Any, sample_weight: Any, *, unit: float, **options: Any) -> Block:
    """Check rows that are added to those of the first fit; return those of positive weight, with class indices."""
    X, y = check_more_rows(model, X, y, **options)
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(f"Labels {list(unknown)} are new. Pass all classes to the first call of partial_fit.")
    if isinstance(model.class_weight, str):
        raise ValueError("class_weight='balanced' needs all rows at once. Pass a dict to fit in batches.")
    weights = given_weights(y, sample_weight, model.class_weight) * unit
    counted = weights > 0
    return Block(X[counted], np.searchsorted(model.classes_, y[counted]), weights[counted])


def first_rows(batches: Iterator[tuple[Any, Any]]) -> tuple[Any, np.ndarray]:
    """Collect batches until there are two classes and enough rows to learn the hyperparameters."""
    first: list[tuple[Any, np.ndarray]] = []
    for X, y in batches:
        first.append((X, np.asarray(y)))
        labels = np.concatenate([part for _, part in first])
        if len(labels) >= LEFT_OUT_ROWS and len(np.unique(labels)) > 1:
            break
    if not first:
        raise ValueError("There are no batches to fit.")
    return joined_rows([part for part, _ in first]), labels


def joined_rows(parts: list[Any]) -> Any:
    """Concatenate rows; data frames become one data frame, with column names."""
    if len(parts) == 1:
        return parts[0]
    if not all(hasattr(part, "iloc") for part in parts):
        return np.concatenate([np.asarray(part) for part in parts])
    import pandas as pd

    if any(list(part.columns) != list(parts[0].columns) for part in parts):
        raise ValueError("The columns of the batches differ, or are in a different order.")
    return pd.concat(parts, ignore_index=True)
