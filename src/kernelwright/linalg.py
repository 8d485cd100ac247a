"""The only file that factorises.

Matrices are torch tensors on the CPU, float64 but where single precision is asked for; LAPACK is called through SciPy
on the same memory, because SciPy reaches ``potri`` and ``syrk``, which torch does not, and is about twice as fast at
them.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from scipy.linalg import blas, lapack
from threadpoolctl import ThreadpoolController
from torch import Tensor

from kernelwright.errors import NumericalError, NumericalRepairWarning
from kernelwright.storage.saved import saved

__all__ = [
    "Factor",
    "Outer",
    "Workspace",
    "eigen",
    "factorise",
    "factorise_in_single",
    "finite",
    "low_rank_root",
    "on_one_thread",
    "refined_solution",
    "solve_blocks",
    "spectrum",
    "symmetric_outer",
    "symmetric_product",
    "thin_product",
    "threads_for",
    "weighted_gram",
]

# Relative to the mean of the diagonal. Ten times more each try; past the last, refuse.
JITTERS = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)

REFINEMENTS = 3  # steps from a solution in single precision; where they do not do, single precision does not
REFINED = 1e-8  # the relative residual they are to reach: less than what the rounding of the matrix itself leaves

FEW_COLUMNS = 6  # past them, a product of matrices is faster than one with each column

NOT_FINITE = (
    "The kernel matrix has entries that are not finite. Likely causes: (a) inputs so large that their products "
    "overflow: standardise them; (b) a polynomial kernel of high degree on large inputs; (c) a kernel of your own that "
    "divides by zero."
)

# Up to this many rows one thread is as fast as many, and costs far less: see the benchmark "threads".
ONE_THREAD_UP_TO = 2500


@contextmanager
def threads_for(n_rows: int) -> Iterator[None]:
    """Run small problems on one thread; restore the former number afterwards.

    Torch and SciPy each keep threads that wait actively. Between the many short operations of a small problem
    the two sets take the cores from each other, which costs several times the work itself.
    """
    if n_rows > ONE_THREAD_UP_TO:
        yield
    else:
        # OpenMP keeps its number for each thread that asks, BLAS one for the whole process.
        with _thread_pools("openmp").limit(limits=1), _one_blas_thread:
            yield


def on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)`` for work done side by side: more threads for one would take them from another."""
    with threads_for(0):
        return function(*arguments)


@cache
def _thread_pools(api: str) -> Any:
    """The libraries that have threads. To look for them takes longer than a small solve."""
    return ThreadpoolController().select(user_api=api)


