"""Gradient-based learning methods."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.inputs.options import option_of
from kernelwright.kernels import FeatureKernel, Kernel
from kernelwright.learning.base import MANY, SHARES, Choice, LearningMethod, LearningTask
from kernelwright.learning.collapse import warn_of_collapse
from kernelwright.learning.loop import train
from kernelwright.learning.optimisers import LBFGS, OPTIMIZERS, Adam, Optimizing
from kernelwright.numerics.threads import threads_for
from kernelwright.objectives import (
    EmpiricalRiskObjective,
    FoldsObjective,
    HeldOutObjective,
    Hyperparameters,
    LeaveOneOutObjective,
    Objective,
    RademacherObjective,
)
from kernelwright.objectives.losses import CLIPPED_FORMS, EPSILON, Loss, complexity_multiplier, loss_named, unit_of
from kernelwright.objectives.splits import ShareOfRows
from kernelwright.storage.saved import saved

__all__ = ["EmpiricalRisk", "Folds", "HeldOut", "LeaveOneOut", "Rademacher"]

GRADIENT: dict[str, Any] = SHARES | {
    "optimizer": "no_validation",  # option_of gives better advice if a class is passed instead of an object
    "batch_size": [Interval(Integral, 2, None, closed="left"), None],
}
WEIGHT: list[Any] = [Interval(Real, 0, None, closed="left"), StrOptions({"4e", "4e/n", "4e/sqrt(n)", "1/n"})]
CLIP: list[Any] = [Interval(Real, 0, 1 / math.e, closed="neither")]
LOSS: list[Any] = [StrOptions({*CLIPPED_FORMS, "brier", "calibrated"})]
BATCH_LOSS: list[Any] = [StrOptions({*CLIPPED_FORMS, "brier"})]


class GradientMethod(LearningMethod):
    """Minimise one objective by gradient, on all rows or on mini-batches."""

    optimizer: Optimizing | str | None
    batch_size: int | None

    @abstractmethod
    def objective(self, data: TrainingSet, loss: Loss | None, precision: str) -> Objective:
        """Return the objective for these rows; ``loss`` replaces the method's own."""

    @property
    def matrix_rows(self) -> int:
        return self.batch_size or MANY

    @property
    def mini_batches(self) -> int | None:
        return self.batch_size

    def choose(self, task: LearningTask) -> Choice:
        many = len(task.data) > MANY and self.batch_size is None
        data, batch_size, optimizer = task.data, self.batch_size, self._optimizer()
        if many and isinstance(optimizer, LBFGS):
            data = data.sample(MANY, task.generator)
        elif many:
            batch_size = _usual_batch_size(task.kernel)
        optimizer = optimizer or (LBFGS() if batch_size is None else Adam())
        with threads_for(min(len(data), batch_size or len(data))):
            choice = self._minimise(replace(task, data=data), optimizer, batch_size)
        # n lambda carries over from a sample to all rows; with a given batch size, lambda is kept as published.
        used = min(batch_size or len(data), len(data)) / len(data) * data.total_weight
        return replace(choice, ridge=choice.ridge * used / task.data.total_weight) if many else choice

    def _optimizer(self) -> Optimizing | None:
        if self.optimizer is None:
            return None
        return option_of(self.optimizer, OPTIMIZERS, "optimizer", type(self).__name__, kind=Optimizing)

    def _minimise(self, task: LearningTask, optimizer: Optimizing, batch_size: int | None) -> Choice:
        precision = "double" if task.precision == "auto" else task.precision
        objective = self.objective(task.data, task.loss, precision)
        hyper = Hyperparameters(task.kernel, task.start_ridge)
        result = train(
            objective,
            hyper,
            task.data,
            optimizer=optimizer,
            batch_size=batch_size,
            generator=task.generator,
            callback=task.callback,
        )
        ridge = float(hyper.ridge.detach())
        if isinstance(objective, (RademacherObjective, HeldOutObjective)):
            n = task.data.total_weight * min(1.0, (batch_size or len(task.data)) / len(task.data))
            tau = unit_of(objective.loss) * complexity_multiplier(objective.complexity_weight, n)
            warn_of_collapse(task.kernel, task.data, ridge, tau)
        return Choice(task.kernel, ridge, result.value, result.history, result.message, batch_size)


