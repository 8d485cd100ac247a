"""Two-stage kernel learning in one estimator: learn a kernel from the labels, then a classifier with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelwright.estimators.base import COLUMN_CONSTRAINTS
from kernelwright.estimators.classifier import EmbeddingClassifier
from kernelwright.estimators.hyper_ridge import HyperKernelRidge
from kernelwright.estimators.krein import KreinSVC
from kernelwright.inputs.arrays import validate_data
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.given_rows import check_new_rows, described_columns, training_rows
from kernelwright.inputs.labels import class_labels
from kernelwright.inputs.scaling import fit_scaler
from kernelwright.kernels.coordinates import coordinates_of
from kernelwright.solvers import Landmarks
from kernelwright.storage.saved import saved

__all__ = ["LearnedKernelClassifier"]

LANDMARKS = (1000, 2500)  # fewest and most, for many rows
SUPPORT_VECTORS_UP_TO = 3000  # rows; beyond, the eigenvalues of the kernel matrix take too long


def _classifier_has(method: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "classifier_", self.classifier), method))


@saved("learned-kernel-classifier", fields="classes_ reader_ centre_ scaler_ learner_ kernel_ classifier_")
class LearnedKernelClassifier(ClassifierMixin, BaseEstimator):
    """Learn a kernel from the labels, then a classifier with it: the two stages of [Liu2021]_.

    Parameters
    ----------
    learner : estimator or None, default=None
        Stage 1: any estimator with ``fit(X, y)`` and ``kernel_``. ``None`` is :class:`HyperKernelRidge`.
    classifier : estimator or None, default=None
        Stage 2: a classifier with a parameter ``kernel``, which is set to the learned one. ``None`` is
        ``KreinSVC(C="auto")`` up to 3000 rows, and beyond an :class:`EmbeddingClassifier`, which also has
        probabilities.
    scale : {"standard", "unit", None}, default="standard"
        Scaling of the inputs. It matters because hyper-kernels use the total variance, a sum over all features.
    categorical, keep
        As in :class:`EmbeddingClassifier`, for data frames.

    Attributes
    ----------
    learner_, classifier_ : estimators
    kernel_ : Kernel
        The learned kernel, on scaled inputs.
    classes_ : ndarray
    n_features_in_, feature_names_in_, columns_

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelwright import LearnedKernelClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LearnedKernelClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = COLUMN_CONSTRAINTS | {
        "learner": [HasMethods("fit"), None],
        "classifier": [HasMethods(["fit", "predict"]), None],
        "scale": [StrOptions({"standard", "unit"}), None],
    }

    def __init__(
        self,
        learner: Any = None,
        classifier: Any = None,
        *,
        scale: str | None = "standard",
        categorical: str | Sequence[Any] | None = "from_dtype",
        keep: Sequence[Any] = (),
    ) -> None:
        self.learner = learner
        self.classifier = classifier
        self.scale = scale
        self.categorical = categorical
        self.keep = keep

    def fit(self, X: Any, y: Any) -> LearnedKernelClassifier:
        """Learn the kernel, then fit the classifier with it."""
        self._validate_params()
        given = training_rows(X, y, categorical=self.categorical, keep=self.keep)
        X, y = validate_data(self, given.X, y, dtype=np.float64, ensure_all_finite=given.finite)
        given.settle(self)
        self.classes_, _ = class_labels(y, self)
        layout = given.layout(X)
        self.scaler_ = fit_scaler(self.scale, X) if layout is None else coordinates_of(layout, X)
        points = self._scaled(X)
        self.learner_ = HyperKernelRidge(random_state=0) if self.learner is None else clone(self.learner)
        if hasattr(self.learner_, "predict_proba") or hasattr(self.learner_, "decision_function"):
            raise ValueError(
                "The 'learner' parameter of LearnedKernelClassifier must learn a kernel (fit gives kernel_), such as "
                f"HyperKernelRidge or AlignmentKernel. Got the classifier {type(self.learner_).__name__} instead."
            )
        self.kernel_ = self.learner_.fit(points, y).kernel_
        self.classifier_ = self._start_classifier(len(points)).set_params(kernel=self.kernel_).fit(points, y)
        return self

    def _start_classifier(self, n_rows: int) -> Any:
        if self.classifier is None:
            if n_rows <= SUPPORT_VECTORS_UP_TO:
                return KreinSVC(C="auto")
            return EmbeddingClassifier(solver=Landmarks(int(np.clip(n_rows // 20, *LANDMARKS))), random_state=0)
        classifier = clone(self.classifier)
        if "kernel" not in classifier.get_params():
            raise ValueError(
                "The 'classifier' parameter of LearnedKernelClassifier must be a classifier with a parameter 'kernel', "
                f"such as KreinSVC, SVC or EmbeddingClassifier. Got {type(classifier).__name__} instead."
            )
        return classifier

    @property
    def columns_(self) -> tuple[Column, ...]:
        """What was done to each column of the training table."""
        return described_columns(self)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return X if self.scaler_ is None else self.scaler_.transform(X)

    def _new(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._scaled(check_new_rows(self, X, dtype=np.float64))

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes."""
        new = self._new(X)
        return self.classifier_.predict(new)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision values of the second stage."""
        new = self._new(X)
        return self.classifier_.decision_function(new)

    @_classifier_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict log probabilities, if the second stage has them."""
        new = self._new(X)
        return self.classifier_.predict_log_proba(new)

    @_classifier_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities, if the second stage has them."""
        new = self._new(X)
        return self.classifier_.predict_proba(new)
