"""How many published numbers are reproduced, better, worse or left out, and what a quick run should give."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from kernelwright.research.experiments.claims import NOT_RUN, Claim, Verdict, claims_sentence
from kernelwright.research.experiments.runner import (
    BETTER,
    REPRODUCED,
    WORSE,
    Cell,
    Experiment,
    Published,
    Result,
    cells_of,
    read_published,
    read_results,
)

__all__ = [
    "CLAIM",
    "EXPECTED",
    "Tally",
    "claim_verdicts",
    "expected_misses",
    "expected_misses_file",
    "left_out",
    "misses",
    "papers_sentence",
    "published_cells",
    "read_expected_misses",
    "tally",
]

EXPECTED = "quick.csv"  # what a quick run misses, by the results on the page
COLUMNS = ("experiment", "row", "column", "measure")
CLAIM = "claim"  # the row of a claim; its column is the claim's number

Miss = tuple[str, str, str]


@dataclass(frozen=True)
class Tally:
    """Counts of published numbers by verdict."""

    reproduced: int = 0
    better: int = 0
    worse: int = 0
    left_out: int = 0

    @property
    def published(self) -> int:
        """All numbers, with those left out."""
        return self.reproduced + self.better + self.worse + self.left_out

    def __add__(self, other: Tally) -> Tally:
        """Add two counts."""
        return Tally(
            self.reproduced + other.reproduced,
            self.better + other.better,
            self.worse + other.worse,
            self.left_out + other.left_out,
        )

    def __str__(self) -> str:
        said = f"{self.reproduced} reproduced, {self.better} better, {self.worse} worse"
        return f"{said}, {self.left_out} left out" if self.left_out else said


def left_out(cells: Iterable[Cell], published: Iterable[Published]) -> list[Published]:
    """Return the published numbers, other than times, without a result."""
    found = {(cell.row, cell.column, cell.measure) for cell in cells}
    return [p for p in published if not p.is_time and (p.row, p.column, p.measure) not in found]


def tally(cells: Sequence[Cell], published: Sequence[Published], *, rival: bool) -> Tally:
    """Count the verdicts of the papers' own methods, or those of their rivals."""
    verdicts = Counter(cell.verdict for cell in cells if cell.published is not None and cell.published.rival == rival)
    missing = sum(p.rival == rival for p in left_out(cells, published))
    return Tally(verdicts[REPRODUCED], verdicts[BETTER], verdicts[WORSE], missing)


def published_cells(experiment: Experiment, folder: Path) -> tuple[list[Cell], list[Published]]:
    """Return the cells of the results in a folder, and the published numbers."""
    published = read_published(experiment.published)
    return cells_of(read_results(folder / f"{experiment.name}.csv"), published), published


def papers_sentence(experiments: Iterable[Experiment], folder: Path) -> str:
    """Say in a sentence how many published numbers the results in a folder reproduce."""
    known = [published_cells(experiment, folder) for experiment in experiments]
    own, rivals = (sum((tally(*each, rival=rival) for each in known), Tally()) for rival in (False, True))
    claims = [
        verdict
        for experiment in experiments
        for claim, verdict in claim_verdicts(experiment, read_results(folder / f"{experiment.name}.csv"))
        if claim.of_paper
    ]
    return (
        f"of {(own + rivals).published} published numbers, {own.published} are of the papers' own methods ({own}) and "
        f"{rivals.published} of rivals and references ({rivals}); {claims_sentence(claims)}"
    )


def claim_verdicts(experiment: Experiment, results: Sequence[Result]) -> list[tuple[Claim, Verdict]]:
    """Judge the claims of an experiment."""
    return [(claim, claim.judge(results) if results else NOT_RUN) for claim in experiment.claims]


def misses(experiment: Experiment, results: Sequence[Result]) -> set[Miss]:
    """Return the numbers that are worse than published, and the claims that do not hold."""
    cells = cells_of(results, read_published(experiment.published))
    worse = {(cell.row, cell.column, cell.measure) for cell in cells if cell.verdict == WORSE}
    judged = enumerate(claim_verdicts(experiment, results), start=1)
    return worse | {(CLAIM, str(number), "") for number, (_, verdict) in judged if verdict.holds is False}


def expected_misses(experiment: Experiment, results: Sequence[Result]) -> set[Miss]:
    """Return what a quick run misses, by those of a full run's results that are of the same trials."""
    quick = {(task.row, task.column, task.trial) for task in experiment.tasks(True)}
    return misses(experiment, [r for r in results if (r.row, r.column, r.trial) in quick])


def expected_misses_file(experiments: Iterable[Experiment], folder: Path) -> str:
    """Return the CSV file of expected misses, made from the results in a folder."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for experiment in experiments:
        found = expected_misses(experiment, read_results(folder / f"{experiment.name}.csv"))
        writer.writerows((experiment.name, *miss) for miss in sorted(found))
    return buffer.getvalue()


def read_expected_misses(name: str) -> set[Miss]:
    """Return what a quick run of an experiment is known to miss."""
    with (files("kernelwright.research.experiments") / EXPECTED).open() as file:
        return {(r["row"], r["column"], r["measure"]) for r in csv.DictReader(file) if r["experiment"] == name}
