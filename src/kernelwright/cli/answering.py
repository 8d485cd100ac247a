"""The output of kernelwright predict, and notes about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelwright.cli.options import Asked
from kernelwright.evaluation.cross_validation import Evaluation, prediction_sets
from kernelwright.evaluation.number_scores import COVERAGE
from kernelwright.inputs.frames.preparing import Finding
from kernelwright.inputs.frames.table import Table, some_of
from kernelwright.tables.drift import Drift
from kernelwright.tables.model import TabularModel
from kernelwright.tables.quantities import TrainingNumbers

__all__ = ["answers", "drift_notes", "table_notes"]


def answers(model: TabularModel, rows: Table, kept: list[str], asked: Asked) -> tuple[Any, Drift]:
    """Return the output, and whether the rows have drifted: the kept columns, then the predictions that were asked for.

    For a model of classes these are the class, its probabilities and a prediction set; for one of numbers the mean, an
    interval and quantiles.
    """
    _refuse_other_task(model, asked)
    new, drift = _classes(model, rows, asked) if model.numbers is None else _numbers(model, model.numbers, rows, asked)
    if twice := [name for name in new if name in kept]:
        raise ValueError(f"The table already has a column {twice[0]!r}, which the output needs. Rename it.")
    return pd.concat([rows.frame[kept].reset_index(drop=True), pd.DataFrame(new)], axis=1), drift


def _refuse_other_task(model: TabularModel, asked: Asked) -> None:
    given = {
        "--proba": asked.proba is True and model.numbers is not None,
        "--sets": asked.sets is not None and model.numbers is not None,
        "--interval": asked.interval is not None and model.numbers is None,
        "--quantiles": asked.quantiles is not None and model.numbers is None,
    }
    instead = "--sets" if model.numbers is None else "--interval or --quantiles"
    for option in (option for option, wrong in given.items() if wrong):
        raise ValueError(f"{option} does not suit this model, which predicts {model.task}. Use {instead} instead.")
    if asked.sets is not None and model.evaluation is None:
        raise ValueError("--sets needs a cross-validated model. Fit it without --no-cv.")


def _classes(model: TabularModel, rows: Table, asked: Asked) -> tuple[dict[str, np.ndarray], Drift]:
    probabilities, drift = model.answer(rows)
    classes = np.array(model.classes, dtype=object)
    new = {"prediction": classes[probabilities.argmax(1)]}
    if asked.proba is not False:
        new |= {f"probability_{name}": probabilities[:, k].round(6) for k, name in enumerate(classes)}
    if asked.sets is not None and isinstance(model.evaluation, Evaluation):
        inside = prediction_sets(model.evaluation, probabilities, asked.sets)
        new["prediction_set"] = np.array(["|".join(classes[row]) for row in inside], dtype=object)
    return new, drift


def _numbers(
    model: TabularModel, numbers: TrainingNumbers, rows: Table, asked: Asked
) -> tuple[dict[str, np.ndarray], Drift]:
    coverage, wanted = asked.interval or COVERAGE, asked.quantiles or ()
    found, drift = model.answer_numbers(rows, [0.5 - coverage / 2, 0.5 + coverage / 2, *map(float, wanted)])
    names = ("interval_low", "interval_high", *(f"quantile_{level}" for level in wanted))
    columns = {"prediction": found.means} | dict(zip(names, found.quantiles.T, strict=True))
    return {name: numbers.rounded(values) for name, values in columns.items()}, drift


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