class _OneBlasThread:
    """One thread for OpenBLAS while anyone is inside; the last one out restores the former number.

    That number belongs to the whole process (OpenMP's belongs to each thread). Were each caller to restore what it
    found, one that came in after another and left after it would leave the limit behind.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._new_lock()
        if hasattr(os, "register_at_fork"):  # the lock may be held by a thread that the child does not have
            os.register_at_fork(after_in_child=self._new_lock)

    def _new_lock(self) -> None:
        self._turn = threading.Lock()

    def __enter__(self) -> None:
        with self._turn:
            if self._inside == 0:
                self._limit = _thread_pools("blas").limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_one_blas_thread = _OneBlasThread()


class Workspace:
    """Square float64 matrices to work in, which are used again: fresh memory costs as much as some of the products."""

    def __init__(self) -> None:
        self._matrices: dict[str, Tensor] = {}

    def matrix(self, name: str, n: int) -> Tensor:
        """The n x n matrix of that name, with whatever it was left with."""
        if name not in self._matrices or len(self._matrices[name]) != n:
            self._matrices[name] = torch.empty(n, n, dtype=torch.float64)
        return self._matrices[name]


@saved("cholesky-factor")
@dataclass(frozen=True)
class Factor:
    """A Cholesky factor: ``A + jitter I = L L^T``. Solutions are float64, also where its own numbers are not."""

    lower: np.ndarray  # L, Fortran order; what lies above the diagonal is left over, and no part of it
    jitter: float

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def triangle(self) -> np.ndarray:
        """L itself: a copy, with zeros above the diagonal."""
        return np.tril(self.lower)

    def solve(self, B: Tensor) -> Tensor:
        """``A^-1 B``."""
        solve = lapack.spotrs if self.lower.dtype == np.float32 else lapack.dpotrs
        X, _ = solve(self.lower, np.asfortranarray(B.numpy()), lower=1)
        return torch.from_numpy(np.ascontiguousarray(X)).double()

    def into_inverse(self) -> Tensor:
        """``A^-1``, whole, in the memory and precision of the factor, which is gone afterwards."""
        invert = lapack.spotri if self.lower.dtype == np.float32 else lapack.dpotri
        half, info = invert(self.lower, lower=1, overwrite_c=1)
        if info != 0:
            raise NumericalError(f"The inverse of a factorised matrix failed at row {info}.")
        return _mirror_upper(torch.from_numpy(half.T))  # in C order the triangle that is filled is the upper one

    def transposed_product(self) -> Tensor:
        """``L^T L``, whole, by a sixth of the work of a product."""
        half, _ = lapack.dlauum(self.lower, lower=1)
        return _mirror_upper(torch.from_numpy(half.T))  # in C order the triangle that is filled is the upper one

    def inverse_diagonal(self) -> Tensor:
        """The diagonal of ``A^-1`` without the rest of it: column sums of squares of ``L^-1``."""
        invert = lapack.strtri if self.lower.dtype == np.float32 else lapack.dtrtri
        root = torch.from_numpy(invert(self.lower, lower=1)[0].T).triu_()  # transposed it is in C order
        return torch.linalg.vecdot(root, root).double()

    def inverse_blocks(self, rows: Tensor) -> Tensor:
        """Blocks of ``A^-1``, one for each row of ``rows``, a matrix of row numbers."""
        columns, place = rows.unique(return_inverse=True)
        units = torch.zeros(len(self), len(columns), dtype=torch.float64)
        units[columns, torch.arange(len(columns))] = 1.0
        inverse = self.solve(units)
        return inverse[rows[:, :, None], place[:, None, :]]

    def log_determinant(self) -> float:
        """``log |A|``."""
        return 2.0 * float(np.log(np.diagonal(self.lower)).sum())


def factorise(K: Tensor, noise: Tensor | float = 0.0, memory: Tensor | None = None) -> Factor:
    """Cholesky factor of ``K + diag(noise)``, in ``memory`` if a matrix of that size is given, else in new memory.

    A matrix that is not numerically positive definite is repaired by the smallest of a list of multiples of
    the identity that helps, with a :class:`NumericalRepairWarning`; past the list it is refused.
    """
    level = float((K.diagonal() + noise).mean())
    if not np.isfinite(level):
        raise NumericalError(NOT_FINITE)
    for jitter in (0.0, *(size * abs(level) for size in JITTERS)):
        A = K.clone(memory_format=torch.contiguous_format) if memory is None else memory.copy_(K)
        A.diagonal().add_(noise + jitter)
        # The transpose of a symmetric matrix in C order is itself in Fortran order: LAPACK works in place.
        lower, info = lapack.dpotrf(A.numpy().T, lower=1, clean=0, overwrite_a=1)
        if info == 0 and np.isfinite(lower[-1, -1]):
            if jitter:
                warnings.warn(
                    f"A {len(A)} x {len(A)} kernel matrix was not positive definite to working precision; "
                    f"{jitter:.1e} was added to its diagonal ({jitter / abs(level):.0e} of its mean). Duplicate "
                    "rows or a very small ridge are the usual reasons.",
                    NumericalRepairWarning,
                    stacklevel=2,
                )
            return Factor(lower, jitter)
        if not bool(torch.isfinite(K).all()):  # a pass over the matrix, so only where something is wrong
            raise NumericalError(NOT_FINITE)
    raise NumericalError(
        f"A {len(K)} x {len(K)} kernel matrix is not positive definite, even with {jitter:.1e} added to its "
        "diagonal. Likely causes: (a) the kernel is indefinite: use KreinSVC, which takes such kernels, or correct its "
        "spectrum first (kernelwright.indefinite.correct); (b) the ridge is far too small: raise it; (c) all kernel "
        "values are zero, or so small that they vanish."
    )


def factorise_in_single(K: Tensor, noise: Tensor | float, memory: Tensor | None = None) -> Factor:
    """Cholesky factor of ``K + diag(noise)`` in float32, in half of ``memory`` (float64, of the size of K) if given.

    Nothing is repaired: what cannot be factorised in single precision can be in double.
    """
    A = torch.empty(K.shape) if memory is None else memory.view(-1).view(torch.float32)[: K.numel()].view(K.shape)
    A.copy_(K)
    A.diagonal().add_(noise)
    lower, info = lapack.spotrf(A.numpy().T, lower=1, clean=0, overwrite_a=1)
    if info != 0 or not np.isfinite(lower[-1, -1]):
        raise NumericalError(f"A {len(K)} x {len(K)} kernel matrix is not positive definite in single precision.")
    return Factor(lower, 0.0)


def refined_solution(
    solve: Callable[[Tensor], Tensor], apply: Callable[[Tensor], Tensor], B: Tensor, residual_below: float = REFINED
) -> Tensor:
    """Solve ``A X = B`` by a ``solve`` in single precision, and residuals by ``apply(X) = A X`` in double.

    Each step shrinks the residual by about the condition number of A times 6e-8. Where a few steps
    do not do, a :class:`NumericalError` says so.
    """
    X, R, largest = torch.zeros_like(B), B, float(B.abs().max()) or 1.0
    for _ in range(REFINEMENTS + 1):
        X = X + solve(R)
        R = B - apply(X)
        residual = float(R.abs().max()) / largest
        if residual <= residual_below:
            return X
    raise NumericalError(f"A solution in single precision leaves a relative residual of {residual:.1e}.")


def solve_blocks(blocks: Tensor, B: Tensor) -> Tensor:
    """Solve many small positive definite systems at once: ``blocks`` is b x s x s, the right-hand sides b x s x m."""
    lower, trouble = torch.linalg.cholesky_ex(blocks.double())
    if bool(trouble.any()):  # singular to rounding: any solution will do
        return torch.linalg.lstsq(blocks.double(), B.double()).solution
    return torch.cholesky_solve(B.double(), lower)


def triangular_solve(factor: Factor, B: Tensor, *, transposed: bool = False) -> Tensor:
    """``L^-1 B``, or ``L^-T B``, for the factor L."""
    X, _ = lapack.dtrtrs(factor.lower, np.asfortranarray(B.numpy()), lower=1, trans=int(transposed))
    return torch.from_numpy(np.ascontiguousarray(X))


def thin_product(A: Tensor, B: Tensor) -> Tensor:
    """``A B`` for a large A and few columns: half the time of torch's product, which is made for wide ones."""
    if 0 in (*A.shape, *B.shape):
        return A @ B
    gemm = blas.sgemm if A.dtype == B.dtype == torch.float32 else blas.dgemm
    # All three are transposed, so that matrices in C order are in LAPACK's order without a copy.
    return torch.from_numpy(gemm(1.0, B.contiguous().numpy().T, A.contiguous().numpy().T).T)


