"""The dual form on all rows."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import StrOptions
from torch import Tensor

from kernelwright.embedding.dual import DualEmbedding, embed, embed_in_single
from kernelwright.embedding.support import KernelSupport, nearest_other
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.kernels import Kernel
from kernelwright.kernels.vector import spread_rows
from kernelwright.numerics.work import Work
from kernelwright.solvers.base import PRECISIONS, Solver, warn_of_fallback
from kernelwright.solvers.solution import Solution
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["Exact", "solve_exactly"]

SINGLE_RESIDUAL = 1e-4  # allowed error of outputs at training rows, with single precision kernel values


@saved("exact-solver")
class Exact(Solver):
    """All rows, exactly: ``n^3`` time once and ``n^2`` memory.

    Parameters
    ----------
    precision : {"auto", "single", "double"}, default="auto"
        Precision of the kernel matrix in the final solve; "auto" is double. "single" halves the memory and takes less
        time; probabilities change in about the sixth digit. If the residual, checked in double, is too large for that,
        the embedding is solved again in double, with a :class:`~kernelwright.PrecisionWarning`. With "single", learning
        uses single precision factors too (except "held-out", "folds" and "cross-validation"): solutions are refined to
        double precision residuals. The inverse for leave-one-out is accurate to five digits, or that step is done in
        double. Predictions use single precision kernel values.

    Examples
    --------
    >>> from kernelwright.solvers import Exact
    >>> f"{Exact().n_bytes(8000) / 2**30:.1f} GiB"
    '1.9 GiB'
    """

    word: ClassVar[str] = "exact"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"precision": [StrOptions(PRECISIONS)]}

    def __init__(self, precision: str = "auto") -> None:
        self.precision = precision

    def size(self, n_rows: int) -> int:  # noqa: D102
        return n_rows

    def n_bytes(self, n_rows: int) -> float:  # noqa: D102
        return 4 * 8.0 * n_rows**2  # matrix, factor and two copies; in double, which single precision may fall back to

    def work(self, n_rows: int) -> Work:  # noqa: D102
        return Work.of_matrix(n_rows)

    def share_kept(self, n_rows: int) -> float:  # noqa: D102
        return 1.0

    @property
    def advice(self) -> str:  # noqa: D102
        return "Use solver='nystroem' if the estimator has it ('auto' does), or fit on a sample of the rows."

    def described(self, n_rows: int) -> str:  # noqa: D102
        return f"An exact embedding of {n_rows} distinct rows"

    def solve(  # noqa: D102
        self, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator
    ) -> Solution:
        return solve_exactly(kernel, data, ridge, precision=self.precision)


def solve_exactly(kernel: Kernel, data: TrainingSet, ridge: float, *, precision: str = "auto") -> Solution:
    """Solve the dual form on all rows, in double precision unless "single"; leave-one-out is in closed form."""
    if precision == "single" and (found := _exact_in_single(kernel, data, ridge)) is not None:
        return found
    K = kernel.local.matrix(data.points)
    nearest = nearest_other(K, data)
    return _dual_solution(embed(kernel.completed_(K, data.points), data, ridge), nearest, "double")


def _exact_in_single(kernel: Kernel, data: TrainingSet, ridge: float) -> Solution | None:
    """Solve with matrix and factor in single precision; return None, with a warning, if that is not accurate."""
    rounded, points = copy.deepcopy(kernel).to(torch.float32), data.points.to(torch.float32)
    K = rounded.local.matrix(points).to(torch.float32)
    nearest = nearest_other(K, data).double()
    rounded.completed_(K, points)
    try:
        embedding = embed_in_single(K, data, ridge)
    except NumericalError as error:
        warn_of_fallback(str(error))
        return None
    some = spread_rows(len(data))
    with torch.no_grad():
        fitted = data.prior + kernel.forward(data.points[some], data.points) @ embedding.coefficients
    residual = float((fitted - embedding.fitted[some]).abs().max())
    if not residual <= SINGLE_RESIDUAL:  # also if it is NaN
        warn_of_fallback(f"A kernel matrix in single precision leaves a residual of {residual:.1e}.")
        return None
    return _dual_solution(embedding, nearest, "single")


def _dual_solution(embedding: DualEmbedding, nearest: Tensor, precision: str) -> Solution:
    data = embedding.data
    support = KernelSupport.of(nearest, data.weights)
    return Solution(
        data.points,
        embedding.coefficients,
        embedding.squared_norm,
        embedding.fitted,
        data,
        LeftOutOutputs(embedding.leave_one_out(), data, support.relative(nearest)),
        support,
        embedding.factor.jitter,
        precision,
    )
