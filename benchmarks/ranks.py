"""Methods ranked over data sets, and how far apart mean ranks must be to mean something [Demsar2006].

Reads only rows of ``results/suite.csv``; neither torch nor the peers are needed here.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

RESULTS = Path(__file__).parent / "results"
# Measure and whether more of it is better.
MEASURES = {
    "accuracy %": True,
    "log loss": False,
    "calibration error": False,
    "CPU seconds to fit": False,
    "CPU seconds to predict": False,
    "GiB more": False,
}

Row = dict[str, str]


def read(path: Path) -> list[Row]:
    """Rows of a result file, none if there is none; a last line that was cut off by a crash is left out."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text().rpartition("\n")
    return list(csv.DictReader(whole.splitlines()))


@dataclass(frozen=True)
class Scores:
    """One number for each data set and method, the mean over folds; NaN where any fold did not finish."""

    data: list[str]
    methods: list[str]
    values: np.ndarray  # data sets x methods
    more_is_better: bool

    @property
    def ranks(self) -> np.ndarray:
        """1 is best, equals share the mean of their places, and all that did not finish share the last places."""
        last = np.inf
        cost = np.where(np.isnan(self.values), last, -self.values if self.more_is_better else self.values)
        return rankdata(cost, axis=1)

    @property
    def mean_ranks(self) -> np.ndarray:
        return self.ranks.mean(0)

    @property
    def friedman(self) -> float:
        """Probability of ranks as unequal as these, were all methods alike; NaN with too little to test."""
        if len(self.data) < 2 or len(self.methods) < 3:
            return math.nan
        return float(friedmanchisquare(*self.ranks.T).pvalue)

    @property
    def critical_difference(self) -> float:
        return critical_difference(len(self.methods), len(self.data))


def scores(rows: list[Row], measure: str) -> Scores:
    """The data sets of which all methods were given the same folds, and the methods that finished any of them.

    A method that finished nothing (because it cannot be loaded, say) is left out: being last everywhere would only
    make room for the others.
    """
    found = list(dict.fromkeys(row["method"] for row in rows if not row["note"]))
    folds: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        folds.setdefault(row["data"], {}).setdefault(row["method"], set()).add(row["fold"])
    data = [d for d, given in folds.items() if all(m in given and given[m] == given[found[0]] for m in found)]
    values = np.array([[mean(rows, d, m, measure) for m in found] for d in data]).reshape(len(data), len(found))
    return Scores(data, found, values, MEASURES[measure])


def by_size(rows: list[Row]) -> list[str]:
    """Names of the data sets, those with the fewest training rows first."""
    sizes = {row["data"]: int(row["training rows"]) for row in rows if row["training rows"]}
    return sorted(sizes, key=lambda name: sizes[name])


def mean(rows: list[Row], data: str, method: str, measure: str) -> float:
    own = [row for row in rows if row["data"] == data and row["method"] == method]
    if not own or any(row["note"] for row in own):
        return math.nan
    return float(np.mean([float(row[measure]) for row in own]))


def critical_difference(k: int, n: int, alpha: float = 0.05) -> float:
    """Mean ranks of k methods over n data sets that differ by more are different (Nemenyi's test)."""
    q = studentized_range.ppf(1.0 - alpha, k, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(k * (k + 1) / (6.0 * n)))


def cliques(mean_ranks: np.ndarray, difference: float) -> list[tuple[float, float]]:
    """Longest runs of mean ranks that are not told apart, as (lowest, highest); runs of one are left out."""
    ordered = np.sort(mean_ranks)
    runs = [(low, ordered[ordered <= low + difference].max()) for low in ordered]
    kept = [run for i, run in enumerate(runs) if run[1] > run[0] and (i == 0 or run[1] > runs[i - 1][1])]
    return [(float(low), float(high)) for low, high in kept]


def exponent(sizes: Sequence[float] | np.ndarray, seconds: Sequence[float] | np.ndarray) -> float:
    """The p of seconds ~ size**p, by least squares on logarithms; NaN for fewer than three sizes."""
    if len(sizes) < 3:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def mean_rank_rows(rows: list[Row]) -> list[dict[str, object]]:
    """One row a method, its mean rank by each measure; best log loss first."""
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
