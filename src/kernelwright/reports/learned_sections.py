"""Sections on what a model learned: relevance of features, maps, and the steps of the optimiser."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kernelwright.kernels.relevance import Relevance
from kernelwright.reports.curves import LearningCurveDisplay
from kernelwright.reports.formatting import count_of, percent
from kernelwright.reports.kernel_plots import RelevanceDisplay, with_names
from kernelwright.reports.maps import DecisionProbabilityDisplay, EntropyDisplay
from kernelwright.reports.page import Block, Gallery, PageTable, Paragraph, Picture
from kernelwright.reports.sections import SectionLeftOut, one_picture
from kernelwright.reports.training_rows import as_codes, feature_names, has_categories, on_codes, training_rows
from kernelwright.tables import TabularModel

__all__ = ["learning", "maps", "relevance"]

MOST_FEATURES = 30  # in the table of relevance
MAP_DPI = 90  # maps are smooth; more pixels would only make the file larger
MAP_VALUES = 10**7  # of the kernel, for one map: one or two seconds


def relevance(model: TabularModel) -> list[Block]:
    """Show the relevance of each feature."""
    with warnings.catch_warnings():  # a length scale at its bound: the table says so
        warnings.simplefilter("ignore", UserWarning)
        found: Relevance = with_names(model.pipeline[-1].relevance(), feature_names(model))
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
            "The kernel has a length scale for each feature: the shorter it is, relative to the feature's spread, the "
            "more the model uses the feature. This says nothing about causes, and if two features carry the same "
            "information, one of them may get the whole share."
        ),
        one_picture(
            RelevanceDisplay(found).plot().figure_,
            "Share of each feature in the kernel.",
            f"Bar chart of the shares in the kernel, largest first: {best}.",
        ),
        PageTable(
            f"Length scales, in the units of the kernel's inputs{more}",
            ("feature", "share", "length scale", "remark")[: 3 + stuck],
            [row[: 3 + stuck] for row in rows[:MOST_FEATURES]],
            "lrrl",
        ),
    ]


def _rows_of_maps(model: TabularModel) -> tuple[np.ndarray, np.ndarray | None, str]:
    """Return rows to draw as dots, their classes if they are known, and what the dots are."""
    if model.examples is None:
        X, y, dots = training_rows(model.classifier), None, "dots are training rows"
    else:
        X, y = as_codes(model, model.examples.frame()), model.examples.targets
        dots = f"dots are {len(X)} training rows, coloured by their true class"
    if X.shape[1] < 2:
        raise SectionLeftOut("A map needs at least two features; this model has one.")
    if np.isnan(X).any() or has_categories(model.classifier):
        raise SectionLeftOut("Maps are drawn for tables of numbers without gaps; this one has categories or gaps.")
    return X, y, dots


def maps(model: TabularModel) -> list[Block]:
    """Show probabilities and entropies over two features or two principal components."""
    names = feature_names(model)
    X, y, dots = _rows_of_maps(model)
    classifier = on_codes(model.classifier)
    resolution = int(np.clip(np.sqrt(MAP_VALUES / max(model.classifier.n_landmarks_, 1)), 40, 80))
    shared: dict[str, Any] = {"resolution": resolution, "names": names}
    drawn = DecisionProbabilityDisplay.from_estimator(classifier, X, y, classes=model.classes, **shared)
    p = drawn.probabilities.max(2)
    where = f"{names[0]} and {names[1]}" if X.shape[1] == 2 else "the first two principal components of the features"
    pictures = [
        Picture.of(
            drawn.figure_,
            f"Class probabilities over {where}: one colour per class, mixed where the model is uncertain; {dots}.",
            f"Map of the probabilities of {count_of(len(model.classes), 'class')} over {where}; the largest "
            f"probability lies between {percent(float(p.min()))} and {percent(float(p.max()))}.",
            dpi=MAP_DPI,
        )
    ]
    for method, words in (
        ("embedding", "The entropy estimate of the embedding"),
        ("clip", "The entropy of clipped outputs"),
    ):
        display = EntropyDisplay.from_estimator(classifier, X, y, methods=(method,), **shared)
        values = display.entropy[method]
        pictures.append(
            Picture.of(
                display.figure_,
                f"{words}: boundaries between classes are bright, and so are regions without training rows.",
                f"Map of the entropy over {where}, from {values.min():.2f} to {values.max():.2f} nats; "
                f"the largest possible entropy is {display.highest:.2f}.",
                dpi=MAP_DPI,
            )
        )
    text = "Predictions of the model between and beyond the training rows."
    if X.shape[1] > 2:
        text += (
            f" It has {X.shape[1]} features: the maps show the plane of their two principal components, with all "
            "others at their mean, so rows far from this plane may seem to be misclassified."
        )
    return [Paragraph(text), Gallery(pictures)]


def learning(model: TabularModel) -> list[Block]:
    """Show the steps of the optimiser."""
    history = model.pipeline[-1].history_
    if not history:
        raise SectionLeftOut("There were no training steps: the hyperparameters were given.")
    first, last = history[0], history[-1]
    return [
        Paragraph(
            f"The kernel and the ridge were learned in {count_of(len(history), 'step')}. A gap "
            "marks a new stage, whose objective cannot be compared with that of the stage before."
        ),
        one_picture(
            LearningCurveDisplay(history).plot().figure_,
            "Objective and loss (left axis) and complexity (right axis) by step.",
            f"Learning curves over {count_of(len(history), 'step')}: the objective goes from {first.objective:.3f} to "
            f"{last.objective:.3f}, the loss from {first.loss:.3f} to {last.loss:.3f}, the complexity from "
            f"{first.complexity:.3g} to {last.complexity:.3g}.",
        ),
    ]
