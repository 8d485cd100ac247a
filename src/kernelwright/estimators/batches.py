"""Fitting in batches, for an embedding of explicit features."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, validate_data

from kernelwright.arrays import generator, one_hot
from kernelwright.solvers import FEATURE_ROWS, LEFT_OUT_ROWS, solve_moments, sum_up

__all__ = ["BOUND_ROWS", "BatchFitting"]

BOUND_ROWS = 10_000  # enough for the largest k(x, x) of an unbounded kernel


def _has_features(model: BatchFitting) -> bool:
    if model.features is None:
        raise AttributeError(
            "Batches need explicit features, such as features=RandomFourier(1000): an embedding by a kernel cannot "
            "forget its rows."
        )
    return True


class BatchFitting:
    """``partial_fit`` and ``fit_batches`` for a classifier that keeps sums over the rows it has seen."""

    if TYPE_CHECKING:  # what the classifier itself has
        features: Any
        classes_: np.ndarray
        kernel_: Any
        ridge_: float
        random_state: Any
        fit: Any
        _encode: Any
        _training_set: Any
        _calibrate: Any

    @available_if(_has_features)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to an embedding of explicit features, which needs only sums over all rows that it has seen.

        The first call learns the hyperparameters (and the scale of the inputs) from its rows, which should be a fair
        sample of some thousand; later calls add theirs and solve again.

        Parameters
        ----------
        X, y : array-like
            Some rows.
        classes : array-like, optional
            All classes, in the first call, where its rows may not show all.
        sample_weight : array-like, optional
        """
        if not hasattr(self, "_moments"):
            return self._first_fit(X, y, classes, sample_weight)
        X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"Labels {list(unknown)} are new: pass all classes to the first call of partial_fit.")
        labels = np.searchsorted(self.classes_, y)
        weights = torch.from_numpy(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
        targets = one_hot(labels, len(self.classes_))
        moments, sample, prior, alpha = self._moments
        features: Any = self.kernel_.features
        with torch.no_grad():
            for rows in torch.arange(len(X)).split(FEATURE_ROWS):
                points = self._encode(self.kernel_, X[rows.numpy()])
                moments.add(features(points), targets[rows], weights[rows])
        # The absolute ridge n lambda was learned: it stays as rows are added.
        self.ridge_ *= (moments.total_weight - float(weights.sum())) / moments.total_weight
        self._calibrate(solve_moments(moments, features, sample, self.ridge_, prior), prior, alpha)
        return self

    def _first_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        """Fit to the first rows, with all classes, and keep their sums."""
        self.fit(X, y, sample_weight)
        if classes is not None:
            missing = np.setdiff1d(self.classes_, classes)
            if len(missing):
                raise ValueError(f"Labels {list(missing)} are not among the given classes.")
            self.classes_ = np.unique(classes)
        X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        kept = weights > 0
        points = self._encode(self.kernel_, X[kept])
        data = self._training_set(points, np.searchsorted(self.classes_, y[kept]), weights[kept])
        features: Any = self.kernel_.features
        moments = sum_up(features, data)
        sample = data.sample(LEFT_OUT_ROWS, generator(self.random_state))
        alpha = math.sqrt(float(self.kernel_.sup_diag(points[:BOUND_ROWS]).detach()))
        self._moments = (moments, sample, data.prior, alpha)
        self._calibrate(solve_moments(moments, features, sample, self.ridge_, data.prior), data.prior, alpha)
        return self

    @available_if(_has_features)
    def fit_batches(self, batches: Iterable[tuple[Any, Any]], classes: Any = None) -> Self:
        """Fit explicit features to an iterator of (X, y) batches, which are never in memory all at once.

        Batches are gathered until there are 5000 rows; these decide the hyperparameters.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelwright import EmbeddingClassifier
        >>> from kernelwright.features import RandomFourier
        >>> rng = np.random.default_rng(0)
        >>> def batches():
        ...     for _ in range(10):
        ...         X = rng.normal(size=(1000, 2))
        ...         yield X, (X[:, 0] * X[:, 1] > 0).astype(int)
        >>> model = EmbeddingClassifier(features=RandomFourier(100), random_state=0).fit_batches(batches())
        >>> X, y = next(batches())
        >>> bool(model.score(X, y) > 0.95)
        True
        """
        self.__dict__.pop("_moments", None)
        first: list[tuple[Any, Any]] = []
        for X, y in batches:
            if hasattr(self, "_moments"):
                self.partial_fit(X, y)
                continue
            first.append((X, y))
            if sum(len(labels) for _, labels in first) >= LEFT_OUT_ROWS:
                self._fit_gathered(first, classes)
        if not hasattr(self, "_moments"):
            if not first:
                raise ValueError("There was no batch to fit to.")
            self._fit_gathered(first, classes)
        return self

    def _fit_gathered(self, batches: list[tuple[Any, Any]], classes: Any) -> None:
        X, y = (np.concatenate([np.asarray(part) for part in parts]) for parts in zip(*batches, strict=True))
        self.partial_fit(X, y, classes)
