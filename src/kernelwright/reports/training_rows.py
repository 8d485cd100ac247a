"""Training rows of a model, and the names of their features."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from kernelwright.reports.sections import SectionLeftOut
from kernelwright.tables import TabularModel

__all__ = ["as_codes", "feature_names", "has_categories", "on_codes", "training_rows"]


def feature_names(model: TabularModel) -> list[str]:
    """Return the names of the features: of the codes, or of an encoder (numbers if two of its names are the same)."""
    if len(model.pipeline) == 1:
        reader = getattr(model.estimator, "reader_", None)
        names = model.used if reader is None else tuple(column.source for column in reader.layout.columns)
        return [
            f"{name} {names[: place + 1].count(name)}" if names.count(name) > 1 else name
            for place, name in enumerate(names)
        ]
    try:
        return [str(name) for name in model.pipeline[0].get_feature_names_out()]
    except ValueError:
        return [f"feature {number + 1}" for number in range(model.pipeline[-1].n_features_in_)]


def on_codes(estimator: Any) -> Any:
    """Return a copy of an estimator that takes rows as :func:`training_rows` returns them, instead of data frames."""
    found = copy.copy(estimator)
    reader = getattr(found, "reader_", None)
    vars(found).pop("feature_names_in_", None)
    if reader is not None:
        found.reader_, found.n_features_in_ = None, len(reader.layout)
    return found


def as_codes(model: TabularModel, frame: Any) -> np.ndarray:
    """Return prepared rows as numbers: codes, or what an encoder makes of them."""
    reader = getattr(model.estimator, "reader_", None)
    return np.asarray(model.encoded(frame) if reader is None else reader.codes(frame), dtype=np.float64)


def has_categories(estimator: Any) -> bool:
    """Return whether some numbers of a row are codes of categories."""
    reader = getattr(estimator, "reader_", None)
    return reader is not None and any(column.kind == "category" for column in reader.layout.columns)


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
