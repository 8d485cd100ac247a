"""Kernel herding: points that represent a distribution better than as many random draws [Chen2010]_."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["herd"]

TIE = 1e-13  # relative to the largest kernel value: the penalty of a candidate against the one before it


def herd(L: Tensor, weights: Tensor, size: int, *, replace: bool = True) -> Tensor:
    """Pick candidates one by one so that their mean follows an embedding.

    The embedding is ``mu = sum_j w_j l(y_j, .)``. The t-th pick, t = 1, 2, ..., is the candidate y that maximises
    ``mu(y) - (1/t) sum_{s<t} l(y_s, y)``, Eq. (8) of [Chen2010]_: close to the distribution, far from earlier picks. If
    ``l(y, y)`` is the same for all y, each pick brings the mean of the picks as close to mu as one more candidate can,
    and the distance falls like 1/t (for random draws: like 1/sqrt(t)). The mean of t points has mass one, so the
    weights of mu should sum to one.

    Parameters
    ----------
    L : Tensor of shape (m, m)
        Kernel matrix of the candidates.
    weights : Tensor of shape (m,) or (r, m)
        Weights of one embedding, or of one embedding in each row. They may be negative.
    size : int
        Number of picks.
    replace : bool, default=True
        Whether a candidate may be picked more than once. Choose ``False`` for representative points.

    Returns
    -------
    Tensor of shape (size,) or (r, size)
        Indices of the picked candidates, in order of picking. If gains are equal, the first candidate wins.

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
    # Gains that are equal in exact arithmetic differ by rounding, which depends on the batch size. A tiny slope breaks
    # ties in the same way for any batch, so that the picks of a row do not depend on its batch.
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
