"""Mean ranks of methods over data sets, and how far apart they must be to differ [Demsar2006].

Works on rows of ``results/suite.csv``; needs neither torch nor the peers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from tools.tables import Cells, Row

RESULTS = Path(__file__).parent / "results"
# Each measure, and whether more of it is better.
MEASURES = {
    "accuracy %": True,
    "log loss": False,
    "calibration error": False,
    "CPU seconds to fit": False,
    "CPU seconds to predict": False,
    "GiB more": False,
}


@dataclass(frozen=True)
class Scores:
    """A number for each data set and method: the mean over folds, NaN if any fold did not finish."""

    data: list[str]
    methods: list[str]
    values: np.ndarray  # data sets x methods
    more_is_better: bool

    @property
    def ranks(self) -> np.ndarray:
        """Rank methods on each data set: 1 is best, ties share a rank, unfinished methods share the last."""
        last = np.inf
        cost = np.where(np.isnan(self.values), last, -self.values if self.more_is_better else self.values)
        return rankdata(cost, axis=1)

    @property
    def mean_ranks(self) -> np.ndarray:
        return self.ranks.mean(0)

    @property
    def friedman(self) -> float:
        """Return the p-value of Friedman's test that all methods are alike; NaN with too little to test."""
        if len(self.data) < 2 or len(self.methods) < 3:
            return math.nan
        return float(friedmanchisquare(*self.ranks.T).pvalue)

    @property
    def critical_difference(self) -> float:
        return critical_difference(len(self.methods), len(self.data))


def scores(rows: list[Cells], measure: str, measures: Mapping[str, bool] = MEASURES) -> Scores:
    """Score the methods that finished any fold, on the data sets where all of them were given the same folds.

    A method that finished nothing (for example, because it cannot be loaded) is left out: ranked last everywhere, it
    would only make the others look better.
    """
    found = list(dict.fromkeys(row["method"] for row in rows if not row["note"]))
    folds: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        folds.setdefault(row["data"], {}).setdefault(row["method"], set()).add(row["fold"])
    data = [d for d, given in folds.items() if all(m in given and given[m] == given[found[0]] for m in found)]
    values = np.array([[mean(rows, d, m, measure) for m in found] for d in data]).reshape(len(data), len(found))
    return Scores(data, found, values, measures[measure])


def by_size(rows: list[Cells]) -> list[str]:
    """List the data sets, those with the fewest training rows first."""
    sizes = {row["data"]: int(row["training rows"]) for row in rows if row["training rows"]}
    return sorted(sizes, key=lambda name: sizes[name])


def mean(rows: list[Cells], data: str, method: str, measure: str) -> float:
    """Average a measure over folds; NaN if any fold did not finish."""
    own = [row for row in rows if row["data"] == data and row["method"] == method]
    if not own or any(row["note"] for row in own):
        return math.nan
    return float(np.mean([float(row[measure]) for row in own]))


def critical_difference(k: int, n: int, alpha: float = 0.05) -> float:
    """Return the difference of mean ranks, of k methods over n data sets, that Nemenyi's test calls significant."""
    q = studentized_range.ppf(1.0 - alpha, k, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(k * (k + 1) / (6.0 * n)))


def cliques(mean_ranks: np.ndarray, difference: float) -> list[tuple[float, float]]:
    """Find the longest groups of mean ranks without a significant difference, as (lowest, highest); none of one."""
    ordered = np.sort(mean_ranks)
    runs = [(low, ordered[ordered <= low + difference].max()) for low in ordered]
    kept = [run for i, run in enumerate(runs) if run[1] > run[0] and (i == 0 or run[1] > runs[i - 1][1])]
    return [(float(low), float(high)) for low, high in kept]


def exponent(sizes: Sequence[float] | np.ndarray, seconds: Sequence[float] | np.ndarray) -> float:
    """Fit the p of seconds ~ size**p by least squares on logarithms; NaN for fewer than three sizes."""
    if len(sizes) < 3:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def mean_rank_rows(rows: list[Cells]) -> list[Row]:
    """Tabulate the mean ranks of each method by each measure, best log loss first."""
    of = {measure: scores(rows, measure) for measure in MEASURES}
    methods = of["log loss"].methods
    if not of["log loss"].data:
        return [{"method": "no data set that all methods were given"}]
    ranked = {measure: dict(zip(each.methods, each.mean_ranks, strict=True)) for measure, each in of.items()}
    order = sorted(methods, key=lambda method: ranked["log loss"][method])
    table = [{"method": m, **{measure: float(ranked[measure][m]) for measure in MEASURES}} for m in order]
    unfinished = np.isnan(of["log loss"].values).sum(0)
    for row in table:
        row["not finished"] = int(unfinished[methods.index(row["method"])])
    return table
