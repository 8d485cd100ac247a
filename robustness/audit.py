"""Find known vulnerabilities of the installed packages: ``python -m robustness.audit``.

Runs ``pip check``, compares versions with the advisories in ``advisories.csv``, and runs pip-audit, which knows all
advisories, if it is installed and its database can be reached. It says which of these were done.
"""

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tools import tables


def number(text: str) -> tuple[int, ...]:
    """Return the release of a version as numbers."""
    release = text.split("+")[0].split("rc")[0].split(".post")[0]
    return tuple(int(part) for part in release.split(".") if part.isdigit())


def known_faults(path: Path) -> list[str]:
    """Describe installed packages that have an advisory in the list."""
    found = []
    for row in tables.read(path):
        try:
            installed = version(row["package"])
        except PackageNotFoundError:
            continue
        if number(installed) < number(row["below"]):
            found.append(f"{row['package']} {installed} is below {row['below']}: {row['advisory']}, {row['what']}")
    return found


def main() -> int:
    """Print what was checked and found; return status 1 if anything was found."""
    fits = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    print(f"pip check: {fits.stdout.strip()}")
    path = Path(__file__).parent / "advisories.csv"
    faults = known_faults(path)
    print(f"{path.name}, a short list kept by hand: {len(faults)} found")
    for fault in faults:
        print(f"  {fault}")
    tool = shutil.which("pip-audit", path=str(Path(sys.executable).parent)) or shutil.which("pip-audit")
    if tool is None:
        print("pip-audit: not installed, so other advisories were not checked (pip install pip-audit)")
        return int(bool(fits.returncode or faults))
    asked = subprocess.run([tool, "--skip-editable", "--progress-spinner", "off"], capture_output=True, text=True)
    reached = asked.returncode == 0 or "Name" in asked.stdout
    said = asked.stderr.strip().splitlines()
    print(f"pip-audit: {asked.stdout.strip() or said[-1]}" if reached else f"pip-audit: no answer: {said[-1:]}")
    return int(bool(fits.returncode or faults or (reached and asked.returncode)))


if __name__ == "__main__":
    sys.exit(main())
