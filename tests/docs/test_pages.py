"""Run every Python block of the README and the documentation, top to bottom, page by page.

A comment ``<!-- python ... -->`` is run, too, but not shown: it loads what a reader already has.
"""

import os
import re
from pathlib import Path

import pytest

from docs import tables
from kernelwright.research.experiments.page import reproduction_page
from kernelwright.research.experiments.registry import EXPERIMENTS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```|^<!-- python\n(.*?)^-->", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """Find the Python blocks, with their line numbers."""
    text = page.read_text()
    return [(text[: m.start()].count("\n") + 2, m.group(1) or m.group(2)) for m in BLOCK.finditer(text)]


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    for line, code in blocks(page):
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    missing = [link for link in LINK.findall(page.read_text()) if not os.path.exists(page.parent / link)]
    assert not missing


def test_citations_are_in_the_bibliography():
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text(), re.MULTILINE))
    sources = [*PAGES, *(ROOT / "src").rglob("*.py")]
    cited = {key for page in sources for key in re.findall(r"\[([A-Z][A-Za-z]+(?:19|20)\d\d)\]", page.read_text())}
    assert cited <= known


def test_tables_are_those_of_the_benchmarks():
    """Run ``python -m docs.tables`` to bring them up to date."""
    stale = [page.name for page in PAGES if tables.filled(page.read_text()) != page.read_text()]
    assert not stale


def test_the_page_of_reproduced_results_is_that_of_their_files():
    """Run ``python -m docs.tables`` to bring it up to date."""
    folder = ROOT / "docs" / "reproduction"
    page = reproduction_page(list(EXPERIMENTS.values()), folder, folder.name)
    assert (ROOT / "docs" / "reproduction.md").read_text() == page
