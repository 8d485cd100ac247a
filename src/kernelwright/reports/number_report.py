"""The report on a model of numbers: how good it is, whether its distributions can be trusted, and what it uses."""

from __future__ import annotations

from typing import Any

from kernelwright.reports.formatting import count_of, interval, name_of_table, number, percent
from kernelwright.reports.judged_rows import JudgedRows, left_out_rows
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
    judged = left_out_rows(model.pipeline[-1])
    sections = [
        ("Quality on new rows", lambda: number_quality(judged)),
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
    return Page(f"Prediction of {model.target}", _summary(model, judged), made)


def _summary(model: TabularModel, judged: JudgedRows) -> list[Block]:
    """Describe the model in plain words."""
    regressor = model.pipeline[-1]
    rows = count_of(len(regressor.embedding_.rows.place), "row")
    columns, scores = count_of(len(model.used), "column"), judged.scores()
    return [
        Paragraph(
            f"Trained on {rows} and {columns} of {name_of_table(model.settings)}. The model predicts {model.target} as a "
            "distribution: a mean, and how far from it the truth may be."
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
        Paragraph(judgement(model, scores)),
        *note_blocks(model.notes),
    ]


def judgement(model: TabularModel, scores: Any) -> str:
    """Say how good the model is, even if it is not."""
    explained, width = scores["R²"], scores["width"]
    if explained.low <= 0:
        return (
            f"Its predictions are not clearly better than the mean of {model.target}: these columns may carry little "
            "information about it, or there are too few rows."
        )
    return (
        f"Out of sample, its predictions explain {percent(explained.value)} of the variance of {model.target}. They are "
        f"off by {number(scores['MAE'].value)} on average, and a 90 % interval is {number(width.value)} wide."
    )


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
