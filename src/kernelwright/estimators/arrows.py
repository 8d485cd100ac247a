"""The steps of a fit, each from record to record: split -> prepare -> learn -> solve.

They do not depend on classes: the targets are passed in, and the link is fitted afterwards.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import EmbeddedRows, FittedEmbedding
from kernelwright.embedding.partition import divisible
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import DependenceWarning
from kernelwright.estimators.estimate import estimate
from kernelwright.estimators.progress import logger
from kernelwright.estimators.row_split import RowSplit
from kernelwright.inputs.coordinates import TableCoordinates
from kernelwright.inputs.dataset import Dataset
from kernelwright.inputs.frames.given_rows import GivenRows, training_rows
from kernelwright.inputs.scaling import fit_scaler
from kernelwright.inputs.targets import Targets
from kernelwright.kernels import FeatureKernel, Kernel, Tabular
from kernelwright.learning import Choice, LearningMethod, LearningTask, Step, choose
from kernelwright.learning.collapse import warn_of_equal_rows, warn_of_lonely_rows
from kernelwright.numerics.memory import check_memory
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives.losses import CalibratedLogLoss, Loss
from kernelwright.solvers import Solution, Solver
from kernelwright.solvers.dependence import dependent_blocks
from kernelwright.solvers.explicit import Explicit

__all__ = [
    "FitPlan",
    "Prepared",
    "choose_for",
    "embedded_rows",
    "embedding_of",
    "gather",
    "given_rows",
    "has_fixed_kernel",
    "learn",
    "prepare",
    "refuse_if_too_large",
    "solve",
]

DEPENDENT = (
    "Rows depend on their neighbours, as in a time series: without a whole block of them, errors are clearly "
    "larger than without as many random rows. So calibration leaves out {n_blocks} blocks of consecutive rows in "
    "turn. Pass groups= to say which rows belong together. If the rows are independent but sorted, shuffle them."
)
MERGE_UP_TO = 5000  # rows; beyond, merging equal rows costs more than it saves


@dataclass(frozen=True)
class FitPlan:
    """The settings of a fit, with short forms replaced by objects."""

    kernel: Kernel  # a copy, to be learned
    method: LearningMethod
    solver: Solver
    ridge: float | str
    scale: str | None
    targets: Targets
    random_state: Any
    default_kernel: bool = False
    as_given: bool = False  # the kernel does not depend on the rows
    warm: bool = False  # kernel and ridge come from an earlier fit
    callback: Callable[[Step], Any] | None = None
    loss: Loss | None = None  # replaces the loss of the method
    averages: bool = True  # whether the default kernel is drawn towards equal length scales
    fine_steps: int | None = None  # of the default recipe; None: as it has them for classes
    means: bool = False  # whether categories may have mean targets as coordinates
    # The rows next to each of some points, if the kernel is learned from a sample of far more rows.
    nearest: Callable[[Kernel, Tensor, int], Iterable[TrainingSet]] | None = None

    @property
    def explicit(self) -> bool:
        """Whether the embedding uses explicit features."""
        return isinstance(self.kernel, FeatureKernel)

    def solver_for(self, n_rows: int, points: Tensor | None = None) -> Solver:
        """Return the solver for ``n_rows`` rows, or raise an error if it would not fit in memory."""
        if self.explicit:
            return Explicit()
        solver = self.solver.for_rows(n_rows, divisible=points is None or divisible(self.kernel, points))
        refuse_if_too_large(solver, n_rows, self.method.matrix_rows)
        size = solver.size(n_rows)
        logger.info("%d rows: solver %s%s", n_rows, solver.word, "" if size == n_rows else f" of size {size}")
        if points is not None and logger.isEnabledFor(logging.INFO):
            expected = estimate(self.kernel, points, solver, self.method)
            if expected is not None:
                logger.info("%s", expected)
        return solver

    def heeded(self, choice: Choice, data: Prepared, random: torch.Generator) -> Prepared:
        """Return the rows; in blocks that are left out as a whole, with a warning, if neighbours depend on each other.

        Only a kernel of vectors is tested, and a solver that leaves rows out in closed form.
        """
        if self.explicit or data.learned is not data.embedded or not self.method.learns:
            return data
        with torch.no_grad(), threads_for(0):
            blocks = dependent_blocks(choice.kernel, data.embedded, choice.ridge, data.order, random)
        if blocks is None:
            return data
        warnings.warn(DEPENDENT.format(n_blocks=int(blocks.max()) + 1), DependenceWarning, stacklevel=3)
        in_blocks = replace(data.embedded, groups=blocks, counts=None)
        return replace(data, learned=in_blocks, embedded=in_blocks)

    def settled(self, solver: Solver, choice: Choice, data: TrainingSet, random: torch.Generator) -> Solver:
        """Return the solver for the learned kernel: "auto" may compare two of them at rows that are held out."""
        with torch.no_grad(), threads_for(0):
            loss = self.loss or CalibratedLogLoss()
            chosen = self.solver.settled(solver, choice.kernel, data, choice.ridge, loss, random)
        if chosen is not solver:
            logger.info("%s has less loss at held-out rows and takes the place of %s", chosen, solver)
        return chosen


@dataclass(frozen=True)
class Prepared:
    """Rows as the kernel sees them."""

    scaler: Any
    learned: TrainingSet
    embedded: TrainingSet  # same as ``learned``, unless the kernel is learned from other rows
    place: np.ndarray  # index of each solved row among the embedded points

    @property
    def order(self) -> Tensor:
        """The first of the solved rows that each embedded point stands for; equal rows are merged and sorted."""
        first = np.empty(len(self.embedded), dtype=np.int64)
        first[self.place[::-1]] = np.arange(len(self.place))[::-1]
        return torch.from_numpy(first)


def prepare(rows: Dataset, parts: RowSplit, plan: FitPlan) -> Prepared:
    """Scale, merge and encode the rows. The scale and the prior come from the rows that learn the kernel."""
    if plan.targets.needs_two_values:
        for part in (parts.learned, parts.solved):
            _refuse_one_class(rows.y[part], plan)
    learned, place, scaler = gather(rows.subset(parts.learned), plan)
    if parts.solved is parts.learned:
        return Prepared(scaler, learned, learned, place)
    embedded, place, _ = gather(rows.subset(parts.solved), plan, scaler=scaler, prior=learned.prior)
    return Prepared(scaler, learned, embedded, place)


def given_rows(model: Any, plan: FitPlan, X: Any, y: Any = None) -> GivenRows:
    """Return the rows, read as codes if they are a data frame."""
    if not plan.kernel.takes_vectors:
        return GivenRows(X)
    return training_rows(X, y, categorical=model.categorical, keep=model.keep, gaps=plan.default_kernel)


def _refuse_one_class(y: np.ndarray, plan: FitPlan) -> None:
    """Raise an error if a part of the fit has only one class, or one value."""
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"Only one class is left among the {len(y)} rows that kernel_share={plan.method.kernel_share} and "
            f"holdout_share={plan.method.holdout_share} leave for a part of the fit. Choose shares with larger parts."
        )


def gather(
    rows: Dataset, plan: FitPlan, *, scaler: Any = None, prior: Tensor | None = None
) -> tuple[TrainingSet, np.ndarray, Any]:
    """Return the rows as a training set with equal rows merged, the index of each row in it, and the scaler."""
    rows, place = rows.with_mean_weight_one(), np.arange(len(rows))
    points = rows.points
    if points is None:
        if not plan.explicit or len(rows) <= MERGE_UP_TO:
            rows, place = rows.merged()
        if prior is None:
            scaler, values = _fitted_scaler(rows, plan, np.bincount(place))
        else:
            values = rows.X if scaler is None else scaler.transform(rows.X)
        points = plan.kernel.encode(values)
    counts, groups = (None if each is None else torch.from_numpy(each) for each in (rows.counts, rows.groups))
    weights, targets = torch.from_numpy(rows.weights), plan.targets.encode(rows.y)
    strata = plan.targets.strata(rows.y)
    data = TrainingSet.of(points, targets, weights=weights, prior=prior, strata=strata, counts=counts, groups=groups)
    if prior is None and plan.method.shrinks_to_frequencies:
        data = replace(data, prior=plan.targets.prior(data.targets, data.weights))
    return data, place, scaler


def _fitted_scaler(rows: Dataset, plan: FitPlan, counts: np.ndarray) -> tuple[Any, Any]:
    """Return the fitted transform of the inputs, and the training rows transformed.

    ``counts`` are the numbers of given rows that were merged into each.
    """
    if rows.layout is None:
        scaler = fit_scaler(plan.scale, rows.X, rows.weights)
        return scaler, rows.X if scaler is None else scaler.transform(rows.X)
    table = TableCoordinates(rows.layout, views=plan.default_kernel, means=plan.means)
    values = table.fit_transform(rows.X, plan.targets.encode(rows.y).numpy(), rows.weights, rows.groups, counts)
    if isinstance(plan.kernel, Tabular):
        plan.kernel.groups = table.groups_
    return table, values


def learn(data: TrainingSet, plan: FitPlan, solver: Solver, random: torch.Generator) -> Choice:
    """Choose the kernel and the ridge; warn if rows that are not near each other are all that a given kernel sees."""
    choice = choose_for(data, plan, solver, random)
    if not plan.default_kernel and plan.kernel.takes_vectors:
        warn_of_lonely_rows(choice.kernel, data)
        warn_of_equal_rows(choice.kernel, data, choice.ridge)
    return choice


def choose_for(data: TrainingSet, plan: FitPlan, solver: Solver, random: torch.Generator) -> Choice:
    """Choose the kernel and the ridge for these rows."""
    task = LearningTask(
        plan.kernel,
        data.with_groups_in_order(),
        plan.ridge,
        random,
        loss=plan.loss,
        precision=solver.precision,
        callback=plan.callback,
        warm=plan.warm,
        kept=solver.share_kept(len(data)),
        stretches=solver.stretches,
        views=plan.default_kernel,
        average=plan.averages and plan.default_kernel and solver.word == "exact",
        fine_steps=plan.fine_steps,
        nearest=plan.nearest,
    )
    return choose(plan.method, task)


def solve(choice: Choice, data: TrainingSet, solver: Solver, random: torch.Generator) -> Solution:
    """Solve the embedding of all rows with the chosen hyperparameters."""
    with torch.no_grad(), threads_for(len(data)):
        return solver.solve(choice.kernel, data, choice.ridge, random)


def embedded_rows(rows: Dataset, parts: RowSplit, data: Prepared, kept: np.ndarray) -> EmbeddedRows:
    """Record which of the given rows the embedding was solved on, and their indices in it."""
    given = np.zeros(len(kept), dtype=bool)
    given[np.flatnonzero(kept)[parts.solved]] = True
    return EmbeddedRows.of(given, data.place, rows.weights[parts.solved], data.embedded)


def embedding_of(
    solution: Solution, choice: Choice, *, scaler: Any, rows: EmbeddedRows, solver: Solver
) -> FittedEmbedding:
    """Return the record that predictions need."""
    asked = solver.precision == "single"  # many landmarks alone are no reason to predict in single precision
    return FittedEmbedding(
        scaler=scaler,
        kernel=choice.kernel,
        features=solution.features,
        points=torch.empty(0, 0, dtype=torch.float64) if solution.points is None else copy.copy(solution.points),
        coefficients=solution.coefficients,
        prior=solution.left_out.rows.prior,
        ridge=choice.ridge,
        support=solution.support,
        rows=rows,
        sums=solution.sums,
        solver=solver.word,
        precision=solution.precision,
        predicts_in_single=asked and solution.precision == "single",
        jitter=solution.jitter,
        trees=solution.trees,
    )


def has_fixed_kernel(plan: FitPlan, scaler: Any) -> bool:
    """Return whether the kernel was chosen without the rows of the embedding."""
    as_given = plan.as_given and scaler is None
    return not plan.warm and (plan.method.kernel_share is not None or as_given)


def refuse_if_too_large(solver: Solver, n_rows: int, matrix_rows: int = 0) -> None:
    """Raise :class:`~kernelwright.MemoryBudgetError` before any work if the embedding would not fit in memory."""
    learning = 7 * 8.0 * min(n_rows, matrix_rows) ** 2  # three kernels, their sum, its inverse and its gradient
    check_memory(max(learning, solver.n_bytes(n_rows)), solver.described(n_rows), solver.advice)
