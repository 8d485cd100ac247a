"""Sets of classes with a promised coverage, around any classifier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.utils import _safe_indexing, check_random_state, column_or_1d, indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter
from torch import Tensor

from kernelwright.estimators.classifier import EmbeddingClassifier
from kernelwright.inputs.arrays import plain
from kernelwright.inputs.labels import check_labels, class_labels
from kernelwright.inputs.weights import group_numbers
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.conformal import CalibrationScores, scores_of, smaller_scores

__all__ = ["PredictionSets"]

BLOCK_ENTRIES = 2**22  # leave-one-out outputs held at once
CROSS_UP_TO = 2000  # rows; beyond, hyperparameters hide little, and further fits cost more


@saved("prediction-sets", fields="classifier_ classes_ method_ n_calibration_ _calibration _left_out _mapie _parts")
class PredictionSets(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Conformal prediction sets: the classes that a row may well have, with a promised coverage.

    Parameters
    ----------
    classifier : estimator
        With ``predict_proba`` or ``decision_function``: any classifier here, or of scikit-learn. A copy is fitted.
    coverage : float, default=0.9
        Share of new rows whose set is to hold the true class.
    method : {"auto", "cross", "leave-one-out", "split", "prefit"}, default="auto"
        "cross" (CV+ of [Barber2021]_) fits ``n_folds`` further copies, each without a part of the rows, which calibrate
        it: any classifier, all rows fit and all rows calibrate. "leave-one-out" is the jackknife+ [Barber2021]_ at the
        price of one more matrix, because an embedding has its leave-one-out models in closed form; but all of them
        share hyperparameters that have seen all rows, so on small and noisy tables sets fall short by some points.
        "split" keeps ``calibration_share`` of the rows for calibration: any classifier, and the strongest guarantee.
        "prefit" takes a classifier that is fitted already, on other rows. "auto" is "cross" for an
        :class:`EmbeddingClassifier` of up to 2000 rows, beyond them leave-one-out where there is a closed form, and
        otherwise split.
    class_conditional : bool, default=False
        Promise the coverage for the rows of each class, and not only on average over all: sets of rare and hard classes
        become larger.
    conformity : {"probability", "aps", "raps", "top_k"}, default="probability"
        What makes a class odd: one minus its probability, which gives the smallest sets; or a score of MAPIE (split and
        prefit, not class-conditional), which needs ``pip install mapie``.
    calibration_share : float, default=0.3
        Of "split".
    n_folds : int, default=10
        Of "cross".
    random_state : int, RandomState or None, default=None
        Of "split" and "cross".

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
    a model that is right more often than ``coverage`` says nothing about its oddest rows.

    What is proved, for n exchangeable rows: "split" and "prefit" have ``coverage``; "cross" has at least
    ``2 coverage - 1 - sqrt(2 / n)`` [Barber2021]_. What is measured: "cross" has ``coverage`` on twelve made-up tasks
    of 30 to 500 rows (``docs/reliability.md``), with sets of about the size of those of "split" or smaller.
    "leave-one-out" is not covered by the proof, for its hyperparameters have seen all rows. With ``groups`` rows of a
    group are left out together, and the coverage is that of rows of new groups.

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
        "method": [StrOptions({"auto", "cross", "leave-one-out", "split", "prefit"})],
        "class_conditional": ["boolean"],
        "conformity": [StrOptions({"probability", "aps", "raps", "top_k"})],
        "calibration_share": [Interval(Real, 0, 1, closed="neither")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
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
        n_folds: int = 10,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.coverage = coverage
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

    # calibration ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> PredictionSets:
        """Fit the classifier, and calibrate its sets on rows that it has not seen.

        Parameters
        ----------
        X, y : array-like
        sample_weight : array-like of shape (n,), optional
            For the classifier. Sets hold the true class of that share of *rows*, whatever these weigh.
        groups : array-like of shape (n,), optional
            Rows that belong together calibrate only models that have seen none of them. Passed on to the classifier
            where its ``fit`` takes them.
        """
        self._validate_params()
        if self.conformity != "probability" and (self.class_conditional or self.method in ("leave-one-out", "cross")):
            raise ValueError(
                f"conformity={self.conformity!r} comes with method='split' or 'prefit' and marginal coverage only."
            )
        self._left_out, self._mapie = None, None
        self._parts: list[tuple[Any, CalibrationScores]] = []
        if self.method == "prefit":
            check_is_fitted(self.classifier)
            self.method_, self.classifier_ = "prefit", self.classifier
            calibration = _checked(X, y)
        else:
            rows = FitRows.of(X, y, sample_weight, groups)
            self.method_ = self._pick_method(rows)
            if self.method_ == "split":
                calibration = self._split(rows)
            else:
                self.classifier_ = rows.fit(self.classifier)
                calibration = None
                if self.method_ == "leave-one-out" and not _has_closed_form(self.classifier_):
                    if self.method == "leave-one-out":
                        raise ValueError(
                            "method='leave-one-out' needs an EmbeddingClassifier with solver='exact' or explicit "
                            f"features. Got {self.classifier_!r}; use method='cross' or 'split'."
                        )
                    self.method_, calibration = "split", self._split(rows)
        self.classes_ = self.classifier_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.classifier_, name):
                setattr(self, name, getattr(self.classifier_, name))
        if calibration is None:
            self._calibrate_left_out() if self.method_ == "leave-one-out" else self._calibrate_cross(rows)
        elif self.conformity == "probability":
            self._calibrate_split(*calibration)
        else:
            self._calibrate_mapie(*calibration)
        return self

    def _pick_method(self, rows: FitRows) -> str:
        if self.method != "auto":
            return self.method
        if not isinstance(self.classifier, EmbeddingClassifier) or self.conformity != "probability":
            return "split"
        few = len(rows.y) <= CROSS_UP_TO and not self.__sklearn_tags__().input_tags.pairwise
        return "cross" if few else "leave-one-out"

    def _refuse_pairwise(self) -> None:
        if self.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                f"method={self.method_!r} cannot divide a matrix of kernel values, whose columns are training rows. "
                "Fit the classifier to some rows and use method='prefit' with the others, or 'leave-one-out' if it has "
                "that."
            )

    def _split(self, rows: FitRows) -> tuple[Any, Any]:
        """Fit to some rows and give back the others; each class keeps its first row for the fit."""
        self._refuse_pairwise()
        class_labels(rows.y, self)
        fitted, held = rows.divided(self.calibration_share, self.random_state)
        y = rows.y
        # A class that only calibration rows have could never be in a set: its first row goes to the others.
        moved = np.isin(held, [held[y[held] == label][0] for label in np.setdiff1d(y, y[fitted])])
        fitted, held = np.append(fitted, held[moved]), held[~moved]
        self.classifier_ = rows.subset(fitted).fit(self.classifier)
        return _safe_indexing(rows.X, held), y[held]

    def _calibrate_cross(self, rows: FitRows) -> None:
        """A copy for each part of the rows, fitted to the others, and the scores of that part by it."""
        self._refuse_pairwise()
        calibrated = np.zeros(len(rows.y), dtype=bool)
        for others, part in rows.folds(self.n_folds, self.random_state):
            classifier = rows.subset(others).fit(self.classifier)
            own = self._own_scores(_safe_indexing(rows.X, part), rows.y[part], classifier)
            self._parts.append((classifier, self._scores(*own)))
            calibrated[part] = True
        if not self._parts:
            raise ValueError(
                "method='cross' needs two classes among the rows that are left when any part (or group) is left out."
            )
        skipped = self._unknown(int((~calibrated).sum()))
        found = [(own.scores, own.labels, own.counts) for _, own in self._parts]
        self._keep(*(torch.cat(columns) for columns in zip(*found, skipped, strict=True)))

    def _calibrate_split(self, X: Any, y: Any) -> None:
        self._keep(*self._own_scores(X, y, self.classifier_))

    def _own_scores(self, X: Any, y: np.ndarray, classifier: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of the true classes of some rows, their labels, and how many rows each stands for.

        A label that the classifier does not know is odder than anything; it belongs to none of the classes.
        """
        scores, known = scores_of(self._log_proba(X, classifier)), np.isin(y, self.classes_)
        labels = torch.from_numpy(np.searchsorted(self.classes_, np.asarray(y)[known]))
        own = scores[torch.from_numpy(known)].gather(1, labels[:, None])[:, 0]
        found = own, labels, torch.ones(len(own), dtype=torch.float64)
        unknown = self._unknown(0 if self.class_conditional else int((~known).sum()))
        return tuple(torch.cat(columns) for columns in zip(found, unknown, strict=True))  # type: ignore[return-value]

    @staticmethod
    def _unknown(n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of so many rows that no model can be right about: no score is above theirs."""
        odd = torch.full((n,), torch.inf, dtype=torch.float64)
        return odd, torch.zeros(n, dtype=torch.int64), torch.ones(n, dtype=torch.float64)

    def _calibrate_left_out(self) -> None:
        self._left_out = rows = self.classifier_.without_each_row()
        scores = scores_of(self.classifier_.link_(rows.outputs, rows.support))
        self._keep(scores.gather(1, rows.strata[:, None])[:, 0], rows.strata, rows.counts)

    def _scores(self, scores: Tensor, labels: Tensor, counts: Tensor) -> CalibrationScores:
        return CalibrationScores(scores, labels, counts, self.coverage, self.class_conditional)

    def _keep(self, scores: Tensor, labels: Tensor, counts: Tensor) -> None:
        self._calibration = self._scores(scores, labels, counts)
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

    def _log_proba(self, X: Any, classifier: Any = None) -> Tensor:
        """Logarithms of probabilities, a column for each of ``classes_``; one that was never seen has none.

        Where a classifier has no probabilities, those of the softmax of decision values are as good: the promise holds
        for any score, and only how small the sets are depends on it.
        """
        classifier = self.classifier_ if classifier is None else classifier
        found = _log_probabilities(classifier, X)
        if len(classifier.classes_) == len(self.classes_):
            return found
        log_p = torch.full((len(found), len(self.classes_)), -torch.inf, dtype=torch.float64)
        log_p[:, torch.from_numpy(np.searchsorted(self.classes_, classifier.classes_))] = found
        return log_p

    def predict_set(self, X: Any) -> np.ndarray:
        """Which classes are in the set of each row: a boolean array, a column for each of ``classes_``."""
        check_is_fitted(self)
        if self._mapie is not None:
            _, sets = self._mapie.predict_set(X)
            return sets[:, :, 0]
        if self._parts:
            found = [own.smaller(scores_of(self._log_proba(X, classifier))) for classifier, own in self._parts]
            smaller = torch.stack(found).sum(0)
        elif self._left_out is None:
            smaller = self._calibration.smaller(scores_of(self._log_proba(X)))
        else:
            n_rows = max(1, BLOCK_ENTRIES // self._left_out.change.numel())
            parts = [
                smaller_scores(self._left_out, block, self._calibration, self.classifier_.link_)
                for block in self.classifier_.output_blocks(X, n_rows)
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


def _log_probabilities(classifier: Any, X: Any) -> Tensor:
    """Of each class that the classifier knows."""
    if hasattr(classifier, "predict_log_proba"):
        return torch.from_numpy(np.asarray(classifier.predict_log_proba(X), dtype=np.float64))
    if not hasattr(classifier, "predict_proba"):
        values = torch.from_numpy(np.asarray(classifier.decision_function(X), dtype=np.float64))
        values = torch.stack([-values, values], 1) if values.ndim == 1 else values
        if values.shape[1] != len(classifier.classes_):
            raise ValueError("The classifier's decision values must have a column for each class ('ovr').")
        return values.log_softmax(1)
    with np.errstate(divide="ignore"):
        return torch.from_numpy(np.log(np.asarray(classifier.predict_proba(X), dtype=np.float64)))


@dataclass(frozen=True)
class FitRows:
    """Rows to fit and to calibrate with, and what belongs to each."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    groups: np.ndarray | None

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, groups: Any) -> FitRows:
        """Checked for equal lengths."""
        X, y = _checked(X, y)
        weights = None if sample_weight is None else _check_sample_weight(plain(sample_weight), X)
        rows = cls(X, y, weights, None if groups is None else group_numbers(groups, len(y)))
        return rows if weights is None or (weights > 0).all() else rows.subset(np.flatnonzero(weights > 0))

    def subset(self, some: np.ndarray) -> FitRows:
        """Some of the rows."""
        weights, groups = (None if each is None else each[some] for each in (self.weights, self.groups))
        return FitRows(_safe_indexing(self.X, some), self.y[some], weights, groups)

    def fit(self, classifier: Any) -> Any:
        """A copy of a classifier, fitted to the rows."""
        options = {} if self.weights is None else {"sample_weight": self.weights}
        if self.groups is not None and has_fit_parameter(classifier, "groups"):
            options["groups"] = self.groups
        return clone(classifier).fit(self.X, self.y, **options)

    def divided(self, share: float, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the rows to fit to, and of about a share of them, drawn at random, to calibrate with."""
        if self.groups is None:
            found = train_test_split(np.arange(len(self.y)), test_size=share, random_state=random_state)
            return found[0], found[1]
        splitter = GroupShuffleSplit(1, test_size=share, random_state=random_state)
        return next(splitter.split(self.y, self.y, self.groups))

    def folds(self, n_folds: int, random_state: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Numbers of the other rows and of the rows of each part, drawn plainly at random; groups stay whole."""
        unit = np.arange(len(self.y)) if self.groups is None else self.groups
        order = check_random_state(random_state).permutation(int(unit.max()) + 1)
        for part in range(min(n_folds, len(order))):
            inside = (order % n_folds == part)[unit]
            others, own = np.flatnonzero(~inside), np.flatnonzero(inside)
            if len(own) and len(np.unique(self.y[others])) > 1:
                yield others, own


def _checked(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    if y is None:
        raise ValueError("PredictionSets requires y to be passed, but the target y is None.")
    X, y = indexable(X, column_or_1d(y, warn=True))
    check_labels(y)
    return X, y


def _has_closed_form(classifier: Any) -> bool:
    return isinstance(classifier, EmbeddingClassifier) and classifier.solver_ in ("exact", "explicit")
