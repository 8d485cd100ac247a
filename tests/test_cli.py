import subprocess
import sys

import pytest
from typer.testing import CliRunner

import kernelwright
from kernelwright import cli
from kernelwright.experiments import demo, table1


def run(*arguments):
    return CliRunner().invoke(cli.app, list(arguments))


def test_version_and_help():
    assert run("--version").output.strip() == kernelwright.__version__
    assert "reproduce" in run("--help").output


def test_demo_prints_a_table_and_writes_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "TASKS", demo.TASKS[:1])
    result = run("demo", "--output", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    for word in ("kernelwright", "random forest", "log loss", "report.html"):
        assert word in result.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "report.html",
        "decision-probabilities.png",
        "learning-curves.png",
    }


def test_datasets_are_listed():
    assert "covtype" in run("datasets").output


@pytest.mark.parametrize(("mean", "status"), [(97.0, 0), (80.0, 1)])
def test_reproduce_fails_when_a_number_is_missed(monkeypatch, mean, status):
    cell = table1.Cell("wine", 97.2, 3.7, mean, 3.0, 1.0)
    monkeypatch.setattr(table1, "run", lambda *arguments, **options: [cell])
    result = run("reproduce", "table1", "--sets", "wine")
    assert result.exit_code == status
    assert "97.2 ± 3.7" in result.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reproduce", "table9"], "kernelwright: There is no experiment 'table9'. Known: table1.\n"),
        (["reproduce", "table1", "--sets", "moon"], "kernelwright: Table 1 has no data set 'moon'."),
        (["demo", "--output", "/dev/null/x"], "kernelwright: [Errno"),
    ],
)
def test_a_fault_of_the_input_is_one_sentence_and_status_2(arguments, sentence):
    code = "import sys; from kernelwright.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.replace("\n", " ").startswith(sentence.replace("\n", " "))
    assert "Traceback" not in done.stderr
