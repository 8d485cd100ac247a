"""Commands for the papers and their data: demo, datasets, reproduce, bench."""

from __future__ import annotations

import importlib.util
import time
import warnings
from pathlib import Path
from typing import Annotated

import typer

import kernelwright
from kernelwright.cli.screen import print_table, progress, say


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the page and the pictures.")] = Path(
        "kernelwright-demo"
    ),
) -> None:
    """Learn kernels for three small data sets, next to a grid-searched SVM and a random forest."""
    from kernelwright.experiments.demo import TASKS, pictures, rows_of
    from kernelwright.reports import render_page, write_whole

    output.mkdir(parents=True, exist_ok=True)
    started, results, rows = time.perf_counter(), {}, []
    with progress() as bars, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the comparison's own warnings would only hide the table
        bar = bars.add_task("fitting", total=len(TASKS))
        for task in TASKS:
            bars.update(bar, description=f"fitting {task.name}")
            results[task.name] = task.run()
            rows += rows_of(results[task.name])
            bars.advance(bar)
    print_table("Three data sets, one split each: train on 70 %, test on 30 %", rows, bold="kernelwright")
    for line in NOTES:
        say(f"  {line}")
    drawn = pictures(results)
    for name, picture in drawn.items():
        write_whole(output / f"{name}.png", picture.png)
    page = render_page("kernelwright: a demonstration", NOTES, rows, list(drawn.values()))
    write_whole(output / "report.html", page.encode())
    say(f"\nDone in {time.perf_counter() - started:.0f} s. Page and pictures: {output / 'report.html'}")


NOTES = (
    "accuracy: share of test rows whose class was named right. Higher is better.",
    "log loss: mean of -log(probability given to the true class). Lower is better.",
    "calibr. error: how far the stated confidence is from the accuracy it comes with. Lower is better.",
    "complexity: the Rademacher complexity bound r of the learned embedding.",
    "risk bound: Theorem 4 of the paper at 95 %; it bounds a loss that is never above 1, so above 1 it says nothing.",
    "seconds: learning, all hyperparameters included (the SVM's grid has 35 points and 5 folds).",
)


def datasets() -> None:
    """List the data sets that have names."""
    from kernelwright.datasets import SOURCES

    rows = [
        {"data": name, "rows": source.n_rows, "features": source.n_features, "classes": source.n_classes}
        for name, source in sorted(SOURCES.items())
    ]
    print_table("Data sets for kernelwright.datasets.load(name)", rows)


def reproduce(
    name: Annotated[
        str, typer.Argument(help="What to recompute: table1, networks, mnist-network, mnist-pixels or learning-rate.")
    ] = "table1",
    sets: Annotated[str | None, typer.Option(help="Data sets, separated by commas (not for the two of MNIST).")] = None,
    jobs: Annotated[int, typer.Option(help="Folds computed at the same time.")] = 2,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="mnist-network: minutes on two cores, or the published sizes.")
    ] = True,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for pictures.")] = Path(
        "kernelwright-reproduce"
    ),
) -> None:
    """Recompute published results and compare; exit status 1 if one is missed by more than its tolerance."""
    if name == "table1":
        reached = _table1((sets or "wine,ecoli").split(","), jobs)
    elif name == "networks":
        reached = _networks(None if sets is None else sets.split(","), jobs)
    elif name == "mnist-network":
        reached = _mnist_network(quick, output)
    elif name == "mnist-pixels":
        reached = _mnist_pixels(output)
    elif name == "learning-rate":
        reached = _learning_rate(output)
    else:
        known = "table1, networks, mnist-network, mnist-pixels, learning-rate"
        raise ValueError(f"There is no experiment {name!r}. Known: {known}.")
    if not reached:
        raise typer.Exit(1)


def _table1(wanted: list[str], jobs: int) -> bool:
    from kernelwright.experiments import table1

    if unknown := [each for each in wanted if each not in table1.published()]:
        raise ValueError(f"Table 1 has no data set {unknown[0]!r}. It has: {', '.join(table1.published())}.")
    with progress() as bars:
        bar = bars.add_task("ten folds of 1000 steps each", total=len(wanted))
        cells = table1.run(wanted, n_jobs=jobs, progress=lambda _: bars.advance(bar))
    rows = [
        {
            "data": cell.data_set,
            "published": f"{cell.published_mean:.1f} ± {cell.published_deviation:.1f}",
            "ours": f"{cell.mean:.1f} ± {cell.deviation:.1f}",
            "reached": "yes" if cell.reached else "no",
        }
        for cell in cells
    ]
    print_table("Table 1 of Hsu, Nock and Ramos (2018), GMCE: test accuracy in %", rows)
    return all(cell.reached for cell in cells)


