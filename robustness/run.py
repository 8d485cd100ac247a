"""Run the robustness tests, or the named parts: ``python -m robustness.run [--quick] [--processes N] [PART ...]``.

Each part provokes faults and counts those that were not handled as docs/reliability.md promises. It prints a table and,
unless --quick is given, writes it as CSV into ``robustness/results``. The exit status is 1 if anything failed.
"""

import argparse
import importlib
import importlib.util
import os
import platform
import sys
import time
from pathlib import Path

from tools import tables
from tools.tables import console

RESULTS = Path(__file__).parent / "results"
PARTS = {
    "numerical": "Numbers at the edge of what can be computed",
    "bad_input": "Bad input, next to what other libraries say",
    "interruptions": "Processes stopped at random moments",
    "resources": "Too little memory, disk, permission or cores",
    "concurrency": "Threads, forked and spawned processes; global state",
    "load": "Many rows and many fits",
    "security": "Untrusted files",
    "supply": "Packages, dependencies and imports",
    "goals": "Quality of answers: statistical goals next to plain rivals",
    "quality": "Forty synthetic tasks next to plain rivals",
}
PARALLEL = ("goals", "quality")  # parts that can use several processes


def main() -> int:
    """Run the parts, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="a few trials of each kind, and no CSV files")
    parser.add_argument("--processes", type=int, default=1, help=f"used by {' and '.join(PARALLEL)}")
    arguments = parser.parse_args()
    if unknown := [part for part in arguments.parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}")
    failures, started = 0, time.perf_counter()
    for part in arguments.parts:
        if importlib.util.find_spec(f"robustness.{part}") is None:
            console.print(f"{part}: not in this copy, skipped")
            continue
        options = {"processes": arguments.processes} if part in PARALLEL else {}
        module = importlib.import_module(f"robustness.{part}")
        rows = module.figures(quick=arguments.quick, **options)
        if not arguments.quick:
            tables.write(RESULTS / f"{part}.csv", rows)
        tables.show(PARTS[part], module.shown(rows) if hasattr(module, "shown") else rows)
        failures += sum(int(str(row["failures"])) for row in rows)
    console.print(f"{failures} failures in {(time.perf_counter() - started) / 60:.1f} minutes")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
