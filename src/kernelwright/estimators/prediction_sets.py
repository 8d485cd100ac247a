"""Prediction sets with a chosen coverage, for any classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelwright.estimators.answers import AnswersInFrames, in_frames, the_classes
from kernelwright.estimators.base import part_of
from kernelwright.estimators.classifier import EmbeddingClassifier
from kernelwright.inputs.labelled_rows import LabelledRows, check_labelled
from kernelwright.inputs.labels import class_labels
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.conformal import Promise
from kernelwright.uncertainty.set_calibration import (
    SetCalibration,
    calibrate_by_mapie,
    calibrate_cross,
    calibrate_left_out,
    calibrate_split,
)

__all__ = ["PredictionSets"]

CROSS_UP_TO = 2000  # rows; beyond, learned hyperparameters add little bias, and more fits are expensive


@saved("prediction-sets", fields="classifier_ classes_ method_ calibration_")
class PredictionSets(AnswersInFrames, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Conformal prediction sets: sets of plausible classes with a chosen coverage.

    Parameters
    ----------
    classifier : estimator
        Any classifier with ``predict_proba`` or ``decision_function``, from here or scikit-learn. A copy is fitted.
    coverage : float, default=0.9
        Share of new rows whose set should contain the true class.
    by : {"class"} or None, default=None
        "class" gives the coverage for the rows of each class, not only on average over all rows. Sets of rare and hard
        classes become larger.
    method : {"auto", "cross", "leave-one-out", "split", "prefit"}, default="auto"
        "cross" (CV+ of [Barber2021]_) fits ``n_folds`` more copies, each without one fold, which calibrates it. It
        works with any classifier, and uses all rows for fitting and for calibration. "leave-one-out" is the jackknife+
        [Barber2021]_. It costs one more matrix, because the leave-one-out models of an embedding have a closed form.
        But they share hyperparameters that were learned from all rows, so on small and noisy tables the coverage is a
        few points too low. "split" holds out ``calibration_share`` of the rows for calibration: any classifier, and the
        strongest guarantee. "prefit" takes a classifier that was fitted on other rows. "auto" is "cross" for an
        :class:`EmbeddingClassifier` of up to 2000 rows, beyond that "leave-one-out" if there is a closed form, and
        otherwise "split".
    class_conditional : bool, default=False
        The same as ``by="class"``.
    conformity : {"probability", "aps", "raps", "top_k"}, default="probability"
        The conformity score. "probability" (one minus the probability of the class) gives the smallest sets. The others
        are scores of MAPIE (only for "split" and "prefit", not by class), which need
        ``pip install 'kernelwright[conformal]'``.
    calibration_share : float, default=0.3
        Share of calibration rows for "split".
    n_folds : int, default=10
        Number of folds for "cross".
    random_state : int, RandomState or None, default=None
        For "split" and "cross".

    Attributes
    ----------
    classifier_ : estimator
    classes_ : ndarray
    method_ : str
    calibration_ : SetCalibration
        The calibration (:mod:`kernelwright.uncertainty.set_calibration`). A part of it: ``n_calibration_``, the number
        of calibration rows.
    n_features_in_, feature_names_in_

    Notes
    -----
    A set may be empty, if even the most probable class conforms less than almost all calibration rows did. This is
    correct: a model that is right more often than ``coverage`` gives empty sets to its least typical rows.

    Guarantees for n exchangeable rows: "split" and "prefit" have ``coverage``; "cross" has at least
    ``2 coverage - 1 - sqrt(2 / n)`` [Barber2021]_. In experiments, "cross" has ``coverage`` on twelve synthetic tasks
    of 30 to 500 rows (``docs/reliability.md``), with sets of about the same size as "split" or smaller. The proof does
    not cover "leave-one-out", because its hyperparameters are learned from all rows. With ``groups``, the rows of a
    group are left out together, and the coverage is for rows of new groups.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import EmbeddingClassifier, PredictionSets
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PredictionSets(EmbeddingClassifier(random_state=0), coverage=0.95).fit(X[::2], y[::2])
    >>> model.method_
    'cross'
    >>> sets = model.predict_set(X[1::2])
    >>> sets.shape, bool(sets[range(75), y[1::2]].mean() > 0.88)
    ((75, 3), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict_proba"]), HasMethods(["fit", "decision_function"])],
        "coverage": [Interval(Real, 0, 1, closed="neither")],
        "by": [StrOptions({"class"}), None],
        "method": [StrOptions({"auto", "cross", "leave-one-out", "split", "prefit"})],
        "class_conditional": ["boolean"],
        "conformity": [StrOptions({"probability", "aps", "raps", "top_k"})],
        "calibration_share": [Interval(Real, 0, 1, closed="neither")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    calibration_: SetCalibration
    n_calibration_ = part_of("calibration_", "n_rows")

    def __init__(
        self,
        classifier: Any,
        coverage: float = 0.9,
        *,
        by: str | None = None,
        method: str = "auto",
        class_conditional: bool = False,
        conformity: str = "probability",
        calibration_share: float = 0.3,
        n_folds: int = 10,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.coverage = coverage
        self.by = by
        self.method = method
        self.class_conditional = class_conditional
        self.conformity = conformity
        self.calibration_share = calibration_share
        self.n_folds = n_folds
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self.classifier.__sklearn_tags__().input_tags
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> PredictionSets:
        """Fit the classifier, and calibrate the sets on held-out rows.

        Parameters
        ----------
        X, y : array-like
        sample_weight : array-like of shape (n,), optional
            Row weights for the classifier. The coverage counts *rows*, whatever their weights.
        groups : array-like of shape (n,), optional
            Group labels. The rows of a group calibrate only models that were fitted without that group. They are passed
            to the classifier if its ``fit`` takes them.
        """
        self._validate_params()
        if self.conformity != "probability" and (self._promise().by_class or self.method in ("leave-one-out", "cross")):
            raise ValueError(
                f"conformity={self.conformity!r} needs method='split' or 'prefit', and marginal coverage (by=None)."
            )
        if self.method == "prefit":
            check_is_fitted(self.classifier)
            classifier, method = self.classifier, "prefit"
            calibration = self._calibrated(classifier, *check_labelled(X, y))
        else:
            rows = LabelledRows.of(X, y, sample_weight, groups)
            method, classifier, calibration = self._fitted(rows)
        self.method_, self.classifier_, self.calibration_ = method, classifier, calibration
        self.classes_ = classifier.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(classifier, name):
                setattr(self, name, getattr(classifier, name))
        return self

    def _promise(self) -> Promise:
        return Promise(self.coverage, by_class=self.class_conditional or self.by == "class")

    def _fitted(self, rows: LabelledRows) -> tuple[str, Any, SetCalibration]:
        """Return the method, the fitted classifier and the calibration."""
        promise = self._promise()
        method = self._pick_method(len(rows)) if self.method == "auto" else self.method
        if method == "leave-one-out":
            classifier = rows.fit(self.classifier)
            if has_closed_form(classifier):
                return method, classifier, calibrate_left_out(classifier, promise)
            if self.method == method:
                raise ValueError(
                    "method='leave-one-out' needs an EmbeddingClassifier with solver='exact' or explicit "
                    f"features. Got {classifier!r}; use method='cross' or 'split'."
                )
            method = "split"
        if self.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                f"method={method!r} cannot divide a matrix of kernel values, whose columns are training rows. "
                "Fit the classifier to some rows and use method='prefit' with the others, or use 'leave-one-out' if it "
                "is available."
            )
        if method == "split":
            class_labels(rows.y, self)
            some, held = rows.divided(self.calibration_share, self.random_state)
            classifier = some.fit(self.classifier)
            return method, classifier, self._calibrated(classifier, held.X, held.y)
        classifier = rows.fit(self.classifier)
        options = {"n_folds": self.n_folds, "random_state": self.random_state}
        return method, classifier, calibrate_cross(self.classifier, rows, classifier.classes_, promise, **options)

    def _pick_method(self, n_rows: int) -> str:
        if not isinstance(self.classifier, EmbeddingClassifier) or self.conformity != "probability":
            return "split"
        few = n_rows <= CROSS_UP_TO and not self.__sklearn_tags__().input_tags.pairwise
        return "cross" if few else "leave-one-out"

    def _calibrated(self, classifier: Any, X: Any, y: np.ndarray) -> SetCalibration:
        """Calibrate a classifier on held-out rows."""
        if self.conformity == "probability":
            return calibrate_split(classifier, X, y, self._promise())
        how = {"conformity": self.conformity, "random_state": self.random_state}
        return calibrate_by_mapie(classifier, X, y, coverage=self.coverage, **how)

    @in_frames(the_classes)
    def predict_set(self, X: Any) -> np.ndarray:
        """Return the set of each row as a boolean array, with one column for each of ``classes_``."""
        check_is_fitted(self)
        return self.calibration_.sets(X)

    @in_frames()
    def predict(self, X: Any) -> np.ndarray:
        """Predict classes, as the classifier does."""
        check_is_fitted(self)
        return self.classifier_.predict(X)

    @available_if(lambda self: hasattr(self.classifier, "predict_proba"))
    @in_frames(the_classes)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities, as the classifier does, if it has them."""
        check_is_fitted(self)
        return self.classifier_.predict_proba(X)


def has_closed_form(classifier: Any) -> bool:
    """Return whether the leave-one-out models of a fitted classifier have a closed form."""
    return isinstance(classifier, EmbeddingClassifier) and classifier.solver_ in ("exact", "explicit")
