"""Ways to hold the final embedding of a learned kernel.

========================  ===============================  ==============================================
``"exact"``               n^3 once, n^2 memory             the dual form, for up to some thousand rows
``"nystroem"``            n M a step, few steps            the span of M landmarks, conjugate gradients
``"fourier"``             n p^2 once, p^2 memory           random Fourier features of the kernel
``"herding"``             M^3 once                         a weighted subset of M rows
========================  ===============================  ==============================================
"""

from kernelwright.solvers.solvers import (
    LeftOut,
    Solution,
    choose_solver,
    estimated_bytes,
    exact,
    explicit,
    herding,
    nystroem,
    refuse_too_many_features,
    sum_up,
    usual_landmarks,
)

__all__ = [
    "LeftOut",
    "Solution",
    "choose_solver",
    "estimated_bytes",
    "exact",
    "explicit",
    "herding",
    "nystroem",
    "refuse_too_many_features",
    "sum_up",
    "usual_landmarks",
]
