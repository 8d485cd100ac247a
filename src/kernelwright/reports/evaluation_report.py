"""The report on a model's answers for a new table with known targets."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.evaluation.numbers import NumberEvaluation
from kernelwright.inputs.frames.table import some_of
from kernelwright.reports.classifier_report import judgement as class_judgement
from kernelwright.reports.classifier_report import quality_pages
from kernelwright.reports.formatting import count_of, interval, number, percent
from kernelwright.reports.judged_rows import SCORES, evaluated_rows
from kernelwright.reports.looked_at import columns_that_matter, importance_at_examples, looked_at
from kernelwright.reports.number_report import judgement as number_judgement
from kernelwright.reports.number_report import number_quality_pages
from kernelwright.reports.number_sections import SHARES
from kernelwright.reports.overview import class_overview, number_overview, number_rows_to_check, rows_to_check
from kernelwright.reports.page import Block, Page, PageTable, Paragraph
from kernelwright.reports.panel import panel
from kernelwright.reports.sections import sections_of
from kernelwright.tables import Drift, ExampleRows, TabularModel, TargetDrift

__all__ = ["evaluation_report"]


def evaluation_report(
    model: TabularModel,
    found: Evaluation | NumberEvaluation,
    drift: Drift,
    shift: TargetDrift,
    *,
    examples: ExampleRows | None = None,
    source: str = "the table",
) -> str:
    """Return a page on how good a model is on a new table: quality, calibration, hardest rows, drift and what-if.

    Parameters
    ----------
    model : TabularModel
    found : Evaluation or NumberEvaluation
        The predictions of the model for the rows of the table.
    drift, shift : Drift, TargetDrift
        Whether rows and targets are like those of the training table.
    examples : ExampleRows, optional
        Some of the rows, for the panel and for shuffling columns.
    source : str
        The name of the table.

    Returns
    -------
    str
        The HTML of the page.
    """
    measured = importance_at_examples(model, examples)
    columns = columns_that_matter(model, measured)
    if isinstance(found, Evaluation):
        first, quality = _class_blocks(found), quality_pages(found)
    else:
        first, quality = (
            _number_blocks(found, model.target),
            number_quality_pages(evaluated_rows(found), found.rivals, model.target),
        )
    sections = {
        **quality,
        "Drift": lambda: _drift(drift, shift),
        "Beside cross-validation": lambda: _beside(model, found),
        "What if": lambda: panel(model, examples, columns),
        "What it looks at": lambda: looked_at(measured, "among rows of this table"),
    }
    opening = Paragraph(
        f"How good is a model that has learned from {model.settings.get('table', 'another table')} on "
        f"{count_of(len(found.rows), 'row')} of {source}?"
    )
    warnings = [Paragraph(text) for text in (*drift.sentences(), *shift.sentences()) if text.startswith("Drift")]
    return Page(f"Evaluation of {model.target}", [opening, *first, *warnings], sections_of(sections)).render()


def _class_blocks(found: Evaluation) -> list[Block]:
    return [*class_overview(found), *(Paragraph(text) for text in class_judgement(found)), *rows_to_check(found)]


def _number_blocks(found: NumberEvaluation, target: str) -> list[Block]:
    judged = evaluated_rows(found)
    sentences = [Paragraph(text) for text in number_judgement(target, judged.scores(), found.rivals)]
    return [*number_overview(judged, found.rivals, target), *sentences, *number_rows_to_check(judged)]


def _drift(drift: Drift, shift: TargetDrift) -> list[Block]:
    """Say whether rows and targets are like those of training, and list values that training did not have."""
    blocks: list[Block] = [Paragraph(text) for text in (*drift.sentences(), *shift.sentences())]
    rows = [(each.column, str(each).removeprefix(f"{each.column}: "), some_of(each.rows)) for each in drift.findings]
    if rows:
        header = ("column", "what is new", f"{drift.row_word}s")
        blocks.append(PageTable("Values that the training table did not have, and gaps", header, rows, "lwl"))
    return blocks


def _beside(model: TabularModel, found: Evaluation | NumberEvaluation) -> Sequence[Block]:
    """Compare the scores with those of the cross-validation in training."""
    before = model.evaluation
    if before is None:
        return [Paragraph("The model was trained without cross-validation, so there is nothing to compare with.")]
    if isinstance(found, Evaluation):
        names = {"accuracy": "accuracy", "log loss": "log_loss", "calibration error": "calibration_error"}
        shares: Sequence[str] = ("accuracy",)
    else:
        names, shares = SCORES, SHARES
    rows = []
    for name, word in names.items():
        here, there = getattr(found.scores, word), getattr(before.scores, word)
        cells = [
            (percent(s.value) if name in shares else number(s.value), interval(s, share=name in shares))
            for s in (here, there)
        ]
        rows.append((name, *cells[0], *cells[1]))
    header = ("score", "on this table", "interval", "in training", "interval")
    return [
        Paragraph(
            "If the rows of this table are like those of training, the intervals overlap for most scores. Scores that "
            "depend on how hard the rows are, such as the accuracy, may differ for other reasons than the model."
        ),
        PageTable("Scores, with 95 % intervals", header, rows),
    ]
