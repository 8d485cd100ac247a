"""Kernel matrices with negative eigenvalues: their signature, and corrections of their spectrum.

A symmetric similarity need not be positive semidefinite. It is then an inner product of a Krein space, the
difference of two Hilbert spaces. There a large margin is a stationary point, not a maximum. Correcting the spectrum
gives a problem that has a maximum. Each correction is a linear map of kernel rows, so that new rows are corrected like
the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.errors import NumericalError
from kernelwright.numerics.linalg import eigen, spectrum
from kernelwright.storage.saved import saved

__all__ = ["CORRECTIONS", "Correction", "Signature", "correct", "signature"]

CORRECTIONS = ("clip", "flip", "shift", "none")


@saved("matrix-signature")
@dataclass(frozen=True)
class Signature:
    """The numbers of positive, negative and zero eigenvalues of a symmetric matrix, and the negative share."""

    positive: int
    negative: int
    zero: int
    smallest: float
    largest: float
    negative_share: float  # sum |negative eigenvalues| / sum |eigenvalues|

    @property
    def definite(self) -> bool:
        """Whether the matrix is positive semidefinite."""
        return self.negative == 0

    def __str__(self) -> str:
        n = self.positive + self.negative + self.zero
        return (
            f"{n} eigenvalues from {self.smallest:.3g} to {self.largest:.3g}: {self.positive} positive, "
            f"{self.negative} negative ({self.negative_share:.1%} of their absolute sum), {self.zero} zero"
        )


def signature(K: Tensor, tol: float = 1e-10) -> Signature:
    """Count the signs of the eigenvalues of a symmetric matrix.

    Parameters
    ----------
    K : Tensor of shape (n, n)
    tol : float, default=1e-10
        Eigenvalues of at most ``tol`` times the largest absolute one count as zero.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.similarity.indefinite import signature
    >>> print(signature(torch.tensor([[0.0, 1.0], [1.0, 0.0]])))
    2 eigenvalues from -1 to 1: 1 positive, 1 negative (50.0% of their absolute sum), 0 zero
    """
    if not bool(torch.isfinite(K).all()):
        raise NumericalError(
            "The kernel matrix has entries that are not finite. Likely causes: (a) inputs of very different scales: "
            "standardise them; (b) a kernel of your own that divides by zero or takes the logarithm of it."
        )
    values = spectrum(K)
    sizes = values.abs()
    zero = sizes <= tol * sizes.max()
    negative = (values < 0) & ~zero
    total = float(sizes.sum())
    return Signature(
        positive=int(((values > 0) & ~zero).sum()),
        negative=int(negative.sum()),
        zero=int(zero.sum()),
        smallest=float(values[0]),
        largest=float(values[-1]),
        negative_share=float(sizes[negative].sum()) / total if total else 0.0,
    )


@dataclass(frozen=True)
class Correction:
    """A corrected training matrix, and the map ``I - factor V V^T`` of kernel rows that goes with it.

    The columns of ``V`` are the eigenvectors of the negative eigenvalues. The map is symmetric, so it can also be
    applied to the coefficients of a function: ``(k P) a = k (P a)``.
    """

    matrix: Tensor
    signature: Signature
    negative: Tensor  # V; it has no columns if rows are not changed
    factor: float

    def transform(self, K_new: Tensor) -> Tensor:
        """Correct rows of kernel values with the training points, one row for each new point."""
        V = self.negative
        return K_new - self.factor * (K_new @ V) @ V.T if V.shape[1] else K_new


def correct(K: Tensor, how: str = "clip", tol: float = 1e-10) -> Correction:
    """Make a symmetric matrix positive semidefinite; return the same tensor if it already is.

    With ``K = U diag(l) U^T``:

    ======== ============================== ========================= ==============================================
    how      training matrix                new rows K_t              meaning
    ======== ============================== ========================= ==============================================
    "clip"   ``U diag(max(l, 0)) U^T``      ``K_t U 1[l > 0] U^T``    drop the negative part
    "flip"   ``U diag(abs(l)) U^T``         ``K_t U sign(l) U^T``     a margin in the associated Hilbert space: KSVM
                                                                      of [Loosli2016]_
    "shift"  ``K - min(l) I``               ``K_t``                   a larger slack for every training point
    "none"   ``K``                          ``K_t``                   no change
    ======== ============================== ========================= ==============================================

    Directions whose eigenvalue counts as zero are kept in new rows: if dropped, rounding would decide which ones.

    Parameters
    ----------
    K : Tensor of shape (n, n)
    how : {"clip", "flip", "shift", "none"}, default="clip"
    tol : float, default=1e-10
        As in :func:`signature`.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.similarity.indefinite import correct
    >>> correct(torch.tensor([[0.0, 2.0], [2.0, 0.0]], dtype=torch.float64), "clip").matrix.round(decimals=6)
    tensor([[1., 1.],
            [1., 1.]], dtype=torch.float64)
    """
    if how not in CORRECTIONS:
        raise ValueError(f"The 'how' parameter of correct must be one of {CORRECTIONS}. Got {how!r} instead.")
    signs = signature(K, tol)
    if signs.definite or how == "none":
        return Correction(K, signs, K[:, :0], 0.0)
    if how == "shift":
        return Correction(K - signs.smallest * torch.eye(len(K), dtype=K.dtype), signs, K[:, :0], 0.0)
    values, vectors = eigen(K)
    factor = 1.0 if how == "clip" else 2.0
    V, negative = vectors[:, : signs.negative], values[: signs.negative]  # the smallest come first
    matrix = K - factor * (V * negative) @ V.T
    return Correction(0.5 * (matrix + matrix.T), signs, V, factor)
