"""How soon the command line answers where no model is needed: CPU seconds of a whole process, import and all.

The least that it can need is the import of what it is made with, NumPy and typer. A fit is shown for comparison: it
imports torch, scikit-learn and pandas.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.processes import child_cpu_seconds
from tools.tables import Row

STARTUP = "startup: "  # how its names begin in the history
GOAL = 0.5  # CPU seconds, of every line but the last
FLOOR = ["-c", "import numpy, typer, rich.console, rich.table, rich.progress"]
COMMANDS = (
    "--version",
    "--help",
    "fit --help",
    "fit missing.csv -t y -o m.kw",
    "fit noise.bin -t y -o m.kw",
    "fit table.csv -t missing -o m.kw",
    "predict noise.bin table.csv",
    "evaluate missing.kw table.csv",
    "report noise.bin -o page.html",
    "learn-kernel table.csv missing.csv -o k.kw",
    "apply-kernel noise.bin table.csv",
    "fit table.csv -t y --no-cv -o m.kw",
)


def cpu_seconds(arguments: list[str], folder: str, repetitions: int) -> float:
    """Run Python some times and return the user and system seconds of the fastest run."""
    found = []
    for _ in range(repetitions):
        before = child_cpu_seconds()
        subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True)
        found.append(child_cpu_seconds() - before)
    return min(found)


def rows(quick: bool) -> list[Row]:
    """Measure every command, and the import of the package."""
    repetitions = 2 if quick else 5
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{k * k % 17},{'ab'[k % 2]}\n" for k in range(40)]
        Path(folder, "table.csv").write_text("".join(["x,y\n", *lines]))
        Path(folder, "noise.bin").write_bytes(bytes(range(256)))
        floor = cpu_seconds(FLOOR, folder, repetitions)
        tasks = {"import kernelwright": ["-c", "import kernelwright"]}
        tasks |= {f"kernelwright {line}": ["-m", "kernelwright", *line.split()] for line in COMMANDS}
        found = {name: cpu_seconds(arguments, folder, repetitions) for name, arguments in tasks.items()}
    return [{"command": name, "CPU seconds": seconds, "ratio": seconds / floor} for name, seconds in found.items()]
