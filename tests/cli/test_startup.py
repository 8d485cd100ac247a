"""Commands that need no model answer before torch, scikit-learn and pandas are imported, which takes seconds."""

import json
import subprocess
import sys
import zipfile

import pytest

HEAVY = ("torch", "sklearn", "pandas", "scipy", "matplotlib", "joblib", "numba", "dask")

# Runs each line of a list in the same process, and says after each what has been imported by then.
RUN = f"""
import contextlib, io, json, sys
from kernelwright.cli import run
found = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(words)
    found.append([status, out.getvalue() + err.getvalue(), [name for name in {HEAVY!r} if name in sys.modules]])
print(json.dumps(found))
"""


def answers(lines, **options):
    """Return the exit status, the output and the heavy modules after each command line."""
    words = json.dumps([line.split() for line in lines])
    done = subprocess.run([sys.executable, "-c", RUN, words], capture_output=True, text=True, check=True, **options)
    return json.loads(done.stdout)


COMMANDS = ["fit", "predict", "evaluate", "report", "learn-kernel", "apply-kernel", "demo", "datasets", "reproduce"]


def test_the_version_and_all_help():
    lines = ["--version", "--help", "datasets", *(f"{command} --help" for command in COMMANDS)]
    for line, (status, words, heavy) in zip(lines, answers(lines), strict=True):
        assert (line, status, heavy) == (line, 0, [])
        assert words


@pytest.fixture
def folder(tmp_path, files):
    """Make a folder with files of many kinds and one real model."""
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{k * k % 17},{'ab'[k % 2]}\n" for k in range(20)))
    (tmp_path / "short.csv").write_text("x,y\n1,a\n2\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    (tmp_path / "page.kw").write_text("<html>")
    with zipfile.ZipFile(tmp_path / "other.kw", "w") as archive:
        archive.writestr("a", "b")
    (tmp_path / "m.kw").symlink_to(files.model)
    return tmp_path


REFUSED = {
    "fit none.csv -t y -o o.kw": "There is no file none.csv",
    "fit . -t y -o o.kw": "empty.csv is empty",
    "fit empty.csv -t y -o o.kw": "is empty",
    "fit noise.bin -t y -o o.kw": "NUL byte",
    "fit short.csv -t y -o o.kw": "1 values in line 3",
    "fit t.csv -t z -o o.kw": "no target column 'z'",
    "fit t.csv -t y --id z -o o.kw": "no column 'z'",
    "fit t.csv -t y -o none/o.kw": "there is no folder none",
    "fit t.csv -t y -o o.kw --report t.csv": "is given twice",
    "fit t.csv": "Missing option",
    "fit t.csv -t y -o o.kw --task regression": "--task must be 'classes' or 'numbers'",
    "predict m.kw t.csv --interval 90": "--interval must lie between 0 and 1",
    "predict m.kw t.csv --quantiles 0.1,5": "--quantiles must be numbers between 0 and 1",
    "predict m.kw t.csv --quantiles a": "--quantiles must be numbers between 0 and 1",
    "predict none.kw t.csv": "There is no file none.kw",
    "predict . t.csv": "it is a folder",
    "predict empty.csv t.csv": "it is empty",
    "predict page.kw t.csv": "it is not a model file",
    "predict other.kw t.csv": "a zip archive of something else",
    "predict m.kw none.csv": "There is no file none.csv",
    "predict m.kw noise.bin": "NUL byte",
    "evaluate page.kw t.csv": "it is not a model file",
    "evaluate m.kw t.csv -t z": "no target column 'z'",
    "report page.kw -o o.html": "it is not a model file",
    "report m.kw -o none/o.html": "there is no folder none",
    "learn-kernel none.csv t.csv -o o.kw": "There is no file none.csv",
    "learn-kernel t.csv none.csv -o o.kw": "There is no file none.csv",
    "learn-kernel t.csv noise.bin -o o.kw": "NUL byte",
    "learn-kernel t.csv t.csv --id z -o o.kw": "no column 'z'",
    "apply-kernel page.kw t.csv": "it is not a model file",
    "apply-kernel m.kw none.csv": "There is no file none.csv",
    "demo -o empty.csv/x": "Cannot use empty.csv/x",
    "nonsense": "No such command",
}


def test_files_that_are_refused(folder):
    for line, (status, words, heavy) in zip(REFUSED, answers(REFUSED, cwd=folder), strict=True):
        assert (line, status, heavy) == (line, 2, [])
        assert REFUSED[line] in words


def test_a_parquet_table_without_the_target_is_refused_without_pandas(folder, files):
    pytest.importorskip("pyarrow")
    files.frame.to_parquet(folder / "t.parquet", index=False)
    [(status, words, heavy)] = answers(["fit t.parquet -t z -o o.kw"], cwd=folder)
    assert (status, heavy) == (2, [])
    assert "no target column 'z'" in words


def test_the_check_can_fail(folder):
    """A command that learns imports them all, so that the tests above have something to find."""
    [(status, _, heavy)] = answers(["fit t.csv -t y --no-cv -o o.kw"], cwd=folder)
    assert status == 0
    assert {"torch", "sklearn", "pandas"} <= set(heavy)
