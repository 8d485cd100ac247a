"""Training rows of a model, and the names of their features."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.reports.sections import SectionLeftOut
from kernelwright.tables import TabularModel

__all__ = ["feature_names", "training_rows"]


def feature_names(model: TabularModel) -> list[str]:
    """Return the feature names of the encoder; numbers if two of these names would be the same."""
    try:
        return [str(name) for name in model.pipeline[0].get_feature_names_out()]
    except ValueError:
        return [f"feature {number + 1}" for number in range(model.pipeline[-1].n_features_in_)]


def training_rows(estimator: Any) -> np.ndarray:
    """Return the points that an estimator keeps, as unscaled rows of features.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import EmbeddingClassifier
    >>> from kernelwright.reports.training_rows import training_rows
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = training_rows(EmbeddingClassifier(learn=None).fit(X, y))
    >>> np.allclose(np.unique(rows, axis=0), np.unique(X, axis=0))
    True
    """
    points, scaler = np.asarray(estimator.points_), estimator.scaler_
    if not len(points) or points.ndim != 2:
        raise SectionLeftOut(f"The solver {estimator.solver_!r} keeps no training rows to draw a map around.")
    if scaler is None:
        return points
    return scaler.inverse_transform(points)
