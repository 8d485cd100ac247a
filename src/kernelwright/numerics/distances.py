"""Distances between points, and the weighted sums over all pairs that their gradients need.

Euclidean distances are matrix products. L1 distances are not: for large problems they run in a loop compiled by numba.
For small problems, or without numba, torch computes the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.numerics.products import Outer, thin_product
from kernelwright.numerics.sparse_rows import SparseRows

__all__ = [
    "cubed_sum",
    "euclidean",
    "l1",
    "l1_weighted_sums",
    "median_distance",
    "median_distance_of",
    "squared_euclidean",
    "squared_norms",
    "squared_outer_sums",
    "squared_weighted_sums",
]

# Number of differences above which the compiled loop saves more time than loading it costs.
COMPILED_FROM = 4_000_000
CENTRE_ROWS = 64  # rows used to estimate a centre
SUM_ENTRIES = 2**16  # differences summed at once, so that they stay in the cache
OUTER_ROWS = 128  # rows of a product of thin matrices computed at once, so that they stay in the cache

# Coordinates beyond this limit are set to it, so that squares do not overflow.
FARTHEST = {torch.float64: 1e145, torch.float32: 1e17}


def squared_euclidean(X: Tensor, Z: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
    """Return ``|x_i - z_j|^2``: never negative, exactly zero between a point and itself; in ``memory`` if given."""
    if isinstance(X, SparseRows):
        return X.squared_distances(Z)
    other = X if Z is None else Z
    _check_width(X, other)
    centre = _centre(other)
    left = _with_norms(_within_reach(X - centre))
    right = left if Z is None else _with_norms(_within_reach(Z - centre))
    # |x|^2 - 2 x.z + |z|^2 as one product of [x, |x|^2, 1] and [-2z, 1, |z|^2]: no pass over the matrix for the norms.
    D = torch.mm(left, torch.cat([-2.0 * right[:, :-2], right[:, -1:], right[:, -2:-1]], 1).T, out=memory)
    D = D.clamp_(min=0.0)
    return D.fill_diagonal_(0.0) if Z is None else D


def _check_width(X: Tensor, Z: Tensor) -> None:
    if X.shape[1] != Z.shape[1]:
        raise ValueError(f"Points with {X.shape[1]} features cannot be compared with points that have {Z.shape[1]}.")


def squared_norms(X: Tensor) -> Tensor:
    """Return ``|x_i|^2``."""
    return X.squared_norms if isinstance(X, SparseRows) else (X * X).sum(1)


def euclidean(X: Tensor, Z: Tensor | None = None) -> Tensor:
    """Return ``|x_i - z_j|`` from differences: slower than a product, but exact for points that are close."""
    other = X if Z is None else Z
    _check_width(X, other)
    return torch.cdist(X, other, compute_mode="donot_use_mm_for_euclid_dist")


def _centre(X: Tensor) -> Tensor | float:
    """Return a shift that limits cancellation far from the origin. It is a median, so outliers do not move it."""
    some = X.detach()[:: max(1, len(X) // CENTRE_ROWS)]  # an approximate centre is enough
    return some.median(0).values if len(X) else 0.0


def _within_reach(X: Tensor) -> Tensor:
    farthest = FARTHEST.get(X.dtype, 1e145)
    return X.clamp(-farthest, farthest)


def _with_norms(X: Tensor) -> Tensor:
    return torch.cat([X, (X * X).sum(1, keepdim=True), X.new_ones(len(X), 1)], 1)


def squared_weighted_sums(X: Tensor, W: Tensor) -> Tensor:
    """Return ``s_d = sum_ij W_ij (x_id - x_jd)^2`` for every feature d; only their sum for sparse rows."""
    if isinstance(X, SparseRows):
        return (X.squared_distances() * W).sum()
    X = _within_reach(X - _centre(X))
    products = thin_product(W, torch.cat([X, X.new_ones(len(X), 1)], 1))  # W X and the row sums in one pass
    return _squared_sums(X, products, W.sum(0))


def squared_outer_sums(X: Tensor, W: Outer, S: Tensor) -> Tensor:
    """Return ``s_d = sum_ij W_ij S_ij (x_id - x_jd)^2`` for every feature d and a symmetric S.

    Each pair is visited once, with ``W_ij + W_ji``, in blocks of rows that stay in the cache. For sparse rows it is
    only the sum over all features.
    """
    if isinstance(X, SparseRows):
        return squared_weighted_sums(X, W.dense().mul_(S))
    X = _within_reach(X - _centre(X))
    ones = torch.cat([X, X.new_ones(len(X), 1)], 1)
    left, right = torch.cat([W.left, W.right], 1), torch.cat([W.right, W.left], 1).T.contiguous()
    products, column_sums, block = torch.empty_like(ones), X.new_zeros(len(X)), X.new_empty(OUTER_ROWS * len(X))
    for start in range(0, len(X), OUTER_ROWS):
        end = min(start + OUTER_ROWS, len(X))
        N = block[: (end - start) * end].view(end - start, end)
        torch.mm(left[start:end], right[:, :end], out=N).mul_(S[start:end, :end])
        N[:, start:] *= 0.5  # these pairs are counted twice
        products[start:end] = thin_product(N, ones[:end])
        column_sums[:end] += N.sum(0)
    return _squared_sums(X, products, column_sums)


def _squared_sums(X: Tensor, products: Tensor, column_sums: Tensor) -> Tensor:
    """Return ``sum_ij W_ij (x_id - x_jd)^2`` from ``W [X, 1]`` and the column sums of W."""
    totals = products[:, -1] + column_sums
    return totals @ (X * X) - 2.0 * (X * products[:, :-1]).sum(0)


def l1(X: Tensor, Z: Tensor | None = None) -> Tensor:
    """Return ``sum_d |x_id - z_jd|``."""
    if isinstance(X, SparseRows):
        return X.l1_distances(Z)
    other = X if Z is None else Z
    _check_width(X, other)
    differentiable = torch.is_grad_enabled() and (X.requires_grad or other.requires_grad)
    compiled = None if differentiable else _compiled(len(X) * len(other) * X.shape[1])
    if compiled is None:
        return torch.cdist(X, other, p=1.0)
    if Z is None:
        D = torch.empty(len(X), len(X), dtype=torch.float64)
        in_threads(compiled["square"], equal_triangles(len(X)), _array(X), D.numpy())
        return D.to(X.dtype)
    single = X.dtype == Z.dtype == torch.float32
    D = torch.empty(len(X), len(Z), dtype=torch.float32 if single else torch.float64)
    loop = compiled["single rectangle" if single else "rectangle"]
    in_threads(loop, equal_rows(len(X)), *(x.detach().to(D.dtype).contiguous().numpy() for x in (X, Z)), D.numpy())
    return D.to(X.dtype)


def l1_weighted_sums(X: Tensor, W: Tensor, K: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``s_d = sum_ij W_ij K_ij |x_id - x_jd|`` for every feature d, and ``sum_ij W_ij K_ij``; K is symmetric.

    For sparse rows, the first is only the sum over all features.
    """
    if isinstance(X, SparseRows):
        N = W * K
        return (X.l1_distances() * N).sum(), N.sum()
    compiled = _compiled(len(X) ** 2 * X.shape[1])
    if compiled is None:
        N = W * K
        columns = max(1, SUM_ENTRIES // max(1, N.numel()))  # with few rows take many columns at once to save calls
        return torch.cat([_l1_sums(part, N) for part in X.T.split(columns)]) if X.shape[1] else X.new_zeros(0), N.sum()
    parts = in_threads(compiled["sums"], equal_triangles(len(X)), _array(X), _array(W), _array(K))
    sums = torch.from_numpy(np.sum(parts, axis=0))
    return sums[:-1], sums[-1]


def _l1_sums(columns: Tensor, N: Tensor) -> Tensor:
    """Return ``sum_ij N_ij |x_i - x_j|`` for each row x of ``columns``."""
    return ((columns[:, :, None] - columns[:, None, :]).abs_() * N).sum((1, 2))


def cubed_sum(F: Tensor, M: Tensor, out: Tensor, *, work: int) -> Tensor:
    """Compute ``sum_s f_s M_s`` elementwise with ``f_0 = F`` and ``f_(s+1) = f_s^3 F``, into ``out``.

    These are Gaussians whose widths form a geometric series: cubes are ten times cheaper than exponentials.
    ``work`` is the number of products over all calls.
    """
    compiled = _compiled(work)
    if compiled is not None:
        compiled["cubes"](F.numpy(), M.numpy(), out.numpy())
        return out
    f = F.clone()
    torch.mul(F, M[0], out=out)
    for product in M[1:]:
        f = f.pow(3).mul_(F)
        out.addcmul_(f, product)
    return out


def median_distance(D: Tensor, weights: Tensor | None = None) -> float:
    """Return the weighted median of the positive entries of a distance matrix (1 if there are none).

    The weight of a pair is the product of its points' weights, so that a point of weight two counts like two
    equal points.
    """
    weights = torch.ones(len(D), dtype=D.dtype) if weights is None else weights
    i, j = torch.tril_indices(len(D), len(D), offset=-1)
    distances, pair_weights = D[i, j], weights[i] * weights[j]
    positive = distances > 0
    if not bool(positive.any()):
        return 1.0
    distances, order = distances[positive].sort()
    cumulative = pair_weights[positive][order].cumsum(0)
    return float(distances[torch.searchsorted(cumulative, 0.5 * cumulative[-1])])


def median_distance_of(X: Tensor, distance: Callable[[Tensor], Tensor], weights: Tensor | None = None) -> float:
    """Return the median distance between points, computed in a unit in which typical differences can be squared."""
    if isinstance(X, SparseRows):
        return median_distance(distance(X), weights)
    sizes = (0.5 * X - 0.5 * X.median(0).values).abs()
    usual = float(sizes[sizes > 0].median()) if bool((sizes > 0).any()) else 1.0
    unit = 2.0 ** (math.frexp(usual)[1] - 1)  # a power of two, so that no digit changes
    return unit * median_distance(distance(X / unit), weights)


def _array(X: Tensor) -> np.ndarray:
    return X.detach().to(torch.float64).contiguous().numpy()


def equal_rows(n: int) -> np.ndarray:
    return np.linspace(0, n, torch.get_num_threads() + 1).astype(np.int64)


def equal_triangles(n: int) -> np.ndarray:
    """Return row limits that cut the lower triangle into parts of equal area."""
    return (n * np.sqrt(np.linspace(0, 1, torch.get_num_threads() + 1))).astype(np.int64)


def in_threads(function: Any, limits: np.ndarray, *arrays: np.ndarray) -> list[Any]:
    """Run ``function(start, stop, *arrays)`` for each part, each in its own thread (the loops release the GIL)."""
    parts = list(pairwise(limits))
    if len(parts) == 1:
        return [function(*parts[0], *arrays)]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(lambda part: function(*part, *arrays), parts))


