"""Known faults of the installed packages: ``python robustness/audit.py``.

Asks pip whether versions fit together, compares them with the advisories in ``advisories.csv``, and asks pip-audit,
which knows all of them, where it is installed and its database can be reached. It says which of these were done.
"""

import csv
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def number(text: str) -> tuple[int, ...]:
    """The release of a version, as numbers."""
    release = text.split("+")[0].split("rc")[0].split(".post")[0]
    return tuple(int(part) for part in release.split(".") if part.isdigit())


def known_faults(path: Path) -> list[str]:
    """Sentences about installed packages that an advisory of the list is about."""
    found = []
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            try:
                installed = version(row["package"])
            except PackageNotFoundError:
                continue
            if number(installed) < number(row["below"]):
                found.append(f"{row['package']} {installed} is below {row['below']}: {row['advisory']}, {row['what']}")
    return found


def main() -> int:
    """Print what was asked and what was found; status 1 if anything was."""
    fits = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    print(f"pip check: {fits.stdout.strip()}")
    path = Path(__file__).parent / "advisories.csv"
    faults = known_faults(path)
    print(f"{path.name}, a short list that is kept by hand: {len(faults)} found")
    for fault in faults:
        print(f"  {fault}")
    tool = shutil.which("pip-audit", path=str(Path(sys.executable).parent)) or shutil.which("pip-audit")
    if tool is None:
        print("pip-audit: not installed, so all other advisories are unknown here (pip install pip-audit)")
        return int(bool(fits.returncode or faults))
    asked = subprocess.run([tool, "--skip-editable", "--progress-spinner", "off"], capture_output=True, text=True)
    reached = asked.returncode == 0 or "Name" in asked.stdout
    said = asked.stderr.strip().splitlines()
    print(f"pip-audit: {asked.stdout.strip() or said[-1]}" if reached else f"pip-audit: no answer: {said[-1:]}")
    return int(bool(fits.returncode or faults or (reached and asked.returncode)))


if __name__ == "__main__":
    sys.exit(main())
