"""The embedding in the span of landmarks, solved by preconditioned conjugate gradients."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from kernelwright.embedding.landmarks import (
    DOUBLE_UP_TO,
    LANDMARK_KERNEL_VALUES,
    RESIDUAL,
    KernelRows,
    NystroemEmbedding,
    embed_by_landmarks,
)
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.kernels.vector import spread_rows
from kernelwright.numerics.memory import free_memory
from kernelwright.numerics.work import Work
from kernelwright.solvers.base import PRECISIONS, Solver, usual_landmarks, warn_of_fallback
from kernelwright.solvers.exact import solve_exactly
from kernelwright.solvers.held_out import hold_out
from kernelwright.solvers.solution import LEFT_OUT_ROWS, Columns, Solution, SolvedColumns, judged_by_new_rows
from kernelwright.storage.saved import saved

__all__ = ["Landmarks"]

VALUE_ERROR = 1e-4  # of kernel values, relative to the largest
LANDMARK_ERROR = 1e-3  # allowed mean square error of outputs with landmarks, which are approximate anyway
USUAL_STEPS, USUAL_COLUMNS = 15, 3  # of conjugate gradients, for estimates of time
LANDMARK_CANDIDATES = 5  # candidate rows for each landmark


@saved("landmarks-solver")
class Landmarks(Solver):
    """The span of landmarks: ``n M`` work a step, with few steps of preconditioned conjugate gradients.

    One row in twenty, at most 5000, is held out for calibration.

    Parameters
    ----------
    n : int or None, default=None
        Number of landmarks. ``None`` is 4000 (half of the rows if these are fewer than 8000); beyond 80,000 rows one
        in 20, at most 7500; fewer if memory is short.
    precision : {"auto", "single", "double"}, default="auto"
        Precision of kernel values; "auto" is single if there are more than 16 million of them. In single precision the
        system is solved less accurately, so probabilities change in the third digit.
    """

    word: ClassVar[str] = "nystroem"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n": [Interval(Integral, 1, None, closed="left"), None],
        "precision": [StrOptions(PRECISIONS)],
    }

    def __init__(self, n: int | None = None, precision: str = "auto") -> None:
        self.n = n
        self.precision = precision

    def size(self, n_rows: int) -> int:  # noqa: D102
        return min(self.n or usual_landmarks(n_rows), n_rows)

    def n_bytes(self, n_rows: int) -> float:  # noqa: D102
        size = self.size(n_rows)
        single = self.precision == "single" or (self.precision == "auto" and n_rows * size > DOUBLE_UP_TO)
        kept = (4.0 if single else 8.0) * n_rows * size
        blocks = 4 * 8.0 * min(n_rows * size, LANDMARK_KERNEL_VALUES)
        return (kept if kept < 0.5 * free_memory() else 0.0) + blocks + 6 * 8.0 * size**2

    def work(self, n_rows: int) -> Work:  # noqa: D102
        size = self.size(n_rows)
        chosen = min(LANDMARK_CANDIDATES * size, n_rows) * size / 3.0
        steps = 20.0 * USUAL_STEPS * n_rows * size * USUAL_COLUMNS  # thin products: most of it is reading
        return Work(2.0 * (n_rows * size + chosen), 3.0 * size**3 + steps)

    def share_kept(self, n_rows: int) -> float:  # noqa: D102
        return self.size(n_rows) / n_rows

    def solve(  # noqa: D102
        self, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator
    ) -> Solution:
        n_landmarks = self.size(len(data))
        if n_landmarks >= len(data):  # all rows are landmarks
            return solve_exactly(kernel, data, ridge, precision=self.precision)
        rest, held = hold_out(data, min(len(data) // 20, LEFT_OUT_ROWS), generator)
        noise = ridge * data.total_weight  # stays the same for a subset of the rows
        landmarks = _landmarks(kernel, rest, noise, n_landmarks, generator)
        rows, embedding = _by_landmarks(kernel, rest, noise / rest.total_weight, landmarks, self.precision)
        if not embedding.residual <= 10.0 * RESIDUAL[rows.dtype]:
            warnings.warn(
                f"Conjugate gradients stopped after {embedding.n_iter} steps at a relative residual of "
                f"{embedding.residual:.1e}. Likely causes: (a) a very small ridge: raise it; (b) row weights that "
                "differ by orders of magnitude. Or use solver='exact'.",
                ConvergenceWarning,
                stacklevel=4,
            )
        alpha = embedding.coefficients
        fitted = torch.cat([block.double() @ alpha for _, block in rows]) + rest.prior
        left_out, support = judged_by_new_rows(kernel, held, landmarks, alpha)
        of_rows = "single" if rows.dtype == torch.float32 else "double"
        return Solution(landmarks, alpha, embedding.squared_norm, fitted, rest, left_out, support, precision=of_rows)

    def more(  # noqa: D102
        self, kernel: Kernel, solution: Solution, columns: Sequence[Columns]
    ) -> list[SolvedColumns]:
        data, landmarks, held = solution.fitted_rows, solution.points, solution.left_out.rows
        if held is data:  # all rows are landmarks
            return super().more(kernel, solution, columns)
        assert landmarks is not None
        rows, found = KernelRows(kernel, data.points, landmarks), []
        K_new = kernel.forward(held.points, landmarks)
        for each in columns:
            wanted = replace(data, targets=each.targets, prior=each.prior)
            alpha = embed_by_landmarks(kernel, wanted, each.ridge, landmarks, rows=rows).coefficients
            found.append(SolvedColumns(alpha, each.prior + K_new @ alpha))
        return found


def _landmarks(kernel: Kernel, data: TrainingSet, noise: float, size: int, generator: torch.Generator) -> Tensor:
    """Choose a third of the landmarks spread over all rows, the others by the squared loss of that third's embedding.

    The region between classes needs more landmarks than the region within one class.
    """
    size = min(size, len(data))
    first = data.spread(-(-size // 3), generator)
    if size == len(first):
        return data.points[first]
    others = torch.ones(len(data), dtype=torch.bool)
    others[first] = False
    candidates = others.nonzero()[:, 0]
    candidates = candidates[torch.randperm(len(candidates), generator=generator)[: LANDMARK_CANDIDATES * size]]
    some = data.subset(candidates)
    rows, embedding = _by_landmarks(kernel, some, noise / some.total_weight, data.points[first], "auto")
    outputs = torch.cat([block.double() @ embedding.coefficients for _, block in rows])
    loss = some.weights * (some.centred - outputs).square().sum(1)
    loss = loss.nan_to_num(nan=1.0, posinf=1.0).clamp(min=1e-12)  # a poor start must not stop the solve itself
    drawn = candidates[torch.multinomial(loss, size - len(first), generator=generator)]
    return data.points[torch.cat([first, drawn])]


def _by_landmarks(
    kernel: Kernel, data: TrainingSet, ridge: float, landmarks: Tensor, precision: str
) -> tuple[KernelRows, NystroemEmbedding]:
    """Return kernel values in the requested precision, and the embedding; in double if single is not accurate enough.

    If single precision was requested explicitly, this gives a warning.
    """
    dtype = {"auto": None, "single": torch.float32, "double": torch.float64}[precision]
    rows = KernelRows(kernel, data.points, landmarks, dtype=dtype)
    embedding = embed_by_landmarks(kernel, data, ridge, landmarks, rows=rows)
    if rows.dtype == torch.float64:
        return rows, embedding
    if not embedding.residual <= 10.0 * RESIDUAL[torch.float32]:
        trouble = f"Conjugate gradients in single precision left a relative residual of {embedding.residual:.1e}."
    else:
        trouble = _trouble_with_single(kernel, rows, landmarks, embedding.coefficients)
    if not trouble:
        return rows, embedding
    if precision == "single":
        warn_of_fallback(trouble)
    del rows, embedding  # both matrices may not fit at the same time
    return _by_landmarks(kernel, data, ridge, landmarks, "double")


def _trouble_with_single(kernel: Kernel, rows: KernelRows, landmarks: Tensor, coefficients: Tensor) -> str:
    """Return what is wrong with single precision kernel values at some of the rows; an empty text if nothing is."""
    some = rows.points[spread_rows(len(rows.points))]
    with torch.no_grad():
        exact_values = kernel.forward(some, landmarks)
        error = rows.kernel.forward(some.to(rows.dtype), rows.landmarks).double() - exact_values
    of_values = float(error.abs().max() / exact_values.abs().max())
    of_outputs = float((error @ coefficients).square().mean().sqrt())
    if not of_values <= VALUE_ERROR:  # the coefficients would belong to another kernel
        return f"Kernel values in single precision are off by {of_values:.1e}."
    if not of_outputs <= LANDMARK_ERROR:
        return f"Kernel values in single precision change outputs by {of_outputs:.1e}."
    return ""
