"""Sections on how well numbers and their distributions are predicted, and what the predictions look like."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelwright.reports.fans import FanDisplay, typical_row
from kernelwright.reports.formatting import count_of, interval, number, percent, probability, verdict
from kernelwright.reports.judged_rows import COVERAGE, SCORES, JudgedRows
from kernelwright.reports.kernel_plots import with_names
from kernelwright.reports.number_plots import CoverageDisplay, PITDisplay, PredictedActualDisplay
from kernelwright.reports.page import Block, Gallery, PageTable, Paragraph, Picture
from kernelwright.reports.sections import SectionLeftOut
from kernelwright.reports.training_rows import feature_names, on_codes, training_rows
from kernelwright.tables import TabularModel

__all__ = [
    "SHARES",
    "calibration",
    "fans",
    "hardest_numbers",
    "limits",
    "number_quality",
    "predicted_actual",
    "width_sentence",
]

MOST_FANS = 4
TENTHS = 2.8  # standard errors, for ten comparisons
AT_ENDS = 0.05  # share of targets that are equal to an end of their interval, of targets with frequent values
FAN_ROWS = 5000  # training rows that are enough for the range of a column
SHARES = ("R²", "coverage")  # scores that are shown in percent
MEANINGS = {
    "R²": "share of the variance of the target that the means explain; higher is better, 0 is the overall mean",
    "RMSE": "root of the mean squared error of the means; lower is better",
    "MAE": "mean absolute error of the means; lower is better",
    "CRPS": "mean error of the whole distributions, an absolute error if they were certain; lower is better",
    "coverage": "share of targets inside their 90 % intervals",
    "width": "mean width of the 90 % intervals; lower is better at the same coverage",
}
MAPS = {
    "identity": "as it is",
    "root": "as its square root",
    "log": "as its logarithm",
    "logit": "as its logit between the two bounds",
}


def number_quality(judged: JudgedRows, rivals: Mapping[str, Any]) -> list[Block]:
    """Show scores with intervals, next to those of rivals."""
    rows = [
        (name, _shown(name, score.value), interval(score, share=name in SHARES), MEANINGS[name])
        for name, score in judged.scores().items()
    ]
    caption = "Scores, with 95 % intervals that treat the rows as independent"
    blocks: list[Block] = [
        Paragraph(f"Measured by {judged.protocol}."),
        PageTable(caption, ("score", "value", "interval", "meaning"), rows, "lrrw"),
    ]
    return [*blocks, *_rival_blocks(judged, rivals)] if rivals else blocks


def _rival_blocks(judged: JudgedRows, rivals: Mapping[str, Any]) -> list[Block]:
    rows = [("this model", *(_shown(name, score.value) for name, score in judged.scores().items()), "", "")]
    for name, rival in rivals.items():
        scores = (_shown(score, getattr(rival.scores, word).value) for score, word in SCORES.items())
        gain = f"{number(rival.gain.value)} ({interval(rival.gain)})"
        rows.append((name, *scores, gain, verdict(rival)))
    header = ("method", *SCORES, "its CRPS minus this model's", "verdict")
    return [
        PageTable("Other methods on the same rows and folds", header, rows, "lrrrrrrrl"),
        Paragraph(
            "Methods that predict a mean only get the distribution of their errors in the other folds.", quiet=True
        ),
    ]


def _shown(name: str, value: float) -> str:
    return percent(value) if name in SHARES else number(value)


def predicted_actual(judged: JudgedRows, target: str) -> list[Block]:
    """Show targets and residuals against predicted means."""
    drawn = PredictedActualDisplay(judged.y, judged.mean, judged.interval)
    residuals = judged.y - judged.mean
    low, middle, high = np.quantile(residuals, [0.05, 0.5, 0.95])
    outside = int(drawn.outside.sum())
    ends = f"predictions from {number(judged.mean.min())} to {number(judged.mean.max())}"
    return [
        Paragraph(
            "Each dot is a row that the model had not seen; the grey line through it is its 90 % interval. Look for "
            "a bend (a trend that the model misses) and for dots outside of their intervals on one side only."
        ),
        Gallery(
            [
                Picture.of(
                    drawn.plot(name=target).figure_,
                    f"Actual against predicted {target}. On the dotted line the two are equal.",
                    f"Scatter plot of {count_of(len(judged.y), 'row')}: {ends}, actual values from "
                    f"{number(judged.y.min())} to {number(judged.y.max())}; {outside} outside of their intervals.",
                ),
                Picture.of(
                    drawn.plot(kind="residual", name=target).figure_,
                    "Residuals, actual minus predicted, against predicted values.",
                    f"Scatter plot of residuals against {ends}: the median is {number(middle)}, nine of ten lie "
                    f"between {number(low)} and {number(high)}.",
                ),
            ]
        ),
    ]


def calibration(judged: JudgedRows) -> list[Block]:
    """Show the PIT histogram, and the coverage of narrow and of wide intervals."""
    pit = PITDisplay.from_predictions(judged.pit[:, 1], judged.pit[:, 0], weights=judged.weights)
    covered = CoverageDisplay.from_predictions(judged.y, judged.interval, coverage=COVERAGE)
    shares = ", ".join(percent(share) for share in pit.shares)
    deciles = "; ".join(
        f"width {number(w)}: {percent(share, 0)}" for w, share in zip(covered.width, covered.covered, strict=True)
    )
    return [
        Paragraph(
            f"Do the distributions mean what they say? {habit(judged, pit)} {width_sentence(covered)}"
            "If intervals of every width contain about nine of ten targets, a narrow interval is a sign of knowledge."
        ),
        Gallery(
            [
                Picture.of(
                    pit.figure_,
                    "Histogram of the predicted probability of a target below the actual one (PIT). It is flat if the "
                    "distributions are calibrated, high at both ends if they are too narrow, and high in the middle if "
                    "they are too wide. The grey band is what chance allows.",
                    f"Histogram of ten bins with shares of {shares}; 10 % each would be flat.",
                ),
                Picture.of(
                    covered.figure_,
                    "Share of targets inside their 90 % intervals, by tenths of the rows from the narrowest to the "
                    "widest intervals; the axis shows mean widths. Lines are 95 % intervals.",
                    f"Coverage by width of the interval: {deciles}.",
                ),
            ]
        ),
    ]


def habit(judged: JudgedRows, pit: PITDisplay) -> str:
    """Say in a sentence whether the distributions are too narrow, too wide or shifted."""
    share = judged.scores()["coverage"]
    said = f"{percent(share.value)} of the 90 % intervals contain the target"
    if share.high < COVERAGE:
        return f"{said}: they are too narrow."
    between = (judged.interval[:, 0] < judged.y) & (judged.y < judged.interval[:, 1])
    if share.value > COVERAGE and share.value - np.average(between, weights=judged.weights) > AT_ENDS:
        return f"{said}; intervals of a target with few values, or frequent ones, contain it more often than they say."
    if share.low > COVERAGE:
        return f"{said}: they are wider than necessary."
    low, high = pit.band
    m = len(pit.shares)
    beyond = int(((m * pit.shares < low) | (m * pit.shares > high)).sum())
    if beyond > 2:
        return f"{said}, as they should, but {beyond} of {m} bars of the histogram differ by more than chance."
    return f"{said}, as they should."


def width_sentence(covered: CoverageDisplay) -> str:
    """Name the stretches of narrow or wide intervals that clearly hold too few or too many targets.

    Tenths of the rows are compared one by one, with limits that one table in twenty exceeds by chance.
    """
    error = TENTHS * np.sqrt(covered.coverage * (1 - covered.coverage) / covered.n)
    off = np.where(np.abs(covered.covered - covered.coverage) > error, np.sign(covered.covered - covered.coverage), 0)
    said, start = [], 0
    for end in range(1, len(off) + 1):
        if end < len(off) and off[end] == off[start]:
            continue
        if off[start]:
            inside = slice(start, end)
            share = float(np.average(covered.covered[inside], weights=covered.n[inside]))
            ends = f"{number(covered.width[start])} to {number(covered.width[end - 1])}"
            wide = f"{ends} wide" if end - start > 1 else f"about {number(covered.width[start])} wide"
            said.append(f"those {wide} are too {'wide' if off[start] > 0 else 'narrow'} ({percent(share, 0)} inside)")
        start = end
    return f"Among them, {' and '.join(said)}. " if said else ""


def hardest_numbers(judged: JudgedRows) -> list[Block]:
    """List the rows to check first."""
    worst = np.argsort(-judged.crps, kind="stable")[:10]
    known = judged.rows is not None
    rows = [
        (
            *((str(judged.rows[i]),) if judged.rows is not None else ()),
            number(judged.y[i]),
            number(judged.mean[i]),
            f"{number(judged.interval[i, 0])} to {number(judged.interval[i, 1])}",
            probability(judged.tail[i]),
            number(judged.crps[i]),
        )
        for i in worst
    ]
    header = ("actual", "predicted", "90 % interval", "probability of one as extreme", "CRPS")
    counted = f" Numbers count the {judged.row_word}s, from 1." if known and judged.row_word == "training row" else ""
    return [
        Paragraph(
            "These rows have the largest out-of-sample error. Check them first for typing errors, wrong units and "
            f"cases that the columns do not describe.{counted}"
        ),
        PageTable(
            "Rows with the largest CRPS",
            (judged.row_word, *header) if known else header,
            rows,
            "lrrrrr" if known else "rrrrr",
        ),
    ]


def fans(model: TabularModel) -> list[Block]:
    """Show quantiles along the most relevant columns of numbers."""
    regressor, X = on_codes(model.pipeline[-1]), training_rows(model.pipeline[-1])
    X = X[~np.isnan(X).any(1)][:FAN_ROWS]
    if not len(X):
        raise SectionLeftOut("Every row has a gap: there is no row to draw quantiles along.")
    names, shares = feature_names(model), _shares(model)
    numeric = {column.name for column in model.columns if column.used and column.kind not in ("category", "words")}
    chosen = [name for name in shares if name in numeric and len(np.unique(X[:, names.index(name)])) > 1][:MOST_FANS]
    if not chosen:
        raise SectionLeftOut("There is no column of numbers to draw quantiles along.")
    at, pictures = typical_row(X), []
    for name in chosen:
        fan = FanDisplay.from_estimator(
            regressor, X, names.index(name), at=at, name=name, resolution=60, target_name=model.target
        )
        median = fan.quantiles[:, len(fan.levels) // 2]
        pictures.append(
            Picture.of(
                fan.figure_,
                f"Along {name} ({percent(shares[name])} of the kernel).",
                f"Quantiles of {model.target} along {name}: the median lies between {number(median.min())} and "
                f"{number(median.max())}.",
            )
        )
    return [
        Paragraph(
            f"The predicted distribution of {model.target} if one column changes and the others keep the values of one "
            "typical row. The line is the median; the bands hold half and nine tenths of the probability. An orange "
            "line at the bottom marks combinations that are unlike all training rows. This is what the model predicts, "
            "not what would happen if the column were changed in the world."
        ),
        Gallery(pictures),
    ]


def _shares(model: TabularModel) -> dict[str, float]:
    """Return the share of each feature in the kernel, largest first; equal shares if the kernel has no such thing."""
    names = feature_names(model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found: Any = with_names(model.pipeline[-1].relevance(), names)
    except ValueError:
        return {name: 1.0 / len(names) for name in names}
    return {row.name: row.share for row in found.rows}


def limits(model: TabularModel, judged: JudgedRows) -> list[Block]:
    """Say what predictions can and cannot be."""
    regressor = model.pipeline[-1]
    link, left_out = regressor.links_[0], regressor.left_out_[0]
    scale = link.scale
    rows = [("smallest and largest target seen", f"{number(judged.y.min())} to {number(judged.y.max())}")]
    if scale.values is not None:
        rows.append(("possible values", f"{count_of(len(scale.values), 'value')}; nothing between them"))
    ends = (("at least", scale.low), ("at most", scale.high))
    bounds = " and ".join(f"{word} {number(end)}" for word, end in ends if np.isfinite(end))
    rows += [
        ("range of predictions", bounds or "not limited"),
        ("the target is learned", MAPS[scale.target_map.word]),
        ("weight of the direct estimate", f"{percent(link.direct, 0)}; the rest is a location and a scale"),
        ("weight of the model against the overall distribution", percent(link.trust, 0)),
    ]
    few = float(np.average(left_out.support < 1.0, weights=left_out.weights))
    return [
        Paragraph(
            "Far from all training rows, the model predicts the distribution of all targets. The support of a row says "
            f"how far it is: {percent(few)} of the rows that were left out in training have less than 1, and near 0 a "
            "prediction is no more than the overall distribution."
        ),
        PageTable("What is assumed about the target", ("property", "value"), rows, "ll"),
    ]
