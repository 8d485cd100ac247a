"""Ratios of the micro-benchmarks over time, to notice a slowdown: ``python -m benchmarks.history`` compares.

Only ratios are kept. Seconds of different machines and days cannot be compared; ratios to a floor measured in the same
run can, within the machine's noise.
"""

import datetime
import statistics
import subprocess
from pathlib import Path

from tools import tables
from tools.tables import Cells

HISTORY = Path(__file__).parent / "history.csv"
COLUMNS = ("date", "commit", "name", "ratio")
WORTH_SAYING = 1.2  # times the median of all earlier runs


def commit() -> str:
    """Return the short hash of the measured commit, with a plus sign if the package has changed since."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=HISTORY.parent, capture_output=True, text=True).stdout.strip()

    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if git("status", "--porcelain", "../src") else "")


def record(ratios: dict[str, float], path: Path = HISTORY, *, date: str = "", version: str = "") -> None:
    """Append a line for each name."""
    date = date or datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    version = version or commit()
    lines = [(date, version, name, f"{ratio:.4g}") for name, ratio in ratios.items()]
    tables.append(path, [dict(zip(COLUMNS, line, strict=True)) for line in lines], COLUMNS)


def slower(rows: list[Cells]) -> dict[str, tuple[float, float]]:
    """Find names whose newest ratio is a fifth above the median of the earlier ones; return both numbers."""
    found = {}
    for name in dict.fromkeys(row["name"] for row in rows):
        *earlier, newest = (float(row["ratio"]) for row in rows if row["name"] == name)
        if earlier and newest > WORTH_SAYING * statistics.median(earlier):
            found[name] = (newest, statistics.median(earlier))
    return found


def verdict(rows: list[Cells]) -> str:
    """Say what became slower."""
    runs = len({(row["date"], row["commit"]) for row in rows})
    if runs < 2:
        return f"{runs} run in {HISTORY.name}: nothing to compare with yet."
    lines = [f"  {name}: {new:.3g}, was {old:.3g} ({new / old:.2f} times)" for name, (new, old) in slower(rows).items()]
    if not lines:
        return f"Nothing is more than 20 % slower than the median of {runs - 1} earlier runs."
    return "\n".join(["More than 20 % slower than the median of earlier runs:", *lines])


if __name__ == "__main__":
    print(verdict(tables.read(HISTORY, missing_ok=True)))
