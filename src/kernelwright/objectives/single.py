"""Single precision solves for learning: refined, checked, and replaced by double precision if they fail."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

from torch import Tensor

from kernelwright.errors import NumericalError, PrecisionWarning
from kernelwright.numerics.linalg import refined_solution
from kernelwright.numerics.products import symmetric_product
from kernelwright.objectives.terms import Setting

__all__ = ["Solve", "go_on_in_double", "refined"]

DOUBLE = 1e-12  # relative residuals of a factor in double precision

Solve = Callable[[Tensor], Tensor]  # multiplies by A^-1


def refined(solve: Solve, K: Tensor, noise: Tensor) -> Solve:
    """Refine single precision solutions to double precision residuals."""

    def apply(V: Tensor) -> Tensor:
        return symmetric_product(K, V).add_(noise[:, None] * V)

    return partial(refined_solution, solve, apply, residual_below=DOUBLE)


def go_on_in_double(error: NumericalError, at: Setting) -> None:
    """Warn a user who asked for single precision."""
    if at.precision == "single":
        message = f"{error} Learning continues in double precision in such steps."
        warnings.warn(message, PrecisionWarning, stacklevel=4)
