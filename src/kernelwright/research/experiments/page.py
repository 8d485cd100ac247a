"""The page of reproduced results, made only from the CSV files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from kernelwright.research.experiments.claims import Claim, Verdict, claims_sentence
from kernelwright.research.experiments.runner import (
    Cell,
    Experiment,
    Published,
    Result,
    cells_of,
    read_published,
    read_results,
)
from kernelwright.research.experiments.verdicts import CLAIM, Tally, claim_verdicts, expected_misses, left_out, tally

__all__ = ["MISPRINTS", "cell_rows", "reproduction_page"]

MISPRINTS = (
    (
        "Hsu and others (2018), Eq. (12): the loss is printed as a mean; the table was made with the sum",
        "with tau = 4e/n on the mean wine and ecoli come out as published to the digit (97.2 ± 3.7, 87.5 ± 4.4), with "
        "tau = 4e as printed both collapse (39.9, 44.9); the authors' public code sums the losses",
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
        "Liu and others (2021), section 2.4: the Gaussian hyper-kernel has sigma^2 in its first two factors",
        "the integral of its definition has 2 sigma^2 (checked by quadrature); the product is a hyper-kernel all the "
        'same, `Gaussian(form="printed")`',
    ),
    (
        "Liu and others (2021), section 2.4: the Wishart hyper-kernel is that of Gauss with sigma_h to infinity",
        "its limit for large b is the Gaussian at sigma_h = 0",
    ),
    (
        "Liu and others (2021), Eq. (1): the largest value is bounded by G times the squared norm",
        "the reproducing property gives |k|_inf <= G |k|; with the square it fails for kernels of small norm",
    ),
    (
        "Liu and others (2021), section 5: the two slack variables are set to 0.1 and 0.01",
        "slack variables are found by the solver; epsilon must be meant",
    ),
    (
        "Liu and others (2021), theorem 8: the exponent min(alpha r, ...) is printed for the norm in L2",
        "for alpha = 1/2 and 3/4 the error falls about half as fast (see theorems 7 and 8 above); assumption (15) "
        "bounds the squared bias by lambda^r",
    ),
    (
        "Liu and others (2021), table 3: accuracies near 90.5 % on ijcnn1",
        "90.3 to 90.5 % of the rows are in one class: this is the accuracy of naming it",
    ),
)


HEAD = """# The papers' numbers, and ours

Each table and figure is made by one command, `kernelwright reproduce NAME` (`all` for all of them). It ends with status
1 if a number is worse than published or a claim does not hold. `--quick` runs a small version, which ends with status
0 if it misses no more than is said below. Raw results, one row a trial, lie beside this page as CSV; the page is made
from them.

Each of the {total} published numbers is *reproduced*, *better*, *worse* or left out ({left_out}). It is reproduced if
ours differs by at most one published standard deviation, either way (accuracies without one: by the tolerance in
`experiments/published`; errors: by 0.02). One that is better is not reproduced either.

{counts}
Rivals and references are the methods that a paper compares its own with (ERM, CV and MED; training without the bound;
softmax; the known kernel, nonnegative weights, KTA, BMKL, RF, MIKL, SVM-CV). What differs is explained below each
table. {times} published times are shown where we have them, but not judged: they are of other machines.

## Claims in words

Each sentence of the papers that a number could refute, with the numbers and the command that gave them: {claimed}.
Sentences about methods are judged on our results with these methods, in all cells that the sentence is about. Goals of
this library, of which the papers say nothing, are marked as such and not counted.

