"""The report of a classifier of tables: what was learned, how good it is, and what it looks at."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.evaluation.scores import Scores
from kernelwright.kernels.relevance import Relevance
from kernelwright.reports.bounds import bound_blocks
from kernelwright.reports.curves import (
    ConfusionDisplay,
    LearningCurveDisplay,
    RejectionCurveDisplay,
    ReliabilityDisplay,
)
from kernelwright.reports.kernel_plots import RelevanceDisplay, with_names
from kernelwright.reports.maps import DecisionProbabilityDisplay, EntropyDisplay
from kernelwright.reports.page import Block, Gallery, Page, Paragraph, Picture, Table, Tile, Tiles
from kernelwright.reports.parts import LeftOut, columns_section, note_blocks, section_or_sentence, settings_section
from kernelwright.reports.rows import feature_names, training_rows
from kernelwright.reports.words import count_of, interval, name_of_table, number, percent, probability, verdict
from kernelwright.tables import TabularModel

__all__ = ["classifier_page"]

MOST_CLASSES = 30  # in the confusion matrix; of more, the largest are shown
SHOWN_CLASSES = 20
MOST_FEATURES = 30  # in the table of relevance
MAP_DPI = 110  # maps are smooth, and many pixels of them make a large file
MAP_VALUES = 10**7  # of the kernel, for one map: a second or two
NOT_MEASURED = (
    "How good the model is on new rows was not measured: it was learned without cross-validation. Nothing on this "
    "page says how often it will be right."
)


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


# what everybody reads ----------------------------------------------------------------------------------


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


# sections ----------------------------------------------------------------------------------------------


def quality(model: TabularModel) -> list[Block]:
    """Scores with intervals, and those of rivals."""
    found = _measured(model)
    s = found.scores
    scores = Table(
        "Scores, with 95 % intervals that treat the rows as independent",
        ("score", "value", "interval", "what it is"),
        [
            (
                "accuracy",
                percent(s.accuracy.value),
                interval(s.accuracy, share=True),
                "share of rows whose most probable class is the right one; higher is better",
            ),
            (
                "log loss",
                number(s.log_loss.value),
                interval(s.log_loss),
                "mean of minus the logarithm of the right class's probability; lower is better",
            ),
            (
                "Brier score",
                number(s.brier.value),
                interval(s.brier),
                "mean squared distance of the probabilities from the truth; lower is better",
            ),
            (
                "calibration error",
                number(s.calibration_error.value),
                interval(s.calibration_error),
                "mean gap between confidence and accuracy, in 10 bins; lower is better",
            ),
        ],
        "lrrw",
    )
    blocks: list[Block] = [Paragraph(f"Measured by {found.protocol}."), scores]
    if found.rivals:
        rows = [("this model", *_scores(s), "", "", f"{found.seconds:.1f}")]
        for name, rival in found.rivals.items():
            gain = f"{rival.gain.value:+.3f} ({interval(rival.gain)})"
            rows.append((name, *_scores(rival.scores), gain, verdict(rival), f"{rival.seconds:.1f}"))
        header = (
            "method",
            "accuracy",
            "log loss",
            "Brier score",
            "calibration error",
            "its log loss less this model's",
            "which says",
            "seconds",
        )
        blocks.append(Table("Other methods on the same rows and folds", header, rows, "lrrrrrlr"))
    return blocks


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
        _gallery(
            ConfusionDisplay(matrix, names).plot().figure_,
            f"Rows of each class, down, by the class they were given, across; darker is a larger share.{most}",
            f"Matrix of {len(names)} classes: {right} rows on the diagonal, {wrong} off it.{most}",
        )
    )
    order = np.argsort(-np.asarray(model.class_counts), kind="stable")[:MOST_CLASSES]
    rows = [(model.classes[k], f"{model.class_counts[k]:,}") for k in order]
    blocks.append(Table("Training rows of each class", ("class", "rows"), rows))
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
        Table(
            "Rows of largest loss",
            (found.row_word, "actual class", "class that was named", "probability of the actual class", "log loss"),
            rows,
            "lllrr",
        ),
    ]


def relevance(model: TabularModel) -> list[Block]:
    """Length scales as shares."""
    with warnings.catch_warnings():  # a length scale at its bound: the table says so
        warnings.simplefilter("ignore", UserWarning)
        found: Relevance = with_names(model.classifier.relevance(), feature_names(model))
    rows = [
        (
            row.name,
            percent(row.share),
            f"{row.lengthscale:.3g}",
            f"at its {row.at_bound} bound" if row.at_bound else "",
        )
        for row in found.rows
    ]
    stuck = any(row.at_bound for row in found.rows)
    best = ", ".join(f"{row.name} {percent(row.share)}" for row in found.rows[:5])
    more = f"; the first {MOST_FEATURES} of {len(rows)}" if len(rows) > MOST_FEATURES else ""
    return [
        Paragraph(
            "The kernel has a length scale for each feature: the shorter it is, next to the feature's spread, the more "
            "the model listens to the feature. That says nothing about causes, and of two features that say the same, "
            "one may get it all. A category has a feature for each of its values."
        ),
        _gallery(
            RelevanceDisplay(found).plot().figure_,
            "Share of each feature in the kernel.",
            f"Bars of the shares in the kernel, largest first: {best}.",
        ),
        Table(
            f"Length scales, in the units that the kernel sees{more}",
            ("feature", "share", "length scale", "remark")[: 3 + stuck],
            [row[: 3 + stuck] for row in rows[:MOST_FEATURES]],
            "lrrl",
        ),
    ]


def maps(model: TabularModel) -> list[Block]:
    """Probabilities and entropies over two features, or two principal components."""
    X, names = training_rows(model.classifier), feature_names(model)
    if X.shape[1] < 2:
        raise LeftOut("A map needs at least two features, and this model has one.")
    resolution = int(np.clip(np.sqrt(MAP_VALUES / len(X)), 40, 80))
    shared: dict[str, Any] = {"resolution": resolution, "names": names}
    drawn = DecisionProbabilityDisplay.from_estimator(model.classifier, X, classes=model.classes, **shared)
    p = drawn.probabilities.max(2)
    where = f"{names[0]} and {names[1]}" if X.shape[1] == 2 else "the first two principal components of the features"
    pictures = [
        Picture.of(
            drawn.figure_,
            f"Class probabilities over {where}: one colour a class, mixed where it is not sure; dots are training "
            "rows.",
            f"Map of the probabilities of {count_of(len(model.classes), 'class')} over {where}; the largest "
            f"probability lies between {percent(float(p.min()))} and {percent(float(p.max()))}.",
            dpi=MAP_DPI,
        )
    ]
    for method, words in (("embedding", "The embedding's own estimate"), ("clip", "The entropy of clipped outputs")):
        display = EntropyDisplay.from_estimator(model.classifier, X, methods=(method,), **shared)
        values = display.entropy[method]
        pictures.append(
            Picture.of(
                display.figure_,
                f"{words}: borders between classes light up, and regions where there are no training rows.",
                f"Map of the entropy over {where}, from {values.min():.2f} to {values.max():.2f} nats; "
                f"not knowing anything is {display.highest:.2f}.",
                dpi=MAP_DPI,
            )
        )
    text = "What the model says about places between and beyond the training rows."
    if X.shape[1] > 2:
        text += (
            f" It has {X.shape[1]} features: the maps show the plane of their two principal components, with all "
            "others at their mean, so rows that lie off this plane need not look right on it."
        )
    return [Paragraph(text), Gallery(pictures)]


def learning(model: TabularModel) -> list[Block]:
    """The steps of the optimiser."""
    history = model.classifier.history_
    if not history:
        raise LeftOut("Nothing was learned step by step: the hyperparameters were given.")
    first, last = history[0], history[-1]
    return [
        Paragraph(
            f"The kernel and the ridge were learned in {count_of(len(history), 'step')}. Where a line breaks off, the "
            "next stage begins, whose objective cannot be compared with the last one's."
        ),
        _gallery(
            LearningCurveDisplay(history).plot().figure_,
            "Objective and loss (left axis) and complexity (right axis) by step.",
            f"Learning curves over {count_of(len(history), 'step')}: the objective goes from {first.objective:.3f} to "
            f"{last.objective:.3f}, the loss from {first.loss:.3f} to {last.loss:.3f}, the complexity from "
            f"{first.complexity:.3g} to {last.complexity:.3g}.",
        ),
    ]


# smaller parts -----------------------------------------------------------------------------------------


def _measured(model: TabularModel) -> Evaluation:
    if model.evaluation is None:
        raise LeftOut(NOT_MEASURED)
    return model.evaluation


def _scores(scores: Scores) -> tuple[str, str, str, str]:
    rest = (scores.log_loss, scores.brier, scores.calibration_error)
    return (percent(scores.accuracy.value), *(f"{each.value:.3f}" for each in rest))  # type: ignore[return-value]


def _gallery(figure: Any, caption: str, alternative: str) -> Gallery:
    return Gallery([Picture.of(figure, caption, alternative)])


def _accuracy_at(display: RejectionCurveDisplay, share: float) -> float:
    """Accuracy where at least this share of the rows is answered."""
    return float(display.accuracy[np.searchsorted(display.answered, share - 1e-12)])


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
