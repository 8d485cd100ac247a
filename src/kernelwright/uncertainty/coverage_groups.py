"""Groups of rows, each of which is to be covered: all rows, by a column, or by the predicted scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kernelwright.inputs.arrays import plain
from kernelwright.inputs.frames.given import is_frame, pandas_frame
from kernelwright.storage.saved import saved

__all__ = ["AllRows", "CoverageGroups", "LabelGroups", "WidthGroups", "labels_by", "make_groups"]

N_WIDTHS = 3


class CoverageGroups(Protocol):
    """A division of rows into groups by what is known before their targets."""

    @property
    def names(self) -> list[str]:
        """The name of each group."""

    def indices(self, X: Any, widths: np.ndarray) -> np.ndarray:
        """Return the group of each row, given the widths of its band; -1 for an unknown group."""


@saved("all-rows")
@dataclass(frozen=True)
class AllRows:
    """One group."""

    @property
    def names(self) -> list[str]:
        """The name of the only group."""
        return ["all rows"]

    def indices(self, X: Any, widths: np.ndarray) -> np.ndarray:
        """Return zeros."""
        return np.zeros(len(widths), dtype=np.int64)


@saved("label-groups")
@dataclass(frozen=True)
class LabelGroups:
    """A group for each value of a column, or of a function of the rows."""

    by: Any
    labels: np.ndarray  # sorted

    @property
    def names(self) -> list[str]:
        """The values."""
        return [str(label) for label in self.labels]

    def indices(self, X: Any, widths: np.ndarray) -> np.ndarray:
        """Return the group of each row; -1 for values that were not there before."""
        values = labels_by(self.by, X)
        if self.labels.dtype.kind != values.dtype.kind:
            values = values.astype(str) if self.labels.dtype.kind == "U" else _as_numbers(values)
        place = np.searchsorted(self.labels, values).clip(max=len(self.labels) - 1)
        found = self.labels[place]
        same = found == values if values.dtype.kind == "U" else (found == values) | (np.isnan(found) & np.isnan(values))
        return np.where(same, place, -1)


@saved("width-groups")
@dataclass(frozen=True)
class WidthGroups:
    """Groups by the predicted scale of the rows: the width of the band between two quantiles."""

    edges: np.ndarray

    @classmethod
    def of(cls, widths: np.ndarray) -> WidthGroups:
        """Divide at the terciles of some widths."""
        return cls(np.quantile(widths, np.arange(1, N_WIDTHS) / N_WIDTHS))

    @property
    def names(self) -> list[str]:
        """The range of widths of each group."""
        inner = [f"{low:.3g} to {high:.3g}" for low, high in zip(self.edges[:-1], self.edges[1:], strict=True)]
        return [f"width up to {self.edges[0]:.3g}", *inner, f"above {self.edges[-1]:.3g}"]

    def indices(self, X: Any, widths: np.ndarray) -> np.ndarray:
        """Return the group of each row."""
        return np.searchsorted(self.edges, widths)


def make_groups(by: Any, X: Any, widths: np.ndarray) -> CoverageGroups:
    """Return the groups of ``by``; values and terciles are those of the given rows."""
    if by is None:
        return AllRows()
    if isinstance(by, str) and by == "scale":
        return WidthGroups.of(widths)
    return LabelGroups(by, np.unique(labels_by(by, X)))


def labels_by(by: Any, X: Any) -> np.ndarray:
    """Return a label for each row: a column of X, or what a function makes of X; numbers or text."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    values = np.asarray(plain(by(X) if callable(by) else _column(by, X)))
    if values.shape != (n,):
        raise ValueError(f"'by' must give one label for each of the {n} rows. Got shape {values.shape}.")
    return values.astype(np.float64) if values.dtype.kind in "iufb" else values.astype(str)


def _column(by: Any, X: Any) -> Any:
    if is_frame(X):
        return _column_of_frame(by, pandas_frame(X))
    if isinstance(by, str):
        raise ValueError(f"by={by!r} needs a data frame with such a column. For an array pass the index of a column.")
    X = X if hasattr(X, "shape") else np.asarray(X)
    if not -X.shape[1] <= by < X.shape[1]:
        raise ValueError(f"by={by} is no column of X, which has {X.shape[1]}.")
    column = X[:, [by]]
    return (column.toarray() if hasattr(column, "toarray") else np.asarray(column))[:, 0]


def _column_of_frame(by: Any, frame: Any) -> Any:
    """Return numbers, dates or text; a gap among text is "nan"."""
    if isinstance(by, str) and by not in frame.columns:
        raise ValueError(f"by={by!r} is no column of X. Its columns are {list(frame.columns)[:20]}.")
    if not isinstance(by, str) and not -frame.shape[1] <= by < frame.shape[1]:
        raise ValueError(f"by={by} is no column of X, which has {frame.shape[1]}.")
    column = frame[by] if isinstance(by, str) else frame.iloc[:, by]
    if getattr(column.dtype, "kind", "O") in "biufM":
        return column
    return column.astype(object).where(column.notna(), "nan")


def _as_numbers(values: np.ndarray) -> np.ndarray:
    """Return text as numbers; what is none becomes infinite, which is the label of no group."""
    found = np.full(len(values), np.inf)
    for row, value in enumerate(values):
        try:
            found[row] = float(value)
        except ValueError:
            continue
    return found
