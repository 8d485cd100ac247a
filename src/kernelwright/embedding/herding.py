"""Kernel herding: points that stand for a distribution better than as many random draws [Chen2010]_."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["herd"]

TIE = 1e-13  # of the largest kernel value: what a candidate loses against the one before it


def herd(L: Tensor, weights: Tensor, size: int, *, replace: bool = True) -> Tensor:
    """Pick candidates, one after the other, whose plain mean follows an embedding.

    The embedding is ``mu = sum_j w_j l(y_j, .)``. The t-th pick, t = 1, 2, ..., is the candidate y that maximises
    ``mu(y) - (1/t) sum_{s<t} l(y_s, y)``, Eq. (8) of [Chen2010]_: close to the distribution, away from what has been
    picked. Where ``l(y, y)`` is the same for all y, each pick brings the mean of the picks as close to mu as one more
    candidate can, and the distance falls like 1/t (for random draws: like 1/sqrt(t)). The mean of t points has mass
    one, so mu should have it too: weights with sum one.

    Parameters
    ----------
    L : Tensor of shape (m, m)
        Kernel matrix of the candidates.
    weights : Tensor of shape (m,) or (r, m)
        Weights of one embedding, or of one in each row. They may be negative.
    size : int
        Number of picks.
    replace : bool, default=True
        Whether a candidate may be picked more than once. Choose ``False`` for representative points.

    Returns
    -------
    Tensor of shape (size,) or (r, size)
        Numbers of the picked candidates, in the order of picking. Of equal gains the first candidate wins.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.embedding.herding import herd
    >>> herd(torch.eye(3), torch.tensor([0.2, 0.5, 0.3]), 10).bincount()
    tensor([2, 5, 3])
    """
    L, rows = L.to(torch.float64), torch.atleast_2d(weights).to(torch.float64)
    if L.ndim != 2 or L.shape[0] != L.shape[1] or rows.shape[1] != len(L):
        raise ValueError(
            "Herding needs a square kernel matrix and a weight for each of its rows. Got a matrix of shape "
            f"{tuple(L.shape)} and weights of shape {tuple(weights.shape)}."
        )
    if size < 1 or (not replace and size > len(L)):
        raise ValueError(f"Cannot pick {size} of {len(L)} candidates {'with' if replace else 'without'} replacement.")
    # Gains that are equal in exact arithmetic differ by rounding, which depends on how many rows are worked on at
    # once. A slope far too small to matter otherwise keeps one row's picks the same in any batch.
    slope = TIE * float(L.abs().max())
    mean = rows @ L - slope * torch.arange(len(L))
    picked = torch.zeros_like(mean)  # sum_{s<t} l(y_s, .)
    picks = torch.empty(len(rows), size, dtype=torch.int64)
    for t in range(1, size + 1):
        picks[:, t - 1] = pick = torch.sub(mean, picked, alpha=1.0 / t).argmax(1)
        picked += L[pick]
        if not replace:
            mean[torch.arange(len(rows)), pick] = -torch.inf
    return picks if weights.ndim == 2 else picks[0]
