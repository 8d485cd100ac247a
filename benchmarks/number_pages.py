"""Tables and sentences about forecasts of numbers for the documentation (``docs/tables.py``)."""

import math
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from benchmarks import number_ranks as ranks
from benchmarks.number_peers import METHODS
from benchmarks.numbers import CONTINUOUS, FEW_VALUES, MEASURES, TABLES, UCI
from benchmarks.pages import NOTHING, OURS, unfinished
from tools import tables
from tools.tables import Cells, bold, markdown, shortened

FOLDER = Path(__file__).parent
DATA = (*UCI, *TABLES)
COVERED = (0.88, 0.92)  # the goal for 90 % intervals


def rows() -> list[Cells]:
    """Read what has been measured so far."""
    return tables.read(FOLDER / "results" / "numbers.csv", missing_ok=True)


def published() -> list[Cells]:
    """Read the published means of other methods."""
    return tables.read(FOLDER / "published" / "numbers.csv")


def methods() -> str:
    """List the methods with their versions and settings."""
    versions = {row["method"]: row["version"] for row in rows() if row["version"]}
    return markdown(
        [
            {"method": name, "package": f"{method.package} {versions.get(name, '')}".strip(), "given": method.given}
            for name, method in METHODS.items()
        ]
    )


def sets() -> str:
    """List the data sets, and which of them the recipe was chosen on."""
    table = []
    for name in DATA:
        own = [row for row in rows() if row["data"] == name and row["training rows"]]
        if own:
            sizes = {column: shortened(own[0][column]) for column in ("training rows", "test rows", "features")}
            table.append({"data": name, **sizes, "recipe chosen on it": own[0]["seen"]})
    return markdown(table) if table else NOTHING


def mean_ranks(data: Collection[str]) -> str:
    """Show mean ranks over data sets, the best in bold."""
    found = ranks.mean_rank_rows(rows(), data)
    best = {measure: min((row[measure] for row in found if row[measure] != ""), default="") for measure in MEASURES}
    table = [
        {"method": str(row["method"])}
        | {m: bold(f"{row[m]:.2f}", row[m] == best[m]) if row[m] != "" else "" for m in MEASURES}
        for row in found
    ]
    return markdown(table) if table else NOTHING


def words() -> str:
    """Say where we are on the UCI sets and on the tables, by each measure of quality."""
    lines = [
        f"- **{measure}, {name}**: {_place(measure, data)}.\n"
        for name, data in (("UCI sets", UCI), ("tables", TABLES))
        for measure in ("RMSE", "CRPS", "NLL")
        if name == "UCI sets" or measure != "NLL"
    ]
    behind = [f"- **Behind the best in {measure}**: {_behind(measure)}.\n" for measure in ("RMSE", "CRPS")]
    return "".join([*lines, *behind, f"- **Coverage of 90 % intervals**: {_covered()}.\n"])


def _behind(measure: str) -> str:
    """List the data sets where another method is better than ours, and by how much."""
    found = ranks.shared(rows())
    told, compared = [], 0
    for data in DATA:
        own = {method: ranks.mean(found, data, method, measure).value for method in METHODS}
        finished = {method: value for method, value in own.items() if not math.isnan(value)}
        if OURS not in finished or len(finished) < 2:
            continue
        compared += 1
        best = min(finished, key=finished.__getitem__)
        if best != OURS:
            told.append(f"{data} by {100 * (finished[OURS] / finished[best] - 1):.1f} % ({best})")
    return f"{len(told)} of {compared} sets{': ' if told else ''}{', '.join(told)}"


def _covered() -> str:
    """List the data sets where our coverage, give or take two standard errors, is not from 0.88 to 0.92."""
    known = {data: ranks.mean(rows(), data, OURS, "coverage") for data in DATA}
    told = [
        f"{data} {each.value:.3f} ± {each.error:.3f}"
        for data, each in known.items()
        if each.value + 2 * each.error < COVERED[0]
        or (data not in FEW_VALUES and each.value - 2 * each.error > COVERED[1])
    ]
    measured = sum(not math.isnan(each.error) for each in known.values())
    limits = f"from {COVERED[0]} (to {COVERED[1]}, unless targets have few values), give or take two standard errors"
    return f"{limits}, on {measured - len(told)} of {measured} sets{'; not on ' if told else ''}{', '.join(told)}"


def _place(measure: str, data: Collection[str]) -> str:
    """Say who is first by mean rank, and where we are."""
    if not ranks.ranked(rows(), data):
        return "not measured yet"
    scores = ranks.scores(rows(), measure, data)
    if OURS not in scores.methods or len(scores.methods) < 2 or not scores.data:
        return "not measured yet"
    mean = dict(zip(scores.methods, scores.mean_ranks, strict=True))
    first = min(mean, key=mean.__getitem__)
    place = sorted(mean.values()).index(mean[OURS]) + 1
    wins = int((scores.ranks[:, scores.methods.index(OURS)] == scores.ranks.min(1)).sum())
    leader = f"first is {first} ({mean[first]:.2f})"
    where = "" if first == OURS else f", {OURS} is number {place} ({mean[OURS]:.2f})"
    given = f"of {len(mean)} methods that have it and were given all sets"
    return f"{leader}{where} {given}; {OURS} is best on {wins} of {len(scores.data)} sets"