def _usual_batch_size(kernel: Kernel) -> int:
    """Return the size of a mini-batch that is cheap as a dense matrix, with more rows than explicit features."""
    return max(1000, 2 * kernel.features.n_features if isinstance(kernel, FeatureKernel) else 0)


@saved("learn-rademacher")
class Rademacher(GradientMethod):
    """Learn by the Rademacher complexity bound, Eq. (12) of [Hsu2018]_.

    Parameters
    ----------
    complexity_weight : float or str, default="4e/n"
        tau, the weight of the complexity against the mean loss: a number, "4e" (as printed in Eq. 12; collapses on
        most data, with a warning), "4e/n" (as in the published results), "4e/sqrt(n)" or "1/n".
    epsilon : float, default=1e-15
        Clip of the cross entropy, between 0 and 1/e. ``risk_bound`` uses the same.
    loss : {"log", "normalised", "centred", "brier"}, default="log"
        The clipped cross entropy of Eq. (7); divided by its largest value ``M = -log epsilon``, Eq. (55) of the long
        version; this minus one, Eq. (56), with the same minimum; or the squared loss. With "normalised" and
        ``complexity_weight=4 / (epsilon * log(1 / epsilon))`` the objective is the bound of lemma 15.
    optimizer : LBFGS, Adam, a word for them, or None, default=None
        ``None`` is L-BFGS-B, and Adam for mini-batches.
    batch_size : int or None, default=None
        Rows in a mini-batch; ``None`` is all rows. Of more than 8000 rows it is about 1000 (more with many explicit
        features), or with ``LBFGS()`` one sample of 8000.
    kernel_share, holdout_share : float or None, default=None
        See :class:`LearningMethod`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import EmbeddingClassifier, kernels, learning
    >>> X, y = load_iris(return_X_y=True)
    >>> learn = learning.Rademacher(complexity_weight=0.01, optimizer=learning.Adam(max_iter=50))
    >>> model = EmbeddingClassifier(kernels.Gaussian(), learn=learn).fit(X, y)
    >>> model.n_iter_, bool(model.score(X, y) > 0.9)
    (51, True)
    """

    word: ClassVar[str] = "rademacher"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = GRADIENT | {
        "complexity_weight": WEIGHT,
        "epsilon": CLIP,
        "loss": BATCH_LOSS,
    }

    def __init__(
        self,
        complexity_weight: float | str = "4e/n",
        *,
        epsilon: float = EPSILON,
        loss: str = "log",
        optimizer: Optimizing | str | None = None,
        batch_size: int | None = None,
        kernel_share: float | None = None,
        holdout_share: float | None = None,
    ) -> None:
        self.complexity_weight = complexity_weight
        self.epsilon = epsilon
        self.loss = loss
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    def objective(self, data: TrainingSet, loss: Loss | None, precision: str) -> Objective:  # noqa: D102
        loss = loss or loss_named(self.loss, self.epsilon)
        return RademacherObjective(self.complexity_weight, loss, precision=precision)


