"""The section that lets a reader change a few columns of a row and see the answer of the model."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.reports.formatting import number, percent
from kernelwright.reports.page import Block, PageTable, Panel, Paragraph
from kernelwright.reports.sections import SectionLeftOut
from kernelwright.reports.training_rows import as_codes
from kernelwright.reports.what_if import Lever, RowGrid, WhatIf, what_if
from kernelwright.tables import ExampleRows, TabularModel

__all__ = ["LEVELS", "panel"]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the quantiles
ROWS = 12
MOST_LEVERS = 5
MOST_OUTPUTS = 7  # classes of a row; the rest are one output
MOST_BYTES = 100_000  # of all answers; a third more in the page
MOST_WORK = 1.2e10  # points times training points times features: some ten seconds
MOST_POINTS = 2000  # of a row
SMALLEST = 1e-4  # probability


@dataclass(frozen=True)
class _Scale:
    """How answers are interpolated: as logarithms of probabilities, and of quantiles if all are positive."""

    classes: bool
    logarithm: bool

    def forward(self, answers: np.ndarray) -> np.ndarray:
        return np.log(np.clip(answers, SMALLEST if self.classes else 1e-300, None)) if self.logarithm else answers

    def back(self, found: np.ndarray) -> np.ndarray:
        raised = np.exp(found) if self.logarithm else found
        return raised / raised.sum(-1, keepdims=True) if self.classes else raised


def panel(model: TabularModel, examples: ExampleRows | None, columns: Sequence[str]) -> list[Block]:
    """Make the panel for telling rows among the examples, with levers for the first columns."""
    if examples is None or not len(examples):
        raise SectionLeftOut("No rows are kept with this model. Models that are fitted anew have this panel.")
    frame, rows = examples.frame(), min(ROWS, len(examples))
    now = _answers(model, frame.iloc[:rows])
    scale = _Scale(model.numbers is None, model.numbers is None or bool(now.min() > 0 and examples.targets.min() > 0))
    outputs = min(now.shape[1], MOST_OUTPUTS)
    features = as_codes(model, frame.iloc[:1]).shape[1]
    work = max(int(model.estimator.n_landmarks_ or 1), 100) * max(features, 10)
    most = int(min(MOST_POINTS, MOST_BYTES / (2 * rows * outputs), max(MOST_WORK / (rows * work), 250)))
    found = what_if(
        lambda changed: scale.forward(_answers(model, changed)),
        frame,
        list(columns)[:MOST_LEVERS],
        rows=rows,
        most=most,
        back=scale.back,
    )
    labels = [_label(model, examples, k) for k in range(rows)]
    return [
        Paragraph(
            "What would the model say if a row were different? Choose a row and change its columns: the five that "
            "matter most to the model. The other columns keep the values of the row. Hard rows are those that the "
            "model predicted worst when it had not seen them. This is what the model predicts, "
            "not what would happen if the column were changed in the world."
        ),
        Panel(_data(model, examples, found, scale, labels), _still(model, now, labels)),
        Paragraph(_error(model, found, now), quiet=True),
    ]


def _answers(model: TabularModel, frame: Any) -> np.ndarray:
    if model.numbers is None:
        return np.asarray(model.pipeline.predict_proba(frame))
    return np.asarray(model.estimator.quantile(model.encoded(frame), list(LEVELS)))


def _label(model: TabularModel, examples: ExampleRows, k: int) -> str:
    target = examples.targets[k]
    actual = model.classes[int(target)] if model.numbers is None else number(float(target))
    why = "hard" if examples.why[k] == "wrong" else examples.why[k]
    return f"{examples.row_word} {examples.rows[k]}: {actual}{f' ({why})' if why else ''}"


def _still(model: TabularModel, now: np.ndarray, labels: Sequence[str]) -> PageTable:
    if model.numbers is None:
        best = now.argmax(1)
        cells = [(model.classes[j], percent(float(p[j]))) for j, p in zip(best, now, strict=True)]
        header = ("row and its true class", "the model says", "probability")
    else:
        cells = [(number(float(q[2])), f"{number(float(q[0]))} to {number(float(q[4]))}") for q in now]
        header = ("row and its true value", "median", "90 % interval")
    rows = [(label, *cell) for label, cell in zip(labels, cells, strict=True)]
    return PageTable("The rows as they are", header, rows, "llr")


def _error(model: TabularModel, found: WhatIf, now: np.ndarray) -> str:
    points = sum(int(np.prod(grid.answers.shape[:-1])) for grid in found.grids)
    how = (
        f"Between {points:,} answers of the model that were computed for this page, the panel interpolates. At "
        f"{len(found.errors):,} random settings its answers were compared with those of the model itself: "
    )
    if model.numbers is None:
        worst = found.errors.max(1)
        said = (
            f"the probabilities differ by {100 * worst.mean():.1f} percentage points on average, and by less than "
            f"{100 * np.quantile(worst, 0.95):.1f} in 95 of 100."
        )
    else:
        middle, ends = found.errors[:, 2], found.errors[:, [0, 4]].max(1)
        said = (
            f"the median differs by {number(middle.mean())} on average and by less than "
            f"{number(np.quantile(middle, 0.95))} in 95 of 100; the ends of the 90 % interval by {number(ends.mean())} "
            f"on average. An interval is {number(float((now[:, 4] - now[:, 0]).mean()))} wide."
        )
    return f"{how}{said} At the row as it is they agree. The model has learned from these rows unless they are new."


def _data(model: TabularModel, examples: ExampleRows, found: WhatIf, scale: _Scale, labels: Sequence[str]) -> str:
    dates = {column.name for column in model.columns if column.kind == "date"}
    flags = {c.name: c.categories for c in model.columns if c.kind == "boolean" and len(c.categories) == 2}
    rows = []
    for grid, label in zip(found.grids, labels, strict=True):
        answers, outputs = _outputs(model, grid, scale)
        low, high = float(answers.min()), float(answers.max())
        steps = np.round(65535 * (answers - low) / (high - low if high > low else 1.0)).astype("<u2")
        rows.append(
            {
                "label": label,
                "outputs": outputs,
                "levers": [_lever(each, examples, each.name in dates, flags.get(each.name)) for each in grid.levers],
                "low": low,
                "high": high,
                "answers": base64.b64encode(steps.tobytes()).decode(),
            }
        )
    record: dict[str, Any] = {"rows": rows, "numbers": model.numbers is not None, "log": scale.logarithm}
    if model.numbers is not None:
        every = np.concatenate([scale.back(grid.answers).reshape(-1, len(LEVELS)) for grid in found.grids])
        record["range"] = [float(np.quantile(every[:, 0], 0.02)), float(np.quantile(every[:, -1], 0.98))]
    return json.dumps(record, allow_nan=False)


def _outputs(model: TabularModel, grid: RowGrid, scale: _Scale) -> tuple[np.ndarray, list[str]]:
    """Return the answers that are shown, on their scale: of many classes, the most probable ones and the rest."""
    if model.numbers is not None:
        return grid.answers, [f"{level:g}" for level in LEVELS]
    m = len(model.classes)
    if m <= MOST_OUTPUTS:
        return grid.answers, list(model.classes)
    p = scale.back(grid.answers)
    order = np.argsort(-p.reshape(-1, m).mean(0), kind="stable")
    first = np.sort(order[: MOST_OUTPUTS - 1])
    rest = 1.0 - p[..., first].sum(-1, keepdims=True)
    shown = scale.forward(np.concatenate([p[..., first], rest], axis=-1))
    return shown, [*(model.classes[k] for k in first), f"all {m - len(first)} other classes"]


def _lever(lever: Lever, examples: ExampleRows, date: bool, flag: Sequence[str] | None) -> dict[str, Any]:
    if lever.slides:
        whole = bool(np.all(np.mod([v for v in examples.columns[lever.name] if v == v], 1) == 0))
        return {
            "name": lever.name,
            "slides": True,
            "levels": list(lever.levels),
            "start": lever.start,
            "date": date,
            "whole": whole,
        }
    words = [level if isinstance(level, str) else f"{level:g}" for level in lever.levels]
    if flag is not None and set(lever.levels) <= {0.0, 1.0}:
        words = [flag[int(level)] for level in lever.levels]
    return {"name": lever.name, "slides": False, "levels": words, "start": lever.levels.index(lever.start)}
