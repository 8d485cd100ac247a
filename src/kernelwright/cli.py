"""The command line: the only file that prints."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import kernelwright

app = typer.Typer(no_args_is_help=True, add_completion=True, help="Kernels made from data.")
console = Console()


def main() -> None:
    """Entry point: a fault of the input is one sentence on standard error and exit status 2, never a traceback."""
    try:
        app()
    except (ValueError, OSError, MemoryError) as error:
        Console(stderr=True).print(f"kernelwright: {error}", markup=False, highlight=False)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        console.print(kernelwright.__version__)
        raise typer.Exit


def _progress() -> Progress:
    """A bar on standard error where that is a terminal, nothing elsewhere."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    shown = Console(stderr=True)
    return Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal)


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", box=None, header_style="underline", padding=(0, 1, 0, 0))
    for name in rows[0]:
        words = name in ("data", "method")
        table.add_column(name, justify="left" if words else "right", no_wrap=words)
    for row in rows:
        table.add_row(
            *(str(value) for value in row.values()), style="bold" if row.get("method") == "kernelwright" else ""
        )
    return table


@app.command()
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
    with _progress() as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the comparison's own warnings would only hide the table
        bar = progress.add_task("fitting", total=len(TASKS))
        for task in TASKS:
            progress.update(bar, description=f"fitting {task.name}")
            results[task.name] = task.run()
            rows += rows_of(results[task.name])
            progress.advance(bar)
    console.print(_table("Three data sets, one split each: train on 70 %, test on 30 %", rows))
    for line in NOTES:
        console.print(f"  {line}", highlight=False)
    drawn = pictures(results)
    for name, picture in drawn.items():
        write_whole(output / f"{name}.png", picture.png)
    page = render_page("kernelwright: a demonstration", NOTES, rows, list(drawn.values()))
    write_whole(output / "report.html", page.encode())
    console.print(
        f"\nDone in {time.perf_counter() - started:.0f} s. Page and pictures: {output / 'report.html'}", soft_wrap=True
    )


NOTES = (
    "accuracy: share of test rows whose class was named right. Higher is better.",
    "log loss: mean of -log(probability given to the true class). Lower is better.",
    "calibr. error: how far the stated confidence is from the accuracy it comes with. Lower is better.",
    "complexity: the Rademacher complexity bound r of the learned embedding.",
    "risk bound: Theorem 4 of the paper at 95 %; it bounds a loss that is never above 1, so above 1 it says nothing.",
    "seconds: learning, all hyperparameters included (the SVM's grid has 35 points and 5 folds).",
)


@app.command()
def datasets() -> None:
    """List the data sets that have names."""
    from kernelwright.datasets import SOURCES

    rows = [
        {"data": name, "rows": source.n_rows, "features": source.n_features, "classes": source.n_classes}
        for name, source in sorted(SOURCES.items())
    ]
    console.print(_table("Data sets for kernelwright.datasets.load(name)", rows))


@app.command()
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
    with _progress() as progress:
        bar = progress.add_task("ten folds of 1000 steps each", total=len(wanted))
        cells = table1.run(wanted, n_jobs=jobs, progress=lambda _: progress.advance(bar))
    rows = [
        {
            "data": cell.data_set,
            "published": f"{cell.published_mean:.1f} ± {cell.published_deviation:.1f}",
            "ours": f"{cell.mean:.1f} ± {cell.deviation:.1f}",
            "reached": "yes" if cell.reached else "no",
        }
        for cell in cells
    ]
    console.print(_table("Table 1 of Hsu, Nock and Ramos (2018), GMCE: test accuracy in %", rows))
    return all(cell.reached for cell in cells)


def _networks(wanted: list[str] | None, jobs: int) -> bool:
    from kernelwright.experiments import networks

    wanted = list(networks.SETS) if wanted is None else wanted
    with _progress() as progress:
        bar = progress.add_task("ten folds of three networks each", total=len(wanted))
        results = networks.run(wanted, n_jobs=jobs, progress=lambda _: progress.advance(bar))
    console.print(_table("Embedding networks, ten folds: test accuracy in %", networks.rows_of(results)))
    means = networks.means(results)
    console.print(", ".join(f"{method} {mean:.2f}" for method, mean in means.items()), highlight=False)
    missed = [cell for cell in networks.cells(results) if not cell.reached]
    return not missed and means["default"] > max(mean for method, mean in means.items() if method != "default")


def _mnist_network(quick: bool, output: Path) -> bool:
    from kernelwright.experiments import mnist_network
    from kernelwright.reports import write_whole

    output.mkdir(parents=True, exist_ok=True)
    protocol = mnist_network.QUICK if quick else mnist_network.FULL
    with _progress() as progress:
        bar = progress.add_task("training", total=2 * protocol.epochs)

        def tell(name: str, accuracy: float) -> None:
            progress.update(bar, advance=1, description=f"{name}: {accuracy:.2f} %")

        curves = mnist_network.run(protocol, progress=tell)
    console.print(_table("MNIST, test accuracy, %", mnist_network.rows_of(curves)))
    path = output / "mnist-network.png"
    write_whole(path, mnist_network.picture(curves).png)
    verdict = "ahead after every epoch" if curves.ahead else "not ahead after every epoch"
    console.print(f"The embedding is {verdict}. Picture: {path}", soft_wrap=True)
    return curves.ahead


def _mnist_pixels(output: Path) -> bool:
    from kernelwright.experiments import mnist_pixels
    from kernelwright.reports import write_whole

    output.mkdir(parents=True, exist_ok=True)
    with _progress() as progress:
        bar = progress.add_task("learning", total=len(mnist_pixels.GOALS))
        outcomes = mnist_pixels.run(progress=lambda _: progress.advance(bar))
    console.print(
        _table("MNIST from pixels: test accuracy of a learned Gaussian kernel", mnist_pixels.rows_of(outcomes))
    )
    path = output / "mnist-pixels.png"
    write_whole(path, mnist_pixels.picture(outcomes[-1]).png)
    console.print(f"Picture of the learned length scales: {path}", soft_wrap=True)
    return all(outcome.reached for outcome in outcomes)


def _learning_rate(output: Path) -> bool:
    from kernelwright.experiments import learning_rate
    from kernelwright.reports import write_whole

    output.mkdir(parents=True, exist_ok=True)
    with _progress() as progress:
        bar = progress.add_task("learning kernels", total=len(learning_rate.SIZES))
        rate = learning_rate.run(progress=lambda _: progress.advance(bar))
    console.print(_table("A kernel of the hyper-RKHS, learned: error on new points", learning_rate.rows_of(rate)))
    path = output / "learning-rate.png"
    write_whole(path, learning_rate.picture(rate).png)
    console.print(
        f"The error falls like m^{rate.exponent:.2f}; theorem 8 lets expect m^{learning_rate.EXPECTED} or faster. "
        f"Picture: {path}",
        soft_wrap=True,
    )
    return rate.reached
