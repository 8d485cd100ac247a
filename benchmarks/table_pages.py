"""Tables and sentences about tables as people have them for the documentation (``docs/tables.py``)."""

import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import number_ranks as ranks
from benchmarks.pages import NOTHING, OURS, unfinished
from benchmarks.table_peers import METHODS
from benchmarks.tables import CLASS_MEASURES, CLASSES, NUMBER_MEASURES, NUMBERS, TABLES
from tools import tables
from tools.tables import Cells, bold, markdown, shortened

FOLDER = Path(__file__).parent
USUAL = tuple(name for name, method in METHODS.items() if method.usual)
PEERS = tuple(name for name in METHODS if not name.startswith(OURS))
ONE_HOT, RANKED = f"{OURS}, one-hot", tuple(name for name in USUAL if name in (OURS, *PEERS))
COMPARED = "CatBoost"  # whose time is the limit
NETWORKS, QUANTILES = ("RealMLP", "TabM"), ("CatBoost, quantiles",)


def rows(methods: Collection[str] = tuple(METHODS)) -> list[Cells]:
    """Read what has been measured so far of these methods, on the splits that all of them were given."""
    found = tables.read(FOLDER / "results" / "tables.csv", missing_ok=True)
    return ranks.shared([row for row in found if row["method"] in methods])


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
    """List the tables."""
    table = []
    for name, source in TABLES.items():
        own = [row for row in rows(USUAL) if row["data"] == name and row["training rows"]]
        if own:
            columns = ("training rows", "test rows", "features", "classes")
            sizes = {column: shortened(own[0][column]) for column in columns}
            table.append({"data": name, "target": source.target, **sizes, "splits": str(len({r["fold"] for r in own}))})
    return markdown(table) if table else NOTHING


def mean_ranks(among: Collection[str], data: Collection[str], measures: Mapping[str, bool], first: str) -> str:
    """Show mean ranks over tables, the best in bold."""
    found = ranks.mean_rank_rows(rows(among), data, measures, first)
    best = {measure: min((row[measure] for row in found if row[measure] != ""), default="") for measure in measures}
    table = [
        {"method": str(row["method"])}
        | {m: bold(f"{row[m]:.2f}", row[m] == best[m]) if row[m] != "" else "" for m in measures}
        for row in found
    ]
    return markdown(table) if table else NOTHING


def scores(
    among: Collection[str],
    measure: str,
    data: Collection[str],
    *,
    more: bool = False,
    digits: int = 3,
    best: bool = True,
) -> str:
    """Show a measure by table and method: means over splits, the best in bold, a dash if not finished."""
    found = rows(among)
    names = [name for name in among if any(row["method"] == name and row[measure] for row in found)]
    table = []
    for each in data:
        means = {name: ranks.mean(found, each, name, measure).value for name in names}
        cells = {name: f"{value:#.{digits}g}".rstrip(".") for name, value in means.items() if not math.isnan(value)}
        if cells:
            first = (max if more else min)(map(float, cells.values()))
            shown = {m: bold(cells[m], best and float(cells[m]) == first) if m in cells else "-" for m in names}
            table.append({"data": each, **shown})
    return markdown(table) if table else NOTHING


def words() -> str:
    """Say where we are: mean ranks, errors next to the best peer's, and time next to CatBoost's."""
    lines = [f"- **{measure}**: {_place(measure, data, measures)}.\n" for measure, data, measures in _FIRST]
    for measure, data in (("log loss", CLASSES), ("RMSE", NUMBERS), ("CRPS", NUMBERS)):
        lines.append(f"- **{measure} next to the best peer's**: {_beside(measure, data, PEERS)}.\n")
    for measure, data in (("log loss", CLASSES), ("RMSE", NUMBERS), ("CRPS", NUMBERS)):
        lines.append(f"- **{measure} next to one-hot's**: {_beside(measure, data, (ONE_HOT,))}.\n")
    lines += [f"- **CPU seconds to fit next to {other}'s**: {_seconds(other)}.\n" for other in (COMPARED, ONE_HOT)]
    return "".join(lines)


