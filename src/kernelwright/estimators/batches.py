"""Fitting in batches, for an embedding of explicit features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, validate_data

from kernelwright.arrays import one_hot
from kernelwright.embedding import smoothed_prior
from kernelwright.primal import Moments
from kernelwright.solvers import FEATURE_ROWS, LEFT_OUT_ROWS, explicit

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
        fit: Any
        _encode: Any
        class_weight: Any
        learn: Any
        _moments: Any
        _calibrate: Any
        _weighted: bool
        _holdout: Any

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
            self._first_fit(X, y, classes, sample_weight)
        else:
            self._add(X, y, sample_weight)
            self._solve_again()
        return self

    def _first_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Fit to the first rows, and make room for classes that they do not show."""
        self.fit(X, y, sample_weight)
        if classes is None:
            return
        missing = np.setdiff1d(self.classes_, classes)
        if len(missing):
            raise ValueError(f"Labels {list(missing)} are not among the given classes.")
        known, self.classes_ = self.classes_, np.unique(classes)
        moments, sample, alpha = self._moments
        places = torch.from_numpy(np.searchsorted(self.classes_, known))

        def widened(columns: torch.Tensor) -> torch.Tensor:
            wide = columns.new_zeros(len(columns), len(self.classes_))
            wide[:, places] = columns
            return wide

        moments = replace(moments, cross=widened(moments.cross))
        sample = replace(sample, targets=widened(sample.targets), strata=places[sample.strata])
        prior = smoothed_prior(sample.targets, sample.weights)
        prior = prior if self.learn == "auto" else torch.zeros_like(prior)
        self._moments = (moments, replace(sample, prior=prior), alpha)
        self._solve_again()

    def _add(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Add rows to the sums. The absolute ridge n lambda was learned: it stays."""
        X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"Labels {list(unknown)} are new: pass all classes to the first call of partial_fit.")
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all rows at once; pass a dict to fit in batches.")
        targets = one_hot(np.searchsorted(self.classes_, y), len(self.classes_))
        weights = torch.from_numpy(self._weights_of(y, sample_weight))
        moments, *others = self._moments
        before = moments.total
        with torch.no_grad():
            for rows in torch.arange(len(X)).split(FEATURE_ROWS):
                Z = self.kernel_.features(self._encode(self.kernel_, X[rows.numpy()]))
                moments = moments + Moments.of(Z, targets[rows], weights[rows])
        self._moments = (moments, *others)
        self.ridge_ *= before / moments.total
        self._weighted |= sample_weight is not None

    def _weights_of(self, y: np.ndarray, sample_weight: Any) -> np.ndarray:
        """Weights of rows, not made relative: batches must not differ in what a weight means."""
        weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
        given = self.class_weight or {}
        return weights * np.array([given.get(label, 1.0) for label in y])

    def _solve_again(self) -> None:
        moments, sample, alpha = self._moments
        self._holdout = None  # losses of the model as it was before
        self._calibrate(explicit(moments, self.kernel_.features, sample, self.ridge_), alpha)

    @available_if(_has_features)
    def fit_batches(self, batches: Iterable[tuple[Any, Any]], classes: Any = None) -> Self:
        """Fit explicit features to an iterator of (X, y) batches, which are never in memory all at once.

        Batches are gathered until there are 5000 rows and two classes; these decide the hyperparameters.

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
        rest = iter(batches)
        first: list[tuple[np.ndarray, np.ndarray]] = []
        for X, y in rest:
            first.append((np.asarray(X), np.asarray(y)))
            labels = np.concatenate([part for _, part in first])
            if len(labels) >= LEFT_OUT_ROWS and len(np.unique(labels)) > 1:
                break
        if not first:
            raise ValueError("There was no batch to fit to.")
        self._first_fit(np.concatenate([part for part, _ in first]), labels, classes, None)
        for X, y in rest:
            self._add(np.asarray(X), np.asarray(y))
        self._solve_again()
        return self
