"""Ratios of the micro-benchmarks over time, so that a slowdown is seen: ``python benchmarks/history.py`` compares.

Only ratios are kept: seconds of different machines and days do not compare, shares of a floor measured in the same run
do, to within the machine's spread.
"""

import csv
import datetime
import statistics
import subprocess
from pathlib import Path

import ranks

HISTORY = Path(__file__).parent / "history.csv"
COLUMNS = ("date", "commit", "name", "ratio")
WORTH_SAYING = 1.2  # times the median of all earlier runs


def commit() -> str:
    """The short hash of what was measured, with a plus sign if files of the package have changed since."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=HISTORY.parent, capture_output=True, text=True).stdout.strip()

    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if git("status", "--porcelain", "../src") else "")


def record(ratios: dict[str, float], path: Path = HISTORY, *, date: str = "", version: str = "") -> None:
    """Append one line for each name."""
    date = date or datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    version = version or commit()
    lines = [] if path.exists() else [COLUMNS]
    lines += [(date, version, name, f"{ratio:.4g}") for name, ratio in ratios.items()]
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def slower(rows: list[ranks.Row]) -> dict[str, tuple[float, float]]:
    """Names whose newest ratio is a fifth above the median of the earlier ones: newest and median."""
    found = {}
    for name in dict.fromkeys(row["name"] for row in rows):
        *earlier, newest = (float(row["ratio"]) for row in rows if row["name"] == name)
        if earlier and newest > WORTH_SAYING * statistics.median(earlier):
            found[name] = (newest, statistics.median(earlier))
    return found


def verdict(rows: list[ranks.Row]) -> str:
    runs = len({(row["date"], row["commit"]) for row in rows})
    if runs < 2:
        return f"{runs} run in {HISTORY.name}: nothing to compare with yet."
    lines = [f"  {name}: {new:.3g}, was {old:.3g} ({new / old:.2f} times)" for name, (new, old) in slower(rows).items()]
    if not lines:
        return f"Nothing is slower than the median of {runs - 1} earlier runs by more than 20 %."
    return "\n".join(["Slower than the median of earlier runs by more than 20 %:", *lines])


if __name__ == "__main__":
    print(verdict(ranks.read(HISTORY)))
