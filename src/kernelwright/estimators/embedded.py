"""The base of estimators with a conditional embedding: settings, fitted parts, and values read from the embedding."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.estimators.base import COLUMN_CONSTRAINTS, KernelEstimator, part_of
from kernelwright.features import FeatureMap
from kernelwright.inputs.sparse_tables import check_sparse
from kernelwright.kernels import Kernel
from kernelwright.kernels.relevance import Relevance

__all__ = ["COLUMN_CONSTRAINTS", "EMBEDDING_CONSTRAINTS", "EmbeddingEstimator"]

EMBEDDING_CONSTRAINTS: dict[str, Any] = COLUMN_CONSTRAINTS | {
    "kernel": [Kernel, StrOptions({"precomputed"}), None],
    "features": [FeatureMap, None],
    "learn": "no_validation",  # learning_method and solver_of give advice if a class is passed instead of an object
    "solver": "no_validation",
    "ridge": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "scale": [StrOptions({"auto", "standard", "unit"}), None],
    "warm_start": ["boolean"],
    "callback": [callable, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class EmbeddingEstimator(KernelEstimator):
    """An estimator with a fitted ``embedding_``. Subclasses turn its outputs into predictions."""

    embedding_: FittedEmbedding
    features: FeatureMap | None

    kernel_, features_, scaler_ = (part_of("embedding_", name) for name in ("kernel", "features", "scaler"))
    ridge_, prior_, solver_ = (part_of("embedding_", name) for name in ("ridge", "prior", "solver"))
    points_, coefficients_, jitter_ = (part_of("embedding_", name) for name in ("points", "coefficients", "jitter"))
    precision_, n_landmarks_ = (part_of("embedding_", name) for name in ("precision", "size"))
    n_support_rows_ = part_of("embedding_", "n_support_rows")

    @property
    def _takes_gaps(self) -> bool:
        return self.kernel is None and self.features is None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.features is None and self.kernel != "precomputed"
        return tags

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        return state | {"_growth": None} if "_growth" in state else state  # solutions of leaves: found again if needed

    def _check_new(self, X: Any) -> Any:
        check_is_fitted(self)
        return check_sparse(self, X, reset=False) if self.embedding_.sparse else super()._check_new(X)

    def relevance(self) -> Relevance:  # noqa: D102
        check_is_fitted(self)
        if self.embedding_.sparse:
            raise ValueError(
                "The kernels of sparse rows have one length scale for all columns, so they do not rank the columns. "
                "Use the coefficients of a linear model, or pass X[:, some].toarray() to fit to a few hundred columns."
            )
        return super().relevance()

    def _outputs_and_support(self, X: Any) -> tuple[Tensor, Tensor]:
        return self._at_new_points(X)[1:]

    def _at_new_points(self, X: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Check new rows; return them as the kernel sees them, with raw outputs and support."""
        X = self._check_new(X)
        points = self.embedding_.encode(X)
        return points, *self.embedding_.outputs(X, points)

    def output_blocks(self, X: Any, n_rows: int | None = None) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield kernel values with the training points (or features), raw outputs and support, by blocks of rows."""
        X = self._check_new(X)
        for values, outputs, support in self.embedding_.blocks(X, n_rows=n_rows):
            yield values.double(), outputs, support

    def embedding_weights(self, X: Any) -> np.ndarray:
        """Return ``A^-1 k(x)`` of Eq. (2): the weight of each training row in ``E[g(Y) | x] ~ sum_i w_i g(y_i)``.

        Only an exact solution has these weights. The factor of A is not kept after ``fit``, so each call solves again.
        """
        check_is_fitted(self)
        if self.solver_ != "exact":
            raise ValueError(f"Weights of all training rows exist only with solver='exact'. Got {self.solver_!r}.")
        return self.embedding_.row_weights(self._check_new(X))