def symmetric_product(A: Tensor, B: Tensor) -> Tensor:
    """``A B`` for a symmetric A and few columns, each of which reads but one triangle: three times as fast."""
    if not 0 < B.shape[1] <= FEW_COLUMNS:
        return thin_product(A, B)
    columns = B.T.contiguous().numpy()
    matrix = A.contiguous().numpy().T
    product = [blas.dsymv(1.0, matrix, column, lower=1) for column in columns]
    return torch.from_numpy(np.stack(product, axis=1))


def symmetric_outer(B: Tensor, scale: float = 1.0) -> Tensor:
    """A matrix ``M`` with ``<M, S> = <scale B B^T, S>`` for every symmetric ``S``.

    Only one triangle is computed (half the work of a product); off the diagonal it counts twice.
    """
    if B.shape[1] == 0:
        return torch.zeros(len(B), len(B), dtype=B.dtype)
    syrk = blas.ssyrk if B.dtype == torch.float32 else blas.dsyrk
    M = syrk(2.0 * scale, B.numpy().T, trans=1, lower=1)  # B is C ordered: its transpose costs no copy
    M = torch.from_numpy(M.T)
    M.diagonal().mul_(0.5)
    return M


@dataclass(frozen=True)
class Outer:
    """The matrix ``B C^T`` of two thin ones, which few have to see whole."""

    left: Tensor
    right: Tensor

    def dense(self, memory: Tensor | None = None) -> Tensor:
        """All of it."""
        return torch.mm(self.left, self.right.T, out=memory)


