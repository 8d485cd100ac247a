"""Packages, dependencies and imports: the installed package is complete, and names missing extras."""

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from robustness.faults import ROOT, Row, Tally, python

HEAVY = ("matplotlib", "pandas", "numba", "rich", "typer", "jinja2", "dask", "pyarrow", "mapie", "IPython")


def figures(*, quick: bool) -> list[Row]:
    """Make a row for each step from the source to an installed package."""
    rows = [_import_time(1 if quick else 5), _versions()]
    if quick:
        return rows
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return [*rows, _build(place), _install(place)]


IMPORT = """
import json, sys, time
started = time.process_time()
import torch, sklearn.calibration, sklearn.datasets, sklearn.model_selection, sklearn.svm, sklearn.ensemble
theirs = time.process_time() - started
before = set(sys.modules)
started = time.process_time()
import kernelwright
for name in kernelwright.__all__:  # names are loaded at first use
    getattr(kernelwright, name)
print(json.dumps([theirs, time.process_time() - started, sorted(set(HEAVY) & (set(sys.modules) - before))]))
"""


def _import_time(n: int) -> Row:
    tally = Tally("the package and its names add less than 2 s, and nothing heavy")
    times = []
    for _ in range(n):
        theirs, ours, heavy = json.loads(python(IMPORT.replace("HEAVY", repr(HEAVY))).stdout)
        times.append((ours, theirs))
        tally.check(ours < 2.0 and not heavy, f"{ours:.2f} s, {heavy}")
    ours, theirs = min(times)
    return tally.row(f"{ours:.2f} s of CPU, besides {theirs:.2f} s of torch and scikit-learn")


def _versions() -> Row:
    """Check that the lower bounds of pyproject.toml are the versions that `make test-oldest` tests."""
    import re
    import tomllib

    tally = Tally("lower bounds are the versions that are tested")
    lines = (ROOT / "constraints-oldest.txt").read_text().splitlines()
    tested = dict(
        line.split(" #")[0].strip().split("==") for line in lines if "==" in line and not line.startswith("#")
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for wanted in [*project["dependencies"], *extras["parquet"], *extras["conformal"], *extras["cluster"]]:
        name, bound = re.match(r"([\w-]+)(?:\[[^\]]*\])?>=([\d.]+)", wanted).groups()
        tally.check(tested.get(name, "").startswith(bound), f"{wanted}, tested with {tested.get(name)}")
    return tally.row()


def _pip(python_: str | Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(python_), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def _build(folder: Path) -> Row:
    tally = Tally("wheel and source package build, and hold what they should")
    built = _pip(sys.executable, "wheel", "--no-deps", "-w", str(folder), ".")
    wheels = list(folder.glob("*.whl"))
    tally.check(bool(wheels), built.stderr[-500:])
    if wheels:
        names = zipfile.ZipFile(wheels[0]).namelist()
        wanted = {"kernelwright/py.typed", "kernelwright/cli/__init__.py"}
        published = [name for name in names if "/published/" in name and name.endswith(".csv")]
        tally.check(wanted <= set(names) and len(published) > 5, len(names))
        odd = [name for name in names if not name.startswith("kernelwright")]
        tally.check(not odd, odd)
    _pip(sys.executable, "install", "--target", str(folder / "tools"), "hatchling")
    code = (
        f"import sys; sys.path.insert(0, {str(folder / 'tools')!r}); from hatchling.cli import hatchling; hatchling()"
    )
    command = [sys.executable, "-c", code, "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True)
    sources = list(folder.glob("*.tar.gz"))
    tally.check(bool(sources), "no source package")
    if sources:  # a wheel built from the source package is the same
        (folder / "again").mkdir()
        _pip(sys.executable, "wheel", "--no-deps", "-w", str(folder / "again"), str(sources[0]))
        again = list((folder / "again").glob("*.whl"))
        same = bool(again) and sorted(zipfile.ZipFile(again[0]).namelist()) == sorted(names)
        tally.check(same, "another wheel from the source package")
    return tally.row()


USE = """
import sys
import numpy as np
import kernelwright as kw
from kernelwright.cli import run
assert "site-packages" in kw.__file__
X = np.random.default_rng(0).normal(size=(60, 3)); y = (X[:, 0] > 0).astype(int)
model = kw.EmbeddingClassifier(random_state=0).fit(X, y)
assert model.score(X, y) > 0.9
try:
    kw.PredictionSets(kw.EmbeddingClassifier(), conformity="raps", method="split").fit(X, y)
except ImportError as error:
    assert "kernelwright[conformal]" in str(error), error
else:
    raise AssertionError("mapie is there")
open("t.parquet", "wb").write(b"PAR1" + bytes(100))
sys.exit(run(["predict", "none.kw", "t.parquet"]) != 2 or run(["fit", "t.parquet", "-t", "y", "-o", "m.kw"]) != 2)
"""


def _install(folder: Path) -> Row:
    """Install into an empty environment: the wheel brings its dependencies, and names the optional ones."""
    tally = Tally("installs into an empty environment, and names what is missing")
    wheels = list(folder.glob("*.whl"))
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    inside = folder / "venv" / "bin" / "python"
    done = _pip(inside, "install", "-c", "constraints.txt", *map(str, wheels))
    if done.returncode:
        return tally.row(f"not tried, packages could not be fetched: {done.stderr.strip().splitlines()[-1][:80]}")
    checked = _pip(inside, "check")
    tally.check(checked.returncode == 0, checked.stdout)
    used = subprocess.run(
        [str(inside), "-c", USE], cwd=folder, capture_output=True, text=True, env={"HOME": folder.name}
    )
    tally.check(used.returncode == 0 and "kernelwright[parquet]" in used.stderr, used.stderr[-600:])
    shown = subprocess.run([str(inside.parent / "kernelwright"), "--version"], capture_output=True, text=True)
    tally.check(shown.returncode == 0, shown.stderr[-300:])
    return tally.row()
