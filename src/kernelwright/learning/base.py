"""The base class of learning methods, and the two that learn nothing."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.inputs.options import Option
from kernelwright.kernels import Kernel
from kernelwright.learning.loop import Step
from kernelwright.numerics.work import Work
from kernelwright.objectives.losses import Loss
from kernelwright.storage.saved import saved

__all__ = ["MANY", "SHARES", "Choice", "Given", "LearningMethod", "LearningTask", "Median"]

MANY = 8000  # rows; with more, methods that need all rows at once use samples or mini-batches
START_RIDGE = 0.01  # a safer start than the 1 of [Hsu2018]_


@dataclass(frozen=True)
class LearningTask:
    """A kernel to learn, and the data and settings for it."""

    kernel: Kernel  # it is changed: pass a copy
    data: TrainingSet
    ridge: float | str  # the ridge at which learning starts, or "auto"
    generator: torch.Generator
    loss: Loss | None = None  # for targets that are not classes; replaces the method's own loss
    precision: str = "double"  # of factors; "auto" is single for very many rows
    callback: Callable[[Step], Any] | None = None
    warm: bool = False  # kernel and ridge come from an earlier fit: refine them
    kept: float = 1.0  # the share of the rows that the solver keeps as points; zero if it works by other features
    stretches: bool = True  # the last step for many rows may change the length scales, not only the ridge
    views: bool = False  # points are the views of a table: the default recipe may add a linear trend
    average: bool = False  # the default recipe returns a kernel between those of its two stages
    fine_steps: int | None = None  # of the last stage of the default recipe
    # The rows next to each of some points, if the data are a sample of far more rows.
    nearest: Callable[[Kernel, Tensor, int], Iterable[TrainingSet]] | None = None

    @property
    def start_ridge(self) -> float:
        """The ridge as given, or a safe start."""
        return START_RIDGE if isinstance(self.ridge, str) else float(self.ridge)


@dataclass(frozen=True)
class Choice:
    """The chosen hyperparameters, and how they were chosen."""

    kernel: Kernel
    ridge: float
    value: float  # of the objective; NaN if none was used
    history: list[Step]
    message: str
    batch_size: int | None = None  # rows of a mini-batch, if there were any


SHARES: dict[str, list[Any]] = {
    "kernel_share": [Interval(Real, 0, 1, closed="neither"), None],
    "holdout_share": [Interval(Real, 0, 1, closed="neither"), None],
}


class LearningMethod(Option):
    """A way to choose a kernel's parameters and the ridge.

    All methods have two more settings. ``kernel_share`` is the random share of the rows from which the kernel, the
    ridge and the scale of the inputs are learned; the embedding is then solved on the *other* rows, so that
    ``risk_bound`` has its fixed-kernel form. ``None`` uses all rows for both, which predicts better. ``holdout_share``
    is the share of the rows that are not fitted at all but kept for ``risk_bound("holdout")``.
    """

    kernel_share: float | None
    holdout_share: float | None

    learns: ClassVar[bool] = True  # whether the kernel and the ridge are fitted to the targets
    shrinks_to_frequencies: ClassVar[bool] = False  # whether outputs return to the class frequencies far from the data

    @abstractmethod
    def choose(self, task: LearningTask) -> Choice:
        """Choose the hyperparameters, for a prepared kernel."""

    @property
    def matrix_rows(self) -> int:
        """The maximum number of rows whose kernel matrix is held while hyperparameters are learned."""
        return MANY

    def work(self, n_rows: int) -> Work:
        """Return about how much work the choice is; by default it is not known, and counts as none."""
        return Work()

    @property
    def mini_batches(self) -> int | None:
        """The number of rows of a mini-batch, if one was requested."""
        return None


@saved("learn-given")
class Given(LearningMethod):
    """Hyperparameters as given: nothing is learned (the word is ``None``)."""

    word: ClassVar[str] = "given"
    learns: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = SHARES

    def __init__(self, *, kernel_share: float | None = None, holdout_share: float | None = None) -> None:
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    @property
    def matrix_rows(self) -> int:  # noqa: D102
        return 0

    def choose(self, task: LearningTask) -> Choice:  # noqa: D102
        return Choice(task.kernel, task.start_ridge, math.nan, [], "Hyperparameters as given.")


@saved("learn-median")
class Median(LearningMethod):
    """The median heuristic: length scales at the median distance. It uses no labels; the ridge stays as given."""

    word: ClassVar[str] = "median"
    learns: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = SHARES

    def __init__(self, *, kernel_share: float | None = None, holdout_share: float | None = None) -> None:
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    @property
    def matrix_rows(self) -> int:  # noqa: D102
        return 0

    def choose(self, task: LearningTask) -> Choice:  # noqa: D102
        task.kernel.use_median_()
        task.kernel.prepare_(task.data.points, task.data.weights)
        return Choice(task.kernel, task.start_ridge, math.nan, [], "Length scales at the median distance.")
