"""Kernel alignment [Cristianini2001]_, and kernel weights of the best alignment [Cortes2012]_.

Matrices may be given in full, or as :class:`LazyKernelMatrix`, whose rows are computed on request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from scipy.optimize import nnls
from torch import Tensor

from kernelwright.kernels import Kernel
from kernelwright.numerics.linalg import low_rank_root

__all__ = [
    "LazyKernelMatrix",
    "alignment",
    "alignment_weights",
    "centred",
    "centred_alignment",
    "centred_gram",
    "weights_of_gram",
]

CENTRED_ENTRIES = 2**22  # matrix entries held at once
ROUNDING = 1e-13  # a centred matrix smaller than this, relative to the matrix, is rounding error
ROOT_TOL = 1e-13


class Rows(Protocol):
    """A square matrix whose rows can be read by slices, like those of a tensor."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice) -> Tensor: ...


@dataclass(frozen=True)
class LazyKernelMatrix:
    """The matrix of a kernel at the points X, with rows computed on request.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.similarity.alignment import LazyKernelMatrix
    >>> from kernelwright.kernels import Linear
    >>> LazyKernelMatrix(Linear(), torch.tensor([[1.0], [2.0], [3.0]]))[1:]
    tensor([[2., 4., 6.],
            [3., 6., 9.]])
    """

    kernel: Kernel
    X: Tensor

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: slice) -> Tensor:
        with torch.no_grad():
            return self.kernel.forward(self.X[rows], self.X)


def centred(K: Tensor) -> Tensor:
    """Return ``H K H`` with ``H = I - 1 1^T / n``: the kernel matrix of centred features.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.similarity.alignment import centred
    >>> centred(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor([[ 0.2500, -0.2500],
            [-0.2500,  0.2500]])
    """
    return K - K.mean(1, keepdim=True) - K.mean(0) + K.mean()


def alignment(K: Tensor, L: Tensor) -> Tensor:
    """Return ``<K, L>_F / (|K|_F |L|_F)`` [Cristianini2001]_: the cosine of the angle between two matrices.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.similarity.alignment import alignment
    >>> y = torch.tensor([1.0, -1.0, -1.0])
    >>> alignment(torch.outer(y, y), torch.eye(3)).item()  # doctest: +ELLIPSIS
    0.577...
    """
    return (K * L).sum() / (K.norm() * L.norm())


def centred_alignment(K: Tensor, L: Tensor) -> Tensor:
    """Return the alignment of the centred matrices [Cortes2012]_; adding a constant to either changes nothing.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.similarity.alignment import centred_alignment
    >>> y = torch.tensor([1.0, -1.0, -1.0])
    >>> round(centred_alignment(torch.outer(y, y) + 5.0, torch.outer(y, y)).item(), 6)
    1.0
    """
    return alignment(centred(K), centred(L))


def alignment_weights(matrices: Sequence[Rows], target: Rows, *, method: str = "alignf") -> Tensor:
    """Return weights ``mu >= 0``, ``|mu| = 1``, of kernels whose sum is aligned with a target [Cortes2012]_.

    Parameters
    ----------
    matrices : sequence of Tensor or LazyKernelMatrix
        Kernel matrices at the same n points. They may be indefinite.
    target : Tensor or LazyKernelMatrix
        The matrix to align with: ``y y^T`` for two classes.
    method : {"alignf", "align"}, default="alignf"
        "alignf" maximises the centred alignment of the weighted sum: ``mu = v/|v|``, where v minimises
        ``v^T M v - 2 v^T a`` over ``v >= 0``, ``M_kl = <K_kc, K_lc>``, ``a_k = <K_kc, T>``.
        "align" weighs each kernel by its own centred alignment.

    Returns
    -------
    Tensor of shape (number of matrices,)

    Examples
    --------
    >>> import torch
    >>> from kernelwright.similarity.alignment import alignment_weights
    >>> y, x = torch.tensor([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]], dtype=torch.float64)
    >>> Y = torch.outer(y, y)
    >>> alignment_weights([torch.outer(x, x), 2.0 * Y], Y)
    tensor([0., 1.], dtype=torch.float64)
    """
    return weights_of_gram(centred_gram([*matrices, target]), method=method)


def centred_gram(matrices: Sequence[Rows]) -> Tensor:
    """Return ``<K_kc, K_lc>_F`` for all pairs of matrices, reading a few rows at a time.

    Each row is read twice: once for the means, once for the products. This avoids the cancellation in
    ``<K, L> - ...``, so that a wide Gaussian, which is nearly constant, keeps its digits.
    """
    n, sizes = len(matrices[0]), [len(K) for K in matrices]
    if set(sizes) != {n}:
        raise ValueError(f"Matrices to be aligned must have the same number of rows. Got {sizes} rows.")
    step = max(1, CENTRED_ENTRIES // (n * len(matrices)))
    blocks = [slice(start, start + step) for start in range(0, n, step)]
    moments = [_moments(K, blocks) for K in matrices]
    gram = torch.zeros(len(matrices), len(matrices), dtype=torch.float64)
    for rows in blocks:
        parts = zip(matrices, moments, strict=True)
        flat = torch.stack([(K[rows] - (r[rows, None] - r.mean()) - c).flatten() for K, (r, c, _) in parts])
        gram += flat @ flat.T
    largest = torch.tensor([top for _, _, top in moments])
    constant = gram.diagonal().sqrt() <= ROUNDING * n * largest
    gram[constant], gram[:, constant] = 0.0, 0.0
    return gram


def _moments(K: Rows, blocks: list[slice]) -> tuple[Tensor, Tensor, float]:
    """Return row means, column means, and the largest absolute entry."""
    row_means, column_sum, largest = [], torch.zeros(len(K), dtype=torch.float64), 0.0
    for rows in blocks:
        part = K[rows]
        row_means.append(part.mean(1))
        column_sum += part.sum(0)
        largest = max(largest, float(part.abs().max()))
    return torch.cat(row_means), column_sum / len(K), largest


def weights_of_gram(gram: Tensor, *, method: str = "alignf") -> Tensor:
    """Return :func:`alignment_weights` from the products of the centred matrices; the target comes last."""
    norms = gram.diagonal().sqrt()
    used = norms > 0  # constant kernels get no weight
    weights = torch.zeros(len(gram) - 1, dtype=torch.float64)
    if used[-1] and used[:-1].any():
        cosines = gram[used][:, used] / torch.outer(norms[used], norms[used])
        if method == "align":
            weights[used[:-1]] = cosines[:-1, -1].clamp(min=0.0)
        else:
            # v^T M v - 2 v^T a is |sum_k v_k r_k - t|^2 minus a constant, where r_k and t are any vectors with the
            # same inner products as the matrices. Unit length keeps kernels of small scale above the tolerance.
            root = low_rank_root(cosines, ROOT_TOL).numpy()
            weights[used[:-1]] = torch.from_numpy(nnls(root[:-1].T, root[-1])[0]) / norms[used][:-1]
    if not weights.any():
        raise ValueError(
            "No kernel is positively aligned with the target. Likely causes: (a) all points are equal, or so far "
            "apart or so close that every kernel is constant: scale the inputs; (b) all labels are the same."
        )
    return weights / weights.norm()