def scores(measure: str, pick: Callable[..., float] | None = min, digits: int = 3) -> str:
    """Show a measure by data set and method: means over shared splits, the best in bold, a dash if not finished."""
    found = ranks.shared(rows())
    able = {row["method"] for row in found if row[measure]}
    names = [name for name in METHODS if name in able]
    table = []
    for data in CONTINUOUS if measure == "NLL" else DATA:
        means = {method: ranks.mean(found, data, method, measure) for method in names}
        cells = {m: f"{each.value:#.{digits}g}".rstrip(".") for m, each in means.items() if not math.isnan(each.value)}
        if not cells:
            continue
        best = pick(float(cell) for cell in cells.values()) if pick else math.nan
        shown = {m: bold(cells[m], float(cells[m]) == best) if m in cells else "-" for m in names}
        splits = max(each.splits for each in means.values())
        seen = any(row["data"] == data and row["seen"] == "yes" for row in found)
        table.append({"data": data + (" (seen)" if seen else ""), "splits": str(splits), **shown})
    return markdown(table) if table else NOTHING


def coverage() -> str:
    """Show the coverage and the width of our 90 % intervals over all our splits, next to those of the others."""
    found = rows()
    names = [name for name in METHODS if any(r["method"] == name and r["coverage"] for r in found)]
    table = []
    for data in DATA:
        cells = {"data": data}
        for method in names:
            hits, width = (ranks.mean(found, data, method, measure) for measure in ("coverage", "width"))
            error = "" if math.isnan(hits.error) else f" ± {hits.error:.3f}"
            cells[method] = "-" if math.isnan(hits.value) else f"{hits.value:.3f}{error}; {width.value:.3g}"
        if any(cell != "-" for cell in list(cells.values())[1:]):
            table.append(cells)
    return markdown(table) if table else NOTHING


def beside_published(measure: str) -> str:
    """Show our mean over all our splits beside the published ones, the best in bold."""
    known, found, table = published(), rows(), []
    names = list(dict.fromkeys(row["method"] for row in known))
    for data in UCI if measure == "RMSE" else CONTINUOUS:
        own = ranks.mean(found, data, OURS, measure)
        theirs = {row["method"]: row[measure] for row in known if row["data"] == data and row[measure]}
        verdicts = {name: _verdict(own.value, cell) for name, cell in theirs.items()}
        least = min(map(float, theirs.values()))
        best = {name for name, cell in theirs.items() if float(cell) == least and verdicts[name] != "better"}
        digits = 4 if data == "naval" and measure == "RMSE" else 3 if data == "kin8nm" and measure == "RMSE" else 2
        ours = "" if math.isnan(own.value) else bold(f"{own.value:.{digits}f}", "worse" not in verdicts.values())
        table.append(
            {"data": data, "splits": str(own.splits), OURS: ours}
            | {name: bold(theirs.get(name, ""), name in best) for name in names}
        )
    return markdown(table)


def published_words() -> str:
    """Count the sets where we are better than each published method, or level at the published digits."""
    known, found = published(), rows()
    lines = []
    for name in dict.fromkeys(row["method"] for row in known):
        told = []
        for measure, data in (("RMSE", UCI), ("NLL", CONTINUOUS)):
            verdicts = [
                _verdict(ranks.mean(found, row["data"], OURS, measure).value, row[measure])
                for row in known
                if row["method"] == name and row["data"] in data
            ]
            kept = [verdict for verdict in verdicts if verdict]
            if not kept:
                return NOTHING
            better, level = kept.count("better"), kept.count("level")
            told.append(f"{measure} better on {better}{f', level on {level}' if level else ''} of {len(kept)}")
        lines.append(f"- {name}: {'; '.join(told)}\n")
    return "".join(lines)


def _verdict(ours: float, theirs: str) -> str:
    """Compare at the digits that were published."""
    if math.isnan(ours) or not theirs:
        return ""
    rounded, other = round(ours, len(theirs.partition(".")[2])), float(theirs)
    return "level" if rounded == other else "better" if rounded < other else "worse"


PAGE: dict[str, Callable[[], str]] = {
    "numbers_methods": methods,
    "numbers_sets": sets,
    "numbers_words": words,
    "numbers_ranks_uci": partial(mean_ranks, UCI),
    "numbers_ranks_tables": partial(mean_ranks, TABLES),
    "numbers_rmse": partial(scores, "RMSE"),
    "numbers_mae": partial(scores, "MAE"),
    "numbers_crps": partial(scores, "CRPS"),
    "numbers_nll": partial(scores, "NLL"),
    "numbers_coverage": coverage,
    "numbers_seconds": partial(scores, "CPU seconds to fit", digits=2),
    "numbers_memory": partial(scores, "GiB more", digits=2),
    "numbers_published_words": published_words,
    "numbers_published_rmse": partial(beside_published, "RMSE"),
    "numbers_published_nll": partial(beside_published, "NLL"),
    "numbers_unfinished": lambda: unfinished(rows()),
}
