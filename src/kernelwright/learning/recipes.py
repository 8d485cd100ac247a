"""The library's default recipe: from coarse to fine."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval, StrOptions

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.learning.base import MANY, SHARES, Choice, LearningMethod, LearningTask
from kernelwright.learning.loop import Step, TrainingResult, train
from kernelwright.learning.methods import WEIGHT
from kernelwright.learning.optimisers import LBFGS
from kernelwright.learning.polish import BLOCK, POLISHED_FROM, polish
from kernelwright.learning.trend import find_trend
from kernelwright.numerics.threads import threads_for
from kernelwright.numerics.work import Work
from kernelwright.objectives import CalibratedLogLoss, Hyperparameters, LeaveOneOutObjective
from kernelwright.objectives.losses import BRIER, Loss
from kernelwright.storage.saved import saved

__all__ = ["LEARNED_FROM", "Auto"]

COARSE_ROWS, FINE_ROWS = 500, 800
START_STEPS, COARSE_STEPS, FINE_STEPS = 6, 10, 5
# A kernel for more rows deserves more effort: from this many rows on, more rows to learn from and more steps.
WORTH_MORE = {4000: (1200, 8), MANY: (2000, 10)}
MIDDLE_ROWS, MIDDLE_STEPS, LAST_STEPS = 1000, 6, 5  # most of the way, for more than MANY rows, is gone on few of them
# A smaller change of the objective cannot alter predictions noticeably.
STAGE_TOL = 1e-5
EVALUATIONS_A_STEP, VALUES_A_STEP, CUBES_A_STEP = 1.3, 5.0, 3.0  # against a matrix and its factor; for estimates
POLISH_MATRICES, SINGLE = 15, 0.6  # matrices of a neighbourhood; the time of single precision against double
USUAL_NOISE = 0.1  # n lambda at the start of learning
SHRUNK_BY = 150  # rows to learn from that let the final kernel lie half-way between equal and separate length scales
LEARNED_FROM = 2000  # maximum number of rows whose matrices are held


@saved("learn-auto")
class Auto(LearningMethod):
    """Leave-one-out loss with a small complexity term: first equal length scales, then one for each feature.

    A few steps with the Brier loss, which has a wide basin, lead to a start for the calibrated cross entropy.
    Such hyperparameters need few rows: at most 800 decide them (1200 or 2000 if there are very many). The absolute
    ridge ``n lambda``, not lambda, carries over from a sample to all rows. The default kernel lies between the results
    of both stages, on a logarithmic scale: equal length scales vary less from sample to sample, separate ones follow
    the features. It goes n / (n + 150) of the way, with n the rows of the last stage.

    Parameters
    ----------
    complexity_weight : float or str, default="1/n"
    max_iter : int or None, default=None
        Maximum number of steps in each stage; ``None`` is the recipe's own number.
    tol : float, default=1e-5
        A stage ends when the objective changes by less, relative to its size.
    trend : bool, default=True
        Whether the default kernel may get a linear trend in the columns (:class:`kernelwright.kernels.WithTrend`). It
        gets one if that lowers the leave-one-out loss clearly.
    polish : bool or "auto", default="auto"
        Whether a last step multiplies all length scales by one factor and the ridge by another, chosen by the left-out
        loss of neighbouring rows (:mod:`kernelwright.learning.polish`). "auto" polishes from 2000 rows on.
    kernel_share, holdout_share : float or None, default=None
        See :class:`~kernelwright.learning.base.LearningMethod`.
    """

    word: ClassVar[str] = "auto"
    shrinks_to_frequencies: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = SHARES | {
        "complexity_weight": WEIGHT,
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "trend": ["boolean"],
        "polish": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        complexity_weight: float | str = "1/n",
        *,
        max_iter: int | None = None,
        tol: float = STAGE_TOL,
        trend: bool = True,
        polish: bool | str = "auto",
        kernel_share: float | None = None,
        holdout_share: float | None = None,
    ) -> None:
        self.complexity_weight = complexity_weight
        self.max_iter = max_iter
        self.tol = tol
        self.trend = trend
        self.polish = polish
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    @property
    def matrix_rows(self) -> int:  # noqa: D102
        return LEARNED_FROM

    def work(self, n_rows: int) -> Work:  # noqa: D102
        reached = [least for least in WORTH_MORE if n_rows > least]
        rows, steps = WORTH_MORE[max(reached)] if reached else (FINE_ROWS, FINE_STEPS)
        stages = [(COARSE_ROWS, START_STEPS), (COARSE_ROWS, COARSE_STEPS), (rows, steps)]
        if n_rows > MANY:
            stages[2:] = [(MIDDLE_ROWS, MIDDLE_STEPS), (rows, LAST_STEPS)]
        cubes_a_step = CUBES_A_STEP * (SINGLE if n_rows > MANY else 1.0)
        total = Work()
        for size, planned in stages:
            of_one = Work.of_matrix(min(size, n_rows))
            total += Work(VALUES_A_STEP * of_one.values, cubes_a_step * of_one.cubes).times(
                EVALUATIONS_A_STEP * min(planned, self.max_iter or planned)
            )
        worth = n_rows > POLISHED_FROM if self.polish == "auto" else bool(self.polish)
        return total + (Work.of_matrix(min(BLOCK, n_rows)).times(POLISH_MATRICES) if worth else Work())

    def choose(self, task: LearningTask) -> Choice:  # noqa: D102
        choice, stopped = self._stages(task)
        worth = len(task.data) > POLISHED_FROM if self.polish == "auto" else bool(self.polish)
        return polish(choice, task) if worth and not stopped else choice

    def _stages(self, task: LearningTask) -> tuple[Choice, bool]:
        """Run the stages on samples; return their choice, and whether the user stopped them."""
        data, kernel, loss = task.data, task.kernel, task.loss or CalibratedLogLoss()
        reached = [least for least in WORTH_MORE if len(data) > least]
        fine_rows, fine_steps = WORTH_MORE[max(reached)] if reached else (FINE_ROWS, FINE_STEPS)
        fine = (data.spread_sample if reached else data.sample)(fine_rows, task.generator)
        coarse = fine.sample(COARSE_ROWS, task.generator)
        stages = _Stages(self, task, Hyperparameters(kernel, self._start_ridge(task)))
        if task.warm:
            result = stages.run(fine, loss, task.fine_steps or fine_steps)
            return Choice(kernel, stages.ridge, result.value, stages.history, result.message), result.stopped
        kernel.tie_()
        result = stages.run(coarse, task.loss or BRIER, START_STEPS)
        if not result.stopped:
            result = stages.run(coarse, loss, COARSE_STEPS)
        if self.trend and task.views and task.kept and not result.stopped:
            stages = stages.with_trend(coarse, loss)
        kernel = stages.hyper.kernel
        kernel.prepare_(fine.points, fine.weights)
        equal, equal_ridge = copy.deepcopy(kernel), stages.ridge
        for rows, steps in self._fine_stages(fine, task, task.fine_steps or fine_steps):
            if not result.stopped:
                result = stages.run(rows, loss, steps)
        ridge = stages.ridge
        if task.average and not result.stopped:
            share = fine.total_weight / (fine.total_weight + SHRUNK_BY)
            kernel, ridge = _between(equal, kernel, share), equal_ridge ** (1.0 - share) * ridge**share
        return Choice(kernel, ridge, result.value, stages.history, result.message), result.stopped

    def _fine_stages(self, fine: TrainingSet, task: LearningTask, steps: int) -> list[tuple[TrainingSet, int]]:
        """Return the rows and steps of the last stages: many rows are worth few steps, from a start near the end."""
        if len(task.data) <= MANY:
            return [(fine, steps)]
        return [(fine.sample(MIDDLE_ROWS, task.generator), MIDDLE_STEPS), (fine, LAST_STEPS)]

    def _start_ridge(self, task: LearningTask) -> float:
        return USUAL_NOISE / task.data.total_weight if isinstance(task.ridge, str) else float(task.ridge)


@dataclass(frozen=True)
class _Stages:
    """Stages of learning that pass on their hyperparameters, each on its own rows."""

    method: Auto
    task: LearningTask
    hyper: Hyperparameters
    history: list[Step] = field(default_factory=list)

    @property
    def ridge(self) -> float:
        return float(self.hyper.ridge.detach())

    def run(self, rows: TrainingSet, loss: Loss, steps: int) -> TrainingResult:
        """Learn from some rows; ``hyper`` changes in place."""
        method, task, n = self.method, self.task, self.task.data.total_weight
        many = task.precision == "auto" and len(task.data) > MANY
        precision = "auto" if many else "double" if task.precision == "auto" else task.precision
        objective = LeaveOneOutObjective(method.complexity_weight, loss, 1.0, precision)
        self.hyper.ridge = self.ridge * n / rows.total_weight
        with threads_for(len(rows)):
            optimizer = LBFGS(method.max_iter or steps, method.tol)
            name = f"leave-one-out, {STAGE_NAMES.get(type(loss).__name__, 'given')} loss, {len(rows)} rows"
            result = train(objective, self.hyper, rows, optimizer=optimizer, callback=task.callback, stage=name)
        self.hyper.ridge = self.ridge * rows.total_weight / n
        self.history.extend(result.history)
        return result

    def with_trend(self, rows: TrainingSet, loss: Loss) -> _Stages:
        """Return the stages with a kernel that has a linear trend, if that pays."""
        n = self.task.data.total_weight
        found = find_trend(self.hyper.kernel, self.ridge * n / rows.total_weight, rows, loss, self.task.data)
        if found is None:
            return self
        kernel, ridge = found
        return replace(self, hyper=Hyperparameters(kernel, ridge * rows.total_weight / n))


def _between(equal: Kernel, free: Kernel, share: float) -> Kernel:
    """Return the kernel with every raw parameter that share of the way from one stage to the next; ``free`` changes."""
    with torch.no_grad():
        for start, end in zip(equal.parameters(), free.parameters(), strict=True):
            end.lerp_(start, 1.0 - share)
    return free


STAGE_NAMES = {"BrierLoss": "brier", "CalibratedLogLoss": "calibrated", "ClippedLogLoss": "log"}
