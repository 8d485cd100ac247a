"""The report on a model of numbers: how good it is, whether its distributions can be trusted, and what it uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.evaluation.scores import Score
from kernelwright.reports.formatting import count_of, listed, name_of_table, number, percent, verdict
from kernelwright.reports.judged_rows import JudgedRows, judged_rows
from kernelwright.reports.learned_sections import learning, relevance
from kernelwright.reports.looked_at import columns_that_matter, looked_at
from kernelwright.reports.number_sections import (
    calibration,
    fans,
    hardest_numbers,
    limits,
    number_quality,
    predicted_actual,
)
from kernelwright.reports.overview import number_overview, number_rows_to_check
from kernelwright.reports.page import Block, Page, Paragraph
from kernelwright.reports.panel import panel
from kernelwright.reports.sections import columns_section, note_blocks, sections_of, settings_section
from kernelwright.tables import TabularModel

__all__ = ["judgement", "number_page", "number_quality_pages"]


def number_page(model: TabularModel) -> Page:
    """Make the report page of a model of numbers."""
    judged, rivals = judged_rows(model), getattr(model.evaluation, "rivals", {})
    measured = getattr(model.evaluation, "importance", None)
    columns = columns_that_matter(model, measured)
    where = "among rows left out of training in the cross-validation"
    made = sections_of(
        {
            **number_quality_pages(judged, rivals, model.target),
            "What if": lambda: panel(model, model.examples, columns),
            "What it looks at": lambda: looked_at(measured, where),
            "Quantiles along columns": lambda: fans(model),
            "Columns": lambda: columns_section(model.columns),
        }
    )
    specialists = sections_of(
        {
            "Relevant features": lambda: relevance(model),
            "Limits": lambda: limits(model, judged),
            "Training": lambda: learning(model),
            "Settings and versions": lambda: settings_section(_settings(model), model.versions),
        }
    )
    return Page(f"Prediction of {model.target}", _summary(model, judged, rivals), made, specialists)


def number_quality_pages(
    judged: JudgedRows, rivals: Mapping[str, Any], target: str
) -> dict[str, Callable[[], Sequence[Block]]]:
    """Return the sections on the quality of predicted numbers, by title."""
    return {
        "Quality on new rows": lambda: number_quality(judged, rivals),
        "Predicted and actual": lambda: predicted_actual(judged, target),
        "Calibration": lambda: calibration(judged),
        "Hardest rows": lambda: hardest_numbers(judged),
    }


def _summary(model: TabularModel, judged: JudgedRows, rivals: Mapping[str, Any]) -> list[Block]:
    """Describe the model in plain words: the first screen."""
    regressor = model.pipeline[-1]
    rows = count_of(len(regressor.embedding_.rows.place), "row")
    columns, scores = count_of(len(model.used), "column"), judged.scores()
    return [
        Paragraph(
            f"This model predicts {model.target} from {columns}: a number, and how far from it the truth may be. It "
            f"has learned from {rows} of {name_of_table(model.settings)}."
        ),
        *number_overview(judged, rivals, model.target),
        *(Paragraph(text) for text in judgement(model.target, scores, rivals)),
        *number_rows_to_check(judged),
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
        f"{openings[word]} {listed(names)} on the same rows (by CRPS)." for word, names in found.items() if names
    ]
    if ahead := found["this model is worse"]:
        sentences.append(f"On this table, prefer {listed(ahead, 'or')}.")
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
