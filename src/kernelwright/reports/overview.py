"""The first screen of a report: what a model does, how good it is, against what, and which rows to look at by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelwright.evaluation.class_quality import class_quality, never_right
from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.reports.formatting import interval, number, percent, probability
from kernelwright.reports.judged_rows import JudgedRows
from kernelwright.reports.page import Bars, Block, PageTable, Paragraph

__all__ = ["OURS", "class_overview", "number_overview", "number_rows_to_check", "rows_to_check"]

OURS = "this model"
FEW = 5  # rows on the first screen
CHECKED = 0.1  # share of the rows that somebody might look at


def class_overview(found: Evaluation) -> list[Block]:
    """Show how often a classifier and its rivals are right, and which classes it never gets right."""
    scores = {OURS: found.scores} | {name: rival.scores for name, rival in found.rivals.items()}
    values = {name: (s.accuracy.value, s.accuracy.low, s.accuracy.high) for name, s in scores.items()}
    words = {name: f"{percent(s.accuracy.value)} ({interval(s.accuracy, share=True)})" for name, s in scores.items()}
    caption = f"Correct answers on {len(found.labels):,} rows that the model had not seen, with 95 % intervals"
    return [
        Bars.of(caption, values, words, ours=OURS, largest=1.0),
        *(Paragraph(text) for text in never_right(class_quality(found.confusion(), found.classes))),
    ]


def rows_to_check(found: Evaluation) -> list[Block]:
    """Say how many mistakes are among the most uncertain rows, and show the worst rows."""
    sure, wrong = found.probabilities.max(1), found.probabilities.argmax(1) != found.labels
    n = max(1, round(CHECKED * len(sure)))
    caught = int(wrong[np.argsort(sure, kind="stable")[:n]].sum())
    rows = [(str(r.row), r.actual, r.predicted, probability(r.probability)) for r in found.hardest(FEW)]
    header = (found.row_word, "true class", "predicted class", "probability of the true class")
    said = "It made no mistake on these rows."
    if total := int(wrong.sum()):
        said = (
            f"Whoever checks the {n:,} rows by hand of which it is least sure ({percent(n / len(sure), 0)}) finds "
            f"{caught:,} of its {total:,} mistakes ({percent(caught / total, 0)})."
        )
    return [Paragraph(said), PageTable("Look at these rows first", header, rows, "lllr")]


def number_overview(judged: JudgedRows, rivals: Mapping[str, Any], target: str) -> list[Block]:
    """Show the mean absolute error of a model of numbers and of its rivals."""
    scores = {OURS: judged.scores()["MAE"]} | {name: rival.scores.mae for name, rival in rivals.items()}
    values = {name: (s.value, s.low, s.high) for name, s in scores.items()}
    words = {name: f"{number(s.value)} ({interval(s)})" for name, s in scores.items()}
    caption = (
        f"Average error of {target} on {len(judged.y):,} rows that the model had not seen, with 95 % intervals; "
        "shorter is better"
    )
    return [Bars.of(caption, values, words, ours=OURS)]


def number_rows_to_check(judged: JudgedRows) -> list[Block]:
    """Say how much of the error is among the most uncertain rows, and show the worst rows."""
    width, error = judged.interval[:, 1] - judged.interval[:, 0], np.abs(judged.y - judged.mean)
    n = max(1, round(CHECKED * len(width)))
    share = float(error[np.argsort(-width, kind="stable")[:n]].sum() / max(error.sum(), 1e-300))
    worst = np.argsort(-judged.crps, kind="stable")[:FEW]
    cells = [
        (
            str(judged.rows[i]) if judged.rows is not None else "",
            number(judged.y[i]),
            number(judged.mean[i]),
            f"{number(judged.interval[i, 0])} to {number(judged.interval[i, 1])}",
        )
        for i in worst
    ]
    known = judged.rows is not None
    header = (judged.row_word, "actual", "predicted", "90 % interval")
    return [
        Paragraph(
            f"The {percent(n / len(width), 0)} of the rows with the widest intervals have {percent(share, 0)} of the "
            "total error."
        ),
        PageTable(
            "Look at these rows first",
            header if known else header[1:],
            cells if known else [each[1:] for each in cells],
            "lrrr" if known else "rrr",
        ),
    ]
