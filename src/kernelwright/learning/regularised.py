"""Cross-validation with the penalty of ridge regression in its objective."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.learning.methods import GRADIENT, WEIGHT, GradientMethod
from kernelwright.learning.optimisers import Optimizing
from kernelwright.objectives import Objective, RegularisedFoldsObjective
from kernelwright.objectives.losses import BRIER, Loss
from kernelwright.storage.saved import saved

__all__ = ["RegularisedFolds"]


@saved("learn-regularised-folds")
class RegularisedFolds(GradientMethod):
    """Learn by the regularised validation objective of [Song2013]_, by gradient.

    It is the mean of ``|l(y, .) - U k(x, .)|^2`` at each fold by the embedding U of the others, plus
    ``lambda |U|_HS^2``. Here lambda is the ridge of the same U, so the objective is that of ridge regression with the
    data fit at other rows. For classes the first term is the Brier loss of raw outputs. Without the second term,
    ``complexity_weight=0``, it is the validation objective of [Grunewalder2012]_, as is :class:`Folds`.

    For classes, answers are level with those of :class:`Folds`. For numbers and vectors, whose errors can be small, the
    second term weighs more, and they are a little worse.

    Parameters
    ----------
    n_folds : int, default=5
    complexity_weight : float or str, default=1.0
        A factor of the second term.
    optimizer, batch_size, kernel_share, holdout_share
        As in :class:`Rademacher`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import EmbeddingClassifier, kernels, learning
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EmbeddingClassifier(kernels.Gaussian(), learn=learning.RegularisedFolds(3)).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    word: ClassVar[str] = "regularised-folds"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = GRADIENT | {
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "complexity_weight": WEIGHT,
    }

    def __init__(
        self,
        n_folds: int = 5,
        *,
        complexity_weight: float | str = 1.0,
        optimizer: Optimizing | str | None = None,
        batch_size: int | None = None,
        kernel_share: float | None = None,
        holdout_share: float | None = None,
    ) -> None:
        self.n_folds = n_folds
        self.complexity_weight = complexity_weight
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.kernel_share = kernel_share
        self.holdout_share = holdout_share

    def objective(self, data: TrainingSet, loss: Loss | None, precision: str) -> Objective:  # noqa: D102
        # Always the squared loss: a logarithm of it would not be in the unit of the second term.
        n_folds = min(self.n_folds, data.n_units)
        return RegularisedFoldsObjective(self.complexity_weight, BRIER, precision=precision, folds=n_folds)
