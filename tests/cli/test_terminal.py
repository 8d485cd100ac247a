"""The command line in a real terminal."""

import importlib.util
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

if importlib.util.find_spec("pexpect") is None or sys.platform == "win32":
    pytest.skip("pexpect, which drives a terminal, is not installed", allow_module_level=True)

import pexpect

# One process for many commands: most of the time of a command is the start of Python.
LOOP = """
import shlex
from kernelwright.cli import run
while True:
    print(f"status {run(shlex.split(input('ready> ')))}")
"""


@pytest.fixture(scope="module")
def terminal():
    child = pexpect.spawn(sys.executable, ["-c", LOOP], encoding="utf-8", timeout=60, dimensions=(50, 120))
    child.expect_exact("ready> ")
    yield child
    child.close(force=True)


@pytest.fixture
def command(terminal):
    """Type a command; return the text on the terminal and the exit status."""

    def run(line):
        terminal.sendline(line)
        terminal.expect(r"status (\d+)")
        shown, status = terminal.before, int(terminal.match[1])
        terminal.expect_exact("ready> ")
        assert "Traceback" not in shown
        return shown, status

    return run


def test_a_session(command, files, tmp_path):
    shown, status = command(f"fit {files.train} --target species --folds 3 -o {tmp_path}/model.kw")
    assert status == 0
    assert "cross-validation: random forest done" in shown  # the bar, which is wiped away at the end
    assert re.search(r"left: \d+:\d\d", shown)
    assert "Scores, with 95 % intervals" in shown
    shown, status = command(f"predict {tmp_path}/model.kw {files.test} -o {tmp_path}/out.csv")
    assert (status, len(pd.read_csv(tmp_path / "out.csv"))) == (0, 60)
    shown, status = command(f"evaluate {tmp_path}/model.kw {files.test}")
    assert status == 0
    assert "No drift" in shown
    shown, status = command(f"learn-kernel {files.objects} {files.similarities} -o {tmp_path}/kernel.kw")
    assert status == 0
    assert "nearest known object" in shown
    shown, status = command(f"apply-kernel {tmp_path}/kernel.kw {files.objects} -o {tmp_path}/K.csv")
    assert (status, pd.read_csv(tmp_path / "K.csv").shape) == (0, (40, 41))


@pytest.mark.slow
def test_a_report(command, files, tmp_path):
    for model in (files.model, files.kernel):
        _, status = command(f"report {model} -o {tmp_path}/report.html")
        assert status == 0
        assert "<html" in (tmp_path / "report.html").read_text()


@pytest.fixture
def odd(tmp_path, files):
    """Write tables with errors."""
    rows = "".join(f"{k * k % 17},{'ab'[k % 2]}\n" for k in range(20))
    contents = {
        "empty": b"",
        "one": ("x,y\n" + rows.replace("b", "a")).encode(),
        "ragged": ("x,y\n" + rows + "1,a,3\n").encode(),
        "latin": "x,y\n1,\xe9\n".encode("latin-1"),
        "text": Path(files.test).read_bytes().replace(b",0.2,", b",abc,", 1),
        "short": b"sepal_length\n1\n",
        "half": Path(files.model).read_bytes()[:3000],
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return SimpleNamespace(folder=tmp_path, **{name: tmp_path / name for name in contents})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fit nothing.csv --target y -o m.kw", "There is no file nothing.csv."),
        ("fit {odd.empty} --target y -o m.kw", "is empty"),
        ("fit {files.train} --target specis -o m.kw", "did you mean 'species'?"),
        ("fit {odd.one} --target y -o m.kw", "only one value"),
        ("fit {odd.ragged} --target y -o m.kw", "3 values in line 22"),
        ("fit {odd.latin} --target y -o m.kw", "not UTF-8"),
        ("fit {files.train} --target species -o {odd.folder}", "it is a folder"),
        ("fit {files.train} --target species -o /nowhere/m.kw", "there is no folder /nowhere"),
        ("predict {files.model} {odd.text}", "held numbers in training"),
        ("predict {files.model} {odd.short}", "has no columns"),
        ("predict {files.model} {files.test} -o /dev/full", "No space left on device"),
        ("predict {odd.half} {files.test}", "half"),
        ("predict {files.train} {files.test}", "kernelwright: "),
        ("evaluate {files.model} {files.objects}", "has no target column 'species'"),
        ("learn-kernel {files.objects} {files.train} -o k.kw", "kernelwright: "),
    ],
)
def test_faults_are_one_sentence(command, files, odd, line, words):
    shown, status = command(line.format(files=files, odd=odd))
    assert status == 2
    assert words in " ".join(shown.split())


def test_what_is_new_at_prediction_is_told(command, files, tmp_path):
    new = files.frame[90:].assign(town="Rom", extra=1, petal_width=1e6)
    new.to_csv(tmp_path / "new.csv", index=False)
    shown, status = command(f"predict {files.model} {tmp_path}/new.csv -o {tmp_path}/out.csv")
    assert status == 0
    for words in (
        "'Rom'",
        "are ignored: extra",
        "outside the range of the training rows: ",
        "petal_width (60)",
        "Drift:",
    ):
        assert words in " ".join(shown.split())


@pytest.mark.slow
def test_an_interrupt_stops_at_once_and_leaves_nothing(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1500, 8))).add_prefix("x").assign(y=rng.choice(["a", "b"], 1500))
    frame.to_csv(tmp_path / "long.csv", index=False)
    line = ["-m", "kernelwright", "fit", "long.csv", "-t", "y", "-o", "m.kw"]
    child = pexpect.spawn(sys.executable, line, cwd=str(tmp_path), encoding="utf-8", timeout=60)
    child.expect_exact("left:")
    time.sleep(0.5)  # into learning, which would keep what it has and go on
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert child.before.rstrip().endswith("kernelwright: stopped.")
    assert [path.name for path in tmp_path.iterdir()] == ["long.csv"]
