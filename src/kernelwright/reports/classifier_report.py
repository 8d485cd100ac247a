"""The report of a classifier of tables: what was learned, how good it is, and what it looks at."""

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
    """All there is to say about a model."""
    sections = [
        ("Quality on new rows", lambda: quality(model)),
        ("Confusions", lambda: confusions(model)),
        ("Confidence", lambda: confidence(model)),
        ("Hardest rows", lambda: hardest(model)),
        ("What it looks at", lambda: relevance(model)),
        ("Maps", lambda: maps(model)),
        ("How it learned", lambda: learning(model)),
        ("Risk bounds", lambda: bound_blocks(model.classifier)),
        ("Columns", lambda: columns_section(model.columns)),
        ("Settings and versions", lambda: settings_section(_settings(model), model.versions)),
    ]
    made = [section_or_sentence(title, blocks) for title, blocks in sections]
    return Page(f"Classifier of {model.target}", summary(model), made)


def summary(model: TabularModel) -> list[Block]:
    """The model in plain words."""
    rows = count_of(sum(model.class_counts), "row")
    columns = count_of(len(model.used), "column")
    blocks: list[Block] = [
        Paragraph(
            f"Learned from {rows} and {columns} of {name_of_table(model.settings)}: which of "
            f"{count_of(len(model.classes), 'class')} of {model.target} a row belongs to, and with what probability."
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
                Tile(f"{len(found.labels):,}", "rows it was tested on", "95 % intervals throughout"),
            ]
        )
    )
    blocks += [Paragraph(text) for text in judgement(found)]
    return [*blocks, *note_blocks(model.notes)]


def judgement(found: Evaluation) -> list[str]:
    """Sentences on how good it is, and next to what; also where it is not better."""
    accuracy, majority = found.scores.accuracy, found.rivals.get("majority class")
    text = f"On rows it had not seen it named the right class {percent(accuracy.value)} of the time"
    if majority is not None:
        base = majority.scores.accuracy.value
        text += f"; always naming the most frequent class would be right {percent(base)} of the time"
        if accuracy.low <= base:
            text += ", and that difference may be chance"
    sentences = [f"{text}."]
    if majority is not None and majority.gain.low <= 0:
        sentences.append(
            "Its probabilities are not clearly better than the class frequencies alone: these columns may say little "
            "about the classes, or there are too few rows."
        )
    openings = {
        "this model is better": "{subject} are clearly better than those of",
        "this model is worse": "{subject} are clearly worse than those of",
        "no clear difference": "There is no clear difference to",
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
