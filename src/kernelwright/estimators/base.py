"""The base of estimators with a kernel: initial kernel, inputs, relevance of features."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.embedding.fitted import FittedEmbedding, kernel_blocks
from kernelwright.estimators.sensitivity import changes_of_outputs
from kernelwright.inputs.coordinates import TableCoordinates
from kernelwright.inputs.dask_rows import is_dask, lazily
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.given_rows import check_new_rows, described_columns
from kernelwright.inputs.frames.reader import FrameReader
from kernelwright.inputs.options import TakesOptions
from kernelwright.inputs.scaling import TableViews
from kernelwright.inputs.sources import RowSource
from kernelwright.kernels import Kernel, Precomputed, Tabular
from kernelwright.kernels.relevance import Relevance, rank_features, warn_of_bounds
from kernelwright.learning import learning_method
from kernelwright.numerics.sparse_rows import SparseRows
from kernelwright.solvers import solver_of

__all__ = ["COLUMN_CONSTRAINTS", "KernelEstimator", "by_chunks", "part_of"]

COLUMN_CONSTRAINTS: dict[str, Any] = {
    "categorical": [StrOptions({"from_dtype"}), "array-like", None],
    "keep": ["array-like"],
}


def _columns_of(scaler: Any, kernel: Kernel, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the user's column of each length scale, and the length scale of each coordinate."""
    if not isinstance(scaler, TableCoordinates):
        columns = scaler.columns_ if isinstance(scaler, TableViews) else np.arange(n_columns)
        return columns, np.arange(len(columns))
    groups = np.array(scaler.groups_)
    if any(part.groups is not None for part in kernel.modules() if isinstance(part, Tabular)):
        return scaler.sources_, groups
    return scaler.sources_[groups], np.arange(len(groups))  # a kernel with a length scale for each coordinate


