"""Pairs of points with targets: from labels or a symmetric matrix to weighted unique pairs, all of them or a sample.

A symmetric target says the same of (i, j) and (j, i). So each pair is kept once, ``i <= j``, with weight 1 on the
diagonal and 2 off it: a quarter of the memory and an eighth of the work of all m^2 pairs, and the same solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from kernelwright.arrays import as_matrix

__all__ = ["LabelTarget", "MatrixTarget", "Pairs", "Target", "sample_pairs", "unique_pairs"]

NEIGHBOURS_OF = 2000  # points whose near neighbours are put into a sample
SYMMETRY = {4: 1e-4, 8: 1e-6}  # relative: what rounding may leave, by the bytes of a number


class Target(Protocol):
    """What the kernel of two points should be."""

    def __len__(self) -> int:
        """The number m of points."""

    def at(self, i: Tensor, j: Tensor) -> Tensor:
        """Targets of pairs; NaN where they are not known."""

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """How much a pair counts, next to others."""

    def mean(self) -> float:
        """The weighted mean over pairs."""

    def spread(self) -> float:
        """The size that errors are measured by."""

    def largest(self) -> float:
        """The largest absolute value."""

    def normalised(self, centre: float, scale: float) -> Target:
        """The target less ``centre``, divided by ``scale``."""

    def subset(self, rows: Tensor) -> Target:
        """The target of some of the points."""


@dataclass(frozen=True)
class LabelTarget:
    """The ideal kernel of labels: one value within a class and another between classes.

    With 1 and -1 it is ``y y^T`` for two classes and ``2 delta - 1`` for more; with 1 and 0 it is ``delta``.
    """

    labels: Tensor
    other: float = -1.0
    same: float = 1.0
    point_weights: Tensor | None = None  # a pair has the product; None counts all pairs alike

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, i: Tensor, j: Tensor) -> Tensor:
        values = torch.tensor([self.other, self.same], dtype=torch.float64)
        return values[(self.labels[i] == self.labels[j]).long()]

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        w = self.point_weights
        return torch.ones(len(i), dtype=torch.float64) if w is None else w[i] * w[j]

    def low_rank(self) -> tuple[Tensor, Tensor]:
        """``(R, signs)`` with ``R diag(signs) R^T`` the target matrix."""
        one_hot = torch.nn.functional.one_hot(self.labels).double()
        ones = torch.ones(len(self), 1, dtype=torch.float64)
        n_classes = one_hot.shape[1]
        root = torch.cat([(self.same - self.other) ** 0.5 * one_hot, abs(self.other) ** 0.5 * ones], 1)
        return root, torch.tensor([1.0] * n_classes + [-1.0 if self.other < 0 else 1.0], dtype=torch.float64)

    def mean(self) -> float:
        """Weighted mean over all pairs."""
        w = torch.ones(len(self), dtype=torch.float64) if self.point_weights is None else self.point_weights
        shares = torch.bincount(self.labels, w) / w.sum()
        return self.other + (self.same - self.other) * float(shares.square().sum())

    def spread(self) -> float:
        """The size that errors are measured by."""
        return 1.0

    def largest(self) -> float:
        """The largest absolute value."""
        return max(abs(self.same), abs(self.other))

    def normalised(self, centre: float, scale: float) -> LabelTarget:
        """The target less ``centre``, divided by ``scale``."""
        return replace(self, other=(self.other - centre) / scale, same=(self.same - centre) / scale)

    def subset(self, rows: Tensor) -> LabelTarget:
        weights = None if self.point_weights is None else self.point_weights[rows]
        return replace(self, labels=self.labels[rows], point_weights=weights)


@dataclass(frozen=True)
class MatrixTarget:
    """A given symmetric matrix; NaN marks pairs of which nothing is known."""

    values: Tensor
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.values)

    def at(self, i: Tensor, j: Tensor) -> Tensor:
        return self.values[i, j]

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        return torch.ones(len(i), dtype=torch.float64) if self.weights is None else self.weights[i, j]

    def mean(self) -> float:
        """Weighted mean over all known pairs."""
        known = ~self.values.isnan()
        w = known.double() if self.weights is None else torch.where(known, self.weights, 0.0)
        return float((w * self.values.nan_to_num(0.0)).sum() / w.sum())

    def spread(self) -> float:
        """The standard deviation of the known entries."""
        return float(self.values[~self.values.isnan()].std())

    def largest(self) -> float:
        """The largest absolute value of the known entries."""
        return float(self.values.nan_to_num(0.0).abs().max())

    def normalised(self, centre: float, scale: float) -> MatrixTarget:
        """The target less ``centre``, divided by ``scale``."""
        return replace(self, values=(self.values - centre) / scale)

    def subset(self, rows: Tensor) -> MatrixTarget:
        weights = None if self.weights is None else self.weights[rows][:, rows]
        return MatrixTarget(self.values[rows][:, rows], weights)

    @classmethod
    def checked(cls, matrix: Any, weights: Any, n_points: int) -> MatrixTarget:
        """A target from what a user gave; an error says what is wrong with it, and by how much."""
        values = _symmetric(matrix, "The target matrix", n_points)
        if bool(values.isinf().any()):
            raise ValueError("The target matrix has infinite entries. Use NaN for pairs that are not known.")
        if weights is not None:
            weights = _symmetric(weights, "The matrix of weights", n_points)
            if bool((weights < 0).any() | ~weights.isfinite().all()) or not bool((weights > 0).any()):
                raise ValueError("Weights of pairs must be finite and not negative, and not all zero.")
            values = torch.where(weights > 0, values, torch.nan)
        elif bool((alone := values.isnan().all(1)).any()):
            rows = alone.nonzero()[:, 0]
            raise ValueError(
                f"{len(rows)} of {n_points} objects have no known similarity to any object (rows {_first(rows)}): "
                "leave them out of the fit; the learned kernel can be applied to them afterwards."
            )
        if bool(values.isnan().all()):
            raise ValueError("No pair has both a known similarity and a weight above zero: there is nothing to learn.")
        return cls(values, weights)


def _symmetric(matrix: Any, name: str, n_points: int) -> Tensor:
    array = np.asarray(matrix)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers. Got {type(matrix).__name__} of type {array.dtype}.")
    values = as_matrix(array).double()
    if tuple(values.shape) != (n_points, n_points):
        raise ValueError(
            f"{name} must have a row and a column for each of the {n_points} points. "
            f"Got shape {tuple(values.shape)} instead."
        )
    missing = values.isnan()
    if not torch.equal(missing, missing.T):
        one_way = int((missing != missing.T).sum()) // 2
        raise ValueError(f"{name} must be symmetric: {one_way} pairs are known one way only.")
    filled = values.nan_to_num(0.0, posinf=torch.inf, neginf=-torch.inf)
    gap, size = (filled - filled.T).nan_to_num(0.0).abs(), float(filled.abs().max())
    if float(gap.max()) > SYMMETRY[4 if array.dtype.itemsize <= 4 and array.dtype.kind == "f" else 8] * size:
        i, j = divmod(int(gap.argmax()), n_points)
        raise ValueError(
            f"{name} must be symmetric. Entries ({i}, {j}) and ({j}, {i}) differ by {float(gap.max()):.3g}, "
            f"the largest entry being {size:.3g}. Symmetrise it first, if that is meant: (Y + Y.T) / 2."
        )
    return 0.5 * (values + values.T)


def _first(rows: Tensor, most: int = 5) -> str:
    return ", ".join(str(int(row)) for row in rows[:most]) + (", ..." if len(rows) > most else "")


@dataclass(frozen=True)
class Pairs:
    """Known pairs ``first <= second`` of points, with targets and weights."""

    first: Tensor
    second: Tensor
    targets: Tensor
    weights: Tensor

    def __len__(self) -> int:
        return len(self.first)

    def subset(self, rows: Tensor) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.first[rows], self.second[rows], self.targets[rows], self.weights[rows])


def unique_pairs(target: Target) -> Pairs:
    """All known pairs, each once.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.hyper.pairs import LabelTarget, unique_pairs
    >>> unique_pairs(LabelTarget(torch.tensor([0, 1]))).weights
    tensor([1., 2., 1.], dtype=torch.float64)
    """
    first, second = torch.triu_indices(len(target), len(target))
    return _known(target, first, second, torch.where(first == second, 1.0, 2.0).double())


def sample_pairs(target: Target, X: Tensor, size: int, *, generator: torch.Generator, n_neighbours: int = 5) -> Pairs:
    """About ``size`` pairs: all of the diagonal, near neighbours, and a random part of the rest.

    Random pairs alone are hardly ever close, so narrow widths would see nothing. The random part is weighted up: sums
    over the sample estimate sums over all pairs without bias.
    """
    m = len(target)
    points = torch.arange(m)
    some = torch.randperm(m, generator=generator)[:NEIGHBOURS_OF].sort().values
    near = _neighbours(X, some, min(n_neighbours, len(some) - 1))
    n_rest, n_random = m * (m - 1) // 2 - len(near), max(size - m - len(near), m)
    probe = _random_codes(m, 1000, generator)
    known_share = float((~target.at(probe // m, probe % m).isnan()).double().mean())
    codes = _random_codes(m, int(n_random / max(known_share, 0.01)), generator)
    codes = codes[~torch.isin(codes, near)]
    times = torch.tensor([1.0, 2.0, 2.0 * n_rest / max(len(codes), 1)], dtype=torch.float64)
    return _known(
        target,
        torch.cat([points, near // m, codes // m]),
        torch.cat([points, near % m, codes % m]),
        times.repeat_interleave(torch.tensor([m, len(near), len(codes)])),
    )


def _known(target: Target, first: Tensor, second: Tensor, multiplicity: Tensor) -> Pairs:
    values = target.at(first, second)
    pairs = Pairs(first, second, values, multiplicity * target.weight(first, second))
    known = ~values.isnan()
    return pairs if bool(known.all()) else pairs.subset(known.nonzero()[:, 0])


def _neighbours(X: Tensor, some: Tensor, count: int) -> Tensor:
    """Codes ``i m + j`` (i < j) of pairs of near neighbours among ``some`` of the points."""
    if count < 1:
        return torch.zeros(0, dtype=torch.int64)
    points = X[some].numpy()
    _, near = NearestNeighbors(n_neighbors=count + 1).fit(points).kneighbors(points)
    i, j = some[:, None].expand(-1, count + 1), some[torch.from_numpy(np.asarray(near, dtype=np.int64))]
    low, high = torch.minimum(i, j), torch.maximum(i, j)
    return (low * len(X) + high)[low < high].unique()


def _random_codes(m: int, size: int, generator: torch.Generator) -> Tensor:
    """About ``size`` distinct random pairs as codes ``i m + j`` with i < j."""
    i = torch.randint(m, (size,), generator=generator)
    j = (i + torch.randint(1, m, (size,), generator=generator)) % m
    return (torch.minimum(i, j) * m + torch.maximum(i, j)).unique()
