"""The steps of a fit to targets of any kind: split -> learn -> solve, each from record to record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.conditional import FactorisedEmbedding, MergedRows, merge_rows
from kernelwright.embedding.dual import embed
from kernelwright.embedding.landmark_weights import LandmarkEmbedding, embed_any_by_landmarks
from kernelwright.embedding.target_space import TargetSpace
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.arrows import refuse_if_too_large
from kernelwright.estimators.checking import kernel_as_given
from kernelwright.estimators.row_split import RowSplit, split_units
from kernelwright.inputs.any_targets import DistinctTargets
from kernelwright.inputs.arrays import generator
from kernelwright.inputs.layout import TableLayout
from kernelwright.kernels import Kernel, Precomputed
from kernelwright.learning import Choice, LearningMethod, LearningTask, choose
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives.losses import BRIER
from kernelwright.solvers import Exact, Landmarks, Solver
from kernelwright.storage.saved import saved

__all__ = ["AnyTargetFit", "AnyTargetPlan", "HeldRows", "TargetEmbedding", "fit_any_target"]

USUAL_LANDMARKS = 2000  # fewer than for classes: every new function of the target needs the factor of their system

TargetEmbedding = FactorisedEmbedding | LandmarkEmbedding


@dataclass(frozen=True)
class AnyTargetPlan:
    """The settings of a fit, with short forms replaced by objects."""

    kernel: Kernel  # a copy, to be learned
    method: LearningMethod
    solver: Solver
    ridge: float | str
    target_kernel: Kernel | None
    fills: bool  # whether embeddings return to that of all targets far from the data
    scale: str | None
    random_state: Any
    layout: TableLayout | None = None  # what the columns of the rows stand for, if they are codes

    def solver_for(self, n_rows: int) -> Solver:
        """Return the solver for ``n_rows`` rows, or raise an error if there is none or it would not fit in memory."""
        solver = self.solver.for_rows(n_rows, divisible=False)
        if not isinstance(solver, Exact | Landmarks):
            raise ValueError(
                "The 'solver' parameter of ConditionalMeanEmbedding must be 'auto', 'exact', 'nystroem', or an object "
                f"Exact() or Landmarks(n). Got {solver!r} instead."
            )
        if isinstance(solver, Landmarks):
            if isinstance(self.kernel, Precomputed):
                raise ValueError("Landmarks need a kernel that can be evaluated. Use solver='exact' for a matrix.")
            solver = Landmarks(solver.n or min(USUAL_LANDMARKS, solver.size(n_rows)))
            solver = solver if solver.size(n_rows) < n_rows else Exact()
        refuse_if_too_large(solver, n_rows, self.method.matrix_rows)
        return solver

    @property
    def fixed(self) -> bool:
        """Whether no kernel and no scale depends on the rows of the embedding, as a bound from these rows needs."""
        if self.method.kernel_share is not None:
            return True
        as_given = [kernel_as_given(kernel, self.method) for kernel in (self.kernel, self.target_kernel)]
        return all(as_given) and self.scale is None


@saved("held-rows")
@dataclass(frozen=True)
class HeldRows:
    """Rows that were not fitted, as the kernel sees them, and their targets."""

    points: Tensor
    targets: np.ndarray


@dataclass(frozen=True)
class AnyTargetFit:
    """A fitted embedding of targets of any kind, and how it was chosen."""

    embedding: TargetEmbedding
    space: TargetSpace
    targets: np.ndarray  # of the rows that the embedding was solved on
    choice: Choice
    unit: float  # of the objective
    complexity: float  # the bound r of Eq. (11), in the space of the target kernel
    held: HeldRows | None


def fit_any_target(X: Any, Y: np.ndarray, plan: AnyTargetPlan) -> AnyTargetFit:
    """Learn the hyperparameters, and solve the embedding of all rows that are not held out."""
    parts = _split(len(Y), plan)
    random = generator(plan.random_state)
    distinct = DistinctTargets.of(Y[parts.learned])
    space = TargetSpace.of(distinct, plan.target_kernel)
    rows = merge_rows(_rows(X, parts.learned), distinct.number, plan.kernel, plan.scale, layout=plan.layout)
    solver = plan.solver_for(len(rows.points) if parts.solved is parts.learned else len(parts.solved))
    features = space.features()
    data = rows.training_set(features.table, centred=plan.fills, classes=space.kind == "labels")
    choice = choose(plan.method, LearningTask(plan.kernel, data, plan.ridge, random, loss=BRIER))
    held = None
    if len(parts.held):
        new = _rows(X, parts.held)
        new = choice.kernel.encode(new if rows.scaler is None else rows.scaler.transform(new))
        held = HeldRows(new, Y[parts.held])
    if parts.solved is not parts.learned:
        distinct = DistinctTargets.of(Y[parts.solved])
        space = space.of_rows(distinct)
        rows = merge_rows(_rows(X, parts.solved), distinct.number, choice.kernel, None, rows.scaler)
        features = space.features()
        data = rows.training_set(features.table, centred=plan.fills, classes=space.kind == "labels")
    with torch.no_grad(), threads_for(len(data)):
        embedding, norm = _solve(choice, rows, data, space, solver, plan.fills, random)
        norm += features.missing / (4.0 * choice.ridge)  # the most that targets outside their features can add
        sup = float(choice.kernel.sup_diag(data.points))
    complexity = math.sqrt(sup * norm * features.unit)
    return AnyTargetFit(embedding, space, Y[parts.solved], choice, features.unit, complexity, held)


def _split(n: int, plan: AnyTargetPlan) -> RowSplit:
    method = plan.method
    if method.kernel_share is None and method.holdout_share is None:
        everything = np.arange(n)
        return RowSplit(everything, everything, np.arange(0))
    if isinstance(plan.kernel, Precomputed):
        raise ValueError("kernel_share and holdout_share need a kernel that can be evaluated, not a matrix.")
    parts = split_units(n, method, plan.random_state)
    if min(len(parts.learned), len(parts.solved)) < 2:
        raise ValueError(
            f"kernel_share={method.kernel_share} and holdout_share={method.holdout_share} leave fewer than 2 of {n} "
            "rows for a part of the fit. Choose shares with larger parts."
        )
    return parts


def _rows(X: Any, chosen: np.ndarray) -> Any:
    return X if len(chosen) == len(X) else X[chosen]


def _solve(
    choice: Choice,
    rows: MergedRows,
    data: TrainingSet,
    space: TargetSpace,
    solver: Solver,
    fills: bool,
    random: torch.Generator,
) -> tuple[TargetEmbedding, float]:
    """Return the embedding of the rows, and the squared norm of its operator in units of the target features."""
    kernel, ridge = choice.kernel, choice.ridge
    if isinstance(solver, Exact):
        found = embed(kernel.matrix(data.points), data, ridge)
        return FactorisedEmbedding(kernel, ridge, rows, found.factor, fills=fills), found.squared_norm
    landmarks = data.points[data.spread(solver.size(len(data)), random)]
    embedding = embed_any_by_landmarks(kernel, rows, landmarks, ridge, space, fills=fills)
    coefficients = embedding.system.whitened(embedding.system.sums(data.centred))
    return embedding, float(coefficients.square().sum())
