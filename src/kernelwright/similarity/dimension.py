"""The size of the function space of a kernel at given points: effective dimension and covering numbers.

Both are functions of the eigenvalues of a kernel matrix. For kernels of pairs ([Liu2021]_, definition 6 and Eq. 16) the
points are pairs, and unique pairs have the weights 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from kernelwright.numerics.linalg import spectrum

__all__ = ["CoveringNumbers", "covering_numbers", "effective_dimension"]

SPLITS = np.logspace(-3, 3, 25)  # t in (x + y)^2 <= (1 + t) x^2 + (1 + 1/t) y^2
CUTS = 24  # numbers of axes that are tried for each distance


def effective_dimension(K: Any, ridge: ArrayLike, *, weights: ArrayLike | None = None) -> Any:
    """Return ``N(lambda) = tr K (K + n lambda I)^-1``: about how many parameters a ridge regression has.

    Parameters
    ----------
    K : array-like of shape (n, n)
        A positive semidefinite kernel matrix.
    ridge : float or array-like
        lambda; an array gives an array.
    weights : array-like of shape (n,), optional
        How often each point counts; n is then their sum. For unique pairs ``i <= j`` they are 1 if i = j and 2
        otherwise, which gives the dimension for all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.kernels import Gaussian
    >>> from kernelwright.similarity import effective_dimension
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> effective_dimension(Gaussian(0.2)(X), [1e-1, 1e-3, 1e-5]).round(1)
    array([2.9, 6.8, 9.6])
    """
    eigenvalues = _eigenvalues(K, weights)
    ridges = np.asarray(ridge, dtype=np.float64)
    if not (ridges > 0).all():
        raise ValueError(f"The 'ridge' of effective_dimension must be positive. Got {ridge!r} instead.")
    found = (eigenvalues / (eigenvalues + ridges[..., None])).sum(-1)
    return float(found) if found.ndim == 0 else found


@dataclass(frozen=True)
class CoveringNumbers:
    """Bounds on the logarithm of covering numbers, for each distance."""

    distances: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def exponent(self) -> float:
        """The s of a power law ``log N = C distance^-s`` through the geometric means of the bounds.

        Distances whose lower bound is zero do not count. NaN if there are fewer than two others.
        """
        some = self.lower > 0
        if some.sum() < 2:
            return float("nan")
        middle = 0.5 * (np.log(self.lower[some]) + np.log(self.upper[some]))
        return float(-np.polyfit(np.log(self.distances[some]), middle, 1)[0])


def covering_numbers(
    K: Any, distances: ArrayLike, *, radius: float = 1.0, weights: ArrayLike | None = None
) -> CoveringNumbers:
    """Bound ``log N(B_R, eps)``: how many functions stand for all of norm at most R, up to a distance eps.

    Distances are root mean squares over the points (with weights, weighted), so N is at most that of the largest
    difference, definition 6 of [Liu2021]_. At the points the ball is an ellipsoid, with semi-axes
    ``a_i = R sqrt(mu_i / n)`` for eigenvalues ``mu_i`` of K. The lower bound compares volumes,
    ``sum max(log(a_i / eps), 0)``. The upper bound covers the longest k axes, up to ``eps_k^2 = eps^2 - a_(k+1)^2``, by
    a largest packing or by a grid, whichever is smaller, for the best k.

    Parameters
    ----------
    K : array-like of shape (n, n)
    distances : array-like
        Values of eps.
    radius : float, default=1.0
    weights : array-like of shape (n,), optional
        As in :func:`effective_dimension`.

    Returns
    -------
    CoveringNumbers
        With ``distances``, ``lower``, ``upper`` (natural logarithms) and ``exponent``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.kernels import Gaussian
    >>> from kernelwright.similarity import covering_numbers
    >>> found = covering_numbers(Gaussian(0.2)(np.linspace(0, 1, 100)[:, None]), [1.0, 0.1, 0.01])
    >>> found.lower.round(1), found.upper.round(1)
    (array([ 0. ,  6.4, 22.2]), array([ 0. , 12.3, 30.3]))
    """
    sizes = np.atleast_1d(np.asarray(distances, dtype=np.float64))
    if not ((sizes > 0).all() and radius > 0):
        raise ValueError("The 'distances' and the 'radius' of covering_numbers must be positive.")
    axes = radius * np.sqrt(_eigenvalues(K, weights))
    lower = np.log(np.maximum(axes / sizes[:, None], 1.0)).sum(1)
    return CoveringNumbers(sizes, lower, np.array([_upper(axes, size) for size in sizes]))


def _eigenvalues(K: Any, weights: ArrayLike | None) -> np.ndarray:
    """Return the eigenvalues of ``W^1/2 K W^1/2 / sum(w)``, largest first; rounding errors below zero are zero."""
    matrix = torch.as_tensor(np.asarray(K, dtype=np.float64))
    if matrix.ndim != 2 or len(matrix) != matrix.shape[1]:
        raise ValueError(f"A kernel matrix must be square. Got the shape {tuple(matrix.shape)}.")
    w = torch.ones(len(matrix), dtype=torch.float64)
    if weights is not None:
        w = torch.as_tensor(np.asarray(weights, dtype=np.float64))
        if w.shape != (len(matrix),) or not bool((w >= 0).all()) or float(w.sum()) <= 0:
            raise ValueError(f"'weights' must be {len(matrix)} nonnegative numbers, not all zero.")
    root = (w / w.sum()).sqrt()
    values = spectrum(root[:, None] * matrix * root).flip(0).numpy()
    if values[-1] < -1e-8 * max(values[0], 0.0):
        raise ValueError(
            f"The matrix is not positive semidefinite: its eigenvalues (over n) go down to {values[-1]:.3g}. Correct "
            "its spectrum first (kernelwright.similarity.indefinite.correct)."
        )
    return np.maximum(values, 0.0)


def _upper(axes: np.ndarray, size: float) -> float:
    """Return the upper bound for one distance."""
    first = int((axes >= size).sum())  # the others are no longer than the distance
    if first == 0:
        return 0.0
    cuts = np.unique(np.linspace(first, min(len(axes), 2 * first + CUTS), CUTS).astype(int))
    return min(_of_axes(axes[:k], np.sqrt(size**2 - (axes[k] if k < len(axes) else 0.0) ** 2)) for k in cuts)


def _of_axes(axes: np.ndarray, size: float) -> float:
    """Return a bound for an ellipsoid with these axes.

    Balls of half the distance around the points of a largest packing are disjoint, and lie in ``E + size/2 B``, which
    lies in the ellipsoid of the axes ``sqrt((1 + t) a^2 + (1 + 1/t) (size/2)^2)``, for every t.
    """
    ratio = (2.0 * axes / size) ** 2
    packing = 0.5 * np.log((1.0 + SPLITS)[:, None] * ratio + (1.0 + 1.0 / SPLITS)[:, None]).sum(1).min()
    grid = np.log(np.ceil(np.sqrt(len(axes)) * axes / size)).sum()
    return float(min(packing, grid))
