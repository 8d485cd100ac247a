"""Fill the tables of the documentation from the CSV files of results: ``python -m docs.tables``.

Text between ``<!-- table: NAME -->`` and ``<!-- end of table -->`` is replaced. The page of reproduced results is
written anew, with its pictures.
"""

import re
from pathlib import Path

import benchmarks.number_pages
import benchmarks.pages
import benchmarks.table_pages
import robustness.pages

ROOT = Path(__file__).parents[1]
SLOT = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def papers_item() -> str:
    """Return the README's item about the papers."""
    from kernelwright.research.experiments.registry import EXPERIMENTS
    from kernelwright.research.experiments.verdicts import papers_sentence

    return f"- **The papers**: {papers_sentence(EXPERIMENTS.values(), ROOT / 'docs' / 'reproduction')}."


TABLES = (
    benchmarks.pages.TABLES
    | benchmarks.number_pages.PAGE
    | benchmarks.table_pages.PAGE
    | robustness.pages.TABLES
    | {"papers": papers_item}
)


def filled(text: str) -> str:
    """Return the text of a page with its tables filled."""
    return SLOT.sub(lambda slot: f"{slot[1]}\n{TABLES[slot[2]]()}\n{slot[3]}", text)


def write_reproduction() -> None:
    """Write the page of reproduced results, its pictures, and what a quick run is known to miss."""
    from kernelwright.reports import write_whole
    from kernelwright.research.experiments.page import reproduction_page
    from kernelwright.research.experiments.registry import EXPERIMENTS
    from kernelwright.research.experiments.runner import read_results
    from kernelwright.research.experiments.verdicts import EXPECTED, expected_misses_file

    folder = ROOT / "docs" / "reproduction"
    known = expected_misses_file(EXPERIMENTS.values(), folder)
    write_whole(ROOT / "src" / "kernelwright" / "research" / "experiments" / EXPECTED, known.encode())
    for experiment in EXPERIMENTS.values():
        results = read_results(folder / f"{experiment.name}.csv")
        for stem, picture in experiment.pictures(results).items() if results else ():
            write_whole(folder / f"{stem}.png", picture.png)
    page = reproduction_page(list(EXPERIMENTS.values()), folder, folder.name)
    write_whole(ROOT / "docs" / "reproduction.md", page.encode())


def main() -> None:
    """Bring all pages up to date."""
    write_reproduction()
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        before = page.read_text()
        if filled(before) != before:
            page.write_text(filled(before))


if __name__ == "__main__":
    main()
