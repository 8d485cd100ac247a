"""What estimators share: how user data become points and labels, kernel values in blocks, predictions."""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from kernelwright.arrays import check_memory, class_labels, row_weights
from kernelwright.calibration import ProbabilityMap
from kernelwright.kernels import Kernel, Precomputed, Tabular
from kernelwright.training import Step

__all__ = ["KernelEstimator", "ProbabilityClassifier", "refuse_if_too_large", "with_lines"]

BLOCK_ENTRIES = 2**24  # kernel values held at once while predicting


MERGE_UP_TO = 5000  # rows, where equal rows need not be merged: beyond, it costs more than it says


class ProbabilityClassifier(ClassifierMixin):
    """Labels in, and all that is predicted from raw outputs: a subclass has ``_raw`` and a probability map."""

    classes_: np.ndarray
    class_weight: Any
    probability_map_: ProbabilityMap

    def _check_labels(self, y: np.ndarray, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels and weights of the rows that count, and which rows those are (weight not zero)."""
        check_classification_targets(y)  # before its classes are weighed
        weights = row_weights(y, sample_weight, self.class_weight)
        kept = weights > 0
        self.classes_, labels = class_labels(y[kept], self)
        return labels, weights[kept], kept

    def _raw(self, X: Any) -> Tensor:
        raise NotImplementedError

    def raw_outputs(self, X: Any) -> np.ndarray:
        """``f(x)`` of Eq. (5), a column for each class: estimates of the probabilities that may leave [0, 1]."""
        return self._raw(X).numpy()

    def decision_function(self, X: Any) -> np.ndarray:
        """Raw outputs (Eq. 5); for two classes the second less the first, as scikit-learn has it."""
        outputs = self.raw_outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: Any) -> np.ndarray:
        """Calibrated probabilities, a column for each of ``classes_``."""
        outputs = self._raw(X)
        return self.probability_map_(outputs).numpy()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of :meth:`predict_proba`."""
        outputs = self._raw(X)
        return self.probability_map_.log(outputs).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The class of largest probability."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]


class KernelEstimator(BaseEstimator):
    """An estimator with a parameter ``kernel``: a kernel, "precomputed", or None for the default on tables."""

    kernel: Kernel | str | None
    kernel_: Kernel
    scaler_: Any
    points_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _start_kernel(self) -> Kernel:
        """A copy of the kernel that the user gave, to be learned."""
        if self.kernel is None:
            return Tabular()
        return Precomputed() if isinstance(self.kernel, str) else copy.deepcopy(self.kernel)

    def _encode(self, kernel: Kernel, X: Any) -> Tensor:
        """Rows as the kernel sees them."""
        return kernel.encode(X if self.scaler_ is None else self.scaler_.transform(X))

    def _new_points(self, X: Any) -> Tensor:
        """New rows, checked, as the kernel sees them."""
        check_is_fitted(self)
        if self.kernel_.takes_vectors or isinstance(self.kernel_, Precomputed):
            X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._encode(self.kernel_, X)

    def _kernel_blocks(self, points: Tensor) -> Iterator[Tensor]:
        """Kernel values of new points with the training points, some rows at a time."""
        training = torch.from_numpy(self.points_)
        for block in points.split(max(1, BLOCK_ENTRIES // len(training))):
            with torch.no_grad():
                yield self.kernel_.forward(block, training)


def refuse_if_too_large(n_rows: int) -> None:
    """Raise :class:`MemoryBudgetError` for a dense embedding that would not fit."""
    check_memory(
        4 * 8.0 * n_rows**2,  # the matrix, its factor, and two temporary copies
        f"An exact embedding of {n_rows} distinct rows",
        "Use solver='nystroem' where there is one ('auto' does), or fit on a sample of the rows.",
    )


def with_lines(callback: Callable[[Step], Any] | None, every: int) -> Callable[[Step], Any] | None:
    """The user's callback, and before it a line on standard error every so many steps."""
    if not every:
        return callback
    steps = itertools.count()

    def report(step: Step) -> None:
        number = next(steps)
        if number % int(every) == 0:
            sys.stderr.write(
                f"step {number:4d}  objective {step.objective:.5f}  loss {step.loss:.5f}  "
                f"complexity {step.complexity:.4g}\n"
            )
        if callback is not None:
            callback(step)

    return report
