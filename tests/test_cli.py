import subprocess
import sys

import pytest
from typer.testing import CliRunner

import kernelwright
from kernelwright import cli
from kernelwright.experiments import demo, mnist_network, networks, table1


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


@pytest.mark.parametrize(("default", "cen", "status"), [(98.0, 97.0, 0), (96.0, 97.0, 1), (98.0, 80.0, 1)])
def test_reproduce_networks_wants_the_published_numbers_and_a_better_default(monkeypatch, default, cen, status):
    rows = [networks.Row("wine", "CEN-1", cen, 2.0), networks.Row("wine", "default", default, 2.0)]
    monkeypatch.setattr(networks, "run", lambda *arguments, **options: rows)
    result = run("reproduce", "networks", "--sets", "wine")
    assert result.exit_code == status
    assert f"{cen} ± 2.0 (96.1 ± 5.0)" in result.output


@pytest.mark.parametrize(("softmax", "status"), [([90.0, 97.0], 0), ([96.0, 97.0], 1)])
def test_reproduce_mnist_network_draws_a_picture(monkeypatch, tmp_path, softmax, status):
    curves = mnist_network.Curves([95.0, 98.0], softmax)
    used = []
    monkeypatch.setattr(mnist_network, "run", lambda protocol, **options: used.append(protocol) or curves)
    result = run("reproduce", "mnist-network", "--quick", "--output", str(tmp_path))
    assert result.exit_code == status
    assert "98.00" in result.output
    assert (tmp_path / "mnist-network.png").read_bytes().startswith(b"\x89PNG")
    run("reproduce", "mnist-network", "--full", "--output", str(tmp_path))
    assert used == [mnist_network.QUICK, mnist_network.FULL]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["reproduce", "table9"],
            "kernelwright: There is no experiment 'table9'. Known: table1, networks,",
        ),
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
