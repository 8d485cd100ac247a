"""Tables of the documentation, made from the CSV files of benchmarks and reproductions: ``python docs/tables.py``.

What stands between ``<!-- table: NAME -->`` and ``<!-- end of table -->`` in a page is replaced.
"""

import csv
import importlib.util
import math
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SLOT = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def read(name: str) -> list[dict[str, str]]:
    """The rows of a result file."""
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def markdown(rows: list[dict[str, str]]) -> str:
    """Rows as a table."""
    header = list(rows[0])
    lines = [header, ["---"] * len(header), *[list(row.values()) for row in rows]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def probabilities() -> str:
    """One row a data set, log loss and calibration error of each method."""
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
    """One row for each data set and method."""
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


def plain(name: str) -> str:
    """A result file as it is, long numbers shortened."""
    return markdown([{column: _shortened(cell) for column, cell in row.items()} for row in read(name)])


def _shortened(cell: str) -> str:
    if re.fullmatch(r"\d+", cell):
        return f"{int(cell):,}"
    if cell == "nan":
        return ""
    if not re.fullmatch(r"\d+\.\d+(e[+-]?\d+)?", cell):
        return cell
    value = float(cell)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def robustness_rows(name: str) -> list[dict[str, str]]:
    """The rows of a part of the robustness tests."""
    with (ROOT / "robustness" / "results" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def robustness(name: str) -> str:
    """The figures of a part of the robustness tests, whatever columns it has; a column without any word is left out."""
    rows = robustness_rows(name)
    used = [column for column in rows[0] if any(row[column] for row in rows)]
    return markdown([{column: row[column].replace("|", "\\|") for column in used} for row in rows])


def goals(*names: str) -> str:
    """Some of the statistical goals, task by task; in bold what was missed."""
    table = [
        {
            "goal": row["what"],
            "task": row["task"],
            "value": _bold(row["value"], row["failures"] != "0"),
            "beside": row["beside"],
            "note": row["note"],
        }
        for row in robustness_rows("goals")
        if row["what"] in names
    ]
    return markdown(table) if table else NOT_REACHED


def goals_across(pattern: str, first: str) -> str:
    """The same in a grid, for tasks with two names: the line is ``first``, the column whatever else matches."""
    grid: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for row in robustness_rows("goals"):
        if found := re.fullmatch(pattern, f"{row['what']}: {row['task']}"):
            line, column = found["line"], found["column"].replace(": ", ", ")
            cell = f"{row['value']} / {row['beside']}"
            grid.setdefault(line, {})[column] = _bold(cell, row["failures"] != "0")
            columns[column] = None
    table = [{first: line} | {column: cells.get(column, "") for column in columns} for line, cells in grid.items()]
    return markdown(table) if table else NOT_REACHED


NOT_REACHED = "*Not measured, or it ended in an error: see robustness/results/goals.csv.*\n"
BEHIND = 3.0  # points of accuracy from which on a task is named as a limit
SLOPE = 1.2  # logits that must be multiplied or divided by more than this are named, too
RIVALS = ("kernelwright", "logistic", "SVC", "forest")


def quality() -> str:
    """All made-up tasks; the default and its rivals in one cell."""
    table = [
        {
            "task": row["what"],
            "rows": row["rows"],
            **{measure: _side_by_side(row, measure) for measure in ("accuracy %", "log loss", "logit slope")},
        }
        for row in robustness_rows("quality")
    ]
    return f"Each cell: {' / '.join(RIVALS)}.\n\n" + markdown(table)


def _side_by_side(row: dict[str, str], measure: str) -> str:
    cells = [row[f"{measure} {method}"] for method in RIVALS]
    return " / ".join(cells) if any(cells) else ""


def quality_behind() -> str:
    """Tasks on which the default is behind the best by more than three points, the worst first."""
    behind = [row for row in robustness_rows("quality") if float(row["behind"]) > BEHIND]
    table = [
        {
            "task": row["what"],
            "rows": row["rows"],
            "accuracy %": row["accuracy % kernelwright"],
            "best": f"{row['accuracy % ' + row['best']]} ({row['best']})",
        }
        for row in sorted(behind, key=lambda row: -float(row["behind"]))
    ]
    return markdown(table) if table else "*None: on all of them it is within three points of the best.*\n"


def quality_slopes() -> str:
    """Tasks with known probabilities on which those of the default are too timid or too sure."""
    known = [row for row in robustness_rows("quality") if row["logit slope kernelwright"]]
    table = [
        {
            "task": row["what"],
            "rows": row["rows"],
            "logit slope": row["logit slope kernelwright"],
            "of logistic regression": row["logit slope logistic"],
        }
        for row in known
        if not 1 / SLOPE <= float(row["logit slope kernelwright"]) <= SLOPE
    ]
    return markdown(table) if table else f"*None of {len(known)}.*\n"


def benchmark(name: str) -> ModuleType:
    """A script of the benchmarks' folder; those that are read here need neither torch nor the peers."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


ranks, peers = benchmark("ranks"), benchmark("peers")
OURS, SEARCHED = "kernelwright", "SVC, grid"
NOTHING = "*Not measured yet: `make bench`.*\n"
MEASURES = {"accuracy %": 1, "log loss": 3, "calibration error": 3, "CPU seconds to fit": 2}


def suite_rows() -> list[dict[str, str]]:
    """What the suite has measured so far."""
    return ranks.read(RESULTS / "suite.csv")


def suite_methods() -> str:
    """What each method is given, and in which version."""
    versions = {row["method"]: row["version"] for row in suite_rows() if row["version"]}
    table = [
        {"method": name, "package": f"{method.package} {versions.get(name, '')}".strip(), "given": method.given}
        for name, method in peers.METHODS.items()
    ]
    return markdown(table)


def suite_sets() -> str:
    """The data sets, and which of them the defaults have seen."""
    rows, table = suite_rows(), []
    for name in ranks.by_size(rows):
        own = [row for row in rows if row["data"] == name and row["training rows"]]
        sizes = {column: _shortened(own[0][column]) for column in ("training rows", "test rows", "features", "classes")}
        folds = {"folds": str(len({row["fold"] for row in own}))}
        table.append({"data": name, **sizes, **folds, "defaults settled in view of it": own[0]["seen"]})
    return markdown(table) if table else NOTHING


def suite_ranks() -> str:
    """Mean ranks, the best in bold."""
    found = ranks.mean_rank_rows(suite_rows())
    if len(found[0]) == 1:
        return NOTHING
    columns = [name for name in found[0] if name != "method"]
    best = {name: min(row[name] for row in found) for name in columns[:-1]}
    table = [
        {"method": row["method"]}
        | {name: _bold(f"{row[name]:.2f}", row[name] == best[name]) for name in columns[:-1]}
        | {columns[-1]: str(row[columns[-1]])}
        for row in found
    ]
    return markdown(table)


def suite_scores(measure: str) -> str:
    """One row a data set, one column a method, means over folds, the best in bold, a dash where it did not finish."""
    rows = suite_rows()
    methods = [name for name in peers.METHODS if any(r["method"] == name and not r["note"] for r in rows)]
    table = []
    for data in ranks.by_size(rows):
        values = {method: ranks.mean(rows, data, method, measure) for method in methods}
        cells = {method: f"{value:.{MEASURES[measure]}f}" for method, value in values.items() if not math.isnan(value)}
        pick = max if ranks.MEASURES[measure] else min
        best = pick((float(cell) for cell in cells.values()), default=math.nan)
        shown = {m: _bold(cells[m], float(cells[m]) == best) if m in cells else "-" for m in methods}
        seen = any(row["data"] == data and row["seen"] == "yes" for row in rows)
        table.append({"data": data + (" (seen)" if seen else ""), **shown})
    return markdown(table) if table else NOTHING


def suite_words() -> str:
    """Who is first by each measure, where we are, and from whom the test tells us apart."""
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
        told = [f"told apart as {w}: {', '.join(each)}" for w, each in (("worse", behind), ("better", ahead)) if each]
        lines.append(f"- **{measure}**: {words}; {'; '.join(told) or 'no method is told apart from it'}.\n")
    lines.append(f"- **On the sets that were not in view**: {_unseen_words()}.\n")
    lines.append(f"- **Cost of a search**: {_cost_words()}.\n")
    far = f"Ranked here: {len(scores.methods)} of {len(peers.METHODS)} methods on {len(scores.data)} data sets.\n\n"
    return far + "".join(lines)


def _unseen_words() -> str:
    """Mean ranks of ours on the data sets that took no part in settling the defaults."""
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
    """CPU seconds of ours against those of the grid-searched machine, where both have finished."""
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
        f"over the {len(both)} sets that {SEARCHED} and {OURS} finished, {ours:.1f} CPU seconds a fold against "
        f"{theirs:.0f}; at most a fifth on {less} of them"
    )


def suite_unfinished() -> str:
    """Which methods did not finish what, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in suite_rows():
        if row["note"]:
            why = row["note"].split(", because of")[0]
            found.setdefault((row["method"], why), []).append(row["data"])
    table = [
        {"method": method, "what": "; ".join(dict.fromkeys(data)), "why": why} for (method, why), data in found.items()
    ]
    return markdown(table) if table else "*All that was tried was finished.*\n"


def scaling() -> str:
    """CPU seconds by number of rows, and the exponent from 2000 rows on."""
    rows = ranks.read(RESULTS / "scaling.csv")
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
    """The newest ratios of the micro-benchmarks, as recorded."""
    rows = {row["name"]: row for row in ranks.read(ROOT / "benchmarks" / "history.csv")}
    table = [{"what": name, "times": f"{float(row['ratio']):.2f}"} for name, row in rows.items()]
    return markdown(table) if table else NOTHING


def _bold(cell: str, best: bool) -> str:
    return f"**{cell}**" if best else cell


PLAIN = (
    *("cluster_workers", "cluster_size", "cluster_plan", "default", "fits_mean", "floor", "head", "large"),
    *("hyper_known", "hyper_evaluation", "hyper_table2", "hyper_large"),
)
TABLES: dict[str, Callable[[], str]] = {
    "suite_methods": suite_methods,
    "suite_sets": suite_sets,
    "suite_ranks": suite_ranks,
    "suite_words": suite_words,
    "suite_unfinished": suite_unfinished,
    "suite_accuracy": partial(suite_scores, "accuracy %"),
    "suite_log_loss": partial(suite_scores, "log loss"),
    "suite_calibration": partial(suite_scores, "calibration error"),
    "suite_seconds": partial(suite_scores, "CPU seconds to fit"),
    "scaling": scaling,
    "micro": micro,
    "probabilities": probabilities,
    "prediction_sets": prediction_sets,
    **{name: partial(plain, name) for name in PLAIN},
    "numerical": lambda: robustness("numerical"),
    "bad_input": lambda: robustness("bad_input"),
    "interruptions": lambda: robustness("interruptions"),
    "resources": lambda: robustness("resources"),
    "concurrency": lambda: robustness("concurrency"),
    "load": lambda: robustness("load"),
    "security": lambda: robustness("security"),
    "supply": lambda: robustness("supply"),
    "goals_weights": lambda: goals("balanced", "effective size", "copies"),
    "goals_left_out": lambda: goals_across(r"(?P<column>(left out|upper limit): [^:]*): (?P<line>.*)", "task"),
    "goals_many_classes": lambda: goals_across(r"many classes: (?P<line>\d+) classes x (?P<column>.*)", "classes"),
    "goals_noise": lambda: goals("noise"),
    "goals_sets": lambda: goals_across(r"(?P<column>coverage|size of sets|coverage by class): (?P<line>.*)", "task"),
    "quality": quality,
    "quality_behind": quality_behind,
    "quality_slopes": quality_slopes,
}


def filled(text: str) -> str:
    """A page with its tables as the CSV files have them."""
    return SLOT.sub(lambda slot: f"{slot[1]}\n{TABLES[slot[2]]()}\n{slot[3]}", text)


def write_reproduction() -> None:
    """The page of reproduced results, from their CSV files; pictures are drawn anew."""
    from kernelwright.experiments.page import reproduction_page
    from kernelwright.experiments.registry import EXPERIMENTS
    from kernelwright.experiments.runner import read_results
    from kernelwright.reports import write_whole

    folder = ROOT / "docs" / "reproduction"
    for experiment in EXPERIMENTS.values():
        results = read_results(folder / f"{experiment.name}.csv")
        for stem, picture in experiment.pictures(results).items() if results else ():
            write_whole(folder / f"{stem}.png", picture.png)
    page = reproduction_page(list(EXPERIMENTS.values()), folder, folder.name)
    write_whole(ROOT / "docs" / "reproduction.md", page.encode())


if __name__ == "__main__":
    write_reproduction()
    for page in (ROOT / "docs").rglob("*.md"):
        before = page.read_text()
        if filled(before) != before:
            page.write_text(filled(before))
