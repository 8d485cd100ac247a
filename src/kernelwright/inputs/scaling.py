"""Input transforms, applied to a table before the kernel."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from kernelwright.storage.saved import saved

__all__ = ["TableViews", "fit_scaler"]


@saved("table-views", fields="low_ columns_ half_range_ mean_ deviation_ knots_ rank_mean_ rank_deviation_")
class TableViews(TransformerMixin, BaseEstimator):
    """Two views ``[z | q]`` of every column that is not constant.

    ``z`` is the standardised value, squashed by ``z / sqrt(1 + (z/3)^2)`` so that an outlier lies at most three
    deviations out. ``q`` is the normal quantile of the value's rank among the training values (interpolated
    between them, at most 3, standardised): it does not depend on the spacing of the values. A gap (NaN) is at zero, the
    centre of both views.

    Examples
    --------
    >>> from kernelwright.inputs.scaling import TableViews
    >>> TableViews().fit_transform([[1.0], [2.0], [3.0], [400.0]]).round(2)
    array([[-0.57, -1.36],
           [-0.57, -0.38],
           [-0.56,  0.38],
           [ 1.5 ,  1.36]])
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TableViews:
        """Learn the range, moments and ranks of each column."""
        X = np.asarray(X, dtype=np.float64)
        w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.low_ = np.min(X, 0, initial=np.inf, where=~np.isnan(X))
        high = np.max(X, 0, initial=-np.inf, where=~np.isnan(X))
        self.low_, high = (np.where(np.isfinite(self.low_), each, 0.0) for each in (self.low_, high))  # only gaps
        half_range = 0.5 * high - 0.5 * self.low_  # halves: the full range may overflow
        self.columns_ = np.flatnonzero(half_range > 0)
        if len(self.columns_) == 0:
            warnings.warn("All features are constant: nothing can be learned from them.", stacklevel=2)
            self.columns_ = np.zeros(1, dtype=np.int64)
        self.half_range_ = np.where(half_range > 0, half_range, 1.0)
        U = self._unit(X)
        self.mean_, self.deviation_ = _moments(U, w)
        self.knots_ = [_rank_knots(u, w) for u in U.T]
        self.rank_mean_, self.rank_deviation_ = _moments(self._ranks(U), w)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the two views side by side."""
        check_is_fitted(self)
        U = self._unit(np.asarray(X, dtype=np.float64))
        z = (U - self.mean_) / self.deviation_
        z /= np.hypot(1.0, z / 3.0)
        q = (self._ranks(U) - self.rank_mean_) / self.rank_deviation_
        gaps = np.isnan(U)
        return np.hstack([np.where(gaps, 0.0, each) for each in (z, q)]) if gaps.any() else np.hstack([z, q])

    def standardised(self, X: Any) -> np.ndarray:
        """Return the columns that vary, standardised; a gap is at zero."""
        return np.nan_to_num((self._unit(np.asarray(X, dtype=np.float64)) - self.mean_) / self.deviation_)

    def inverse_transform(self, V: Any) -> np.ndarray:
        """Return rows with these views; a constant column gets its value back."""
        squashed = np.clip(np.asarray(V)[:, : len(self.columns_)], -2.999999, 2.999999)
        return self.of_standardised(squashed / np.sqrt(1.0 - (squashed / 3.0) ** 2))

    def of_standardised(self, z: np.ndarray) -> np.ndarray:
        """Return rows with these standardised values; a constant column gets its value back."""
        unit = z * self.deviation_ + self.mean_
        X = np.tile(self.low_, (len(unit), 1))
        X[:, self.columns_] += 2.0 * unit * self.half_range_[self.columns_]
        return X

    def beyond(self, X: Any) -> np.ndarray:
        """Return how far each value lies outside the training range, in training standard deviations; 0 for a gap."""
        U = np.nan_to_num(self._unit(np.asarray(X, dtype=np.float64)))
        return (np.maximum(-U, 0.0) + np.maximum(U - 1.0, 0.0)) / self.deviation_

    def thinned(self, allowed: np.ndarray) -> TableViews:
        """Return a copy with fewer knots of the ranks, whose second view of each column differs by at most ``allowed``.

        Fewer knots are in single precision.
        """
        thin = copy.copy(self)
        columns = zip(self.knots_, allowed * self.rank_deviation_, strict=True)
        thin.knots_ = [_thinned(values, scores, error) for (values, scores), error in columns]
        return thin

    def _unit(self, X: np.ndarray) -> np.ndarray:
        """Map the columns that vary to [0, 1], so that no scale is too large or too small from here on."""
        with np.errstate(over="ignore"):  # a new value may lie 1e300 ranges away; 1e100 is far enough
            U = (0.5 * X[:, self.columns_] - 0.5 * self.low_[self.columns_]) / self.half_range_[self.columns_]
        return np.clip(U, -1e100, 1e100)

    def _ranks(self, U: np.ndarray) -> np.ndarray:
        columns = [np.interp(u, values, scores) for u, (values, scores) in zip(U.T, self.knots_, strict=True)]
        return np.column_stack(columns) if columns else U


def _moments(U: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the deviation of each column, without gaps."""
    known = ~np.isnan(U)
    weights = known * (w / w.sum())[:, None]
    total = weights.sum(0)
    total = np.where(total > 0, total, 1.0)
    mean = (weights * np.where(known, U, 0.0)).sum(0) / total
    variance = (weights * np.where(known, U - mean, 0.0) ** 2).sum(0) / total
    return mean, np.sqrt(np.where(variance > 0, variance, 1.0))


