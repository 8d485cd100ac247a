"""The report on a classifier for tables: what it learned, how good it is, and which features it uses."""

from __future__ import annotations

from typing import Any

from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.reports.bounds import bound_blocks
from kernelwright.reports.formatting import count_of, interval, name_of_table, number, percent, verdict
from kernelwright.reports.learned_sections import learning, maps, relevance
from kernelwright.reports.page import Block, Page, Paragraph, Tile, Tiles
from kernelwright.reports.quality_sections import NOT_MEASURED, confidence, confusions, hardest, quality
from kernelwright.reports.sections import columns_section, note_blocks, section_or_sentence, settings_section
from kernelwright.tables import TabularModel

__all__ = ["classifier_page"]


def classifier_page(model: TabularModel) -> Page:
    """Make the report page of a classifier."""
    sections = [
        ("Quality on new rows", lambda: quality(model)),
        ("Confusions", lambda: confusions(model)),
        ("Confidence", lambda: confidence(model)),
        ("Hardest rows", lambda: hardest(model)),
        ("Relevant features", lambda: relevance(model)),
        ("Maps", lambda: maps(model)),
        ("Training", lambda: learning(model)),
        ("Risk bounds", lambda: bound_blocks(model.classifier)),
        ("Columns", lambda: columns_section(model.columns)),
        ("Settings and versions", lambda: settings_section(_settings(model), model.versions)),
    ]
    made = [section_or_sentence(title, blocks) for title, blocks in sections]
    return Page(f"Classifier of {model.target}", summary(model), made)


def summary(model: TabularModel) -> list[Block]:
    """Describe the model in plain words."""
    rows = count_of(sum(model.class_counts), "row")
    columns = count_of(len(model.used), "column")
    blocks: list[Block] = [
        Paragraph(
            f"Trained on {rows} and {columns} of {name_of_table(model.settings)}. The model predicts the probability "
            f"of each of {count_of(len(model.classes), 'class')} of {model.target}."
        )
    ]
    found = model.evaluation
    if found is None:
        return [*blocks, Paragraph(NOT_MEASURED), *note_blocks(model.notes)]
    scores = found.scores
    blocks.append(
        Tiles(
            [
                Tile(percent(scores.accuracy.value), "accuracy", interval(scores.accuracy, share=True)),
                Tile(number(scores.log_loss.value), "log loss", interval(scores.log_loss)),
                Tile(number(scores.calibration_error.value), "calibration error", interval(scores.calibration_error)),
                Tile(f"{len(found.labels):,}", "rows it was tested on", "all intervals are 95 % intervals"),
            ]
        )
    )
    blocks += [Paragraph(text) for text in judgement(found)]
    return [*blocks, *note_blocks(model.notes)]


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
            sentences.append(f"{opening} {' and '.join(names)} on the same rows (by log loss).")
            subject = "They"
    ahead = [name for name, said in others.items() if said == "this model is worse"]
    if ahead:
        sentences.append(f"For probabilities on this table, prefer {' or '.join(ahead)}.")
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