_FIRST = (("log loss", CLASSES, CLASS_MEASURES), ("CRPS", NUMBERS, NUMBER_MEASURES), ("RMSE", NUMBERS, NUMBER_MEASURES))


def _place(measure: str, data: Collection[str], measures: Mapping[str, bool]) -> str:
    """List the mean ranks by a measure."""
    found = ranks.mean_rank_rows(rows(RANKED), data, measures, measure)
    return ", ".join(f"{row['method']} {row[measure]:.2f}" for row in found if row[measure] != "") or "not measured yet"


def _ratios(measure: str, data: Collection[str], others: Collection[str]) -> dict[str, tuple[float, str]]:
    """Return for each table our mean over the best of the others', and whose that is."""
    found, ratios = rows(USUAL), {}
    for each in data:
        theirs = {name: ranks.mean(found, each, name, measure).value for name in others}
        finished = {name: value for name, value in theirs.items() if not math.isnan(value)}
        ours = ranks.mean(found, each, OURS, measure).value
        if finished and not math.isnan(ours):
            best = min(finished, key=finished.__getitem__)
            ratios[each] = (ours / finished[best], best)
    return ratios


def _beside(measure: str, data: Collection[str], others: Collection[str]) -> str:
    """Say how far we are from the best of the others, on average and on each table."""
    ratios = _ratios(measure, data, others)
    if not ratios:
        return "not measured yet"
    whose = {name: f" ({best})" if len(others) > 1 else "" for name, (_, best) in ratios.items()}
    told = [f"{name} {100 * (ratio - 1):+.1f} %{whose[name]}" for name, (ratio, _) in ratios.items()]
    mean = 100 * (np.mean([ratio for ratio, _ in ratios.values()]) - 1)
    return f"{mean:+.1f} % on average; {', '.join(told)}"


def _seconds(other: str) -> str:
    """Say how long we take for the time of another method."""
    ratios = _ratios("CPU seconds to fit", TABLES, (other,))
    if not ratios:
        return "not measured yet"
    told = [f"{name} {ratio:.2f}" for name, (ratio, _) in ratios.items()]
    mean = math.exp(np.mean([math.log(ratio) for ratio, _ in ratios.values()]))
    return f"{mean:.2f} times (geometric mean); {', '.join(told)}"


def slow(among: Collection[str], data: Collection[str], measure: str, *, best: bool = True) -> str:
    """Show methods that take long beside ours and CatBoost, on the splits that all of these were given."""
    given = {row["data"] for row in rows(among) if row["method"] in among}
    return scores((OURS, COMPARED, *among), measure, [name for name in data if name in given], best=best)


PAGE: dict[str, Callable[[], str]] = {
    "tables_words": words,
    "tables_ranks_classes": partial(mean_ranks, RANKED, CLASSES, CLASS_MEASURES, "log loss"),
    "tables_ranks_numbers": partial(mean_ranks, RANKED, NUMBERS, NUMBER_MEASURES, "CRPS"),
    "tables_methods": methods,
    "tables_sets": sets,
    "tables_log_loss": partial(scores, USUAL, "log loss", CLASSES),
    "tables_auc": partial(scores, USUAL, "AUC", CLASSES, more=True),
    "tables_crps": partial(scores, USUAL, "CRPS", NUMBERS),
    "tables_rmse": partial(scores, USUAL, "RMSE", NUMBERS),
    "tables_coverage": partial(scores, USUAL, "coverage", NUMBERS, best=False),
    "tables_seconds": partial(scores, USUAL, "CPU seconds to fit", TABLES, digits=2),
    "tables_networks_log_loss": partial(slow, NETWORKS, CLASSES, "log loss"),
    "tables_networks_rmse": partial(slow, NETWORKS, NUMBERS, "RMSE"),
    "tables_networks_seconds": partial(slow, NETWORKS, TABLES, "CPU seconds to fit"),
    "tables_quantiles_crps": partial(slow, QUANTILES, NUMBERS, "CRPS"),
    "tables_quantiles_coverage": partial(slow, QUANTILES, NUMBERS, "coverage", best=False),
    "tables_quantiles_seconds": partial(slow, QUANTILES, NUMBERS, "CPU seconds to fit"),
    "tables_unfinished": lambda: unfinished(rows()),
}
