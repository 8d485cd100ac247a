"""The compiled loops of :mod:`kernelwright.numerics.table_kernel`, imported when they are first needed, as is numba.

Loops take one row and a tile of points at a time and run over the points of the tile, which compilers turn into vector
instructions. Only ``sums`` adds in another order than written, as each of its threads ends in one number per feature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.polynomial import chebyshev

__all__ = ["exp", "exp_in_single", "matrices", "mixture", "single_mixture", "sums"]

LOG2_E = 1.0 / math.log(2.0)
# log(2) in two parts: a multiple of the first by a whole number is exact, so the remainder keeps all its digits.
LOWEST, HIGH, LOW = -708.0, 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOWEST_32, HIGH_32, LOW_32 = np.float32(-87.0), np.float32(0.693359375), np.float32(-2.12194440e-4)
LOG2_E_32, HALF_32, ZERO_32 = np.float32(LOG2_E), np.float32(0.5), np.float32(0.0)


def _exp_coefficients(degree: int) -> tuple[float, ...]:
    """Return c with ``exp(r) ~ 1 + r (c_0 + c_1 r + ...)`` for ``|r| <= log(2) / 2``: exactly one at zero."""
    reach = 0.5 * math.log(2.0)
    nodes = np.cos((np.arange(degree) + 0.5) * math.pi / degree)
    fitted = chebyshev.cheb2poly(chebyshev.chebfit(nodes, np.expm1(reach * nodes) / (reach * nodes), degree - 1))
    return tuple(float(c) / reach**power for power, c in enumerate(fitted))


C0, C1, C2, C3, C4, C5, C6, C7, C8, C9 = _exp_coefficients(10)
S0, S1, S2, S3, S4, S5 = (np.float32(c) for c in _exp_coefficients(6))


def _compiled(signature: str, **options: Any) -> Callable[[Any], Any]:
    """Compile for one signature, from the cache on disk if that can be used."""

    def decorate(loop: Any) -> Any:
        try:
            return njit(signature, nogil=True, cache=True, **options)(loop)
        except Exception:  # any error: no writable folder, a full disk, a damaged cache
            return njit(signature, nogil=True, **options)(loop)

    return decorate


WIDTH = 128  # points of a tile: its columns of both views, and the sums of a row, stay in the cache
EXACT = {"contract", "nsz"}  # products and sums may be fused, but not reordered


@njit(fastmath=EXACT)
def exp(x: float) -> float:
    """Return ``exp(x)`` for x <= 0 to a few units in the last place; about 1e-308 below -708."""
    x = LOWEST if x < LOWEST else x
    n = math.floor(x * LOG2_E + 0.5)
    r = (x - n * HIGH) - n * LOW
    p = C9 * r + C8
    p = ((p * r + C7) * r + C6) * r + C5
    p = ((p * r + C4) * r + C3) * r + C2
    p = ((p * r + C1) * r + C0) * r + 1.0
    return p * np.int64(np.int64(np.int32(n) + np.int32(1023)) << 52).view(np.float64)


@njit(fastmath=EXACT)
def exp_in_single(x: np.float32) -> np.float32:
    """Return ``exp(x)`` for x <= 0 in single precision, to a few units in the last place."""
    x = LOWEST_32 if x < LOWEST_32 else x
    n = np.float32(math.floor(x * LOG2_E_32 + HALF_32))
    r = (x - n * HIGH_32) - n * LOW_32
    p = ((S5 * r + S4) * r + S3) * r + S2
    p = ((p * r + S1) * r + S0) * r + np.float32(1.0)
    return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(fastmath=EXACT, inline="always")
def _exponents(x: Any, y: Any, g: Any, first: Any, second: Any, a: Any, b: Any, c: Any) -> None:
    """Write minus the three sums of the row (x, y) to each point of a tile; four features at a time."""
    n_features = len(first)
    a[:] = 0
    b[:] = 0
    c[:] = 0
    d = 0
    while d + 4 <= n_features:
        x0, x1, x2, x3 = x[d], x[d + 1], x[d + 2], x[d + 3]
        y0, y1, y2, y3 = y[d], y[d + 1], y[d + 2], y[d + 3]
        g0, g1, g2, g3 = g[d], g[d + 1], g[d + 2], g[d + 3]
        for j in range(WIDTH):
            e0, e1, e2, e3 = x0 - first[d, j], x1 - first[d + 1, j], x2 - first[d + 2, j], x3 - first[d + 3, j]
            f0, f1, f2, f3 = y0 - second[d, j], y1 - second[d + 1, j], y2 - second[d + 2, j], y3 - second[d + 3, j]
            a[j] -= (abs(e0) + abs(e1)) + (abs(e2) + abs(e3))
            b[j] -= (g0 * e0 * e0 + g1 * e1 * e1) + (g2 * e2 * e2 + g3 * e3 * e3)
            c[j] -= (abs(f0) + abs(f1)) + (abs(f2) + abs(f3))
        d += 4
    while d < n_features:
        x0, y0, g0 = x[d], y[d], g[d]
        for j in range(WIDTH):
            e0 = x0 - first[d, j]
            a[j] -= abs(e0)
            b[j] -= g0 * e0 * e0
            c[j] -= abs(y0 - second[d, j])
        d += 1


MATRIX, TILES, VECTOR = "float64[:, ::1]", "float64[:, :, ::1]", "float64[::1]"
MIXTURE = f"void(int64, int64, {MATRIX}, {MATRIX}, {VECTOR}, {TILES}, {TILES}, {VECTOR}, boolean, {MATRIX})"


@njit(fastmath=EXACT, inline="always")
def _keep(values: Any, K: Any, i: int, left: int, square: bool) -> None:
    """Write values to row i; of a square matrix up to the diagonal, and their mirror images."""
    right = min(left + WIDTH, i + 1 if square else K.shape[1])
    K[i, left:right] = values[: right - left]
    if square:
        for j in range(left, right):
            K[j, i] = values[j - left]


@_compiled(MIXTURE, fastmath=EXACT)
def mixture(
    start: int, stop: int, X: Any, Y: Any, g: Any, first: Any, second: Any, w: Any, square: bool, K: Any
) -> None:
    """Write the weighted sum of the three falloffs between rows and all points; ``square``: rows are the points."""
    a, b, c = np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH)
    w0, w1, w2 = w[0], w[1], w[2]
    for t in range(len(first)):
        for i in range(max(start, t * WIDTH) if square else start, stop):
            _exponents(X[i], Y[i], g, first[t], second[t], a, b, c)
            for j in range(WIDTH):  # also beyond the last point, so that every value takes the same instructions
                a[j] = w0 * exp(a[j]) + w1 * exp(b[j]) + w2 * exp(c[j])
            _keep(a, K, i, t * WIDTH, square)


@_compiled(MIXTURE.replace("float64", "float32"), fastmath=EXACT)
def single_mixture(
    start: int, stop: int, X: Any, Y: Any, g: Any, first: Any, second: Any, w: Any, square: bool, K: Any
) -> None:
    """Write the same in single precision."""
    a, b, c = np.empty(WIDTH, np.float32), np.empty(WIDTH, np.float32), np.empty(WIDTH, np.float32)
    w0, w1, w2 = w[0], w[1], w[2]
    for t in range(len(first)):
        for i in range(max(start, t * WIDTH) if square else start, stop):
            _exponents(X[i], Y[i], g, first[t], second[t], a, b, c)
            for j in range(WIDTH):  # also beyond the last point, so that every value takes the same instructions
                a[j] = w0 * exp_in_single(a[j]) + w1 * exp_in_single(b[j]) + w2 * exp_in_single(c[j])
            _keep(a, K, i, t * WIDTH, square)


@_compiled(
    f"void(int64, int64, {MATRIX}, {MATRIX}, {VECTOR}, {TILES}, {TILES}, {MATRIX}, {MATRIX}, {MATRIX})", fastmath=EXACT
)
def matrices(start: int, stop: int, X: Any, Y: Any, g: Any, first: Any, second: Any, A: Any, B: Any, C: Any) -> None:
    """Write the three symmetric matrices of falloffs: tiles up to the diagonal, and their mirror images."""
    a, b, c = np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH)
    for t in range(len(first)):
        left = t * WIDTH
        for i in range(max(start, left), stop):
            _exponents(X[i], Y[i], g, first[t], second[t], a, b, c)
            right = min(left + WIDTH, i + 1)
            for j in range(right - left):
                A[i, left + j], B[i, left + j], C[i, left + j] = exp(a[j]), exp(b[j]), exp(c[j])
            for j in range(left, right):
                A[j, i], B[j, i], C[j, i] = A[i, j], B[i, j], C[i, j]


@njit(fastmath=True)
def _add_feature(x: float, y: float, first: Any, second: Any, u: Any, v: Any, w: Any, total: Any) -> None:
    """Add the weighted differences of one feature between a row and the points of a tile."""
    steps, smooth, ranks = 0.0, 0.0, 0.0
    for j in range(WIDTH):
        e = abs(x - first[j])
        steps += u[j] * e
        smooth += v[j] * e * e
        ranks += w[j] * abs(y - second[j])
    total[0] += steps
    total[1] += smooth
    total[2] += ranks


@_compiled(
    f"{MATRIX}(int64, int64, {MATRIX}, {MATRIX}, {TILES}, {TILES}, {MATRIX}, {MATRIX}, {MATRIX}, {MATRIX})",
    fastmath=True,
)
def sums(start: int, stop: int, X: Any, Y: Any, first: Any, second: Any, W: Any, A: Any, B: Any, C: Any) -> Any:
    """Return three rows of sums over pairs, a column for each feature; the last column sums the weights alone."""
    n_features = first.shape[1]
    totals = np.zeros((3, n_features + 1))
    u, v, w = np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH)
    for t in range(len(first)):
        left = t * WIDTH
        for i in range(max(start, left + 1), stop):
            size = min(WIDTH, i - left)
            for j in range(size):
                u[j] = W[i, left + j] + W[left + j, i]
            u[size:] = 0.0
            for j in range(size):
                v[j], w[j], u[j] = B[i, left + j] * u[j], C[i, left + j] * u[j], A[i, left + j] * u[j]
            v[size:], w[size:] = 0.0, 0.0
            totals[0, -1] += u.sum()
            totals[1, -1] += v.sum()
            totals[2, -1] += w.sum()
            for d in range(n_features):
                _add_feature(X[i, d], Y[i, d], first[t, d], second[t, d], u, v, w, totals[:, d])
    return totals
