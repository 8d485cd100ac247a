"""Sections on how good a classifier is: scores, confusions, confidence, rows to look at."""

from __future__ import annotations

import numpy as np

from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.evaluation.scores import Scores
from kernelwright.reports.curves import ConfusionDisplay, RejectionCurveDisplay, ReliabilityDisplay
from kernelwright.reports.formatting import count_of, interval, number, percent, probability, verdict
from kernelwright.reports.page import Block, Gallery, PageTable, Paragraph, Picture
from kernelwright.reports.sections import SectionLeftOut, one_picture
from kernelwright.tables import TabularModel

__all__ = ["NOT_MEASURED", "confidence", "confusions", "hardest", "quality"]

MOST_CLASSES = 30  # in the confusion matrix; of more, the largest are shown
SHOWN_CLASSES = 20
NOT_MEASURED = (
    "How good the model is on new rows was not measured: it was learned without cross-validation. Nothing on this "
    "page says how often it will be right."
)


def quality(model: TabularModel) -> list[Block]:
    """Scores with intervals, and those of rivals."""
    found = _measured(model)
    blocks: list[Block] = [Paragraph(f"Measured by {found.protocol}."), _score_table(found.scores)]
    return [*blocks, _rival_table(found)] if found.rivals else blocks


def _score_table(s: Scores) -> PageTable:
    means = {
        "accuracy": "share of rows whose most probable class is the right one; higher is better",
        "log loss": "mean of minus the logarithm of the right class's probability; lower is better",
        "Brier score": "mean squared distance of the probabilities from the truth; lower is better",
        "calibration error": "mean gap between confidence and accuracy, in 10 bins; lower is better",
    }
    values = [
        (percent(s.accuracy.value), interval(s.accuracy, share=True)),
        *((number(each.value), interval(each)) for each in (s.log_loss, s.brier, s.calibration_error)),
    ]
    return PageTable(
        "Scores, with 95 % intervals that treat the rows as independent",
        ("score", "value", "interval", "what it is"),
        [(name, *shown, what) for (name, what), shown in zip(means.items(), values, strict=True)],
        "lrrw",
    )


def _rival_table(found: Evaluation) -> PageTable:
    rows = [("this model", *_scores(found.scores), "", "", f"{found.seconds:.1f}")]
    for name, rival in found.rivals.items():
        gain = f"{rival.gain.value:+.3f} ({interval(rival.gain)})"
        rows.append((name, *_scores(rival.scores), gain, verdict(rival), f"{rival.seconds:.1f}"))
    scores = ("accuracy", "log loss", "Brier score", "calibration error")
    header = ("method", *scores, "its log loss less this model's", "which says", "seconds")
    return PageTable("Other methods on the same rows and folds", header, rows, "lrrrrrlr")


def confusions(model: TabularModel) -> list[Block]:
    """The confusion matrix, of the largest classes where there are many."""
    found = _measured(model)
    matrix, names = found.confusion(), list(found.classes)
    blocks: list[Block] = []
    if len(names) > MOST_CLASSES:
        kept = np.sort(np.argsort(-matrix.sum(1), kind="stable")[:SHOWN_CLASSES])
        blocks.append(
            Paragraph(f"There are {len(names)} classes; the {SHOWN_CLASSES} largest are shown, and only rows of these.")
        )
        matrix, names = matrix[np.ix_(kept, kept)], [names[k] for k in kept]
    off = matrix - np.diag(np.diag(matrix))
    right, wrong = int(np.trace(matrix)), int(off.sum())
    most = ""
    if wrong:
        down, across = np.unravel_index(off.argmax(), off.shape)
        times = count_of(int(off.max()), "time")
        most = f" The most frequent confusion is {names[down]} taken for {names[across]}, {times}."
    blocks.append(
        one_picture(
            ConfusionDisplay(matrix, names).plot().figure_,
            f"Rows of each class, down, by the class they were given, across; darker is a larger share.{most}",
            f"Matrix of {len(names)} classes: {right} rows on the diagonal, {wrong} off it.{most}",
        )
    )
    order = np.argsort(-np.asarray(model.class_counts), kind="stable")[:MOST_CLASSES]
    rows = [(model.classes[k], f"{model.class_counts[k]:,}") for k in order]
    blocks.append(PageTable("Training rows of each class", ("class", "rows"), rows))
    return blocks


def confidence(model: TabularModel) -> list[Block]:
    """Reliability and rejection."""
    found = _measured(model)
    reliable = ReliabilityDisplay.from_predictions(found.labels, found.probabilities)
    curve = reliable.curve
    bins = "; ".join(
        f"{percent(c)} sure, {percent(a)} right ({n} rows)"
        for c, a, n in zip(curve.confidence, curve.accuracy, curve.counts, strict=True)
    )
    gap = float(curve.counts @ (curve.confidence - curve.accuracy) / curve.counts.sum())
    habit = "surer than it should be" if gap > 0.02 else "less sure than it could be" if gap < -0.02 else "about right"
    refused = RejectionCurveDisplay.from_predictions(found.labels, found.probabilities)
    marks = {share: _accuracy_at(refused, share) for share in (1.0, 0.9, 0.75, 0.5)}
    answers = ", ".join(f"{percent(value)} right of the surest {percent(share, 0)}" for share, value in marks.items())
    return [
        Paragraph(
            f"When the model says that it is sure of something, is it? On average it is {habit}. And if it may leave "
            "its most doubtful rows unanswered, it is right more often on the others, as far as its doubts are good "
            "ones."
        ),
        Gallery(
            [
                Picture.of(
                    reliable.figure_,
                    "Share of right answers against the confidence they were given with; the number of rows is at "
                    "each point. On the dotted line confidence is what it says.",
                    f"Reliability diagram: {bins}. Calibration error {curve.error:.3f}.",
                ),
                Picture.of(
                    refused.figure_,
                    f"Accuracy if only the surest rows are answered: {answers}.",
                    f"Rejection curve: {answers}.",
                ),
            ]
        ),
    ]


def hardest(model: TabularModel) -> list[Block]:
    """Rows to look at."""
    found = _measured(model)
    rows = [(str(r.row), r.actual, r.predicted, probability(r.probability), number(r.loss)) for r in found.hardest(10)]
    return [
        Paragraph(
            f"These rows surprised the model most when it had not seen them. Look at them first for wrong labels, "
            f"typing errors and cases that the columns do not describe. Numbers are {found.row_word}s of the table."
        ),
        PageTable(
            "Rows of largest loss",
            (found.row_word, "actual class", "class that was named", "probability of the actual class", "log loss"),
            rows,
            "lllrr",
        ),
    ]


def _measured(model: TabularModel) -> Evaluation:
    if model.evaluation is None:
        raise SectionLeftOut(NOT_MEASURED)
    return model.evaluation


def _scores(scores: Scores) -> tuple[str, str, str, str]:
    rest = (scores.log_loss, scores.brier, scores.calibration_error)
    return (percent(scores.accuracy.value), *(f"{each.value:.3f}" for each in rest))  # type: ignore[return-value]


def _accuracy_at(display: RejectionCurveDisplay, share: float) -> float:
    """Accuracy where at least this share of the rows is answered."""
    return float(display.accuracy[np.searchsorted(display.answered, share - 1e-12)])
