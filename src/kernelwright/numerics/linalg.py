"""All matrix factorisations of the library.

Matrices are torch tensors on the CPU, in float64 unless single precision is requested. LAPACK is called through SciPy
on the same memory: SciPy offers ``potri`` and ``syrk``, which torch does not, and is about twice as fast at them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import lapack
from torch import Tensor

from kernelwright.errors import NumericalError, NumericalRepairWarning
from kernelwright.numerics.products import mirror_upper_
from kernelwright.storage.saved import saved

__all__ = [
    "Factor",
    "Workspace",
    "eigen",
    "factorise",
    "factorise_in_single",
    "finite",
    "low_rank_root",
    "refined_solution",
    "solve_blocks",
    "spectrum",
]


# Relative to the mean of the diagonal. Each try adds ten times more; after the last one an error is raised.
JITTERS = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)

REFINEMENTS = 3  # refinement steps from a single precision solution; if they do not suffice, single precision does not
REFINED = 1e-8  # the relative residual to reach: smaller than the effect of rounding the matrix itself

NOT_FINITE = (
    "The kernel matrix has entries that are not finite. Likely causes: (a) inputs so large that their products "
    "overflow: standardise them; (b) a polynomial kernel of high degree on large inputs; (c) a kernel of your own that "
    "divides by zero."
)


class Workspace:
    """Square float64 matrices that are reused: allocating new memory costs as much as some of the products."""

    def __init__(self) -> None:
        self._matrices: dict[str, Tensor] = {}

    def matrix(self, name: str, n: int) -> Tensor:
        """Return the n x n matrix of that name; its content is whatever was last written to it."""
        if name not in self._matrices or len(self._matrices[name]) != n:
            self._matrices[name] = torch.empty(n, n, dtype=torch.float64)
        return self._matrices[name]


@saved("cholesky-factor")
@dataclass(frozen=True)
class Factor:
    """A Cholesky factor: ``A + jitter I = L L^T``. Solutions are float64 even if the factor is float32."""

    lower: np.ndarray  # L in Fortran order; entries above the diagonal are arbitrary and not used
    jitter: float

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def triangle(self) -> np.ndarray:
        """L as a copy, with zeros above the diagonal."""
        return np.tril(self.lower)

    def solve(self, B: Tensor) -> Tensor:
        """``A^-1 B``."""
        solve = lapack.spotrs if self.lower.dtype == np.float32 else lapack.dpotrs
        X, _ = solve(self.lower, np.asfortranarray(B.numpy()), lower=1)
        return torch.from_numpy(np.ascontiguousarray(X)).double()

    def into_inverse_(self) -> Tensor:
        """Return the full ``A^-1`` in the memory and precision of the factor, which is overwritten."""
        invert = lapack.spotri if self.lower.dtype == np.float32 else lapack.dpotri
        half, info = invert(self.lower, lower=1, overwrite_c=1)
        if info != 0:
            raise NumericalError(f"The inverse of a factorised matrix failed at row {info}.")
        return mirror_upper_(torch.from_numpy(half.T))  # in C order the filled triangle is the upper one

    def transposed_product(self) -> Tensor:
        """Return the full ``L^T L`` at a sixth of the cost of a matrix product."""
        half, _ = lapack.dlauum(self.lower, lower=1)
        return mirror_upper_(torch.from_numpy(half.T))  # in C order the filled triangle is the upper one

    def inverse_root(self) -> Tensor:
        """Return R with ``A^-1 = R R^T``, in the precision of the factor."""
        invert = lapack.strtri if self.lower.dtype == np.float32 else lapack.dtrtri
        return torch.from_numpy(invert(self.lower, lower=1)[0].T).triu_()  # the transpose of L^-1 is in C order

    def inverse_diagonal(self) -> Tensor:
        """Return the diagonal of ``A^-1`` alone."""
        root = self.inverse_root()
        return torch.linalg.vecdot(root, root).double()

    def log_determinant(self) -> float:
        """``log |A|``."""
        return 2.0 * float(np.log(np.diagonal(self.lower)).sum())


def factorise(K: Tensor, noise: Tensor | float = 0.0, memory: Tensor | None = None) -> Factor:
    """Return the Cholesky factor of ``K + diag(noise)``, in ``memory`` if a matrix of that size is given.

    If the matrix is not numerically positive definite, the smallest multiple of the identity from a fixed list that
    helps is added, with a :class:`NumericalRepairWarning`. If none helps, a :class:`NumericalError` is raised.
    """
    level = float((K.diagonal() + noise).mean())
    if not np.isfinite(level):
        raise NumericalError(NOT_FINITE)
    for jitter in (0.0, *(size * abs(level) for size in JITTERS)):
        A = K.clone(memory_format=torch.contiguous_format) if memory is None else memory.copy_(K)
        A.diagonal().add_(noise + jitter)
        # The transpose of a symmetric C-order matrix is the same matrix in Fortran order, so LAPACK works in place.
        lower, info = lapack.dpotrf(A.numpy().T, lower=1, clean=0, overwrite_a=1)
        if info == 0 and np.isfinite(lower[-1, -1]):
            if jitter:
                warnings.warn(
                    f"A {len(A)} x {len(A)} kernel matrix was not positive definite to working precision; "
                    f"{jitter:.1e} was added to its diagonal ({jitter / abs(level):.0e} of its mean). Duplicate "
                    "rows or a very small ridge are the usual causes.",
                    NumericalRepairWarning,
                    stacklevel=2,
                )
            return Factor(lower, jitter)
        if not bool(torch.isfinite(K).all()):  # a full pass over the matrix, so only after a failure
            raise NumericalError(NOT_FINITE)
    raise NumericalError(
        f"A {len(K)} x {len(K)} kernel matrix is not positive definite, even with {jitter:.1e} added to its "
        "diagonal. Likely causes: (a) the kernel is indefinite: use KreinSVC, which takes such kernels, or correct its "
        "spectrum first (kernelwright.similarity.indefinite.correct); (b) the ridge is far too small: raise it; "
        "(c) all kernel values are zero, or so small that they vanish."
    )


def factorise_in_single(K: Tensor, noise: Tensor | float, memory: Tensor | None = None) -> Factor:
    """Return the Cholesky factor of ``K + diag(noise)`` in float32, in half of the float64 ``memory`` if given.

    There is no repair: if single precision fails, use double precision.
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
    """Solve ``A X = B`` with a single precision ``solve`` and double precision residuals ``apply(X) = A X``.

    Each step multiplies the residual by about the condition number of A times 6e-8. If a few steps do not
    suffice, a :class:`NumericalError` is raised.
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
    if bool(trouble.any()):  # singular to working precision: any solution is accepted
        return torch.linalg.lstsq(blocks.double(), B.double()).solution
    return torch.cholesky_solve(B.double(), lower)


def triangular_solve(factor: Factor, B: Tensor, *, transposed: bool = False) -> Tensor:
    """Return ``L^-1 B``, or ``L^-T B``, for the factor L."""
    X, _ = lapack.dtrtrs(factor.lower, np.asfortranarray(B.numpy()), lower=1, trans=int(transposed))
    return torch.from_numpy(np.ascontiguousarray(X))


def finite(values: Tensor, first: int = 0) -> Tensor:
    """Return the values; raise a :class:`NumericalError` if a row, counted from ``first``, has overflowed."""
    if bool(torch.isfinite(values).all()):
        return values
    row = first + int((~torch.isfinite(values)).any(1).nonzero()[0])
    raise NumericalError(
        f"Row {row} is so large that its kernel values or features overflow. Standardise the "
        "inputs, or use a bounded kernel."
    )


def spectrum(K: Tensor) -> Tensor:
    """Return the eigenvalues of a symmetric matrix, smallest first."""
    return torch.linalg.eigvalsh(K)


def eigen(K: Tensor) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues of a symmetric matrix, smallest first, and its eigenvectors as columns."""
    values, vectors = torch.linalg.eigh(K)
    return values, vectors


def low_rank_root(L: Tensor, tol: float) -> Tensor:
    """Return R with few columns and ``|L - R R^T| <= tol max(diag(L))``, by pivoted Cholesky.

    The rows of R are features whose inner products are the kernel matrix L; a smooth kernel needs few columns.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.numerics.linalg import low_rank_root
    >>> low_rank_root(torch.ones(4, 4, dtype=torch.float64), 1e-10).shape
    torch.Size([4, 1])
    """
    scale = float(L.diagonal().max())
    lower, pivots, rank, _ = lapack.dpstrf(L.numpy(), tol=tol * scale, lower=1)
    root = torch.zeros(len(L), max(int(rank), 1), dtype=torch.float64)
    root[torch.from_numpy(pivots - 1).long(), : int(rank)] = torch.from_numpy(np.tril(lower)[:, : int(rank)])
    gap = float((L - root @ root.T).abs().max())
    if not gap <= max(1e-6, 2.0 * tol) * abs(scale):  # also if it is NaN
        raise NumericalError(
            f"A kernel matrix is not positive semidefinite: its root misses it by {gap:.3g}. Likely "
            "causes: (a) the kernel is indefinite; (b) inputs so large that values overflow: standardise them."
        )
    return root
