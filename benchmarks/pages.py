"""Tables and sentences of the benchmarks for the documentation (``docs/tables.py``)."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import peers, ranks
from benchmarks.goals import GOALS
from benchmarks.startup import STARTUP
from tools import tables
from tools.tables import Cells, bold, markdown, shortened

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
PLAIN = (
    *("big", "cluster_trees", "cluster_trees_plan"),
    *("cluster_workers", "cluster_size", "cluster_plan", "default", "fits_mean", "floor", "head", "large"),
    *("hyper_known", "hyper_evaluation", "hyper_table2", "hyper_large"),
)
OURS, SEARCHED = "kernelwright", "SVC, grid"
NOTHING = "*Not measured yet: `make bench`.*\n"
GOAL_COLUMNS = {
    "accuracy % or RMSE": ("accuracy %", "RMSE"),
    "log loss or CRPS": ("log loss", "CRPS"),
    "CPU seconds to fit": ("CPU seconds to fit",),
    "floor, s": ("floor, s",),
    "to predict 10,000 rows, s": ("to predict 10,000 rows",),
    "GiB more": ("GiB",),
}
GOAL_OF = {
    "accuracy % or RMSE": ("accuracy %",),
    "log loss or CRPS": ("log loss",),
    "CPU seconds to fit": ("seconds",),
    "GiB more": ("GiB",),
}
MEASURES = {"accuracy %": 1, "log loss": 3, "calibration error": 3, "CPU seconds to fit": 2}


def read(name: str) -> list[Cells]:
    """Read a result file."""
    return tables.read(RESULTS / f"{name}.csv")


def plain(name: str) -> str:
    """Show a result file as it is, with long numbers shortened."""
    return markdown([{column: shortened(cell) for column, cell in row.items()} for row in read(name)])


def goals() -> str:
    """Show what the default reached on many rows, with the goal behind each number; jobs without a row are named."""
    found, table = tables.read(RESULTS / "goals.csv", missing_ok=True), []
    for row in found:
        beside = {column: shortened(row[column]) for column in ("data", "rows", "method")}
        for name, columns in GOAL_COLUMNS.items():
            value = next((shortened(row[column]) for column in columns if row.get(column)), "-")
            goal = next((row[f"goal: {of}"] for of in GOAL_OF.get(name, ()) if row.get(f"goal: {of}")), "")
            beside[name] = value + (f" ({float(goal):g})" if goal else "")
        table.append(beside)
    missing = [name for name in GOALS if name not in {row["data"] for row in found}]
    note = f"\nNot measured yet: {', '.join(missing)}.\n" if missing else ""
    return markdown(table) + note if table else NOTHING


def probabilities() -> str:
    """Compare the probabilities of the methods, one row for each data set."""
    found = read("probabilities")
    methods = list(dict.fromkeys(row["method"] for row in found))
    table = []
    for data in dict.fromkeys(row["data"] for row in found):
        own = {row["method"]: row for row in found if row["data"] == data}
        cells = {"data": data, "rows": own[methods[0]]["rows"]}
        for column, digits in (("log loss", 3), ("calibration error", 3), ("accuracy %", 1), ("CPU seconds to fit", 2)):
            cells[column] = " / ".join(f"{float(own[method][column]):.{digits}f}" for method in methods)
        table.append(cells)
    return f"Each cell: {' / '.join(methods)}.\n\n" + markdown(table)


def prediction_sets() -> str:
    """Show coverage and size of prediction sets."""
    table = [
        {
            "data": row["data"],
            "method": row["method"],
            "coverage": f"{float(row['coverage']):.3f} ± {float(row['standard error']):.3f}",
            "mean size": f"{float(row['mean size']):.2f}",
        }
        for row in read("prediction_sets")
    ]
    return markdown(table)


def suite_rows() -> list[Cells]:
    """Read what the suite has measured so far."""
    return tables.read(RESULTS / "suite.csv", missing_ok=True)


def suite_methods() -> str:
    """List the methods with their versions and settings."""
    versions = {row["method"]: row["version"] for row in suite_rows() if row["version"]}
    table = [
        {"method": name, "package": f"{method.package} {versions.get(name, '')}".strip(), "given": method.given}
        for name, method in peers.METHODS.items()
    ]
    return markdown(table)


def suite_sets() -> str:
    """List the data sets, and which of them the defaults were tuned on."""
    rows, table = suite_rows(), []
    for name in ranks.by_size(rows):
        own = [row for row in rows if row["data"] == name and row["training rows"]]
        sizes = {column: shortened(own[0][column]) for column in ("training rows", "test rows", "features", "classes")}
        folds = {"folds": str(len({row["fold"] for row in own}))}
        table.append({"data": name, **sizes, **folds, "defaults tuned on it": own[0]["seen"]})
    return markdown(table) if table else NOTHING


def suite_ranks() -> str:
    """Show mean ranks, the best in bold."""
    found = ranks.mean_rank_rows(suite_rows())
    if len(found[0]) == 1:
        return NOTHING
    columns = [name for name in found[0] if name != "method"]
    best = {name: min(row[name] for row in found) for name in columns[:-1]}
    table = [
        {"method": row["method"]}
        | {name: bold(f"{row[name]:.2f}", row[name] == best[name]) for name in columns[:-1]}
        | {columns[-1]: str(row[columns[-1]])}
        for row in found
    ]
    return markdown(table)


def suite_scores(measure: str) -> str:
    """Show a measure by data set and method: means over folds, the best in bold, a dash if not finished."""
    rows = suite_rows()
    methods = [name for name in peers.METHODS if any(r["method"] == name and not r["note"] for r in rows)]
    table = []
    for data in ranks.by_size(rows):
        values = {method: ranks.mean(rows, data, method, measure) for method in methods}
        cells = {method: f"{value:.{MEASURES[measure]}f}" for method, value in values.items() if not math.isnan(value)}
        pick = max if ranks.MEASURES[measure] else min
        best = pick((float(cell) for cell in cells.values()), default=math.nan)
        shown = {m: bold(cells[m], float(cells[m]) == best) if m in cells else "-" for m in methods}
        seen = any(row["data"] == data and row["seen"] == "yes" for row in rows)
        table.append({"data": data + (" (seen)" if seen else ""), **shown})
    return markdown(table) if table else NOTHING


def suite_words() -> str:
    """Say who is first by each measure, where we are, and which differences are significant."""
    lines = []
    for measure in MEASURES:
        scores = ranks.scores(suite_rows(), measure)
        if len(scores.data) < 2 or OURS not in scores.methods:
            return NOTHING
        mean = dict(zip(scores.methods, scores.mean_ranks, strict=True))
        first = min(mean, key=mean.__getitem__)
        place = sorted(mean.values()).index(mean[OURS]) + 1
        wins = int((scores.ranks[:, scores.methods.index(OURS)] == scores.ranks.min(1)).sum())
        leader = f"first is {OURS} ({mean[OURS]:.2f})"
        if first != OURS:
            leader = f"first is {first} ({mean[first]:.2f}), {OURS} is number {place} ({mean[OURS]:.2f})"
        words = f"{leader} of {len(mean)}, best or level with the best on {wins} of {len(scores.data)} sets"
        behind = [m for m in mean if mean[m] > mean[OURS] + scores.critical_difference]
        ahead = [m for m in mean if mean[m] < mean[OURS] - scores.critical_difference]
        told = [f"significantly {w}: {', '.join(each)}" for w, each in (("worse", behind), ("better", ahead)) if each]
        lines.append(f"- **{measure}**: {words}; {'; '.join(told) or 'no significant differences'}.\n")
    lines.append(f"- **On data sets that the defaults were not tuned on**: {_unseen_words()}.\n")
    lines.append(f"- **Cost of a search**: {_cost_words()}.\n")
    far = f"Ranked here: {len(scores.methods)} of {len(peers.METHODS)} methods on {len(scores.data)} data sets.\n\n"
    return far + "".join(lines)


def _unseen_words() -> str:
    """Give our mean ranks on the data sets that the defaults were not tuned on."""
    unseen = [row for row in suite_rows() if row["seen"] == "no"]
    words = []
    for measure in ("accuracy %", "log loss"):
        scores = ranks.scores(unseen, measure) if unseen else None
        if scores is None or not scores.data or OURS not in scores.methods:
            return "none yet"
        mean = dict(zip(scores.methods, scores.mean_ranks, strict=True))
        words.append(f"{measure}: number {sorted(mean.values()).index(mean[OURS]) + 1} ({mean[OURS]:.2f})")
    return f"{len(scores.data)} sets; " + ", ".join(words)


def _cost_words() -> str:
    """Compare our CPU seconds with those of the grid search, where both have finished."""
    rows = suite_rows()
    pairs = [
        [ranks.mean(rows, data, method, "CPU seconds to fit") for method in (OURS, SEARCHED)]
        for data in ranks.by_size(rows)
    ]
    both = [pair for pair in pairs if not any(map(math.isnan, pair))]
    if not both:
        return "not measured yet"
    ours, theirs = map(sum, zip(*both, strict=True))
    less = sum(own <= 0.2 * other for own, other in both)
    return (
        f"over the {len(both)} sets that {SEARCHED} and {OURS} finished, {ours:.1f} CPU seconds per fold against "
        f"{theirs:.0f}; at most a fifth on {less} of them"
    )


def unfinished(rows: list[Cells]) -> str:
    """List what was not finished, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["note"]:
            why = row["note"].split(", because of")[0]
            found.setdefault((row["method"], why), []).append(row["data"])
    table = [
        {"method": method, "what": "; ".join(dict.fromkeys(data)), "why": why} for (method, why), data in found.items()
    ]
    return markdown(table) if table else "*Everything was finished.*\n"


