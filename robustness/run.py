"""Run the robustness tests, or the parts that are named: ``python robustness/run.py [--quick] [--processes N] [PART ...]``.

Each part makes faults on purpose and counts what was not borne as docs/reliability.md promises. It prints a table and
writes it as CSV into ``robustness/results`` (not with --quick). The exit status is 1 if anything failed.
"""

import argparse
import csv
import importlib
import importlib.util
import os
import platform
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PARTS = {
    "numerical": "Numbers at the edge of what can be computed",
    "bad_input": "Input that nobody should pass, next to what other libraries say",
    "interruptions": "Processes stopped at random moments",
    "resources": "Memory, disk, folders and cores that are short",
    "concurrency": "Threads, forked and spawned processes; what is global stays as it was",
    "load": "Many rows and many fits",
    "security": "Files from strangers",
    "supply": "Packages, dependencies and imports",
    "goals": "Answers that are good: statistical goals next to plain rivals",
    "quality": "Forty made-up tasks next to plain rivals",
}
SPREAD = ("goals", "quality")  # parts that can use several processes
console = Console(width=140)


def write(name: str, rows: list[dict[str, object]]) -> None:
    """Rows as CSV, whole or not at all."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    partial = RESULTS / f".{name}.csv"
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(partial, RESULTS / f"{name}.csv")


def show(title: str, rows: list[dict[str, object]]) -> None:
    """Rows as a table."""
    table = Table(title=title, title_justify="left")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    for column in columns:
        table.add_column(column, justify="left" if isinstance(rows[0].get(column), str) else "right")
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    console.print(table)


def main() -> int:
    """Run the parts; how many failures there were decides the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="few trials of each kind, and no CSV files")
    parser.add_argument("--processes", type=int, default=1, help=f"of {' and '.join(SPREAD)}")
    arguments = parser.parse_args()
    if unknown := [part for part in arguments.parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]!r}: {', '.join(PARTS)}")
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}")
    failures, started = 0, time.perf_counter()
    for part in arguments.parts:
        if importlib.util.find_spec(f"robustness.{part}") is None:
            console.print(f"{part}: there is no such part in this copy")
            continue
        options = {"processes": arguments.processes} if part in SPREAD else {}
        module = importlib.import_module(f"robustness.{part}")
        rows = module.figures(quick=arguments.quick, **options)
        if not arguments.quick:
            write(part, rows)
        show(PARTS[part], module.shown(rows) if hasattr(module, "shown") else rows)
        failures += sum(int(str(row["failures"])) for row in rows)
    console.print(f"{failures} failures in {(time.perf_counter() - started) / 60:.1f} minutes")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
