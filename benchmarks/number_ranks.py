"""Means and ranks of the methods that predict numbers, always over splits that all of them were given.

Each measure ranks the methods that have it: a point has no CRPS. Works on rows of ``results/numbers.csv``.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks import ranks
from benchmarks.numbers import CONTINUOUS, MEASURES
from tools.tables import Cells, Row


def ranked(rows: list[Cells], data: Collection[str]) -> list[Cells]:
    """Keep these data sets, the methods that were given all of them, and the splits that all of these were given."""
    own = [row for row in rows if row["data"] in data]
    names = {row["data"] for row in own}
    methods = {m for m in {row["method"] for row in own} if {row["data"] for row in own if row["method"] == m} == names}
    return shared([row for row in own if row["method"] in methods])


def shared(rows: list[Cells]) -> list[Cells]:
    """Keep the splits of each data set that all its methods were given, as a longer run may have been stopped."""
    methods: dict[str, set[str]] = {}
    given: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        methods.setdefault(row["data"], set()).add(row["method"])
        given.setdefault((row["data"], row["fold"]), set()).add(row["method"])
    return [row for row in rows if given[row["data"], row["fold"]] == methods[row["data"]]]


def able(rows: list[Cells], measure: str) -> list[Cells]:
    """Keep the methods that have a measure, and the data sets that have it and where it makes sense."""
    methods, data = ({row[name] for row in rows if row.get(measure)} for name in ("method", "data"))
    kept = [row for row in rows if row["method"] in methods and row["data"] in data]
    return [row for row in kept if row["data"] in CONTINUOUS] if measure == "NLL" else kept


def scores(
    rows: list[Cells], measure: str, data: Collection[str], measures: Mapping[str, bool] = MEASURES
) -> ranks.Scores:
    """Score the methods on these data sets."""
    return ranks.scores(able(ranked(rows, data), measure), measure, measures)


def mean_rank_rows(
    rows: list[Cells], data: Collection[str], measures: Mapping[str, bool] = MEASURES, first: str = "RMSE"
) -> list[Row]:
    """Tabulate the mean ranks of each method by each measure, the best by one first; none if none can be compared."""
    if not ranked(rows, data):
        return []
    of = {measure: scores(rows, measure, data, measures) for measure in measures}
    places = {
        measure: dict(zip(each.methods, each.mean_ranks, strict=True)) if each.data and len(each.methods) > 1 else {}
        for measure, each in of.items()
    }
    methods = dict.fromkeys(method for each in (first, *measures) for method in places[each])
    order = sorted(methods, key=lambda method: places[first].get(method, math.inf))
    return [{"method": m, **{measure: places[measure].get(m, "") for measure in measures}} for m in order]


@dataclass(frozen=True)
class Mean:
    """A mean over splits with its standard error."""

    value: float
    error: float
    splits: int


def mean(rows: list[Cells], data: str, method: str, measure: str) -> Mean:
    """Average a measure over all splits of a method; NaN if any split did not finish, or there is none."""
    own = [row for row in rows if row["data"] == data and row["method"] == method]
    if not own or any(row["note"] or not row[measure] for row in own):
        return Mean(math.nan, math.nan, len(own))
    values = np.array([float(row[measure]) for row in own])
    error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return Mean(float(values.mean()), error, len(values))
