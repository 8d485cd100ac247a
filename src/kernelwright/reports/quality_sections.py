"""Sections on how good a classifier is: scores, confusion matrix, confidence, and hardest rows."""

from __future__ import annotations

import numpy as np

from kernelwright.evaluation.class_quality import class_quality, never_right
from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.evaluation.habits import confidence_sentence
from kernelwright.evaluation.scores import Scores
from kernelwright.reports.curves import ConfusionDisplay, RejectionCurveDisplay, ReliabilityDisplay
from kernelwright.reports.formatting import count_of, interval, number, percent, probability, verdict
from kernelwright.reports.page import Block, Gallery, PageTable, Paragraph, Picture
from kernelwright.reports.sections import one_picture

__all__ = ["confidence", "confusions", "each_class", "hardest", "quality"]

MOST_CLASSES = 30  # in the confusion matrix; if there are more, the largest are shown
SHOWN_CLASSES = 20


def quality(found: Evaluation) -> list[Block]:
    """Show scores with intervals, next to those of rivals."""
    blocks: list[Block] = [Paragraph(f"Measured by {found.protocol}."), _score_table(found.scores)]
    return [*blocks, _rival_table(found)] if found.rivals else blocks


def _score_table(s: Scores) -> PageTable:
    means = {
        "accuracy": "share of rows whose most probable class is the true one; higher is better",
        "log loss": "mean of minus the logarithm of the true class's probability; lower is better",
        "Brier score": "mean squared distance between probabilities and true classes; lower is better",
        "calibration error": "mean gap between confidence and accuracy, in 10 bins; lower is better",
    }
    values = [
        (percent(s.accuracy.value), interval(s.accuracy, share=True)),
        *((number(each.value), interval(each)) for each in (s.log_loss, s.brier, s.calibration_error)),
    ]
    return PageTable(
        "Scores, with 95 % intervals that treat the rows as independent",
        ("score", "value", "interval", "meaning"),
        [(name, *shown, what) for (name, what), shown in zip(means.items(), values, strict=True)],
        "lrrw",
    )


def _rival_table(found: Evaluation) -> PageTable:
    rows = [("this model", *_scores(found.scores), "", "", f"{found.seconds:.1f}")]
    for name, rival in found.rivals.items():
        gain = f"{rival.gain.value:+.3f} ({interval(rival.gain)})"
        rows.append((name, *_scores(rival.scores), gain, verdict(rival), f"{rival.seconds:.1f}"))
    scores = ("accuracy", "log loss", "Brier score", "calibration error")
    header = ("method", *scores, "its log loss minus this model's", "verdict", "wall-clock seconds")
    return PageTable("Other methods on the same rows and folds", header, rows, "lrrrrrlr")


def each_class(found: Evaluation) -> list[Block]:
    """Show precision and recall of each class, and say which ones are never right."""
    classes = class_quality(found.confusion(), found.classes)
    shown = sorted(classes, key=lambda each: -each.rows)[:MOST_CLASSES]
    rows = [
        (
            each.name,
            f"{each.rows:,}",
            f"{each.named:,}",
            "never named" if each.precision is None else percent(each.precision.value),
            "" if each.precision is None else interval(each.precision, share=True),
            "no such rows" if each.recall is None else percent(each.recall.value),
            "" if each.recall is None else interval(each.recall, share=True),
        )
        for each in shown
    ]
    more = f" The {MOST_CLASSES} largest of {len(classes)} classes are listed." if len(classes) > len(shown) else ""
    return [
        *(Paragraph(sentence) for sentence in never_right(classes)),
        Paragraph(
            "Precision: if the model names the class, how often it is right. Recall: of the rows of the class, how "
            f"many it finds.{more}"
        ),
        PageTable(
            "Each class, with 95 % intervals",
            ("class", "rows", "named", "precision", "interval", "recall", "interval"),
            rows,
        ),
    ]


