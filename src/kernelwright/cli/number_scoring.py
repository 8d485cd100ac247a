"""Print the scores of predicted numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from kernelwright.cli.screen import print_table
from kernelwright.evaluation.number_scores import COVERAGE, NumberScores
from kernelwright.evaluation.numbers import NumberEvaluation
from kernelwright.evaluation.scores import Score

__all__ = ["number_score_tables", "number_words", "readable", "show_hardest_numbers", "span"]

DIGITS = 4  # significant digits of a score


def number_score_tables(scores: Mapping[str, NumberScores]) -> dict[str, list[dict[str, str]]]:
    """Return the tables that are printed: the scores of the means, and those of the whole distributions."""
    means = [
        {"method": name, "R^2": _share(s.r2), "RMSE": _in_units(s.rmse), "MAE": _in_units(s.mae)}
        for name, s in scores.items()
    ]
    spreads = [
        {
            "method": name,
            "CRPS": _in_units(s.crps),
            f"coverage of {100 * COVERAGE:.0f} % intervals": _percent(s.coverage),
            "their width": _in_units(s.width),
        }
        for name, s in scores.items()
    ]
    return {"Scores": means, "\nScores of the distributions": spreads}


def number_words(result: NumberEvaluation) -> list[str]:
    """Say whether the intervals hold as many numbers as they should, if they clearly do not."""
    coverage, found = result.scores.coverage, result.predictions
    if coverage.low <= COVERAGE <= coverage.high:
        return []
    kind = "narrow" if coverage.high < COVERAGE else "wide"
    inside = (found.low < result.actual) & (result.actual < found.high)
    if kind == "wide" and inside.mean() < COVERAGE:  # without numbers at the ends, they would hold too few
        return [
            f"The intervals hold {100 * coverage.value:.1f} % of the numbers, and not {100 * COVERAGE:.0f} %, because "
            "many numbers are equal: an interval holds all that are equal to its ends."
        ]
    return [
        f"The intervals are too {kind}: they should hold {100 * COVERAGE:.0f} % of the numbers, and held "
        f"{100 * coverage.value:.1f} %."
    ]


def show_hardest_numbers(result: NumberEvaluation) -> None:
    """Print the rows whose numbers are farthest from what was predicted."""
    rows = [
        {
            result.row_word: row.row,
            "actual": readable(row.actual),
            "predicted": readable(row.predicted),
            f"{100 * COVERAGE:.0f} % interval": f"{readable(row.low)} to {readable(row.high)}",
        }
        for row in result.hardest(5)
    ]
    print_table("\nHardest rows", rows)


def span(texts: Iterable[str], unit: str = "") -> str:
    """Return a value and the ends of its interval in one cell, as short as possible.

    Examples
    --------
    >>> from kernelwright.cli.number_scoring import span
    >>> span(["12.5", "11.0", "14.0"], "%"), span(["0.1", "-0.1", "0.3"])
    ('12.5 % (11.0–14.0)', '0.1 (-0.1 to 0.3)')
    """
    value, low, high = texts
    between = " to " if low.startswith("-") else "\N{EN DASH}"
    return f"{value}{' ' * bool(unit)}{unit} ({low}{between}{high})"


def _share(score: Score) -> str:
    if math.isnan(score.value):
        return "undefined"
    return span(f"{round(each, 3) + 0.0:.3f}" for each in (score.value, score.low, score.high))  # 0.000, and not -0.000


def _percent(score: Score) -> str:
    return span((f"{100 * each:.1f}" for each in (score.value, score.low, score.high)), "%")


def _in_units(score: Score) -> str:
    digits = _decimals(score.value)
    return span(readable(each, digits) for each in (score.value, score.low, score.high))


def readable(value: float, decimals: int | None = None) -> str:
    """Return a number with four significant digits, or with the given decimal places: 25,120 or 0.3142.

    Examples
    --------
    >>> from kernelwright.cli.number_scoring import readable
    >>> readable(25123.4), readable(0.31416), readable(3.0), readable(1.5e-9)
    ('25,123', '0.3142', '3.000', '1.5e-09')
    """
    decimals = _decimals(value) if decimals is None else decimals
    if not math.isfinite(value) or abs(value) >= 1e12 or decimals > 8:
        return f"{value:.{DIGITS}g}"
    return f"{value:,.{decimals}f}"


def _decimals(value: float) -> int:
    """Return the decimal places that show four significant digits of a number."""
    if value == 0 or not math.isfinite(value):
        return DIGITS - 1
    return max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
