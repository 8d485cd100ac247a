"""How much a model knows about a point: whether it saw anything like it.

For a kernel that is its value with the nearest training point. For explicit features, where no training point is kept,
it is one over the leverage ``z^T S^-1 z``. Both are read relative to a *level*: what the worst hundredth of the
training points had from all the others. A support of one or more is usual, a support near zero is nowhere near
the data.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kernelwright.linalg import Factor, triangular_solve

__all__ = ["UNUSUAL", "inverse_leverage", "leverage_sketch", "nearest", "nearest_other", "relative", "usual_level"]

UNUSUAL = 0.01  # the share of training rows whose support lies below the level
SKETCH = 32  # random directions: enough for a leverage within a quarter, the same for all rows


def nearest(K: Tensor) -> Tensor:
    """The largest kernel value in each row."""
    return K.max(1).values


def nearest_other(K: Tensor, weights: Tensor) -> Tensor:
    """The largest kernel value of each training point with another one; a point of weight two is its own other.

    K is changed on the way and is itself again at the end: it may be as large as memory allows.
    """
    own = K.diagonal().clone()
    K.fill_diagonal_(-torch.inf)
    largest = nearest(K) if len(K) > 1 else own
    K.diagonal().copy_(own)
    return torch.where(weights >= 2.0, own, largest)


def leverage_sketch(factor: Factor, size: int = SKETCH) -> Tensor:
    """R with ``|z R|^2 ~ z^T S^-1 z``: few random directions in place of the whole factor, which cost next to nothing.

    The directions are always the same ones, so that a level found with them fits.
    """
    directions = torch.randn(len(factor.lower), size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return triangular_solve(factor, directions, transposed=True) / size**0.5


def inverse_leverage(Z: Tensor, sketch: Tensor, own: Tensor | None = None) -> Tensor:
    """One over the leverage of each row of features; ``own`` are weights of training rows, to be left out of S."""
    leverage = (Z.double() @ sketch).square().sum(1)
    support = 1.0 / leverage.clamp(min=1e-300)
    return support if own is None else (support - own.clamp(max=1.0)).clamp(min=0.0)


def usual_level(support: Tensor, weights: Tensor) -> float:
    """The support that a hundredth of the rows stay below."""
    order = support.argsort()
    share = weights[order].cumsum(0) / weights.sum()
    first = int(torch.searchsorted(share, torch.tensor(UNUSUAL, dtype=share.dtype)))
    return float(support[order[min(first, len(order) - 1)]])


def relative(support: Tensor, level: float) -> Tensor:
    """Support in units of the level; all ones where the training points themselves have none from each other."""
    return (support / level).clamp(min=0.0) if level > 0 else torch.ones_like(support)
