"""Bayesian multiple kernel learning by divide and conquer, the rival of many rows in [Liu2021]_."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from kernelwright.inputs.arrays import seed_of, validate_data
from kernelwright.inputs.labels import class_labels
from kernelwright.numerics.threads import on_one_thread
from kernelwright.research.baselines.bayesian_mkl import BayesianMKL
from kernelwright.storage.saved import saved

__all__ = ["DistributedBayesianMKL"]


@saved("distributed-bayesian-mkl", fields="classes_ estimators_ parts_")
class DistributedBayesianMKL(ClassifierMixin, BaseEstimator):
    """Bayesian multiple kernel learning on v disjoint parts of the rows, whose answers are averaged.

    It is "distributed BMKL" of table 3 of [Liu2021]_, which leaves open how answers are combined. Here the log odds of
    the parts are averaged, a logarithmic opinion pool: one part is :class:`BayesianMKL` itself, and probabilities of
    parts that agree stay as they are. Time is that of v problems of n / v rows, a factor of v less for products and of
    v^2 for factors, and memory falls by v^2 if parts run one after the other.

    Parameters
    ----------
    estimator : BayesianMKL or None, default=None
        What is fitted to each part; ``None`` is ``BayesianMKL()``.
    n_parts : int, default=5
        Parts are drawn at random, with the class frequencies of all rows. There are at most as many as rows of the
        rarest class, so that each part has rows of every class.
    n_jobs : int or None, default=None
        For joblib: parts are fitted in parallel, each on one thread.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : ndarray
    estimators_ : list of BayesianMKL
    parts_ : list of ndarray
        The rows of each part; of a single part, all in their order.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright.research.baselines import BayesianMKL, DistributedBayesianMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistributedBayesianMKL(BayesianMKL(max_iter=20), n_parts=3, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), [len(part) for part in model.parts_]
    (True, [50, 50, 50])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [BayesianMKL, None],
        "n_parts": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: BayesianMKL | None = None,
        *,
        n_parts: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_parts = n_parts
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> DistributedBayesianMKL:
        """Fit each part."""
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, labels = class_labels(y, self)
        n_parts = min(self.n_parts, int(np.bincount(labels).min()))
        self.parts_ = random_parts(labels, n_parts, seed_of(self.random_state))
        start = BayesianMKL() if self.estimator is None else self.estimator
        fits = (delayed(on_one_thread)(clone(start).fit, X[part], y[part]) for part in self.parts_)
        self.estimators_ = list(Parallel(n_jobs=self.n_jobs)(fits))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the mean log odds of the second of two classes, or of each of more classes against the rest."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        each = Parallel(n_jobs=self.n_jobs)(
            delayed(on_one_thread)(model.decision_function, X) for model in self.estimators_
        )
        return np.mean(list(each), axis=0)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the mean log odds."""
        return BayesianMKL.probabilities(self.decision_function(X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class."""
        odds = self.decision_function(X)
        return self.classes_[odds.argmax(1) if odds.ndim == 2 else (odds > 0).astype(int)]


def random_parts(labels: np.ndarray, n_parts: int, seed: int) -> list[np.ndarray]:
    """Return the rows of each part, with the same class frequencies."""
    if n_parts == 1:
        return [np.arange(len(labels))]
    folds = StratifiedKFold(n_parts, shuffle=True, random_state=seed)
    return [part for _, part in folds.split(labels[:, None], labels)]
