"""What estimators share: how user data become points and labels, kernel values in blocks, predictions."""

from __future__ import annotations

import copy
import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.embedding.support import Support
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import CalibrationWarning, OverfitWarning
from kernelwright.inputs.arrays import validate_data
from kernelwright.inputs.dask_rows import dask_mean, is_dask, lazily
from kernelwright.inputs.labels import check_labels, class_labels
from kernelwright.inputs.scaling import TableViews
from kernelwright.inputs.weights import row_weights
from kernelwright.kernels import Kernel, Precomputed, Tabular
from kernelwright.kernels.relevance import Relevance, rank_features, warn_of_bounds
from kernelwright.learning.optimisers import Step
from kernelwright.numerics.linalg import finite
from kernelwright.numerics.memory import check_memory
from kernelwright.solvers.solvers import LEARNED_FROM, estimated_bytes
from kernelwright.uncertainty.calibration import Link, ProbabilityMap

__all__ = [
    "KernelEstimator",
    "ProbabilityClassifier",
    "by_chunks",
    "refuse_if_too_large",
    "warn_of_bad_fit",
    "with_lines",
]

BLOCK_ENTRIES = 2**20  # kernel values held at once while predicting: more would not stay in the cache


MERGE_UP_TO = 5000  # rows, where equal rows need not be merged: beyond, it costs more than it says


