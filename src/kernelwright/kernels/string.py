"""Kernels on strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from kernelwright.kernels.base import Kernel
from kernelwright.kernels.vector import whole_number
from kernelwright.storage.saved import saved

__all__ = ["Spectrum"]


def _as_numbers(windows: np.ndarray) -> np.ndarray:
    """Convert substrings (rows of code points) to single integers, which sort much faster, if 64 bits are enough."""
    letters, digits = np.unique(windows, return_inverse=True)
    base, k = max(len(letters), 2), windows.shape[1]
    if k * np.log2(base) >= 62:
        return windows
    return digits.reshape(windows.shape) @ (base ** np.arange(k, dtype=np.int64))


@saved("spectrum-kernel", fields="_k normalize")
class Spectrum(Kernel):
    """The spectrum kernel: counts of common substrings of length ``k`` (k-mers).

    ``k(s, t) = sum_u c_u(s) c_u(t)`` over all k-mers u, divided by ``sqrt(k(s, s) k(t, t))`` if ``normalize``.
    A string shorter than k has no k-mers: its kernel with every string, itself included, is zero. To learn the length
    of the k-mers, use a :class:`~kernelwright.kernels.ConvexSum` of several.

    Parameters
    ----------
    k : int, default=3
        Length of the substrings.
    normalize : bool, default=True
        Whether every string counts the same, whatever its length.

    Examples
    --------
    >>> from kernelwright.kernels import Spectrum
    >>> Spectrum(k=2, normalize=False)(["ABAB", "BABA", "CCCC"])
    array([[5., 4., 0.],
           [4., 5., 0.],
           [0., 0., 9.]])
    """

    def __init__(self, k: int = 3, normalize: bool = True) -> None:
        super().__init__()
        self.k, self.normalize = k, normalize

    @property
    def k(self) -> int:
        """Length of the substrings."""
        return self._k

    @k.setter
    def k(self, value: int) -> None:
        self._k = whole_number(value, "k", self)

    takes_vectors = False  # type: ignore[assignment]

    @property
    def bounded(self) -> bool:
        return self.normalize

    def encode(self, X: Any) -> Tensor:
        """Convert strings to code points, one row for each string, padded with -1."""
        if torch.is_tensor(X):
            return X
        strings = np.asarray(X, dtype=object)
        if strings.ndim == 2 and strings.shape[1] == 1:
            strings = strings[:, 0]
        if strings.ndim != 1 or not all(isinstance(s, str) for s in strings):
            raise ValueError("Spectrum takes a list or a single column of strings.")
        padded = np.asarray(strings, dtype=str)
        width = max(padded.dtype.itemsize // 4, 1)
        codes = padded.astype(f"<U{width}").view(np.uint32).reshape(len(padded), width).astype(np.int64)
        lengths = np.array([len(s) for s in strings])
        codes[np.arange(width) >= lengths[:, None]] = -1
        return torch.from_numpy(codes)

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        counts = self._counts([X] if Z is None else [X, Z])
        K = torch.from_numpy((counts[0] @ counts[-1].T).toarray())
        if not self.normalize:
            return K
        norms = [torch.from_numpy(np.sqrt(c.multiply(c).sum(1)).ravel()).clamp(min=1e-300) for c in counts]
        return K / norms[0][:, None] / norms[-1]

    def _diag(self, X: Tensor) -> Tensor:
        counts = self._counts([X])[0]
        squares = torch.from_numpy(np.asarray(counts.multiply(counts).sum(1)).ravel())
        return (squares > 0).to(torch.float64) if self.normalize else squares

    def sup_diag(self, X: Any = None) -> Tensor:
        return torch.ones((), dtype=torch.float64) if self.normalize else super().sup_diag(X)

    def _counts(self, groups: list[Tensor]) -> list[sparse.csr_array]:
        """Return sparse k-mer counts of each group of strings, with the same columns for all groups."""
        windows, owners = [], []
        for codes in groups:
            if codes.shape[1] < self.k:
                codes = torch.nn.functional.pad(codes, (0, self.k - codes.shape[1]), value=-1)
            unfolded = codes.unfold(1, self.k, 1)  # strings x positions x k
            whole = (unfolded >= 0).all(2)
            windows.append(unfolded[whole].numpy())
            owners.append(whole.nonzero()[:, 0].numpy())
        _, column = np.unique(_as_numbers(np.concatenate(windows)), axis=0, return_inverse=True)
        n_columns = int(column.max()) + 1 if len(column) else 1
        pieces = np.split(column.reshape(-1), np.cumsum([len(w) for w in windows])[:-1])
        return [
            sparse.coo_array((np.ones(len(piece)), (owner, piece)), shape=(len(codes), n_columns)).tocsr()
            for piece, owner, codes in zip(pieces, owners, groups, strict=True)
        ]