def scaling() -> str:
    """Show CPU seconds by number of rows, and the exponent from 2000 rows on."""
    rows = tables.read(RESULTS / "scaling.csv", missing_ok=True)
    finished = [row for row in rows if not row["note"]]
    sizes = sorted({int(row["training rows"]) for row in finished})
    table = []
    for method in dict.fromkeys(row["method"] for row in finished):
        seconds = {int(r["training rows"]): float(r["CPU seconds to fit"]) for r in finished if r["method"] == method}
        grown = {n: value for n, value in seconds.items() if n >= 2000}
        power = ranks.exponent(list(grown), list(grown.values()))
        cells = {f"{n:,}": f"{seconds[n]:.3g}" if n in seconds else "-" for n in sizes}
        table.append({"method": method, **cells, "exponent": "" if math.isnan(power) else f"{power:.1f}"})
    return markdown(table) if table else NOTHING


def micro() -> str:
    """Show the newest ratios of the micro-benchmarks."""
    rows = {row["name"]: row for row in tables.read(FOLDER / "history.csv", missing_ok=True)}
    parts = {name: row for name, row in rows.items() if not name.startswith(STARTUP)}
    table = [{"what": name, "times": f"{float(row['ratio']):.2f}"} for name, row in parts.items()]
    return markdown(table) if table else NOTHING


def startup() -> str:
    """Show how soon the command line answers."""
    rows = tables.read(FOLDER / "results" / "startup.csv", missing_ok=True)
    table = [
        {"what": f"`{row['command']}`", "CPU seconds": f"{float(row['CPU seconds']):.2f}", "times": row["ratio"][:4]}
        for row in rows
    ]
    return markdown(table) if table else NOTHING


TABLES: dict[str, Callable[[], str]] = {
    "suite_methods": suite_methods,
    "suite_sets": suite_sets,
    "suite_ranks": suite_ranks,
    "suite_words": suite_words,
    "suite_unfinished": lambda: unfinished(suite_rows()),
    "suite_accuracy": partial(suite_scores, "accuracy %"),
    "suite_log_loss": partial(suite_scores, "log loss"),
    "suite_calibration": partial(suite_scores, "calibration error"),
    "suite_seconds": partial(suite_scores, "CPU seconds to fit"),
    "scaling": scaling,
    "goals": goals,
    "micro": micro,
    "startup": startup,
    "probabilities": probabilities,
    "prediction_sets": prediction_sets,
    **{name: partial(plain, name) for name in PLAIN},
}