def by_chunks(method: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """For a Dask collection the method gives a Dask array, lazily, a chunk for each chunk."""

    @functools.wraps(method)
    def either(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *arguments, **options)
        check_is_fitted(self)
        return lazily(getattr(self, method.__name__), X, *arguments, **options)

    return either


class ProbabilityClassifier(ClassifierMixin):
    """Labels in, and all that is predicted from raw outputs. A subclass has ``_outputs_and_support``."""

    classes_: np.ndarray
    class_weight: Any
    class_weight_: np.ndarray  # what the rows of each class are weighted by, relative to each other
    probability_map_: ProbabilityMap
    class_prior_: np.ndarray  # what probabilities return to far from all training rows
    trust_: float = 1.0  # in the model, the rest is the class frequencies'
    _support: Support

    def _check_labels(self, y: np.ndarray, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels and weights of the rows that count, and which rows those are (weight not zero)."""
        check_labels(y)  # before its classes are weighed
        weights = row_weights(y, sample_weight, self.class_weight)
        kept = weights > 0
        self.classes_, labels = class_labels(y[kept], self)
        plain_weights = row_weights(y, sample_weight, None)[kept]
        self.class_weight_ = np.bincount(labels, weights[kept]) / np.bincount(labels, plain_weights)
        return labels, weights[kept], kept

    def _outputs_and_support(self, X: Any) -> tuple[Tensor, Tensor]:
        """Raw outputs and support of each row."""
        raise NotImplementedError

    @by_chunks
    def raw_outputs(self, X: Any) -> np.ndarray:
        """``f(x)`` of Eq. (5), a column for each class: estimates of the probabilities that may leave [0, 1]."""
        return self._outputs_and_support(X)[0].numpy()

    @by_chunks
    def decision_function(self, X: Any) -> np.ndarray:
        """Raw outputs (Eq. 5); for two classes the second less the first, as scikit-learn has it."""
        outputs = self.raw_outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    @by_chunks
    def predict_proba(self, X: Any, *, unweighted: bool = False) -> np.ndarray:
        """Calibrated probabilities, a column for each of ``classes_``.

        Where a row has less :meth:`support` than is usual, they are drawn to the class frequencies, and far from all
        training rows they are these (except with ``probability="clip"``, which is Eq. (6) to the letter).

        Parameters
        ----------
        X : array-like
        unweighted : bool, default=False
            With ``class_weight`` probabilities are those of the weighted population, in which each class is as
            frequent as its weight makes it, and so are the answers of :meth:`predict`. ``True`` gives those of rows as
            they come: each divided by the weight of its class, and brought to sum one again.
        """
        return np.exp(self.predict_log_proba(X, unweighted=unweighted))

    @by_chunks
    def predict_log_proba(self, X: Any, *, unweighted: bool = False) -> np.ndarray:
        """Logarithm of :meth:`predict_proba`."""
        outputs, support = self._outputs_and_support(X)
        log_p = self._link()(outputs, support)
        if unweighted:
            log_p = torch.log_softmax(log_p - torch.from_numpy(self.class_weight_).log(), 1)
        return log_p.numpy()

    def predict_with_support(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """:meth:`predict_proba` and :meth:`support` at the price of one of them."""
        outputs, support = self._outputs_and_support(X)
        return self._link()(outputs, support).exp().numpy(), support.numpy()

    def _link(self) -> Link:
        return Link(self.probability_map_, torch.from_numpy(self.class_prior_), self.trust_)

    @by_chunks
    def predict(self, X: Any) -> np.ndarray:
        """The class of largest probability."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows (of their weight) whose class is named right."""
        if not is_dask(X):
            return super().score(X, y, sample_weight)
        return dask_mean(self._hits, X, y, sample_weight)

    def _hits(self, X: Any, y: Any) -> np.ndarray:
        return (self.predict(X) == np.asarray(y)).astype(np.float64)

    @property
    def n_support_rows_(self) -> int:
        """How many training rows made the unit of :meth:`support`: it is a quantile, exact only for many."""
        check_is_fitted(self)
        return self._support.n_rows

    @by_chunks
    def support(self, X: Any) -> np.ndarray:
        """How much the training rows say about each row.

        It is the kernel's value with the nearest training row (for explicit features one over the leverage), in units
        of what only a hundredth of the training rows stay below with respect to the others. So about one row in a
        hundred of the same kind lies below 1; many rows below 1 are rows of another kind, and near 0 the model
        has nothing to go by. Where inputs are squashed or features periodic, it falls beyond the range of the
        training rows as a kernel on plain inputs would.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from kernelwright import EmbeddingClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EmbeddingClassifier(random_state=0).fit(X[::2], y[::2])
        >>> bool(np.mean(model.support(X[1::2]) < 1) < 0.1), model.support(X[:1] + 100.0).round(3)
        (True, array([0.]))
        """
        return self._outputs_and_support(X)[1].numpy()


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

    def _check_new(self, X: Any) -> Any:
        check_is_fitted(self)
        if self.kernel_.takes_vectors or isinstance(self.kernel_, Precomputed):
            return validate_data(self, X, dtype=np.float64, reset=False)
        return X

    def _new_points(self, X: Any) -> Tensor:
        """New rows, checked, as the kernel sees them."""
        X = self._check_new(X)
        return self._encode(self.kernel_, X)

    def relevance(self) -> Relevance:
        """Features by falling relevance, from the learned length scales; prints as a table.

        A feature's share is its spread over its length scale, relative to the sum over all features. It says how much
        the kernel listens to the feature, not whether the feature causes anything: of two that say the same, one may
        get all. Warns where a length scale sits at a bound.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kernelwright import EmbeddingClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = EmbeddingClassifier(random_state=0).fit(X, y)
        >>> model.relevance().rows[0].name.startswith("petal")
        True
        """
        check_is_fitted(self)
        n = getattr(self, "n_features_in_", 0)
        names = getattr(self, "feature_names_in_", [f"x{d}" for d in range(n)])
        columns = self.scaler_.columns_ if isinstance(self.scaler_, TableViews) else np.arange(n)
        seen = self.points_[:, : len(columns)] if len(self.points_) > 1 else np.empty((0, 0))
        spread = seen.std(0) if len(seen) else np.ones(len(columns))  # explicit features keep no points
        found = rank_features(self.kernel_, names, columns, spread)
        warn_of_bounds(found)
        return found

    def _predicts_in_single(self) -> bool:
        return False

    def _kernel_blocks(self, points: Tensor, n_rows: int | None = None) -> Iterator[Tensor]:
        """Kernel values of new points with the training points, some rows at a time; single where it was asked for."""
        training, kernel = torch.from_numpy(self.points_), self.kernel_
        if self._predicts_in_single() and kernel.takes_vectors:
            kernel, training, points = copy.deepcopy(kernel).float(), training.float(), points.float()
        rows = n_rows or max(1, BLOCK_ENTRIES // len(training))
        for number, block in enumerate(points.split(rows)):
            with torch.no_grad():
                K = kernel.forward(block, training)
            yield K if kernel.bounded else finite(K, number * rows)


FITTED, APART, JUDGED_FROM = 0.98, 0.3, 20  # shares of rows that are told, and rows below which luck decides


def warn_of_bad_fit(answers: Tensor, fitted: TrainingSet, log_p: Tensor, left_out: TrainingSet) -> None:
    """Say where rows left out contradict the fit: it tells them no better than chance, or far better than it says.

    ``answers`` are the numbers of the classes named at fitted rows, ``log_p`` those of probabilities at rows left out.
    """
    if left_out.n_units < JUDGED_FROM:
        return
    labels, w = left_out.targets.argmax(1), left_out.weights / left_out.total_weight
    right, sure = float(w @ (log_p.argmax(1) == labels).double()), float(w @ log_p.exp().amax(1))
    most = float((w @ left_out.targets).max())
    told = float(fitted.weights @ (answers == fitted.targets.argmax(1)).double()) / fitted.total_weight
    if told >= FITTED and right <= most and told - right > APART:
        warnings.warn(
            f"The model overfits: it tells {100 * told:.0f} % of its training rows, but only {100 * right:.0f} % of "
            f"the rows that are left out, where the most frequent class alone would tell {100 * most:.0f} %. Use "
            "learn='auto', a larger ridge or a longer length scale; or there is nothing to learn.",
            OverfitWarning,
            stacklevel=4,
        )
    elif right - sure > APART:
        warnings.warn(
            f"The probabilities are far too timid: {100 * right:.0f} % of the rows that are left out are told right, "
            f"with a mean confidence of {100 * sure:.0f} %. Use learn='auto' or more rows of each class, or trust only "
            "the order of the classes.",
            CalibrationWarning,
            stacklevel=4,
        )


def refuse_if_too_large(n_rows: int, solver: str = "exact", size: int = 0, learned_from: int = LEARNED_FROM) -> None:
    """Raise :class:`MemoryBudgetError` for an embedding that would not fit, before anything is done for it."""
    if solver == "exact":
        what, instead = f"An exact embedding of {n_rows} distinct rows", "Use solver='nystroem' where there is one "
        instead += "('auto' does), or fit on a sample of the rows."
    else:
        what, instead = f"solver={solver!r} with {size} of {n_rows} rows", "Use fewer (n_landmarks), or fewer rows."
    check_memory(estimated_bytes(solver, n_rows, size, learned_from), what, instead)


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
