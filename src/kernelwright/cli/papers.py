"""Commands for the papers and their data: demo, datasets, reproduce, bench."""

from __future__ import annotations

import importlib.util
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import kernelwright
from kernelwright.cli.screen import print_table, progress, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelwright.research.experiments.runner import Cell, Experiment


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the page and the pictures.")] = Path(
        "kernelwright-demo"
    ),
) -> None:
    """Learn kernels for three small data sets, next to a grid-searched SVM and a random forest."""
    output.mkdir(parents=True, exist_ok=True)

    from kernelwright.reports import render_page, write_whole
    from kernelwright.research.experiments.demo import TASKS, pictures, rows_of

    started, results, rows = time.perf_counter(), {}, []
    with progress() as bars, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings from the comparison would only hide the table
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
    "accuracy: share of test rows whose class was predicted correctly. Higher is better.",
    "log loss: mean of -log(probability of the true class). Lower is better.",
    "calibr. error: mean gap between confidence and accuracy. Lower is better.",
    "complexity: the Rademacher complexity bound r of the learned embedding.",
    "risk bound: Theorem 4 of the paper at 95 %; the loss is never above 1, so a bound above 1 is vacuous.",
    "seconds: training, including all hyperparameters (the grid search of the SVM has 35 points and 5 folds).",
)


def datasets() -> None:
    """List the named data sets."""
    from kernelwright.datasets import SOURCES

    rows = [
        {"data": name, "rows": source.n_rows, "features": source.n_features, "classes": source.n_classes}
        for name, source in sorted(SOURCES.items())
    ]
    print_table("Data sets for kernelwright.datasets.load(name)", rows)


def reproduce(
    name: Annotated[
        str, typer.Argument(help="What to recompute: 'all', or one of the names that 'list' shows.")
    ] = "list",
    quick: Annotated[bool, typer.Option("--quick", help="A small version that takes minutes on two cores.")] = False,
    jobs: Annotated[int, typer.Option(help="Number of trials that run at the same time.")] = 2,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for results and pictures; finished results are reused.")
    ] = Path("kernelwright-reproduce"),
) -> None:
    """Recompute published tables and figures.

    Exit status 1 if a number is worse than published or a claim does not hold; with --quick, only if this is not among
    what a quick run should miss by docs/reproduction.md.
    """
    from kernelwright.research.experiments.registry import EXPERIMENTS, find

    if name == "list":
        print_table(
            "", [{"name": each.name, "what": each.title} for each in EXPERIMENTS.values()], words=("name", "what")
        )
        return
    missed = [each.name for each in find(name) if not _reproduce(each, quick, jobs, output)]
    if missed:
        what = "Quick runs are worse than on the page" if quick else "Not all published results were reproduced"
        say(f"{what}: {', '.join(missed)}; see docs/reproduction.md.")
        raise typer.Exit(1)


def _reproduce(experiment: Experiment, quick: bool, jobs: int, output: Path) -> bool:
    """Run an experiment, print and write its cells and pictures, and return whether it is as it should be."""
    from kernelwright.reports import write_whole
    from kernelwright.research.experiments.page import SHOWN, cell_rows
    from kernelwright.research.experiments.runner import cells_of, named, read_published, run, write_cells
    from kernelwright.research.experiments.verdicts import misses, read_expected_misses

    with progress() as bars:
        bar = bars.add_task(experiment.name, total=None)

        def tell(done: int, total: int, what: str) -> None:
            bars.update(bar, completed=done, total=total, description=f"{experiment.name} {what}")

        results = run(experiment, output, quick=quick, jobs=jobs, progress=tell)
    cells = cells_of(results, read_published(experiment.published))
    rows = cell_rows(cells, everything=sum(cell.published is None for cell in cells) <= SHOWN)
    say(f"{'Quick run' if quick else 'Full run'}: {experiment.title}")
    if rows:
        print_table("", rows, words=("row", "column", "measure"))
    for sentence in (*experiment.deviations, *((f"Quick: {experiment.quick}",) if quick and experiment.quick else ())):
        say(f"  {sentence}")
    write_cells(output / f"{named(experiment.name, quick)}-cells.csv", cells)
    for stem, picture in experiment.pictures(results).items():
        write_whole(output / f"{named(stem, quick)}.png", picture.png)
    for claim in experiment.claims:
        verdict = claim.judge(results)
        say(f"  {claim.sentence}: {verdict.word} ({verdict.found})")
    missed, known = misses(experiment, results), read_expected_misses(experiment.name) if quick else set()
    _tell_verdicts(cells, quick, len(missed & known))
    say(f"Results and pictures: {output}\n")
    return missed <= known


def _tell_verdicts(cells: Sequence[Cell], quick: bool, n_known: int) -> None:
    """Say how many published numbers have each verdict, of the papers' own methods and of rivals."""
    from kernelwright.research.experiments.verdicts import tally

    for rival, whose in ((False, "papers' own methods"), (True, "rivals and references")):
        counts = tally(cells, (), rival=rival)
        if counts.published:
            say(f"{'Quick' if quick else 'Full'} run, {counts.published} published numbers of {whose}: {counts}.")
    if n_known:
        say(f"Known from docs/reproduction.md: {n_known} that a quick run misses.")


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions.")] = False,
) -> None:
    """Time one objective value and gradient on this machine, against the minimum that any method needs."""
    path = Path(kernelwright.__file__).parents[2] / "benchmarks" / "floor.py"
    if not path.is_file():
        raise ValueError(
            "The benchmarks are not part of the installed package. Get the source code and run make bench there."
        )
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
    say("For other benchmarks, run make bench in the source code.")
