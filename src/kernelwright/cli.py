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
    name: Annotated[str, typer.Argument(help="What to recompute: table1.")] = "table1",
    sets: Annotated[str, typer.Option(help="Data sets, separated by commas.")] = "wine,ecoli",
    jobs: Annotated[int, typer.Option(help="Folds computed at the same time.")] = 2,
) -> None:
    """Recompute a published table and compare; exit status 1 if a value is missed by more than its tolerance."""
    from kernelwright.experiments import table1

    if name != "table1":
        raise ValueError(f"There is no experiment {name!r}. Known: table1.")
    wanted = sets.split(",")
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
    if not all(cell.reached for cell in cells):
        raise typer.Exit(1)
