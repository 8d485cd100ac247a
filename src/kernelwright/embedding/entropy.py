"""Two estimates of the entropy of the label at a point, appendix A.1 of [Hsu2018]_."""

from __future__ import annotations

import torch
from torch import Tensor

from kernelwright.embedding.dual import clip_normalise

__all__ = ["clip_entropy", "embedding_entropy"]


def clip_entropy(outputs: Tensor) -> Tensor:
    """Return the entropy of the clip-normalised outputs, Eq. (33)."""
    p = clip_normalise(outputs)
    return -torch.special.xlogy(p, p).sum(1)


def embedding_entropy(outputs: Tensor, *, clip: bool = False) -> Tensor:
    """Return the embedding's own expectation of ``u(y) = -log f_y`` (zero if f_y <= 0), Eqs. (36) and (37).

    It may be slightly negative if the model is very confident; ``clip`` raises it to zero.
    """
    entropy = torch.special.entr(outputs).where(outputs > 0, 0.0).sum(1)
    return entropy.clamp(min=0.0) if clip else entropy
