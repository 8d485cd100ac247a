"""Quantiles and range of any regressor, also of one inside of scikit-learn's wrappers.

A wrapper passes ``predict`` on, but no other method: a :class:`~sklearn.pipeline.Pipeline`, a
:class:`~sklearn.compose.TransformedTargetRegressor` and a search each hide the quantiles of the regressor in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline

__all__ = ["has_quantiles", "innermost", "quantiles_of", "range_of"]

QUARTILES = [0.25, 0.75]  # tell whether a map of the target rises


def innermost(regressor: Any) -> Any:
    """Return the regressor inside of all wrappers, fitted or not."""
    if isinstance(regressor, Pipeline):
        return innermost(regressor.steps[-1][1])
    if isinstance(regressor, TransformedTargetRegressor):
        return innermost(getattr(regressor, "regressor_", regressor.regressor))
    if isinstance(regressor, BaseSearchCV):
        return innermost(getattr(regressor, "best_estimator_", regressor.estimator))
    return regressor


def has_quantiles(regressor: Any) -> bool:
    """Return whether a regressor has a method ``quantile(X, q)``; some have a number of that name."""
    return callable(getattr(innermost(regressor), "quantile", None))


def quantiles_of(regressor: Any, X: Any, q: Any) -> np.ndarray:
    """Return quantiles by a fitted regressor, of shape (n,) or (n, len(q)).

    The map of a TransformedTargetRegressor is taken as monotone: its quantiles are those of the target.

    Examples
    --------
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> import numpy as np
    >>> from kernelwright import EmbeddingRegressor
    >>> from kernelwright.uncertainty.regressor_quantiles import quantiles_of
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> model = TransformedTargetRegressor(EmbeddingRegressor(learn=None), func=np.log, inverse_func=np.exp)
    >>> quantiles_of(model.fit(X, 1 + X[:, 0]), X, [0.1, 0.9]).shape
    (40, 2)
    """
    if isinstance(regressor, Pipeline):
        for _, step in regressor.steps[:-1]:
            X = X if step is None or isinstance(step, str) else step.transform(X)  # a word: "passthrough"
        return quantiles_of(regressor.steps[-1][1], X, q)
    if isinstance(regressor, BaseSearchCV):
        return quantiles_of(regressor.best_estimator_, X, q)
    if isinstance(regressor, TransformedTargetRegressor):
        first, third = _mapped_back(regressor, quantiles_of(regressor.regressor_, X, QUARTILES)).T
        levels = np.asarray(q, dtype=np.float64) if first.sum() <= third.sum() else 1.0 - np.asarray(q)
        return _mapped_back(regressor, quantiles_of(regressor.regressor_, X, levels))
    return np.asarray(regressor.quantile(X, q), dtype=np.float64)


def _mapped_back(regressor: TransformedTargetRegressor, values: np.ndarray) -> np.ndarray:
    """Return targets whose images are given."""
    columns = regressor.transformer_.inverse_transform(values.reshape(-1, 1))
    return np.asarray(columns, dtype=np.float64).reshape(values.shape)


def range_of(regressor: Any) -> tuple[float, float]:
    """Return the range of the target, if a fitted regressor has ``target_range_``; otherwise all numbers."""
    if isinstance(regressor, Pipeline):
        return range_of(regressor.steps[-1][1])
    if isinstance(regressor, BaseSearchCV):
        return range_of(regressor.best_estimator_)
    low, high = getattr(regressor, "target_range_", (-np.inf, np.inf))
    return float(low), float(high)
