"""The output of kernelwright predict, and notes about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelwright.evaluation.cross_validation import prediction_sets
from kernelwright.tables.drift import Drift
from kernelwright.tables.model import TabularModel
from kernelwright.tables.preparing import Finding
from kernelwright.tables.table import Table, some_of

__all__ = ["answers", "drift_notes", "table_notes"]


def answers(
    model: TabularModel, kept: Any, probabilities: np.ndarray, *, with_probabilities: bool, coverage: float | None
) -> Any:
    """Return the output: the kept columns, the class, and on request probabilities and a prediction set."""
    classes = np.array(model.classes, dtype=object)
    new = {"prediction": classes[probabilities.argmax(1)]}
    if with_probabilities:
        new |= {f"probability_{name}": probabilities[:, k].round(6) for k, name in enumerate(classes)}
    if coverage is not None and model.evaluation is not None:
        inside = prediction_sets(model.evaluation, probabilities, coverage)
        new["prediction_set"] = np.array(["|".join(classes[row]) for row in inside], dtype=object)
    if twice := [name for name in new if name in kept.columns]:
        raise ValueError(f"The table already has a column {twice[0]!r}, which the output needs. Rename it.")
    return pd.concat([kept.reset_index(drop=True), pd.DataFrame(new)], axis=1)


def drift_notes(drift: Drift) -> list[str]:
    """Return notes about rows that are unlike the training rows, if there are any."""
    if not (drift.found or drift.nowhere):
        return []
    beyond = [f"{f.column} ({f.count})" for f in drift.findings if f.what.endswith("range")]
    outside = [f"Values outside the range of the training rows: {some_of(beyond, 10)}."] if beyond else []
    return [" ".join(drift.sentences()), *outside]


def table_notes(model: TabularModel, table: Table, findings: Sequence[Finding]) -> list[str]:
    """Return notes that a user should read before trusting the predictions."""
    found = []
    if extra := model.extra_columns(table):
        found.append(f"unknown columns are ignored: {some_of(extra, 10)}.")
    usual = {column.name for column in model.columns if column.missing}
    gaps = [finding for finding in findings if finding.what == "missing"]
    if gaps:
        names = some_of(
            [f"{g.column} ({g.count}{'' if g.column in usual else ', none in training'})" for g in gaps], 10
        )
        found.append(f"{sum(g.count for g in gaps)} values are missing and were filled in: {names}.")
    found += [f"{finding}." for finding in findings if finding.what == "new category"]
    return found
