"""Print scores: for kernelwright evaluate, and for the comparison of kernelwright fit."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import numpy as np

from kernelwright.cli.screen import print_table, say
from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.evaluation.scores import Scores
from kernelwright.tables.drift import Drift
from kernelwright.tables.model import TabularModel
from kernelwright.tables.table import Table, some_of

__all__ = ["evaluation_on", "evaluation_record", "show_comparison", "show_drift", "show_evaluation"]

OURS = "kernelwright"
CONFUSED = 12  # with more classes, the confusion matrix is not printed


def evaluation_on(model: TabularModel, rows: Table, labels: np.ndarray) -> tuple[Evaluation, Drift]:
    """Evaluate a model on a table with labels, next to the class frequencies of its training table."""
    started = time.perf_counter()
    probabilities, drift = model.answer(rows)
    seconds = time.perf_counter() - started
    result = Evaluation.of(
        probabilities,
        labels,
        classes=model.classes,
        rows=rows.row_numbers(),
        row_word=rows.row_word,
        protocol=f"{len(labels)} rows of {rows.source}, predicted by the saved model",
        seconds=seconds,
    )
    shares = np.array(model.class_counts) / sum(model.class_counts)
    result.rivals["majority class"] = result.compare(np.tile(shares, (len(labels), 1)))
    return result, drift


def evaluation_record(result: Evaluation, drift: Drift) -> dict[str, Any]:
    """Return the record that --json prints."""
    return result.summary() | {"hardest_rows": [asdict(row) for row in result.hardest()], "drift": drift.summary()}


def show_comparison(evaluation: Evaluation) -> None:
    """Print the scores of a model and of its rivals, and which differences are clear."""
    rows = [_score_row(OURS, evaluation.scores)]
    rows += [_score_row(name, rival.scores) for name, rival in evaluation.rivals.items()]
    seconds = [evaluation.seconds, *(rival.seconds for rival in evaluation.rivals.values())]
    rows = [row | {"seconds": f"{time:.1f}"} for row, time in zip(rows, seconds, strict=True)]
    print_table("\nScores, with 95 % intervals", rows, bold=OURS)
    say(f"Measured by {evaluation.protocol}.")
    gains = {name: rival.gain for name, rival in evaluation.rivals.items()}
    parts = {
        "clearly better than": [name for name, gain in gains.items() if gain.low > 0],
        "no clear difference from": [name for name, gain in gains.items() if gain.low <= 0 <= gain.high],
        "clearly worse than": [name for name, gain in gains.items() if gain.high < 0],
    }
    verdict = "; ".join(f"{word} {', '.join(names)}" for word, names in parts.items() if names)
    say(f"Log loss, row by row: {verdict}.")


def _score_row(method: str, scores: Scores) -> dict[str, str]:
    accuracy = scores.accuracy
    return {
        "method": method,
        "accuracy": f"{100 * accuracy.value:.1f} % ({100 * accuracy.low:.1f} to {100 * accuracy.high:.1f})",
        "log loss": str(scores.log_loss),
        "calibration error": str(scores.calibration_error),
    }


def show_evaluation(result: Evaluation, model: TabularModel) -> None:
    """Print scores, the confusion matrix and the worst mistakes."""
    rows = [_score_row(OURS, result.scores)]
    rows += [_score_row(name, rival.scores) for name, rival in result.rivals.items()]
    if model.evaluation is not None:
        rows.append(_score_row("cross-validation in training", model.evaluation.scores))
    print_table("Scores, with 95 % intervals", rows, bold=OURS)
    say(f"Measured on {result.protocol}.")
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


def show_drift(drift: Drift) -> None:
    """Print the result of the drift test, and values that training did not have."""
    say()
    for sentence in drift.sentences():
        say(sentence)
    for finding in drift.findings:
        if finding.what != "missing":
            word = drift.row_word + "s" * (finding.count > 1)
            say(f"  {finding}; {word} {some_of(finding.rows)}{', ...' if finding.count > len(finding.rows) else ''}")
