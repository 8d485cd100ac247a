"""The page of reproduced results, made only from the CSV files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernelwright.research.experiments.runner import Cell, Experiment, cells_of, read_published, read_results

__all__ = ["MISPRINTS", "cell_rows", "reproduction_page", "verdicts"]

MISPRINTS = (
    (
        "Hsu and others (2018), Eq. (12): the loss is printed as a mean; the table was made with the sum",
        "with tau = 4e/n on the mean wine and ecoli come out as published to the digit (97.2 ± 3.7, 87.5 ± 4.4), with "
        "tau = 4e as printed both collapse (39.9, 42.5)",
    ),
    (
        "Hsu and others (2018), earlier supplement, Algorithm 2: the sum in the complexity runs to n_b",
        "W has a row for each of p features; the sum runs over these",
    ),
    (
        "Hsu and others (2018), networks: the complexity is printed with alpha, the published networks have none",
        "with alpha the published accuracies are not reached; with the Frobenius norm of W alone they are",
    ),
    (
        "Hsu and others (2018), Theorem 4: the norm of the fitted W is taken as if known in advance",
        "a bound uniform over norms needs a grid of radii (see the page on risk bounds)",
    ),
    (
        "Liu and others (2021), table 3: accuracies near 90.5 % on ijcnn1",
        "90.3 to 90.5 % of the rows are in one class: this is the accuracy of naming it",
    ),
)


HEAD = """# The papers' numbers, and ours

Each table and figure is made by one command, `kernelwright reproduce NAME` (`all` for all of them; `--quick` for a
small version). Raw results, one row a trial, lie beside this page as CSV; the page is made from them.

**{reached} of {total} published numbers are reached or exceeded**: accuracies within one published standard deviation
(where none is printed, within the tolerance in `experiments/published`), errors within 0.02. The others, and what
differs in general, are explained below each table. Times are shown, not counted: they are of other machines.
"""
SHOWN = 40  # largest number of cells without a published number that are shown


def verdicts(cells: Iterable[Cell]) -> tuple[int, int]:
    """Return how many published cells are reached or exceeded, and how many there are."""
    judged = [cell.reached for cell in cells if cell.reached is not None]
    return sum(map(bool, judged)), len(judged)


def cell_rows(cells: Sequence[Cell], *, everything: bool = False) -> list[dict[str, str]]:
    """Return a row for each published cell (or for every cell): published, ours, difference, verdict."""
    rows = []
    for cell in cells:
        theirs = cell.published
        if theirs is None and not everything:
            continue
        rows.append(
            {
                "row": cell.row,
                "column": cell.column,
                "measure": cell.measure,
                "published": "" if theirs is None else _shown(theirs.mean, theirs.deviation),
                "ours": _shown(cell.mean, cell.deviation if cell.trials > 1 else math.nan),
                "trials": str(cell.trials),
                "difference, s.e.": "" if math.isnan(cell.standard_errors) else f"{cell.standard_errors:+.1f}",
                "verdict": {None: "", True: "reached", False: "missed"}[cell.reached],
            }
        )
    return rows


def _shown(mean: float, deviation: float) -> str:
    digits = 1 if abs(mean) >= 10 else 3
    return f"{mean:.{digits}f}" + ("" if math.isnan(deviation) else f" ± {deviation:.{digits}f}")


def reproduction_page(experiments: Sequence[Experiment], folder: Path, pictures: str) -> str:
    """Return the page as Markdown; ``pictures`` is the folder of pictures, relative to the page."""
    sections, reached, total = [], 0, 0
    for experiment in experiments:
        path = folder / f"{experiment.name}.csv"
        results = read_results(path)
        if not results:
            sections.append(f"## {experiment.title}\n\nNot run yet: `kernelwright reproduce {experiment.name}`.\n")
            continue
        cells = cells_of(results, read_published(experiment.published))
        good, judged = verdicts(cells)
        reached, total = reached + good, total + judged
        planned = {(task.row, task.column, task.trial) for task in experiment.tasks(False)}
        done = planned & {(r.row, r.column, r.trial) for r in results}
        share = f"{len(done)} of the {len(planned)} trials that the command runs are in these results.\n"
        if judged:
            share += f"{good} of {judged} published numbers are reached.\n"
        sections.append(_section(experiment, cells, experiment.claims(results), folder, pictures, share))
    head = HEAD.format(reached=reached, total=total)
    misprints = "## Misprints and slips\n\n" + "".join(f"- **{what}.** Evidence: {why}.\n" for what, why in MISPRINTS)
    return "\n".join([head, *sections, misprints])


def _section(
    experiment: Experiment, cells: Sequence[Cell], claimed: dict[str, bool], folder: Path, pictures: str, share: str
) -> str:
    lines = [f"## {experiment.title}\n", f"`kernelwright reproduce {experiment.name}`. {experiment.protocol}\n"]
    if experiment.deviations:
        lines.append("Deviations from the published protocol:\n")
        lines.append("".join(f"- {sentence}\n" for sentence in experiment.deviations))
    lines.append(share)
    if claimed:
        lines.append("".join(f"- {sentence}: {'yes' if holds else '**no**'}.\n" for sentence, holds in claimed.items()))
    rows = cell_rows(cells, everything=sum(cell.published is None for cell in cells) <= SHOWN)
    if rows:
        header = list(rows[0])
        table = [header, ["---"] * len(header), *(list(row.values()) for row in rows)]
        lines.append("".join(f"| {' | '.join(line)} |\n" for line in table))
    lines += [f"![{path.stem}]({pictures}/{path.name})\n" for path in sorted(folder.glob(f"{experiment.name}*.png"))]
    if experiment.explanations:
        lines.append("Why they differ:\n")
        lines.append("".join(f"- {sentence}\n" for sentence in experiment.explanations))
    return "\n".join(lines)