def weighted_gram(Z: Tensor, w: Tensor | None = None, *, whole: bool = True) -> Tensor:
    """``Z^T diag(w) Z`` in float64, by half a product in the precision of Z; no weight of the column w is negative.

    If not ``whole`` it has zeros below the diagonal, where ``factorise`` does not look.
    """
    if w is not None:
        Z = w.sqrt() * Z
    syrk = blas.ssyrk if Z.dtype == torch.float32 else blas.dsyrk
    half = syrk(1.0, Z.contiguous().numpy().T, lower=1)  # in C order the lower triangle is the upper one
    upper = torch.from_numpy(half.T).double()
    return _mirror_upper(upper) if whole else upper


def _mirror_upper(A: Tensor, tile: int = 256) -> Tensor:
    """Copy the upper triangle onto the lower one, in place, by tiles that fit the cache."""
    for i in range(0, len(A), tile):
        for j in range(0, i, tile):
            A[i : i + tile, j : j + tile] = A[j : j + tile, i : i + tile].T
        corner = A[i : i + tile, i : i + tile]
        corner.copy_(corner.triu() + corner.triu(1).T)
    return A


def finite(values: Tensor, first: int = 0) -> Tensor:
    """The values themselves; a :class:`NumericalError` where a row of them, counted from ``first``, has overflowed."""
    if bool(torch.isfinite(values).all()):
        return values
    row = first + int((~torch.isfinite(values)).any(1).nonzero()[0])
    raise NumericalError(
        f"Row {row} is so large that its kernel values or features overflow. Standardise the "
        "inputs, or use a kernel with bounds."
    )


def spectrum(K: Tensor) -> Tensor:
    """Eigenvalues of a symmetric matrix, smallest first."""
    return torch.linalg.eigvalsh(K)


def eigen(K: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues of a symmetric matrix, smallest first, and its eigenvectors as columns."""
    values, vectors = torch.linalg.eigh(K)
    return values, vectors


def low_rank_root(L: Tensor, tol: float) -> Tensor:
    """A matrix R with few columns and ``|L - R R^T| <= tol max(diag(L))``, by pivoted Cholesky.

    Its rows are features whose inner products are the kernel matrix L: a smooth kernel needs few.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.linalg import low_rank_root
    >>> low_rank_root(torch.ones(4, 4, dtype=torch.float64), 1e-10).shape
    torch.Size([4, 1])
    """
    scale = float(L.diagonal().max())
    lower, pivots, rank, _ = lapack.dpstrf(L.numpy(), tol=tol * scale, lower=1)
    root = torch.zeros(len(L), max(int(rank), 1), dtype=torch.float64)
    root[torch.from_numpy(pivots - 1).long(), : int(rank)] = torch.from_numpy(np.tril(lower)[:, : int(rank)])
    gap = float((L - root @ root.T).abs().max())
    if not gap <= max(1e-6, 2.0 * tol) * abs(scale):  # also where it is not a number
        raise NumericalError(
            f"A kernel matrix is not positive semidefinite: its root misses it by {gap:.3g}. Likely "
            "causes: (a) the kernel is indefinite; (b) inputs of a size that overflows: standardise them."
        )
    return root
