"""Run all benchmarks, or those that are named: ``python -m benchmarks.run [--quick] [NAME ...]``.

``suite``, ``scaling``, ``numbers`` and ``tables`` compare with other methods in the peers' environment; a run that was
stopped resumes.
``figures`` draws their results. ``micro`` times the parts of a fit, ``startup`` the command line where it needs no
model; ``--record`` adds their ratios to ``history.csv``.
The others (floor, head, default, fits, large, goals, big, growing, hyper, probabilities, cluster) print tables and
write them into ``benchmarks/results``.

Wherever one thing is said to be faster than another, both were timed side by side in one run.
"""

import argparse
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tools import tables
from tools.tables import Row, console

if TYPE_CHECKING:
    from benchmarks.suite import Contest

RESULTS = Path(__file__).parent / "results"


def keep(name: str, title: str, rows: list[Row]) -> None:
    """Write a table into the results folder and print it."""
    tables.write(RESULTS / f"{name}.csv", rows, line_end="\r\n")  # as these files have always been
    tables.show(title, rows, number=".4g")


def machine() -> str:
    """Describe the machine in a line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def run_suite(arguments: argparse.Namespace) -> None:
    """Measure what the suite lacks, and print mean ranks."""
    from benchmarks import ranks, suite

    path = _with_peers("suite", suite.chains(arguments.quick, arguments.method, arguments.data), arguments)
    ranked = ranks.mean_rank_rows(tables.read(path, missing_ok=True))
    tables.show(f"Mean ranks; all numbers are in {path}", ranked, number=".4g")


def run_scaling(arguments: argparse.Namespace) -> None:
    """Measure what the table of times by number of rows lacks."""
    from benchmarks import scaling

    _with_peers("scaling", scaling.chains(arguments.quick, arguments.method), arguments)


def run_numbers(arguments: argparse.Namespace) -> None:
    """Measure what the table of forecasts of numbers lacks, and print mean ranks."""
    from benchmarks import number_ranks, numbers

    if not numbers.has_data():
        console.print(numbers.NO_DATA)
        return
    splits = arguments.splits or (max(n for n, _ in numbers.UCI.values()) if arguments.all else numbers.USUAL_SPLITS)
    todo = numbers.chains(arguments.quick, arguments.method, arguments.data, splits=splits, every_method=arguments.all)
    path = _with_peers("numbers", todo, arguments, numbers.NUMBERS)
    for name, data in (("UCI sets", numbers.UCI), ("tables", numbers.TABLES)):
        if ranked := number_ranks.mean_rank_rows(tables.read(path, missing_ok=True), data):
            tables.show(f"Mean ranks, {name}; all numbers are in {path}", ranked, number=".4g")


def run_tables(arguments: argparse.Namespace) -> None:
    """Measure what the comparison on tables lacks, and print mean ranks."""
    from benchmarks import number_ranks
    from benchmarks import tables as people

    if not people.has_data():
        console.print(people.NO_DATA)
        return
    splits = arguments.splits or (people.SPLITS if arguments.all else people.USUAL_SPLITS)
    todo = people.chains(arguments.quick, arguments.method, arguments.data, splits=splits, every_method=arguments.all)
    path = _with_peers("tables", todo, arguments, people.CONTEST)
    rows = tables.read(path, missing_ok=True)
    for data, measures, first in people.RANKED:
        if ranked := number_ranks.mean_rank_rows(rows, data, measures, first):
            tables.show(f"Mean ranks by {first}; all numbers are in {path}", ranked, number=".4g")


def _with_peers(name: str, todo: list, arguments: argparse.Namespace, contest: "Contest | None" = None) -> Path:
    from benchmarks import suite

    path = RESULTS / f"{name}{'-quick' if arguments.quick else ''}.csv"
    suite.forget(path, arguments.again)
    suite.forget_hasty(path, todo)
    suite.measure_all(
        todo,
        path,
        python=arguments.python or suite.PEERS_PYTHON,
        jobs=arguments.jobs,
        progress=lambda done, total, words: console.print(f"{done} of {total}: {words}", highlight=False),
        contest=contest or suite.CLASSES,
    )
    return path


def run_figures(arguments: argparse.Namespace) -> None:
    """Draw the results of the suite."""
    from benchmarks import figures

    for path in figures.draw_all(arguments.quick):
        console.print(f"Drawn: {path}")


def run_micro(arguments: argparse.Namespace) -> None:
    """Time the parts of a fit, and compare with earlier runs."""
    from benchmarks import history, micro

    found = micro.rows(arguments.quick)
    name = "micro-quick" if arguments.quick else "micro"
    keep(name, "Parts of a fit, times the least that each needs", found)
    if arguments.record:
        history.record({str(row["name"]): float(row["ratio"]) for row in found})
    console.print(history.verdict(tables.read(history.HISTORY, missing_ok=True)))


def run_startup(arguments: argparse.Namespace) -> None:
    """Time what the command line answers without a model, and compare with earlier runs."""
    from benchmarks import history, startup

    found = startup.rows(arguments.quick)
    title = f"Until the command line answers (goal: {startup.GOAL} s), and next to the import of NumPy and typer"
    keep("startup-quick" if arguments.quick else "startup", title, found)
    if arguments.record:
        history.record({f"{startup.STARTUP}{row['command']}": float(row["ratio"]) for row in found})
    console.print(history.verdict(tables.read(history.HISTORY, missing_ok=True)))


def run_floor(arguments: argparse.Namespace) -> None:
    """Time one value and gradient."""
    from benchmarks import floor

    title = "One value and gradient (n = 2000, d = 16, 5 classes, one thread) against Gram matrix + Cholesky"
    keep("floor", title, floor.rows(arguments.quick))


def run_head(arguments: argparse.Namespace) -> None:
    """Time the embedding head of a network."""
    from benchmarks import head

    title = "Embedding head, value and gradient (1000 rows, 512 features, 10 classes), and a CNN's step"
    keep("head", title, head.rows(arguments.quick))


def run_default(arguments: argparse.Namespace) -> None:
    """Score the default settings."""
    from benchmarks import default

    title = "EmbeddingClassifier() as it comes: three folds, up to 1000 training rows, calibration error in 10 bins"
    keep("default", title, default.rows(arguments.quick))


def run_fits(arguments: argparse.Namespace) -> None:
    """Compare whole fits with other methods."""
    from benchmarks import fits

    keep("fits", "Whole fits next to other methods, same split", fits.rows(arguments.quick))
    keep("fits_mean", "The same, averaged over the data sets that every method finished", fits.means())


def run_large(arguments: argparse.Namespace) -> None:
    """Fit many rows."""
    from benchmarks import large

    keep("large", "Many rows: accuracy on test rows, time and memory to fit", large.rows(arguments.quick))


def run_goals(arguments: argparse.Namespace) -> None:
    """Fit many rows with the default settings, beside what is to be reached; other rows of the table stay."""
    from benchmarks import goals, suite

    name = "goals-quick" if arguments.quick else "goals"
    path, of = RESULTS / f"{name}.csv", ("data", "method")
    for row in goals.rows(arguments.quick, arguments.python or suite.PEERS_PYTHON, arguments.data):
        before = tables.read(path, missing_ok=True)
        others = [each for each in before if any(each[column] != row[column] for column in of)]
        order = list(goals.GOALS)
        keep(name, "Many rows: goals", sorted([*others, row], key=lambda each: order.index(str(each["data"]))))


def run_big(arguments: argparse.Namespace) -> None:
    """Fit rows that stay in files."""
    from benchmarks import big

    size = "quick" if arguments.quick else "all" if arguments.all else "usual"
    keep("big", "Rows in Parquet files, and the same rows in memory, one thread", big.rows(big.SIZES[size]))


def run_growing(arguments: argparse.Namespace) -> None:
    """Add rows to a fitted tree, and compress models."""
    from benchmarks import growing

    keep("growing", "Rows added to a tree, 1000 a call (covtype, one thread)", list(growing.rows(arguments.quick)))
    title = "Models of 2000 rows with 20 columns, whole and compressed (one thread)"
    keep("small_models", title, list(growing.small_models(arguments.quick)))


def run_hyper(arguments: argparse.Namespace) -> None:
    """Score and time learned kernels."""
    from benchmarks import hyper

    quick = arguments.quick
    keep("hyper_known", "A known kernel, learned from its matrix: error on new points", hyper.known(quick))
    title = "10,000 x 1000 values of a learned kernel against a plain Gaussian (one thread)"
    keep("hyper_evaluation", title, hyper.evaluation(quick))
    keep("hyper_table2", "Kernels learned from labels: accuracy % on 60 % of the rows", hyper.table2(quick))
    keep("hyper_large", "Both stages of a learned kernel on many rows", hyper.many_rows(quick))


def run_probabilities(arguments: argparse.Namespace) -> None:
    """Score probabilities and prediction sets."""
    from benchmarks import probabilities

    title = "Out-of-fold probabilities on twelve data sets (five folds, at most 3000 rows)"
    keep("probabilities", title, probabilities.rows(arguments.quick))
    title = "Prediction sets at rows never seen: mean over ten random halves"
    keep("prediction_sets", title, probabilities.set_rows(arguments.quick))


def run_cluster(arguments: argparse.Namespace) -> None:
    """Time sums over rows, and leaves of trees, on a Dask cluster."""
    from benchmarks import cluster

    quick = arguments.quick
    keep("cluster_workers", "Sums over rows by number of workers", cluster.by_workers(quick))
    sizes = cluster.by_size(quick)
    keep("cluster_size", "Up to ten million rows, two workers", sizes)
    keep("cluster_plan", "Planned from the rate of one worker", cluster.plan(quick, sizes))
    trees = cluster.trees(quick)
    keep("cluster_trees", "The default on workers of 2 GiB", trees)
    keep("cluster_trees_plan", "Planned from the smallest run", cluster.trees_plan(trees))


BENCHMARKS: dict[str, Callable[[argparse.Namespace], None]] = {
    "suite": run_suite,
    "scaling": run_scaling,
    "numbers": run_numbers,
    "tables": run_tables,
    "figures": run_figures,
    "micro": run_micro,
    "startup": run_startup,
    "floor": run_floor,
    "head": run_head,
    "default": run_default,
    "fits": run_fits,
    "large": run_large,
    "goals": run_goals,
    "big": run_big,
    "growing": run_growing,
    "hyper": run_hyper,
    "probabilities": run_probabilities,
    "cluster": run_cluster,
}


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(BENCHMARKS), metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and smaller data sets")
    peers = parser.add_argument_group("suite, scaling, numbers and tables")
    peers.add_argument("--again", action="append", default=[], metavar="METHOD", help="drop its rows, measure again")
    peers.add_argument("--method", action="append", default=[], help="only these methods")
    peers.add_argument("--data", action="append", default=[], help="only these data sets")
    peers.add_argument("--python", type=Path, help="the peers' Python (.venv-peers/bin/python)")
    peers.add_argument("--jobs", type=int, default=2, help="fits at a time, one thread each")
    peers.add_argument(
        "--all",
        action="store_true",
        help="numbers, tables: all splits and methods, with more time for each; big: ten million rows",
    )
    peers.add_argument("--splits", type=int, help="numbers, tables: how many splits (2, or all with --all)")
    parser.add_argument("--record", action="store_true", help="micro, startup: add the ratios to history.csv")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {unknown[0]!r}: choose from {', '.join(BENCHMARKS)}")
    console.print(f"Machine: {machine()}")
    for name in arguments.names:
        BENCHMARKS[name](arguments)


if __name__ == "__main__":
    main()