def _compiled(work: int) -> dict[str, Any] | None:
    """Return the compiled loops if they pay for ``work`` differences and numba is installed, else None."""
    return _compile() if work >= COMPILED_FROM else None


@cache
def _compile() -> dict[str, Any] | None:
    """Compile the loops below (once: they are cached on disk); return None if numba is not installed.

    This runs in a thread, which Ctrl-C does not interrupt: a module whose import was interrupted cannot be imported
    again in the same process.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_compile_here).result()


def _compile_here() -> dict[str, Any] | None:
    """Compile the loops. They release the GIL and run in our own threads.

    Numba's threading layers must not be entered by several threads at once, nor used after a fork.
    """
    try:
        from numba import njit
    except ImportError:
        return None
    matrix, single = "float64[:, ::1]", "float32[:, ::1]"

    def compiled(signature: str, loop: Any) -> Any:
        try:
            return njit(signature, nogil=True, fastmath=True, cache=True)(loop)
        except Exception:  # any error: no writable folder, a full disk, a damaged cache
            return njit(signature, nogil=True, fastmath=True)(loop)

    return {
        "square": compiled(f"void(int64, int64, {matrix}, {matrix})", _square),
        "rectangle": compiled(f"void(int64, int64, {matrix}, {matrix}, {matrix})", _rectangle),
        "single rectangle": compiled(f"void(int64, int64, {single}, {single}, {single})", _rectangle),
        "cubes": compiled(f"void({matrix}, float64[:, :, ::1], {matrix})", _cubes),
        "sums": compiled(f"float64[::1](int64, int64, {matrix}, {matrix}, {matrix})", _sums),
    }


TILE = 64  # both triangles of a tile stay in the cache


def _square(start: int, stop: int, X: np.ndarray, D: np.ndarray) -> None:
    for first in range(0, stop, TILE):
        for i in range(max(start, first), stop):
            for j in range(first, min(first + TILE, i + 1)):
                total = 0.0
                for d in range(X.shape[1]):
                    total += abs(X[i, d] - X[j, d])
                D[i, j] = total
                D[j, i] = total


def _rectangle(start: int, stop: int, X: np.ndarray, Z: np.ndarray, D: np.ndarray) -> None:
    for i in range(start, stop):
        for j in range(Z.shape[0]):
            total = X.dtype.type(0)  # in the precision of X, or single precision would be summed in double
            for d in range(X.shape[1]):
                total += np.abs(X[i, d] - Z[j, d])
            D[i, j] = total


def _cubes(F: np.ndarray, M: np.ndarray, out: np.ndarray) -> None:
    for i in range(F.shape[0]):
        f = F[i].copy()
        for j in range(F.shape[1]):
            out[i, j] = f[j] * M[0, i, j]
        for s in range(1, M.shape[0]):
            for j in range(F.shape[1]):
                f[j] = f[j] * f[j] * f[j] * F[i, j]
                out[i, j] += f[j] * M[s, i, j]


def _sums(start: int, stop: int, X: np.ndarray, W: np.ndarray, K: np.ndarray) -> np.ndarray:
    n_features = X.shape[1]
    totals = np.zeros(n_features + 1)  # the last entry is the sum of the weights
    for first in range(0, stop, TILE):
        for i in range(max(start, first), stop):
            for j in range(first, min(first + TILE, i)):
                weight = K[i, j] * (W[i, j] + W[j, i])
                totals[n_features] += weight
                for d in range(n_features):
                    totals[d] += weight * abs(X[i, d] - X[j, d])
    for i in range(start, stop):
        totals[n_features] += K[i, i] * W[i, i]
    return totals