def confusions(found: Evaluation) -> list[Block]:
    """Show the confusion matrix; if there are many classes, of the largest ones."""
    matrix, names = found.confusion(), list(found.classes)
    blocks: list[Block] = []
    if len(names) > MOST_CLASSES:
        kept = np.sort(np.argsort(-matrix.sum(1), kind="stable")[:SHOWN_CLASSES])
        blocks.append(
            Paragraph(f"There are {len(names)} classes; only the {SHOWN_CLASSES} largest and their rows are shown.")
        )
        matrix, names = matrix[np.ix_(kept, kept)], [names[k] for k in kept]
    off = matrix - np.diag(np.diag(matrix))
    right, wrong = int(np.trace(matrix)), int(off.sum())
    most = ""
    if wrong:
        down, across = np.unravel_index(off.argmax(), off.shape)
        times = count_of(int(off.max()), "time")
        most = f" The most frequent confusion is {names[down]} predicted as {names[across]} ({times})."
    blocks.append(
        one_picture(
            ConfusionDisplay(matrix, names).plot().figure_,
            f"Number of rows by true class (down) and predicted class (across); darker is a larger share.{most}",
            f"Matrix of {len(names)} classes: {right} rows on the diagonal, {wrong} off it.{most}",
        )
    )
    return blocks


def confidence(found: Evaluation) -> list[Block]:
    """Show the reliability diagram and the rejection curve."""
    reliable = ReliabilityDisplay.from_predictions(found.labels, found.probabilities)
    curve = reliable.curve
    bins = "; ".join(
        f"confidence {percent(c)}, accuracy {percent(a)} ({n} rows)"
        for c, a, n in zip(curve.confidence, curve.accuracy, curve.counts, strict=True)
    )
    refused = RejectionCurveDisplay.from_predictions(found.labels, found.probabilities)
    marks = {share: _accuracy_at(refused, share) for share in (1.0, 0.9, 0.75, 0.5)}
    answers = ", ".join(f"{percent(value)} on the most confident {percent(share, 0)}" for share, value in marks.items())
    return [
        Paragraph(
            f"{confidence_sentence(found.probabilities, found.labels)} If its confidence is informative, its accuracy "
            "rises when it leaves the most uncertain rows unanswered."
        ),
        Gallery(
            [
                Picture.of(
                    reliable.figure_,
                    "Accuracy against confidence, with the number of rows at each point. On the dotted line the two "
                    "are equal.",
                    f"Reliability diagram: {bins}. Calibration error {curve.error:.3f}.",
                ),
                Picture.of(
                    refused.figure_,
                    f"Accuracy if only the most confident rows are answered: {answers}.",
                    f"Rejection curve: {answers}.",
                ),
            ]
        ),
    ]


def hardest(found: Evaluation, count: int = 10) -> list[Block]:
    """List the rows to check first."""
    rows = [
        (str(r.row), r.actual, r.predicted, probability(r.probability), number(r.loss)) for r in found.hardest(count)
    ]
    return [
        Paragraph(
            f"These rows have the largest out-of-sample loss. Check them first for wrong labels, typing errors and "
            f"cases that the columns do not describe. Numbers are {found.row_word}s of the table."
        ),
        PageTable(
            "Rows with the largest loss",
            (found.row_word, "true class", "predicted class", "probability of the true class", "log loss"),
            rows,
            "lllrr",
        ),
    ]


def _scores(scores: Scores) -> tuple[str, str, str, str]:
    rest = (scores.log_loss, scores.brier, scores.calibration_error)
    return (percent(scores.accuracy.value), *(f"{each.value:.3f}" for each in rest))  # type: ignore[return-value]


def _accuracy_at(display: RejectionCurveDisplay, share: float) -> float:
    """Return the accuracy if at least this share of the rows is answered."""
    return float(display.accuracy[np.searchsorted(display.answered, share - 1e-12)])