def by_chunks(method: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """Make a method return a lazy Dask array for a Dask collection, chunk by chunk, and read a source in parts."""

    @functools.wraps(method)
    def either(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(X, RowSource):
            return np.concatenate([method(self, part.X, *arguments, **options) for part in X.parts()])
        if not is_dask(X):
            return method(self, X, *arguments, **options)
        check_is_fitted(self)
        return lazily(getattr(self, method.__name__), _bytes_of(self), X, *arguments, **options)

    return either


def _bytes_of(model: Any) -> float:
    """Return the bytes of the points and coefficients of a fitted model."""
    embedding = vars(model).get("embedding_")
    parts = [getattr(embedding, name, None) for name in ("points", "coefficients")]
    return float(sum(part.nbytes for part in parts if isinstance(part, Tensor)))


def part_of(record: str, name: str) -> Any:
    """Return a property that reads one field of a fitted record; tensors become arrays."""

    def get(self: Any) -> Any:
        if record not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted: it has no {name!r} yet.")
        value = getattr(vars(self)[record], name)
        if isinstance(value, SparseRows):
            return value.matrix
        return value.detach().numpy() if isinstance(value, Tensor) else value

    return property(get)


class KernelEstimator(TakesOptions):
    """An estimator with a parameter ``kernel``: a kernel, "precomputed", or None for the default on tables."""

    _options: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "learn": functools.partial(learning_method, owner="learn"),
        "solver": functools.partial(solver_of, owner="solver"),
    }
    kernel: Kernel | str | None
    kernel_: Kernel
    embedding_: Any
    scaler_: Any
    points_: np.ndarray

    reader_: FrameReader | None  # None for arrays, and for frames of numbers that are the same as arrays

    @property
    def _takes_gaps(self) -> bool:
        """Whether NaN in an array is a missing value."""
        return False

    @property
    def columns_(self) -> tuple[Column, ...]:
        """What was done to each column of the training table."""
        return described_columns(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.allow_nan = self._takes_gaps
        return tags

    def _start_kernel(self) -> Kernel:
        """Return a copy of the user's kernel, to be learned."""
        if self.kernel is None:
            return Tabular()
        return Precomputed() if isinstance(self.kernel, str) else copy.deepcopy(self.kernel)

    def _encode(self, kernel: Kernel, X: Any) -> Tensor:
        """Return the rows as the kernel sees them."""
        return kernel.encode(X if self.scaler_ is None else self.scaler_.transform(X))

    def _check_new(self, X: Any) -> Any:
        check_is_fitted(self)
        if self.kernel_.takes_vectors or isinstance(self.kernel_, Precomputed):
            return check_new_rows(self, X, gaps=self._takes_gaps, dtype=np.float64)
        return X

    def _new_points(self, X: Any) -> Tensor:
        """Check new rows, and return them as the kernel sees them."""
        X = self._check_new(X)
        return self._encode(self.kernel_, X)

    def relevance(self) -> Relevance:
        """Rank the features by relevance, from the learned length scales; the result prints as a table.

        A feature's share is its spread divided by its length scale, relative to the sum over all features. It measures
        how much the kernel depends on the feature, not whether the feature is a cause: if two features carry the same
        information, one may get the whole share. Warns if a length scale is at a bound. A linear trend beside the
        kernel (:class:`~kernelwright.kernels.WithTrend`) is not counted: it has one amplitude for all features, so it
        prefers none, and its slopes belong to the targets and not to the kernel.

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
        names, columns, groups = self._length_scales()
        seen = self.points_[:, : len(groups)] if len(self.points_) > 1 else np.empty((0, 0))
        variances = seen.var(0) if len(seen) else np.ones(len(groups))  # explicit features keep no points
        found = rank_features(self.kernel_, names, columns, np.sqrt(np.bincount(groups, variances, len(columns))))
        warn_of_bounds(found)
        return found

    def _length_scales(self) -> tuple[Sequence[str], np.ndarray, np.ndarray]:
        """Return the user's columns, the column of each length scale, and the length scale of each coordinate."""
        n = getattr(self, "n_features_in_", 0)
        names = getattr(self, "feature_names_in_", [f"x{d}" for d in range(n)])
        columns, groups = _columns_of(self.scaler_, self.kernel_, n)
        if isinstance(self.scaler_, TableCoordinates):
            sources, reader = self.scaler_.layout.sources, vars(self).get("reader_")
            names = sources if reader is None else reader.names  # with columns that are left out
            columns = np.array([list(names).index(sources[column]) for column in columns], dtype=np.int64)
        return names, columns, groups

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much outputs depend on each feature, in the order of the features, for :class:`SelectFromModel`.

        The mean squared change of the raw outputs when a feature is permuted among the training rows, relative to the
        sum over all features; with explicit features, which keep no rows, the shares of :meth:`relevance`. They come
        from ``fit`` alone. Whether a feature helps at new rows say ``importance(X, y)`` and scikit-learn's
        ``permutation_importance``.
        """
        if "embedding_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted: it has no 'feature_importances_' yet.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # length scales at bounds are reported by ``relevance``
            found = {row.name: row.share for row in self.relevance().rows}
        if isinstance(self.embedding_, FittedEmbedding) and len(self.points_) > 1:
            found = self._changes_by_column() or found
        return np.array([found.get(column.name, 0.0) for column in self.columns_])  # none, if it was left out

    def _changes_by_column(self) -> dict[str, float]:
        """Return the share of each column in the changes of outputs; empty if outputs do not depend on the points."""
        names, columns, groups = self._length_scales()
        own, width = np.unique(columns), self.points_.shape[1]
        of_coordinate = np.resize(columns[groups], width)  # both views
        changes = changes_of_outputs(self.embedding_, [np.flatnonzero(of_coordinate == column) for column in own])
        total = float(changes.sum())
        return dict(zip((names[column] for column in own), changes / total, strict=True)) if total > 0 else {}

    def _kernel_blocks(self, points: Tensor) -> Iterator[Tensor]:
        """Yield the kernel values between new points and the training points, some rows at a time."""
        return kernel_blocks(self.kernel_, torch.from_numpy(self.points_), points)
