"""Tables of the documentation, made from the CSV files of benchmarks and reproductions: ``python docs/tables.py``.

What stands between ``<!-- table: NAME -->`` and ``<!-- end of table -->`` in a page is replaced.
"""

import csv
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

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
    return f"{float(cell):,.3g}" if re.fullmatch(r"\d+\.\d+(e[+-]?\d+)?", cell) else cell


def campaign(name: str) -> str:
    """The figures of a part of the campaign, whatever columns it has; a column without any word is left out."""
    with (ROOT / "campaign" / "results" / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    used = [column for column in rows[0] if any(row[column] for row in rows)]
    return markdown([{column: row[column].replace("|", "\\|") for column in used} for row in rows])


TABLES: dict[str, Callable[[], str]] = {
    "probabilities": probabilities,
    "prediction_sets": prediction_sets,
    **{name: partial(plain, name) for name in ("cluster_workers", "cluster_size", "cluster_plan")},
    "campaign_numerical": lambda: campaign("numerical"),
    "bad_input": lambda: campaign("bad_input"),
    "interruptions": lambda: campaign("interruptions"),
    "resources": lambda: campaign("resources"),
    "concurrency": lambda: campaign("concurrency"),
    "load": lambda: campaign("load"),
    "security": lambda: campaign("security"),
    "supply": lambda: campaign("supply"),
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
