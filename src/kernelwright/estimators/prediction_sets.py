"""Sets of classes with a promised coverage, around any classifier."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.arrays import check_labels, class_labels
from kernelwright.conformal import CalibrationScores, scores_of
from kernelwright.estimators.classifier import EmbeddingClassifier

__all__ = ["PredictionSets"]

BLOCK_ENTRIES = 2**22  # leave-one-out outputs held at once


class PredictionSets(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Conformal prediction sets: the classes that a row may well have, with a promised coverage.

    Parameters
    ----------
    classifier : estimator
        With ``predict_proba`` or ``decision_function``: any classifier here, or of scikit-learn. A copy is fitted.
    coverage : float, default=0.9
        Share of new rows whose set is to hold the true class.
    method : {"auto", "leave-one-out", "split", "prefit"}, default="auto"
        "leave-one-out" is the jackknife+ [Barber2021]_: all rows fit and all rows calibrate, at the price of one more
        matrix, because an embedding has its leave-one-out models in closed form. "split" keeps ``calibration_share`` of
        the rows for calibration: any classifier, and a guarantee that needs no assumption but exchangeable rows.
        "prefit" takes a classifier that is fitted already, on other rows. "auto" is leave-one-out where there is a
        closed form, and otherwise split.
    class_conditional : bool, default=False
        Promise the coverage for the rows of each class, and not only on average over all: sets of rare and hard classes
        become larger.
    conformity : {"probability", "aps", "raps", "top_k"}, default="probability"
        What makes a class odd: one minus its probability, which gives the smallest sets; or a score of MAPIE (split and
        prefit, not class-conditional), which needs ``pip install mapie``.
    calibration_share : float, default=0.3
        Of "split".
    random_state : int, RandomState or None, default=None
        Of "split".

    Attributes
    ----------
    classifier_ : estimator
    classes_ : ndarray
    method_ : str
    n_calibration_ : int
        Rows that the sets are calibrated on.
    n_features_in_, feature_names_in_

    Notes
    -----
    A set may be empty: where even the likeliest class is odder than almost all rows were. That is part of the promise;
    a model that is right more often than ``coverage`` says nothing about its oddest rows. The jackknife+ promises
    ``2 coverage - 1`` in the worst case and has ``coverage`` in practice; here the hyperparameters are those of all
    rows, which the theory does not allow for and experience forgives (``docs/probabilities.md`` has figures).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import EmbeddingClassifier, PredictionSets
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PredictionSets(EmbeddingClassifier(random_state=0), coverage=0.95).fit(X[::2], y[::2])
    >>> model.method_
    'leave-one-out'
    >>> sets = model.predict_set(X[1::2])
    >>> sets.shape, bool(sets[range(75), y[1::2]].mean() > 0.88)
    ((75, 3), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict_proba"]), HasMethods(["fit", "decision_function"])],
        "coverage": [Interval(Real, 0, 1, closed="neither")],
        "method": [StrOptions({"auto", "leave-one-out", "split", "prefit"})],
        "class_conditional": ["boolean"],
        "conformity": [StrOptions({"probability", "aps", "raps", "top_k"})],
        "calibration_share": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        classifier: Any,
        coverage: float = 0.9,
        *,
        method: str = "auto",
        class_conditional: bool = False,
        conformity: str = "probability",
        calibration_share: float = 0.3,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.coverage = coverage
        self.method = method
        self.class_conditional = class_conditional
        self.conformity = conformity
        self.calibration_share = calibration_share
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self.classifier.__sklearn_tags__().input_tags
        return tags

    # calibration ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> PredictionSets:
        """Fit the classifier, and calibrate its sets on rows that it has not seen."""
        self._validate_params()
        if self.conformity != "probability" and (self.class_conditional or self.method == "leave-one-out"):
            raise ValueError(
                f"conformity={self.conformity!r} comes with method='split' or 'prefit' and marginal coverage only."
            )
        self._left_out, self._mapie = None, None
        if self.method == "prefit":
            check_is_fitted(self.classifier)
            self.classifier_, calibration = self.classifier, _checked(X, y)
        elif self.method == "leave-one-out" or (self.method == "auto" and self._may_leave_out()):
            self.classifier_, calibration = clone(self.classifier).fit(X, y), None
            if not _has_closed_form(self.classifier_):
                if self.method == "leave-one-out":
                    raise ValueError(
                        "method='leave-one-out' needs an EmbeddingClassifier with solver='exact' or explicit features. "
                        f"Got {self.classifier_!r}; use method='split'."
                    )
                calibration = self._split(X, y)
        else:
            calibration = self._split(X, y)
        self.classes_ = self.classifier_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.classifier_, name):
                setattr(self, name, getattr(self.classifier_, name))
        self.method_ = "leave-one-out" if calibration is None else "prefit" if self.method == "prefit" else "split"
        if calibration is None:
            self._calibrate_left_out()
        elif self.conformity == "probability":
            self._calibrate_split(*calibration)
        else:
            self._calibrate_mapie(*calibration)
        return self

    def _may_leave_out(self) -> bool:
        return isinstance(self.classifier, EmbeddingClassifier) and self.conformity == "probability"

    def _split(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Fit to some rows and give back the others; each class keeps its first row for the fit."""
        if self.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                "method='split' cannot divide a matrix of kernel values, whose columns are training rows. Fit the "
                "classifier to some rows and use method='prefit' with the others, or 'leave-one-out' if it has that."
            )
        X, y = _checked(X, y)
        class_labels(y, self)
        rows = np.arange(len(y))
        fitted, held = train_test_split(rows, test_size=self.calibration_share, random_state=self.random_state)
        # A class that only calibration rows have could never be in a set: its first row goes to the others.
        moved = np.isin(held, [held[y[held] == label][0] for label in np.setdiff1d(y, y[fitted])])
        fitted, held = np.append(fitted, held[moved]), held[~moved]
        self.classifier_ = clone(self.classifier).fit(_safe_indexing(X, fitted), y[fitted])
        return _safe_indexing(X, held), y[held]

    def _calibrate_split(self, X: Any, y: Any) -> None:
        scores = scores_of(self._log_proba(X))
        known = np.isin(y, self.classes_)
        labels = torch.from_numpy(np.searchsorted(self.classes_, np.asarray(y)[known]))
        own = scores[torch.from_numpy(known)].gather(1, labels[:, None])[:, 0]
        # A label that the classifier does not know is odder than anything; it belongs to none of the classes.
        if not known.all() and not self.class_conditional:
            unknown = int((~known).sum())
            own = torch.cat([own, torch.full((unknown,), torch.inf, dtype=own.dtype)])
            labels = torch.cat([labels, torch.zeros(unknown, dtype=labels.dtype)])
        self._keep(own, labels, torch.ones(len(own), dtype=torch.float64))

    def _calibrate_left_out(self) -> None:
        self._left_out = rows = self.classifier_._left_out_rows()
        scores = scores_of(self.classifier_._link()(rows.outputs, rows.support))
        self._keep(scores.gather(1, rows.labels[:, None])[:, 0], rows.labels, rows.counts)

    def _keep(self, scores: Tensor, labels: Tensor, counts: Tensor) -> None:
        self._calibration = CalibrationScores(scores, labels, counts, self.coverage, self.class_conditional)
        self.n_calibration_ = int(counts.sum())

    def _calibrate_mapie(self, X: Any, y: Any) -> None:
        try:
            from mapie.classification import SplitConformalClassifier
        except ImportError as error:
            raise ImportError(
                f"conformity={self.conformity!r} is MAPIE's: pip install mapie, or use 'probability'."
            ) from error
        self._mapie = SplitConformalClassifier(
            self.classifier_,
            confidence_level=self.coverage,
            conformity_score=self.conformity,
            prefit=True,
            random_state=self.random_state,
        ).conformalize(X, y)
        self.n_calibration_ = len(y)

    # prediction ----------------------------------------------------------------------------------------

    def _log_proba(self, X: Any) -> Tensor:
        """Logarithms of probabilities; where there are none, of the softmax of decision values, which are as good.

        The promise holds for any score: only how small the sets are depends on it.
        """
        if hasattr(self.classifier_, "predict_log_proba"):
            return torch.from_numpy(np.asarray(self.classifier_.predict_log_proba(X), dtype=np.float64))
        if not hasattr(self.classifier_, "predict_proba"):
            values = torch.from_numpy(np.asarray(self.classifier_.decision_function(X), dtype=np.float64))
            values = torch.stack([-values, values], 1) if values.ndim == 1 else values
            if values.shape[1] != len(self.classes_):
                raise ValueError("The classifier's decision values must have a column for each class ('ovr').")
            return values.log_softmax(1)
        with np.errstate(divide="ignore"):
            return torch.from_numpy(np.log(np.asarray(self.classifier_.predict_proba(X), dtype=np.float64)))

    def predict_set(self, X: Any) -> np.ndarray:
        """Which classes are in the set of each row: a boolean array, a column for each of ``classes_``."""
        check_is_fitted(self)
        if self._mapie is not None:
            _, sets = self._mapie.predict_set(X)
            return sets[:, :, 0]
        if self._left_out is None:
            smaller = self._calibration.smaller(scores_of(self._log_proba(X)))
        else:
            n_rows = max(1, BLOCK_ENTRIES // self._left_out.change.numel())
            link = self.classifier_._link()
            parts = [
                self._left_out.smaller(values, outputs, support, self._calibration, link)
                for values, outputs, support in self.classifier_._blocks_for_sets(X, n_rows)
            ]
            smaller = torch.cat(parts)
        return self._calibration.sets(smaller).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """As the classifier's."""
        check_is_fitted(self)
        return self.classifier_.predict(X)

    @available_if(lambda self: hasattr(self.classifier, "predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """As the classifier's, if it has them."""
        check_is_fitted(self)
        return self.classifier_.predict_proba(X)


def _checked(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    if y is None:
        raise ValueError("PredictionSets requires y to be passed, but the target y is None.")
    X, y = indexable(X, column_or_1d(y, warn=True))
    check_labels(y)
    return X, y


def _has_closed_form(classifier: Any) -> bool:
    return isinstance(classifier, EmbeddingClassifier) and classifier.solver_ in ("exact", "explicit")
