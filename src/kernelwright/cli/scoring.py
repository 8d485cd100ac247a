"""Print scores: for kernelwright evaluate, and for the comparison of kernelwright fit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from kernelwright.cli.number_scoring import (
    number_score_tables,
    number_words,
    show_hardest_numbers,
    span,
)
from kernelwright.cli.screen import print_table, say
from kernelwright.evaluation.class_quality import class_quality, never_right
from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.evaluation.habits import confidence_sentence
from kernelwright.evaluation.number_scores import around_residuals
from kernelwright.evaluation.numbers import NumberEvaluation, predictions_of
from kernelwright.evaluation.scores import Score, Scores
from kernelwright.inputs.frames.table import Table, some_of
from kernelwright.tables.drift import Drift, TargetDrift
from kernelwright.tables.examples import ExampleRows
from kernelwright.tables.model import TabularModel
from kernelwright.uncertainty.importance import Importance

__all__ = [
    "evaluation_on",
    "evaluation_page",
    "evaluation_record",
    "show_comparison",
    "show_drift",
    "show_evaluation",
    "show_importance",
]

OURS = "kernelwright"
TRAINING = "in training"
LISTED = 12  # classes, by their number of rows
MOST_COLUMNS = 8  # whose importance is shown
CONFUSED = 12  # with more classes, the confusion matrix is not printed


def evaluation_on(model: TabularModel, rows: Table, targets: np.ndarray) -> tuple[Evaluation | NumberEvaluation, Drift]:
    """Evaluate a model on a table with targets, next to the distribution of the targets of its training table."""
    started = time.perf_counter()
    numbers = model.numbers
    shared = {
        "rows": rows.row_numbers(),
        "row_word": rows.row_word,
        "protocol": f"{len(targets)} rows of {rows.source}, predicted by the saved model",
    }
    if numbers is None:
        probabilities, drift = model.answer(rows)
        seconds = time.perf_counter() - started
        result = Evaluation.of(probabilities, targets, classes=model.classes, seconds=seconds, **shared)
        shares = np.array(model.class_counts) / sum(model.class_counts)
        result.rivals["majority class"] = result.compare(np.tile(shares, (len(targets), 1)))
        return result, drift
    predictions, drift = predictions_of(model.estimator, model.inputs(rows)[0], targets), model.drift(rows)
    found = NumberEvaluation.of(predictions, targets, seconds=time.perf_counter() - started, **shared)
    constant = around_residuals(np.full(len(targets), numbers.mean), numbers.values - numbers.mean, targets)
    found.rivals["training mean"] = found.compare(constant)
    return found, drift


def evaluation_record(result: Evaluation | NumberEvaluation, drift: Drift, shift: TargetDrift) -> dict[str, Any]:
    """Return the record that --json prints."""
    return result.summary() | {
        "hardest_rows": [asdict(row) for row in result.hardest()],
        "drift": drift.summary(),
        "target_drift": shift.summary(),
    }


def evaluation_page(
    model: TabularModel,
    rows: Table,
    targets: np.ndarray,
    found: tuple[Evaluation | NumberEvaluation, Drift, TargetDrift],
) -> str:
    """Return the report on an evaluation as HTML."""
    from kernelwright.reports import evaluation_report

    frame = model.prepare(rows)[0]
    examples = ExampleRows.of(frame, targets, rows.row_numbers(), rows.row_word, found[0])
    return evaluation_report(model, *found, examples=examples, source=rows.source)


def show_comparison(evaluation: Evaluation | NumberEvaluation) -> None:
    """Print the scores of a model and of its rivals, and which differences are clear."""
    scores = {OURS: evaluation.scores} | {name: rival.scores for name, rival in evaluation.rivals.items()}
    seconds = [evaluation.seconds, *(rival.seconds for rival in evaluation.rivals.values())]
    say()
    _show_scores(scores)
    say(f"Measured by {evaluation.protocol}.")
    times = ", ".join(f"{name} {time:.1f}" for name, time in zip(scores, seconds, strict=True))
    say(f"Seconds to fit and predict in all folds (wall clock): {times}.")
    if isinstance(evaluation, Evaluation):
        _say_verdict("Log loss", {name: rival.gain for name, rival in evaluation.rivals.items()})
        show_classes(evaluation)
        return
    _say_verdict("CRPS", {name: rival.gain for name, rival in evaluation.rivals.items()})
    _say_verdict("Squared error", {name: rival.error_gain for name, rival in evaluation.rivals.items()})
    for sentence in number_words(evaluation):
        say(sentence)


def show_importance(found: Importance | None) -> None:
    """Print the columns that the model needs most: the loss that is added when they are permuted."""
    if found is None:
        return
    rows = [dict(zip(found.heads, cells, strict=True)) for cells in found.cells(MOST_COLUMNS)]
    print_table(f"\nWhat it looks at: {found.measure} added when a column is shuffled", rows, words=("column",))
    say(f"Measured on {found.n_rows} rows left out; without shuffling, the {found.measure} is {found.base:.4g}.")
    if unclear := [row.name for row in found.rows if not row.clear]:
        say(f"No clear help at these rows (the interval reaches zero): {some_of(unclear, 8)}.")


def show_classes(result: Evaluation) -> None:
    """Print precision and recall of each class, the classes that are never right, and how far confidence is right."""
    found = class_quality(result.confusion(), result.classes)
    rows = [
        {
            "class": each.name,
            "rows": each.rows,
            "named": each.named,
            "precision": _share_cell(each.precision),
            "recall": _share_cell(each.recall),
        }
        for each in sorted(found, key=lambda each: -each.rows)[:LISTED]
    ]
    print_table("\nEach class, with 95 % intervals", rows, words=("class",))
    if len(found) > LISTED:
        say(f"The {LISTED} largest of {len(found)} classes are listed.")
    for sentence in never_right(found):
        say(sentence)
    say(confidence_sentence(result.probabilities, result.labels))


def _share_cell(score: Score | None) -> str:
    return "-" if score is None else span((f"{100 * each:.1f}" for each in (score.value, score.low, score.high)), "%")


def _show_scores(scores: Mapping[str, Any]) -> None:
    """Print a table with a line for each method; for numbers, one for means and one for distributions."""
    classes = isinstance(scores[OURS], Scores)
    tables = {"Scores": [_score_row(name, each) for name, each in scores.items()]} if classes else None
    for title, rows in (tables or number_score_tables(scores)).items():
        print_table(f"{title}, with 95 % intervals", rows, bold=OURS)


def _say_verdict(measure: str, gains: Mapping[str, Score]) -> None:
    parts = {
        "clearly better than": [name for name, gain in gains.items() if gain.low > 0],
        "no clear difference from": [name for name, gain in gains.items() if gain.low <= 0 <= gain.high],
        "clearly worse than": [name for name, gain in gains.items() if gain.high < 0],
    }
    verdict = "; ".join(f"{word} {', '.join(names)}" for word, names in parts.items() if names)
    say(f"{measure}, row by row: {verdict}.")


def _score_row(method: str, scores: Scores) -> dict[str, str]:
    return {
        "method": method,
        "accuracy": _share_cell(scores.accuracy),
        "log loss": _loss_cell(scores.log_loss),
        "calibration error": _loss_cell(scores.calibration_error),
    }


def _loss_cell(score: Score) -> str:
    return span(f"{each:.3f}" for each in (score.value, score.low, score.high))


def show_evaluation(result: Evaluation | NumberEvaluation, model: TabularModel) -> None:
    """Print scores, the confusion matrix of classes, and the worst mistakes."""
    scores: dict[str, Any] = {OURS: result.scores} | {name: rival.scores for name, rival in result.rivals.items()}
    if model.evaluation is not None:
        scores[TRAINING] = model.evaluation.scores
    _show_scores(scores)
    say(f"Measured on {result.protocol}.")
    if TRAINING in scores:
        say(f"'{TRAINING}' are the scores of its cross-validation on {model.settings.get('table', 'its own table')}.")
    if isinstance(result, NumberEvaluation):
        for sentence in number_words(result):
            say(sentence)
        show_hardest_numbers(result)
        return
    show_classes(result)
    counts = result.confusion()
    if len(result.classes) <= CONFUSED:
        table = [
            {"true class": name} | dict(zip(result.classes, map(int, counts[k]), strict=True))
            for k, name in enumerate(result.classes)
        ]
        print_table("\nTrue class (down) and predicted class (across)", table, words=("true class",))
    wrong = [row for row in result.hardest(5) if row.actual != row.predicted]
    if wrong:
        print_table(
            "\nWorst mistakes", [_hard_row(row, result.row_word) for row in wrong], words=("true class", "predicted")
        )


def _hard_row(row: Any, word: str) -> dict[str, Any]:
    return {
        word: row.row,
        "true class": row.actual,
        "predicted": row.predicted,
        "probability of the true class": f"{row.probability:.3g}",
    }


def show_drift(drift: Drift, shift: TargetDrift) -> None:
    """Print the results of the tests for drift of rows and targets, and values that training did not have."""
    say()
    for sentence in drift.sentences():
        say(sentence)
    for finding in drift.findings:
        if finding.what != "missing":
            word = drift.row_word + "s" * (finding.count > 1)
            say(f"  {finding}; {word} {some_of(finding.rows)}{', ...' if finding.count > len(finding.rows) else ''}")
    for sentence in shift.sentences():
        say(sentence)