{claims}"""
KINDS = {"papers' own methods": False, "rivals and references": True}
SHOWN = 40  # largest number of cells without a published number that are shown


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
                "method": "" if theirs is None else ("rival" if theirs.rival else "own"),
                "published": "" if theirs is None else _shown(theirs.mean, theirs.deviation),
                "ours": _shown(cell.mean, cell.deviation if cell.trials > 1 else math.nan),
                "trials": str(cell.trials),
                "difference, s.e.": "" if math.isnan(cell.standard_errors) else f"{cell.standard_errors:+.1f}",
                "verdict": cell.verdict or "",
            }
        )
    return rows


def _shown(mean: float, deviation: float) -> str:
    digits = 1 if abs(mean) >= 10 else 3
    return f"{mean:.{digits}f}" + ("" if math.isnan(deviation) else f" ± {deviation:.{digits}f}")


def reproduction_page(experiments: Sequence[Experiment], folder: Path, pictures: str) -> str:
    """Return the page as Markdown; ``pictures`` is the folder of pictures, relative to the page."""
    sections, counts, times = [], dict.fromkeys(KINDS, Tally()), 0
    judged: list[tuple[str, Claim, Verdict]] = []
    for experiment in experiments:
        results = read_results(folder / f"{experiment.name}.csv")
        published = read_published(experiment.published)
        cells = cells_of(results, published)
        own = _counts(cells, published)
        counts = {kind: counts[kind] + own[kind] for kind in KINDS}
        times += sum(p.is_time for p in published)
        named = enumerate(claim_verdicts(experiment, results), start=1)
        judged += [(f"{experiment.name} {number}", *each) for number, each in named]
        if not results:
            sections.append(f"## {experiment.title}\n\nNot run yet: `kernelwright reproduce {experiment.name}`.\n")
            continue
        planned = {(task.row, task.column, task.trial) for task in experiment.tasks(False)}
        done = planned & {(r.row, r.column, r.trial) for r in results}
        share = f"{len(done)} of the {len(planned)} trials that the command runs are in these results.\n"
        share += _trials(cells)
        share += _fewer_trials(cells, experiment.published_trials)
        if published:
            share += f"\n{_table(_count_rows(own))}"
            share += _left_out_list(experiment, left_out(cells, published))
        share += _quick(experiment, results)
        sections.append(_section(experiment, results, cells, folder, pictures, share))
    total = sum(counts.values(), Tally())
    table = _table(_count_rows({**counts, "all": total}))
    claimed = claims_sentence([verdict for _, claim, verdict in judged if claim.of_paper])
    claims = _table([_claim_row(*each) for each in judged]) if judged else ""
    shares = {"total": total.published, "left_out": total.left_out, "counts": table, "times": times}
    head = HEAD.format(**shares, claimed=claimed, claims=claims)
    misprints = "## Misprints and slips\n\n" + "".join(f"- **{what}.** Evidence: {why}.\n" for what, why in MISPRINTS)
    return "\n".join([head, *sections, misprints])


def _counts(cells: Sequence[Cell], published: Sequence[Published]) -> dict[str, Tally]:
    return {kind: tally(cells, published, rival=rival) for kind, rival in KINDS.items()}


def _count_rows(counts: dict[str, Tally]) -> list[dict[str, str]]:
    return [
        {
            "numbers of": kind,
            "published": str(each.published),
            "reproduced": str(each.reproduced),
            "better": str(each.better),
            "worse": str(each.worse),
            "left out": str(each.left_out),
        }
        for kind, each in counts.items()
    ]


def _trials(cells: Sequence[Cell]) -> str:
    """Say how many trials the numbers have, fewest first."""
    places: dict[int, set[tuple[str, str]]] = {}
    for cell in cells:
        places.setdefault(cell.trials, set()).add((cell.row, cell.column))
    said = ", ".join(f"{trials} ({len(found)})" for trials, found in sorted(places.items()))
    return f"Trials, with the number of cells that have so many: {said}.\n"


def _fewer_trials(cells: Sequence[Cell], published: int) -> str:
    """Say which cells with published numbers have fewer trials than these."""
    columns: dict[tuple[str, int], list[str]] = {}
    for cell in cells:
        if cell.published is not None and cell.trials < published:
            columns.setdefault((cell.row, cell.trials), []).append(cell.column)
    said = (f"{trials} of {', '.join(dict.fromkeys(names))} on {row}" for (row, trials), names in columns.items())
    return f"Fewer than the {published} published trials: {'; '.join(said)}.\n" if columns else ""


def _quick(experiment: Experiment, results: Sequence[Result]) -> str:
    """Say what a quick run should miss."""
    found = sorted(expected_misses(experiment, results))
    said = (f"claim {column}" if row == CLAIM else f"{row}: {column} ({measure})" for row, column, measure in found)
    return f"\nA quick run (`--quick`) should miss: {'; '.join(said) or 'nothing'}.\n"


def _left_out_list(experiment: Experiment, missing: Sequence[Published]) -> str:
    """List the published numbers that have no result, and why."""
    if not missing:
        return ""
    lines = [
        f"- {p.row}, {p.column}, {p.measure} (published: {_shown(p.mean, p.deviation)}): "
        f"{experiment.left_out.get(p.column, 'not run yet')}.\n"
        for p in missing
    ]
    return "\nLeft out:\n\n" + "".join(lines)


def _table(rows: Sequence[dict[str, str]]) -> str:
    header = list(rows[0])
    table = [header, ["---"] * len(header), *(list(row.values()) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in table)


def _claim_row(number: str, claim: Claim, verdict: Verdict) -> dict[str, str]:
    word = f"**{verdict.word}**" if verdict.holds is False else verdict.word
    command = claim.command or f"kernelwright reproduce {number.split()[0]}"
    return {
        "claim": number,
        "where": claim.where,
        "sentence": claim.sentence,
        "verdict": word,
        "found": verdict.found,
        "command": "" if verdict.holds is None else f"`{command}`",
    }


def _section(
    experiment: Experiment, results: Sequence[Result], cells: Sequence[Cell], folder: Path, pictures: str, share: str
) -> str:
    lines = [f"## {experiment.title}\n", f"`kernelwright reproduce {experiment.name}`. {experiment.protocol}\n"]
    if experiment.deviations:
        lines.append("Deviations from the published protocol:\n")
        lines.append("".join(f"- {sentence}\n" for sentence in experiment.deviations))
    lines.append(share)
    rows = cell_rows(cells, everything=sum(cell.published is None for cell in cells) <= SHOWN)
    if rows:
        lines.append(_table(rows))
    lines += [f"![{path.stem}]({pictures}/{path.name})\n" for path in sorted(folder.glob(f"{experiment.name}*.png"))]
    if found := experiment.findings(results):
        lines.append("What these results say:\n")
        lines.append("".join(f"- {sentence}.\n" for sentence in found))
    if experiment.explanations:
        lines.append("Why they differ:\n")
        lines.append("".join(f"- {sentence}\n" for sentence in experiment.explanations))
    return "\n".join(lines)
