"""Pairs of points with targets: weighted unique pairs, all of them or a sample.

A symmetric target has the same value at (i, j) and (j, i). So each pair is kept once, ``i <= j``, with weight 1 on the
diagonal and 2 off it. This takes a quarter of the memory and an eighth of the work of all m^2 pairs, for the same
solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from kernelwright.hyper.targets import Target

__all__ = ["Pairs", "number_of_pairs", "sample_pairs", "some_pairs", "unique_pairs"]

NEIGHBOURS_OF = 2000  # points whose near neighbours are added to a sample


@dataclass(frozen=True)
class Pairs:
    """Pairs ``first <= second`` of points with known targets, and their weights."""

    first: Tensor
    second: Tensor
    targets: Tensor
    weights: Tensor

    def __len__(self) -> int:
        return len(self.first)

    def subset(self, rows: Tensor) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.first[rows], self.second[rows], self.targets[rows], self.weights[rows])


def unique_pairs(target: Target) -> Pairs:
    """Return all known pairs, each once.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.hyper.pairs import unique_pairs
    >>> from kernelwright.hyper.targets import LabelTarget
    >>> unique_pairs(LabelTarget(torch.tensor([0, 1]))).weights
    tensor([1., 2., 1.], dtype=torch.float64)
    """
    first, second = torch.triu_indices(len(target), len(target))
    return _known(target, first, second, torch.where(first == second, 1.0, 2.0).double())


def number_of_pairs(n_points: int) -> int:
    """Count the pairs ``i <= j``."""
    return n_points * (n_points + 1) // 2


def some_pairs(target: Target, X: Tensor, most: int, generator: torch.Generator) -> Pairs:
    """Return all known pairs, or a sample if there are more than ``most``."""
    whole = number_of_pairs(len(target)) <= most
    return unique_pairs(target) if whole else sample_pairs(target, X, most, generator=generator)


def sample_pairs(target: Target, X: Tensor, size: int, *, generator: torch.Generator, n_neighbours: int = 5) -> Pairs:
    """Return about ``size`` pairs: the whole diagonal, near neighbours, and a random sample of the rest.

    Random pairs are rarely close together, so narrow widths could not be fitted to them alone. The random pairs get
    larger weights, so that sums over the sample are unbiased estimates of sums over all pairs.
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
    """Return the codes ``i m + j`` (i < j) of pairs of near neighbours among ``some`` of the points."""
    if count < 1:
        return torch.zeros(0, dtype=torch.int64)
    points = X[some].numpy()
    _, near = NearestNeighbors(n_neighbors=count + 1).fit(points).kneighbors(points)
    i, j = some[:, None].expand(-1, count + 1), some[torch.from_numpy(np.asarray(near, dtype=np.int64))]
    low, high = torch.minimum(i, j), torch.maximum(i, j)
    return (low * len(X) + high)[low < high].unique()


def _random_codes(m: int, size: int, generator: torch.Generator) -> Tensor:
    """Draw about ``size`` distinct random pairs, as codes ``i m + j`` with i < j."""
    i = torch.randint(m, (size,), generator=generator)
    j = (i + torch.randint(1, m, (size,), generator=generator)) % m
    return (torch.minimum(i, j) * m + torch.maximum(i, j)).unique()
