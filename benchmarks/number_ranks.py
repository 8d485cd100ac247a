"""Mean ranks of the methods that predict numbers. Each measure ranks the methods that have it, where they have it."""

from benchmarks import ranks
from benchmarks.numbers import CONTINUOUS, MEASURES
from tools.tables import Cells, Row


def measured(rows: list[Cells], measure: str) -> list[Cells]:
    """Keep the methods that have a measure (a point has no CRPS), and the data sets where it makes sense."""
    able = {row["method"] for row in rows if row.get(measure)}
    kept = [row for row in rows if row["method"] in able]
    return [row for row in kept if row["data"] in CONTINUOUS] if measure == "NLL" else kept


def scores(rows: list[Cells], measure: str) -> ranks.Scores:
    """Score the methods on the data sets and splits that all of them were given."""
    return ranks.scores(measured(common(rows), measure), measure, MEASURES)


def common(rows: list[Cells]) -> list[Cells]:
    """Keep the splits that every method was given, as a longer run may have been stopped."""
    methods = {row["method"] for row in rows}
    given: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        given.setdefault((row["data"], row["fold"]), set()).add(row["method"])
    return [row for row in rows if given[row["data"], row["fold"]] == methods]


def mean_rank_rows(rows: list[Cells]) -> list[Row]:
    """Tabulate the mean ranks of each method by each measure, best RMSE first."""
    of = {measure: scores(rows, measure) for measure in MEASURES}
    if not of["RMSE"].data:
        return [{"method": "no data set that all methods were given"}]
    ranked = {measure: dict(zip(each.methods, each.mean_ranks, strict=True)) for measure, each in of.items()}
    order = sorted(of["RMSE"].methods, key=lambda method: ranked["RMSE"][method])
    return [{"method": m, **{measure: ranked[measure].get(m, "") for measure in MEASURES}} for m in order]
