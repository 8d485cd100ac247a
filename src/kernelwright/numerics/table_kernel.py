"""Sums of falloffs of two views of a table, in one pass over the pairs of points.

For a pair with differences ``e_d`` in the first view and ``f_d`` in the second, both divided by length scales, the
kernel needs ``a = sum_d |e_d|``, ``b = sum_d g_d e_d^2``, ``c = sum_d |f_d|`` and the three exponentials of ``-a``,
``-b`` and ``-c``. A compiled loop finds them for one row and a tile of points at a time, so that no matrix of distances
is ever written. It runs over the points of a tile, not over features: sums are then in the same order for every pair,
whatever else is computed with it, and symmetric matrices are exactly symmetric.

Without numba, or for few pairs, kernels use :mod:`kernelwright.numerics.distances` and get the same numbers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.numerics.distances import COMPILED_FROM, equal_rows, equal_triangles, in_threads

__all__ = ["FalloffSums", "TableTiles", "Views", "falloff_matrices", "falloff_sums", "mixture", "one_pass_pays"]

WIDTH = 128  # points of a tile, as in the compiled loops


@dataclass(frozen=True)
class Views:
    """Points as two views of a table, divided by length scales."""

    first: Tensor
    second: Tensor

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class TableTiles:
    """Points in tiles, feature by feature, padded to whole tiles; how their falloffs are mixed."""

    first: np.ndarray  # tiles x features x WIDTH
    second: np.ndarray
    curvature: np.ndarray  # g of the formula
    weights: np.ndarray  # of the three falloffs
    n_points: int

    @classmethod
    def of(cls, points: Views, curvature: Tensor, weights: Tensor) -> TableTiles:
        """Lay out points."""
        first, second = _tiled(points.first), _tiled(points.second)
        return cls(first, second, _of_each(curvature, points), _array(weights, first.dtype), len(points))


def one_pass_pays(n_pairs: int, n_features: int) -> bool:
    """Return whether there are enough differences to load compiled loops, and numba is installed."""
    return 2 * n_pairs * n_features >= COMPILED_FROM and _compile() is not None


def mixture(rows: Views, tiles: TableTiles, *, square: bool = False) -> Tensor:
    """Return ``w_0 exp(-a) + w_1 exp(-b) + w_2 exp(-c)`` for every row and point, in the precision of the tiles.

    If the rows are the points (``square``), only one triangle is computed.
    """
    dtype = tiles.first.dtype
    loops = _compile()
    K = np.empty((len(rows), tiles.n_points), dtype)
    loop = loops.mixture if dtype == np.float64 else loops.single_mixture
    views = (_array(view, dtype) for view in (rows.first, rows.second))
    arrays: tuple[Any, ...] = (*views, tiles.curvature, tiles.first, tiles.second, tiles.weights, square, K)
    in_threads(loop, (equal_triangles if square else equal_rows)(len(rows)), *arrays)
    return torch.from_numpy(K)


def falloff_matrices(points: Views, curvature: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the symmetric matrices ``exp(-a)``, ``exp(-b)`` and ``exp(-c)`` of all pairs of points, in double."""
    loops = _compile()
    n = len(points)
    first, second = (_array(view, np.float64) for view in (points.first, points.second))
    found = [np.empty((n, n)) for _ in range(3)]
    arrays = (first, second, _of_each(curvature, points), _tiled(points.first), _tiled(points.second), *found)
    in_threads(loops.matrices, equal_triangles(n), *arrays)
    steps, smooth, ranks = (torch.from_numpy(each) for each in found)
    return steps, smooth, ranks


@dataclass(frozen=True)
class FalloffSums:
    """Weighted sums over all pairs: what the gradient in the length scales needs, and the sums of the weights."""

    steps: Tensor  # sum_ij W_ij exp(-a_ij) |e_ijd|, for every feature d
    smooth: Tensor  # sum_ij W_ij exp(-b_ij) e_ijd^2
    ranks: Tensor  # sum_ij W_ij exp(-c_ij) |f_ijd|
    totals: Tensor  # sum_ij W_ij exp(-a_ij), and of b and c


def falloff_sums(points: Views, W: Tensor, matrices: tuple[Tensor, Tensor, Tensor]) -> FalloffSums:
    """Return the sums over all pairs of points, weighted by W times the falloffs that ``falloff_matrices`` returned.

    Each pair is visited once, with ``W_ij + W_ji``: W need not be symmetric.
    """
    loops = _compile()
    first, second, weights, *falloffs = (_array(x, np.float64) for x in (points.first, points.second, W, *matrices))
    arrays = (first, second, _tiled(points.first), _tiled(points.second), weights, *falloffs)
    parts = in_threads(loops.sums, equal_triangles(len(points)), *arrays)
    sums = torch.from_numpy(np.sum(parts, axis=0))
    on_diagonal = torch.stack([W.diagonal() @ each.diagonal() for each in matrices]).to(sums.dtype)
    return FalloffSums(sums[0, :-1], sums[1, :-1], sums[2, :-1], sums[:, -1] + on_diagonal)


def _array(X: Tensor, dtype: Any) -> np.ndarray:
    return np.ascontiguousarray(X.detach().numpy(), dtype=dtype)


def _of_each(curvature: Tensor, points: Views) -> np.ndarray:
    """Return the curvature of each feature: all may have the same."""
    return _array(curvature.expand(points.first.shape[1]), points.first.detach().numpy().dtype)


def _tiled(X: Tensor) -> np.ndarray:
    """Return points as tiles x features x WIDTH; zeros fill the last tile."""
    values = X.detach().numpy()
    n_tiles = -(-len(values) // WIDTH)
    padded = np.zeros((n_tiles * WIDTH, values.shape[1]), values.dtype)
    padded[: len(values)] = values
    return np.ascontiguousarray(padded.reshape(n_tiles, WIDTH, -1).transpose(0, 2, 1))


@cache
def _compile() -> Any:
    """Return the module of compiled loops, or None if numba is not installed.

    It is imported in a thread, which Ctrl-C does not interrupt: a module whose import was interrupted cannot be
    imported again in the same process.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_import_loops).result()


def _import_loops() -> Any:
    try:
        from kernelwright.numerics import table_loops
    except ImportError:
        return None
    return table_loops