def _networks(wanted: list[str] | None, jobs: int) -> bool:
    from kernelwright.experiments import networks

    wanted = list(networks.SETS) if wanted is None else wanted
    with progress() as bars:
        bar = bars.add_task("ten folds of three networks each", total=len(wanted))
        results = networks.run(wanted, n_jobs=jobs, progress=lambda _: bars.advance(bar))
    print_table("Embedding networks, ten folds: test accuracy in %", networks.rows_of(results))
    means = networks.means(results)
    say(", ".join(f"{method} {mean:.2f}" for method, mean in means.items()))
    missed = [cell for cell in networks.cells(results) if not cell.reached]
    return not missed and means["default"] > max(mean for method, mean in means.items() if method != "default")


def _mnist_network(quick: bool, output: Path) -> bool:
    from kernelwright.experiments import mnist_network
    from kernelwright.reports import write_whole

    output.mkdir(parents=True, exist_ok=True)
    protocol = mnist_network.QUICK if quick else mnist_network.FULL
    with progress() as bars:
        bar = bars.add_task("training", total=2 * protocol.epochs)

        def tell(name: str, accuracy: float) -> None:
            bars.update(bar, advance=1, description=f"{name}: {accuracy:.2f} %")

        curves = mnist_network.run(protocol, progress=tell)
    print_table("MNIST, test accuracy, %", mnist_network.rows_of(curves))
    path = output / "mnist-network.png"
    write_whole(path, mnist_network.picture(curves).png)
    verdict = "ahead after every epoch" if curves.ahead else "not ahead after every epoch"
    say(f"The embedding is {verdict}. Picture: {path}")
    return curves.ahead


def _mnist_pixels(output: Path) -> bool:
    from kernelwright.experiments import mnist_pixels
    from kernelwright.reports import write_whole

    output.mkdir(parents=True, exist_ok=True)
    with progress() as bars:
        bar = bars.add_task("learning", total=len(mnist_pixels.GOALS))
        outcomes = mnist_pixels.run(progress=lambda _: bars.advance(bar))
    print_table("MNIST from pixels: test accuracy of a learned Gaussian kernel", mnist_pixels.rows_of(outcomes))
    path = output / "mnist-pixels.png"
    write_whole(path, mnist_pixels.picture(outcomes[-1]).png)
    say(f"Picture of the learned length scales: {path}")
    return all(outcome.reached for outcome in outcomes)


def _learning_rate(output: Path) -> bool:
    from kernelwright.experiments import learning_rate
    from kernelwright.reports import write_whole

    output.mkdir(parents=True, exist_ok=True)
    with progress() as bars:
        bar = bars.add_task("learning kernels", total=len(learning_rate.SIZES))
        rate = learning_rate.run(progress=lambda _: bars.advance(bar))
    print_table("A kernel of the hyper-RKHS, learned: error on new points", learning_rate.rows_of(rate))
    path = output / "learning-rate.png"
    write_whole(path, learning_rate.picture(rate).png)
    say(
        f"The error falls like m^{rate.exponent:.2f}; theorem 8 lets expect m^{learning_rate.EXPECTED} or faster. "
        f"Picture: {path}"
    )
    return rate.reached


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions.")] = False,
) -> None:
    """Time one objective value and gradient against the least that any method needs, on this machine."""
    path = Path(kernelwright.__file__).parents[2] / "benchmarks" / "floor.py"
    if not path.is_file():
        raise ValueError("The benchmarks are not installed with the package: get the source and run make bench there.")
    spec = importlib.util.spec_from_file_location("floor", path)
    assert spec is not None
    assert spec.loader is not None
    floor = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(floor)
    with progress() as bars:
        bars.add_task("measuring (about half a minute)", total=None)
        rows = floor.rows(quick)
    shown = [{k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    words = [name for name, value in shown[0].items() if not str(value).replace(".", "").isdigit()]
    print_table(
        "One value and gradient (n = 2000, d = 16, 5 classes, one thread) against Gram matrix + Cholesky",
        shown,
        words=words[:1],
    )
    say("Other benchmarks: make bench, in the source.")
