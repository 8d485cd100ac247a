"""The base of estimators with a kernel: initial kernel, inputs, relevance of features."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.embedding.fitted import kernel_blocks
from kernelwright.inputs.arrays import validate_data
from kernelwright.inputs.dask_rows import is_dask, lazily
from kernelwright.inputs.options import TakesOptions
from kernelwright.inputs.scaling import TableViews
from kernelwright.kernels import Kernel, Precomputed, Tabular
from kernelwright.kernels.relevance import Relevance, rank_features, warn_of_bounds
from kernelwright.learning import learning_method
from kernelwright.solvers import solver_of

__all__ = ["KernelEstimator", "by_chunks", "part_of"]


def by_chunks(method: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """Make a method return a lazy Dask array for a Dask collection, chunk by chunk."""

    @functools.wraps(method)
    def either(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *arguments, **options)
        check_is_fitted(self)
        return lazily(getattr(self, method.__name__), X, *arguments, **options)

    return either


def part_of(record: str, name: str) -> Any:
    """Return a property that reads one field of a fitted record; tensors become arrays."""

    def get(self: Any) -> Any:
        if record not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted: it has no {name!r} yet.")
        value = getattr(vars(self)[record], name)
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
    scaler_: Any
    points_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
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
            return validate_data(self, X, dtype=np.float64, reset=False)
        return X

    def _new_points(self, X: Any) -> Tensor:
        """Check new rows, and return them as the kernel sees them."""
        X = self._check_new(X)
        return self._encode(self.kernel_, X)

    def relevance(self) -> Relevance:
        """Rank the features by relevance, from the learned length scales; the result prints as a table.

        A feature's share is its spread divided by its length scale, relative to the sum over all features. It measures
        how much the kernel depends on the feature, not whether the feature is a cause: if two features carry the same
        information, one may get the whole share. Warns if a length scale is at a bound.

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

    def _kernel_blocks(self, points: Tensor) -> Iterator[Tensor]:
        """Yield the kernel values between new points and the training points, some rows at a time."""
        return kernel_blocks(self.kernel_, torch.from_numpy(self.points_), points)
