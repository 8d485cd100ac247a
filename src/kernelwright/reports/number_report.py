"""The report on a model of numbers: how good it is, whether its distributions can be trusted, and what it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.evaluation.scores import Score
from kernelwright.reports.formatting import count_of, interval, name_of_table, number, percent, verdict
from kernelwright.reports.judged_rows import JudgedRows, judged_rows
from kernelwright.reports.learned_sections import learning, relevance
from kernelwright.reports.number_sections import (
    calibration,
    fans,
    hardest_numbers,
    limits,
    number_quality,
    predicted_actual,
)
from kernelwright.reports.page import Block, Page, Paragraph, Tile, Tiles
from kernelwright.reports.sections import columns_section, note_blocks, section_or_sentence, settings_section
from kernelwright.tables import TabularModel

__all__ = ["judgement", "number_page"]


def number_page(model: TabularModel) -> Page:
    """Make the report page of a model of numbers."""
    judged, rivals = judged_rows(model), getattr(model.evaluation, "rivals", {})
    sections = [
        ("Quality on new rows", lambda: number_quality(judged, rivals)),
        ("Predicted and actual", lambda: predicted_actual(judged, model.target)),
        ("Calibration", lambda: calibration(judged)),
        ("Hardest rows", lambda: hardest_numbers(judged)),
        ("Relevant features", lambda: relevance(model)),
        ("Quantiles along columns", lambda: fans(model)),
        ("Limits", lambda: limits(model, judged)),
        ("Training", lambda: learning(model)),
        ("Columns", lambda: columns_section(model.columns)),
        ("Settings and versions", lambda: settings_section(_settings(model), model.versions)),
    ]
    made = [section_or_sentence(title, blocks) for title, blocks in sections]
    return Page(f"Prediction of {model.target}", _summary(model, judged, rivals), made)


def _summary(model: TabularModel, judged: JudgedRows, rivals: Mapping[str, Any]) -> list[Block]:
    """Describe the model in plain words."""
    regressor = model.pipeline[-1]
    rows = count_of(len(regressor.embedding_.rows.place), "row")
    columns, scores = count_of(len(model.used), "column"), judged.scores()
    return [
        Paragraph(
            f"Trained on {rows} and {columns} of {name_of_table(model.settings)}. The model predicts {model.target} "
            "as a distribution: a mean, and how far from it the truth may be."
        ),
        Tiles(
            [
                Tile(percent(scores["R²"].value), "R²", interval(scores["R²"], share=True)),
                Tile(number(scores["MAE"].value), "mean absolute error", interval(scores["MAE"])),
                Tile(
                    percent(scores["coverage"].value),
                    "coverage of 90 % intervals",
                    interval(scores["coverage"], share=True),
                ),
                Tile(f"{len(judged.y):,}", "rows it was tested on", "all intervals are 95 % intervals"),
            ]
        ),
        *(Paragraph(text) for text in judgement(model.target, scores, rivals)),
        *note_blocks(model.notes),
    ]


def judgement(target: str, scores: Mapping[str, Score], rivals: Mapping[str, Any]) -> list[str]:
    """Say how good the model is compared with its rivals, even if it is not better."""
    explained, width = scores["R²"], scores["width"]
    if explained.low <= 0:
        first = (
            f"Its predictions are not clearly better than the mean of {target}: these columns may carry little "
            "information about it, or there are too few rows."
        )
    else:
        first = (
            f"Out of sample, its predictions explain {percent(explained.value)} of the variance of {target}. They are "
            f"off by {number(scores['MAE'].value)} on average, and a 90 % interval is {number(width.value)} wide."
        )
    verdicts = {name: verdict(rival) for name, rival in rivals.items()}
    openings = {
        "this model is better": "Its distributions are clearly better than those of",
        "this model is worse": "Its distributions are clearly worse than those of",
        "no clear difference": "There is no clear difference from",
    }
    found = {word: [name for name, said in verdicts.items() if said == word] for word in openings}
    sentences = [
        f"{openings[word]} {' and '.join(names)} on the same rows (by CRPS)." for word, names in found.items() if names
    ]
    if ahead := found["this model is worse"]:
        sentences.append(f"On this table, prefer {' or '.join(ahead)}.")
    return [first, *sentences]


def _settings(model: TabularModel) -> dict[str, Any]:
    fitted = model.pipeline[-1]
    return {
        **model.settings,
        "target": model.target,
        "kernel": repr(fitted.kernel_),
        "ridge": fitted.ridge_,
        "solver": fitted.solver_,
        "points or features": fitted.n_landmarks_,
        "distribution": repr(fitted.distribution),
    }
