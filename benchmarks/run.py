"""All benchmarks, or those that are named: ``python benchmarks/run.py [--quick] [NAME ...]``.

``suite`` and ``scaling`` compare with other methods in the peers' environment and go on where they were stopped;
``figures`` draws what they found. ``micro`` times the parts; with ``--record`` its ratios join ``history.csv``. The
others (floor, head, default, fits, large, hyper, probabilities, cluster) print tables and write them into
``benchmarks/results``.

Times are ratios measured side by side in one run wherever one thing is said to be faster than another.
"""

import argparse
import csv
import os
import platform
from pathlib import Path

from rich.console import Console
from rich.table import Table

NAMES = ["suite", "scaling", "figures", "micro"]
NAMES += ["floor", "head", "default", "fits", "large", "hyper", "probabilities", "cluster"]
RESULTS = Path(__file__).parent / "results"
console = Console(width=130)


def show(name: str, title: str, rows: list[dict[str, object]]) -> None:
    RESULTS.mkdir(exist_ok=True)
    partial = RESULTS / f".{name}.csv"
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    os.replace(partial, RESULTS / f"{name}.csv")
    print_table(title, rows)


def print_table(title: str, rows: list[dict[str, object]]) -> None:
    table = Table(title=title, title_justify="left")
    for column in rows[0]:
        table.add_column(column, justify="left" if isinstance(rows[0][column], str) else "right")
    for row in rows:
        table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def with_peers(name: str, arguments: argparse.Namespace) -> None:
    """The suite or its scaling, as far as not done yet."""
    import ranks
    import scaling
    import suite

    path = RESULTS / f"{name}{'-quick' if arguments.quick else ''}.csv"
    suite.forget(path, arguments.again)
    if name == "suite":
        todo = suite.chains(arguments.quick, arguments.method, arguments.data)
    else:
        todo = scaling.chains(arguments.quick, arguments.method)
    suite.measure_all(
        todo,
        path,
        python=arguments.python or suite.PEERS_PYTHON,
        jobs=arguments.jobs,
        progress=lambda done, total, words: console.print(f"{done} of {total}: {words}", highlight=False),
    )
    if name == "suite":
        print_table(f"Mean ranks; all numbers are in {path}", ranks.mean_rank_rows(ranks.read(path)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and smaller sets")
    peers = parser.add_argument_group("suite and scaling")
    peers.add_argument("--again", action="append", default=[], metavar="METHOD", help="forget its rows, measure anew")
    peers.add_argument("--method", action="append", default=[], help="only these")
    peers.add_argument("--data", action="append", default=[], help="only these sets (suite)")
    peers.add_argument("--python", type=Path, help="the peers' Python (.venv-peers/bin/python)")
    peers.add_argument("--jobs", type=int, default=2, help="fits at a time, one thread each")
    parser.add_argument("--record", action="store_true", help="micro: add the ratios to benchmarks/history.csv")
    arguments = parser.parse_args()
    console.print(f"Machine: {machine()}")
    quick = arguments.quick
    for name in arguments.names:
        if name in ("suite", "scaling"):
            with_peers(name, arguments)
        elif name == "figures":
            import figures

            for path in figures.draw_all(quick):
                console.print(f"Drawn: {path}")
        elif name == "micro":
            import history
            import micro
            import ranks

            found = micro.rows(quick)
            show("micro-quick" if quick else "micro", "Parts of a fit, times the least that each needs", found)
            if arguments.record:
                history.record({str(row["name"]): float(row["ratio"]) for row in found})
            console.print(history.verdict(ranks.read(history.HISTORY)))
        elif name == "floor":
            import floor

            show(
                "floor",
                "One value and gradient (n = 2000, d = 16, 5 classes, one thread) against Gram matrix + Cholesky",
                floor.rows(quick),
            )
        elif name == "head":
            import head

            title = "Embedding head, value and gradient (1000 rows, 512 features, 10 classes), and a CNN's step"
            show("head", title, head.rows(quick))
        elif name == "default":
            import default

            title = (
                "EmbeddingClassifier() as it comes: three folds, up to 1000 training rows, calibration error in 10 bins"
            )
            show("default", title, default.rows(quick))
        elif name == "fits":
            import fits

            show("fits", "Whole fits next to other methods, same split", fits.rows(quick))
            show("fits_mean", "The same, averaged over the data sets that every method finished", fits.means())
        elif name == "large":
            import large

            show("large", "Many rows: accuracy on test rows, time and memory to fit", large.rows(quick))
        elif name == "hyper":
            import hyper

            show("hyper_known", "A known kernel, learned from its matrix: error on new points", hyper.known(quick))
            title = "10,000 x 1000 values of a learned kernel against a plain Gaussian (one thread)"
            show("hyper_evaluation", title, hyper.evaluation(quick))
            show("hyper_table2", "Kernels learned from labels: accuracy % on 60 % of the rows", hyper.table2(quick))
            show("hyper_large", "Both stages of a learned kernel on many rows", hyper.many_rows(quick))
        elif name == "probabilities":
            import probabilities

            title = "Out-of-fold probabilities on twelve data sets (five folds, at most 3000 rows)"
            show("probabilities", title, probabilities.rows(quick))
            title = "Prediction sets at rows never seen: mean over ten random halves"
            show("prediction_sets", title, probabilities.set_rows(quick))
        elif name == "cluster":
            import cluster

            show("cluster_workers", "Sums over rows by number of workers", cluster.by_workers(quick))
            sizes = cluster.by_size(quick)
            show("cluster_size", "Up to ten million rows, two workers", sizes)
            show("cluster_plan", "Planned from the rate of one worker", cluster.plan(quick, sizes))
        else:
            parser.error(f"no benchmark {name!r}: {', '.join(NAMES)}")


if __name__ == "__main__":
    main()
