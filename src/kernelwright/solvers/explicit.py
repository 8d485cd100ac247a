"""The primal form: explicit features, of which only sums over the rows are kept."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval

from kernelwright.embedding.fitted import FEATURE_ROWS
from kernelwright.embedding.primal import FeatureSums, Moments
from kernelwright.embedding.support import FeatureSupport
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.features.fourier import fourier_features
from kernelwright.kernels import FeatureKernel, Kernel
from kernelwright.kernels.feature import FeatureMap
from kernelwright.numerics.memory import check_memory
from kernelwright.solvers.base import Solver, usual_landmarks
from kernelwright.solvers.solution import LEFT_OUT_ROWS, Columns, Solution, SolvedColumns
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.links import LeftOutOutputs

__all__ = ["FEATURE_ROWS", "Explicit", "Fourier", "refuse_too_many_features", "solve_sums", "sum_up"]


class Explicit(Solver):
    """The features of a :class:`~kernelwright.kernels.FeatureKernel`, unchanged."""

    word: ClassVar[str] = "explicit"

    def size(self, n_rows: int) -> int:  # noqa: D102
        return 0

    def n_bytes(self, n_rows: int) -> float:  # noqa: D102
        return 0.0  # refuse_too_many_features checks the memory instead

    def solve(  # noqa: D102
        self, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator
    ) -> Solution:
        assert isinstance(kernel, FeatureKernel)
        return _solve_features(kernel.features, data, ridge, generator)

    def more(  # noqa: D102
        self, kernel: Kernel, solution: Solution, columns: Sequence[Columns]
    ) -> list[SolvedColumns]:
        return more_of_features(solution, columns)


@saved("fourier-solver")
class Fourier(Solver):
    """Random Fourier features of a stationary kernel: ``n p^2`` work once and ``p^2`` memory.

    Parameters
    ----------
    n : int or None, default=None
        Number of features; ``None`` is the number of landmarks that :class:`Landmarks` would take.
    """

    word: ClassVar[str] = "fourier"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n": [Interval(Integral, 1, None, closed="left"), None]}

    def __init__(self, n: int | None = None) -> None:
        self.n = n

    def size(self, n_rows: int) -> int:  # noqa: D102
        return self.n or usual_landmarks(n_rows)

    def n_bytes(self, n_rows: int) -> float:  # noqa: D102
        size, held = self.size(n_rows), min(n_rows, FEATURE_ROWS + LEFT_OUT_ROWS)
        return 8.0 * (6 * size**2 + 4 * held * size)

    def solve(  # noqa: D102
        self, kernel: Kernel, data: TrainingSet, ridge: float, generator: torch.Generator
    ) -> Solution:
        seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
        features = fourier_features(kernel, self.size(len(data)), data.points.shape[1], seed)
        return _solve_features(features, data, ridge, generator)

    def more(  # noqa: D102
        self, kernel: Kernel, solution: Solution, columns: Sequence[Columns]
    ) -> list[SolvedColumns]:
        return more_of_features(solution, columns)


def more_of_features(solution: Solution, columns: Sequence[Columns]) -> list[SolvedColumns]:
    """Solve for more targets of the sample of rows that is kept, with the features of a solution."""
    assert solution.features is not None
    sample, found = solution.fitted_rows, []
    with torch.no_grad():
        Z = solution.features(sample.points).double()
    for each in columns:
        rows = replace(sample, targets=each.targets, prior=each.prior)
        moments = Moments.of(Z, rows.targets, rows.weights)
        factor = moments.factor(each.ridge)
        found.append(SolvedColumns(moments.weights(factor, rows.prior), moments.left_out(factor, Z, rows)))
    return found


def _solve_features(features: FeatureMap, data: TrainingSet, ridge: float, generator: torch.Generator) -> Solution:
    moments, sample = sum_up(features, data), data.whole_groups(LEFT_OUT_ROWS, generator)
    low, high = data.points.min(0).values, data.points.max(0).values
    return solve_sums(FeatureSums(moments, sample, len(data), low, high), features, ridge)


def refuse_too_many_features(features: FeatureMap) -> None:
    """Raise a :class:`MemoryBudgetError` if the sums, their factor and a copy would not fit."""
    p = features.n_features
    check_memory(4 * 8.0 * p**2, f"An embedding of {p} features", "Use fewer features (n_features).")


def sum_up(features: FeatureMap, data: TrainingSet) -> Moments:
    """Sum up the moments of all rows, one block of rows at a time."""
    refuse_too_many_features(features)
    blocks = (data.subset(rows) for rows in torch.arange(len(data)).split(FEATURE_ROWS))
    with torch.no_grad():
        return reduce(operator.add, (Moments.of(features(b.points), b.targets, b.weights) for b in blocks))


def solve_sums(sums: FeatureSums, features: FeatureMap, ridge: float) -> Solution:
    """Solve the primal form for summed rows, with leave-one-out outputs at a sample of them."""
    sample = sums.sample
    with torch.no_grad():
        Z = features(sample.points).double()
    factor = sums.moments.factor(ridge)
    W, support = sums.moments.weights(factor, sample.prior), FeatureSupport.of(factor, Z, sample)
    left_out = LeftOutOutputs(sums.moments.left_out(factor, Z, sample), sample, support(Z))
    return Solution(
        points=None,
        coefficients=W,
        squared_norm=float(W.square().sum()),
        fitted=sample.prior + Z @ W,
        fitted_rows=sample,
        left_out=left_out,
        support=support,
        jitter=factor.jitter,
        features=features,
        sums=sums,
    )