@saved("learn-held-out")
class HeldOut(GradientMethod):
    """Learn by the held-out loss: on one part of the rows by the embedding of the others, Eq. (13) of [Hsu2018]_.

    Parameters
    ----------
    complexity_weight : float or str, default="1/n"
    epsilon : float, default=1e-15
    loss : {"log", "normalised", "centred", "brier"}, default="log"
        As in :class:`Rademacher`.
    share : float, default=0.5
        Share of the rows of every class that is held out and scored (of whole groups, if there are groups). With
        mini-batches, also those of a network, it is the share of each batch.
    optimizer, batch_size, kernel_share, holdout_share
        As in :class:`Rademacher`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import EmbeddingClassifier, kernels, learning
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EmbeddingClassifier(kernels.Gaussian(), learn=learning.HeldOut(share=0.3)).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    word: ClassVar[str] = "held-out"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = GRADIENT | {
        "complexity_weight": WEIGHT,
        "epsilon": CLIP,
        "loss": BATCH_LOSS,
        "share": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        complexity_weight: float | str = "1/n",
        *,
        epsilon: float = EPSILON,
        loss: str = "log",
        share: float = 0.5,
        optimizer: Optimizing | str | None = None,
        batch_size: int | None = None,
        kernel_share: float | None = None,
        holdout_share: float | None = None,
    ) -> None:
        self.complexity_weight = complexity_weight
        self.epsilon = epsilon
        self.loss = loss
        self.share = share
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    def objective(self, data: TrainingSet, loss: Loss | None, precision: str) -> Objective:  # noqa: D102
        loss = loss or loss_named(self.loss, self.epsilon)
        return HeldOutObjective(self.complexity_weight, loss, precision=precision, folds=ShareOfRows(self.share))


@saved("learn-leave-one-out")
class LeaveOneOut(GradientMethod):
    """Learn by the leave-one-out loss, in closed form.

    Parameters
    ----------
    complexity_weight : float or str, default="1/n"
    loss : {"brier", "log", "normalised", "centred", "calibrated"}, default="brier"
        "log", "normalised" and "centred" are the clipped cross entropy as in :class:`Rademacher`, "calibrated" the
        cross entropy of calibrated probabilities.
    epsilon : float, default=1e-15
        Clip of the cross entropy, if that is the loss.
    optimizer, batch_size, kernel_share, holdout_share
        As in :class:`Rademacher`.
    """

    word: ClassVar[str] = "leave-one-out"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = GRADIENT | {
        "complexity_weight": WEIGHT,
        "loss": LOSS,
        "epsilon": CLIP,
    }

    def __init__(
        self,
        complexity_weight: float | str = "1/n",
        *,
        loss: str = "brier",
        epsilon: float = EPSILON,
        optimizer: Optimizing | str | None = None,
        batch_size: int | None = None,
        kernel_share: float | None = None,
        holdout_share: float | None = None,
    ) -> None:
        self.complexity_weight = complexity_weight
        self.loss = loss
        self.epsilon = epsilon
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    def objective(self, data: TrainingSet, loss: Loss | None, precision: str) -> Objective:  # noqa: D102
        return LeaveOneOutObjective(
            self.complexity_weight, loss or loss_named(self.loss, self.epsilon), precision=precision
        )


@saved("learn-folds")
class Folds(GradientMethod):
    """Learn by the cross-validated loss: the loss at each fold by the embedding of the other folds.

    Parameters
    ----------
    n_folds : int, default=5
    complexity_weight : float or str, default=0.0
    loss, epsilon
        As in :class:`LeaveOneOut`.
    optimizer, batch_size, kernel_share, holdout_share
        As in :class:`Rademacher`.
    """

    word: ClassVar[str] = "folds"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = GRADIENT | {
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "complexity_weight": WEIGHT,
        "loss": LOSS,
        "epsilon": CLIP,
    }

    def __init__(
        self,
        n_folds: int = 5,
        *,
        complexity_weight: float | str = 0.0,
        loss: str = "brier",
        epsilon: float = EPSILON,
        optimizer: Optimizing | str | None = None,
        batch_size: int | None = None,
        kernel_share: float | None = None,
        holdout_share: float | None = None,
    ) -> None:
        self.n_folds = n_folds
        self.complexity_weight = complexity_weight
        self.loss = loss
        self.epsilon = epsilon
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    def objective(self, data: TrainingSet, loss: Loss | None, precision: str) -> Objective:  # noqa: D102
        n_folds, loss = min(self.n_folds, data.n_units), loss or loss_named(self.loss, self.epsilon)
        return FoldsObjective(self.complexity_weight, loss, precision=precision, folds=n_folds)


@saved("learn-empirical-risk")
class EmpiricalRisk(GradientMethod):
    """Learn by the training loss alone. It overfits, which shows what the complexity term is for.

    Parameters are those of :class:`Rademacher` without a complexity weight.
    """

    word: ClassVar[str] = "empirical-risk"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = GRADIENT | {"epsilon": CLIP, "loss": BATCH_LOSS}

    def __init__(
        self,
        *,
        epsilon: float = EPSILON,
        loss: str = "log",
        optimizer: Optimizing | str | None = None,
        batch_size: int | None = None,
        kernel_share: float | None = None,
        holdout_share: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.loss = loss
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    def objective(self, data: TrainingSet, loss: Loss | None, precision: str) -> Objective:  # noqa: D102
        return EmpiricalRiskObjective(loss=loss or loss_named(self.loss, self.epsilon), precision=precision)