def _rank_knots(u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of a column, and for each the normal quantile of its mid-rank."""
    known = ~np.isnan(u)
    if not known.all():
        u, w = u[known], w[known]
    if not len(u):
        return np.zeros(1), np.zeros(1)  # there are only gaps
    values, place = np.unique(u, return_inverse=True)
    counts = np.bincount(place.reshape(-1), w, len(values))
    middle = (np.cumsum(counts) - 0.5 * counts) / counts.sum()
    return values, np.clip(ndtri(middle), -3.0, 3.0)


def _thinned(values: np.ndarray, scores: np.ndarray, allowed: float) -> tuple[np.ndarray, np.ndarray]:
    """Return knots of a column, in single precision, between which its scores differ by at most ``allowed``.

    From both ends on, the worst knot between two neighbours is added wherever it is not yet good enough.
    """
    kept = np.unique([0, len(values) - 1])
    while len(kept) < len(values):
        found = values[kept].astype(np.float32), scores[kept].astype(np.float32)
        errors = np.abs(np.interp(values, *found) - scores)
        if errors.max() <= allowed:
            return found
        between = np.searchsorted(kept, np.arange(len(values)), side="right")
        order = np.lexsort((errors, between))
        worst = order[np.append(np.diff(between[order]) > 0, True)]
        more = np.union1d(kept, worst[errors[worst] > allowed])
        if len(more) == len(kept):  # single precision is not enough
            break
        kept = more
    return values, scores


def fit_scaler(scale: str | None, X: np.ndarray, weights: np.ndarray | None = None) -> Any:
    """Fit the transform behind a word: "standard", "unit" (to [0, 1]), "views" (:class:`TableViews`), or None."""
    if scale is None:
        return None
    scaler = {"standard": StandardScaler, "unit": MinMaxScaler, "views": TableViews}[scale]()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # non-finite results are reported below
        scaler = scaler.fit(X) if scale == "unit" else scaler.fit(X, sample_weight=weights)
    if scale == "views":
        return scaler
    lost = np.flatnonzero(~(np.isfinite(scaler.scale_) & (scaler.scale_ > 0)))
    if len(lost):
        raise ValueError(
            f"The spread of column {lost[0]} (of {len(lost)} such columns) cannot be computed by scale={scale!r}: its "
            "values are too large or too small. Multiply it by a constant first."
        )
    return scaler
