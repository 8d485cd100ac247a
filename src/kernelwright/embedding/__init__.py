"""The conditional mean embedding in its dual form: one regularised solve with the kernel matrix.

With weights w (ones unless given), ``noise_i = ridge * sum(w) / w_i`` and ``A = K + diag(noise)``, the
coefficients are ``V = A^-1 (Y - prior)`` and the outputs at x are ``f(x) = prior + V^T k(x)``: Eq. (5) of
[Hsu2018]_ if the prior is zero. A weight says how much a row counts in the loss: a row of weight two acts like two
equal rows. Leaving out always means leaving out one given row, with its whole weight.
"""

from kernelwright.embedding.dual import (
    DualEmbedding,
    clip_normalise,
    embed,
    embed_in_single,
    leave_one_out_divisor,
    rows_by_group,
    without_groups,
)
from kernelwright.embedding.training_set import TrainingSet

__all__ = [
    "DualEmbedding",
    "TrainingSet",
    "clip_normalise",
    "embed",
    "embed_in_single",
    "leave_one_out_divisor",
    "rows_by_group",
    "without_groups",
]
