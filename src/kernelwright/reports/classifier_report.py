"""The report on a classifier for tables: what it learned, how good it is, and which features it uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.reports.bounds import bound_blocks
from kernelwright.reports.formatting import count_of, listed, name_of_table, percent, verdict
from kernelwright.reports.learned_sections import learning, maps, relevance
from kernelwright.reports.looked_at import columns_that_matter, looked_at
from kernelwright.reports.overview import class_overview, rows_to_check
from kernelwright.reports.page import Block, Page, Paragraph
from kernelwright.reports.panel import panel
from kernelwright.reports.quality_sections import confidence, confusions, each_class, hardest, quality
from kernelwright.reports.sections import (
    SectionLeftOut,
    columns_section,
    note_blocks,
    sections_of,
    settings_section,
)
from kernelwright.tables import TabularModel

__all__ = ["classifier_page", "judgement", "quality_pages"]


NOT_MEASURED = (
    "How good the model is on new rows was not measured: it was trained without cross-validation. Nothing on this "
    "page says how often its predictions will be correct."
)


def classifier_page(model: TabularModel) -> Page:
    """Make the report page of a classifier."""
    measured = getattr(model.evaluation, "importance", None)
    columns = columns_that_matter(model, measured)
    where = "among rows left out of training in the cross-validation"
    made = sections_of(
        {
            **quality_pages(model.evaluation),
            "What if": lambda: panel(model, model.examples, columns),
            "What it looks at": lambda: looked_at(measured, where),
            "Columns": lambda: columns_section(model.columns),
        }
    )
    specialists = sections_of(
        {
            "Relevant features": lambda: relevance(model),
            "Maps": lambda: maps(model),
            "Training": lambda: learning(model),
            "Risk bounds": lambda: bound_blocks(model.classifier),
            "Settings and versions": lambda: settings_section(_settings(model), model.versions),
        }
    )
    return Page(f"Classifier of {model.target}", summary(model), made, specialists)


def quality_pages(found: Evaluation | None) -> dict[str, Callable[[], Sequence[Block]]]:
    """Return the sections on the quality of a classifier, by title, or a sentence without an evaluation."""
    if found is None:
        return {"Quality on new rows": _not_measured}
    return {
        "Each class": lambda: each_class(found),
        "Quality on new rows": lambda: quality(found),
        "Confusions": lambda: confusions(found),
        "Confidence": lambda: confidence(found),
        "Hardest rows": lambda: hardest(found),
    }


def _not_measured() -> Sequence[Block]:
    raise SectionLeftOut(NOT_MEASURED)


def summary(model: TabularModel) -> list[Block]:
    """Describe the model in plain words: the first screen."""
    rows = count_of(sum(model.class_counts), "row")
    columns = count_of(len(model.used), "column")
    blocks: list[Block] = [
        Paragraph(
            f"This model tells {model.target} from {columns}: it gives the probability of each of "
            f"{count_of(len(model.classes), 'class')}. It has learned from {rows} of {name_of_table(model.settings)}."
        )
    ]
    found = model.evaluation
    if found is None:
        return [*blocks, Paragraph(NOT_MEASURED), *note_blocks(model.notes)]
    sentences = [Paragraph(text) for text in judgement(found)]
    return [*blocks, *class_overview(found), *sentences, *rows_to_check(found), *note_blocks(model.notes)]


def judgement(found: Evaluation) -> list[str]:
    """Say how good the model is compared with its rivals, even if it is not better."""
    accuracy, majority = found.scores.accuracy, found.rivals.get("majority class")
    text = f"Out of sample, it predicted the correct class for {percent(accuracy.value)} of the rows"
    if majority is not None:
        base = majority.scores.accuracy.value
        text += f"; always predicting the most frequent class would be correct for {percent(base)}"
        if accuracy.low <= base:
            text += ", and the difference may be due to chance"
    sentences = [f"{text}."]
    if majority is not None and majority.gain.low <= 0:
        sentences.append(
            "Its probabilities are not clearly better than the class frequencies alone: these columns may carry little "
            "information about the classes, or there are too few rows."
        )
    openings = {
        "this model is better": "{subject} are clearly better than those of",
        "this model is worse": "{subject} are clearly worse than those of",
        "no clear difference": "There is no clear difference from",
    }
    others = {name: verdict(rival) for name, rival in found.rivals.items() if name != "majority class"}
    subject = "Its probabilities"
    for word, opening in openings.items():
        names = [name for name, said in others.items() if said == word]
        if names:
            opening = opening.format(subject=subject)
            sentences.append(f"{opening} {listed(names)} on the same rows (by log loss).")
            subject = "They"
    ahead = [name for name, said in others.items() if said == "this model is worse"]
    if ahead:
        sentences.append(f"For probabilities on this table, prefer {listed(ahead, 'or')}.")
    return sentences


def _settings(model: TabularModel) -> dict[str, Any]:
    fitted = model.classifier
    return {
        **model.settings,
        "target": model.target,
        "kernel": repr(fitted.kernel_),
        "ridge": fitted.ridge_,
        "solver": fitted.solver_,
        "points or features": fitted.n_landmarks_,
        "complexity": fitted.complexity_,
    }
