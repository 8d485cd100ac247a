"""The importance of the columns of a table, before they are encoded."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.estimators.importance import importance_at, kernel_shares
from kernelwright.inputs.frames.table import as_table
from kernelwright.uncertainty.importance import Importance

__all__ = ["importance_of"]


def importance_of(model: Any, rows: Any = None, **options: Any) -> Importance:
    """Return the loss that is added by permuting each column of new rows with a target, or that of cross-validation.

    ``model`` is a :class:`~kernelwright.tables.TabularModel`.
    """
    if rows is None:
        if getattr(model.evaluation, "importance", None) is None:
            raise ValueError(
                "The model was not cross-validated, or its table has too many columns for it. Pass rows that it was "
                "not trained on, with the target: importance(rows)."
            )
        return model.evaluation.importance
    table, y = model.with_target(as_table(rows))
    frame, _ = model.prepare(table)

    def losses(X: Any, targets: np.ndarray) -> np.ndarray:
        return model.estimator.losses_of_rows(model.encoded(X), targets)

    found = importance_at(losses, frame, y, measure=model.estimator.loss_measure, **options)
    return found.with_shares(kernel_shares(model.estimator) if len(model.pipeline) == 1 else {})
