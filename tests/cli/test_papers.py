import pytest

import kernelwright
from kernelwright.cli import papers, run
from kernelwright.experiments import demo, mnist_network, networks, table1


def test_version_and_help(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == kernelwright.__version__
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for command in ("fit", "predict", "evaluate", "learn-kernel", "apply-kernel", "report", "reproduce", "bench"):
        assert command in out
        assert run([command, "--help"]) == 0
    assert run([]) == 2
    out, err = capsys.readouterr()
    assert "Usage" in out + err
    assert "--show-completion" in out + err


def test_demo_prints_a_table_and_writes_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "TASKS", demo.TASKS[:1])
    assert run(["demo", "--output", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    for word in ("kernelwright", "random forest", "log loss", "report.html"):
        assert word in out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "report.html",
        "decision-probabilities.png",
        "learning-curves.png",
    }


def test_datasets_are_listed(capsys):
    assert run(["datasets"]) == 0
    assert "covtype" in capsys.readouterr().out


@pytest.mark.parametrize(("mean", "status"), [(97.0, 0), (80.0, 1)])
def test_reproduce_fails_when_a_number_is_missed(monkeypatch, mean, status, capsys):
    cell = table1.Cell("wine", 97.2, 3.7, mean, 3.0, 1.0)
    monkeypatch.setattr(table1, "run", lambda *arguments, **options: [cell])
    assert run(["reproduce", "table1", "--sets", "wine"]) == status
    assert "97.2 ± 3.7" in capsys.readouterr().out


@pytest.mark.parametrize(("default", "cen", "status"), [(98.0, 97.0, 0), (96.0, 97.0, 1), (98.0, 80.0, 1)])
def test_reproduce_networks_wants_the_published_numbers_and_a_better_default(monkeypatch, default, cen, status, capsys):
    rows = [networks.Row("wine", "CEN-1", cen, 2.0), networks.Row("wine", "default", default, 2.0)]
    monkeypatch.setattr(networks, "run", lambda *arguments, **options: rows)
    assert run(["reproduce", "networks", "--sets", "wine"]) == status
    assert f"{cen} ± 2.0 (96.1 ± 5.0)" in capsys.readouterr().out


@pytest.mark.parametrize(("softmax", "status"), [([90.0, 97.0], 0), ([96.0, 97.0], 1)])
def test_reproduce_mnist_network_draws_a_picture(monkeypatch, tmp_path, softmax, status, capsys):
    curves = mnist_network.Curves([95.0, 98.0], softmax)
    used = []
    monkeypatch.setattr(mnist_network, "run", lambda protocol, **options: used.append(protocol) or curves)
    assert run(["reproduce", "mnist-network", "--quick", "--output", str(tmp_path)]) == status
    assert "98.00" in capsys.readouterr().out
    assert (tmp_path / "mnist-network.png").read_bytes().startswith(b"\x89PNG")
    run(["reproduce", "mnist-network", "--full", "--output", str(tmp_path)])
    assert used == [mnist_network.QUICK, mnist_network.FULL]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A place that the package seems to lie in."""
    monkeypatch.setattr(papers.kernelwright, "__file__", str(tmp_path / "src" / "kernelwright" / "__init__.py"))
    return tmp_path


def test_bench_runs_what_lies_in_the_source(checkout, capsys):
    (checkout / "benchmarks").mkdir()
    code = "def rows(quick):\n    return [{'task': 'floor', 'milliseconds': 12.3456 if quick else 0.0}]\n"
    (checkout / "benchmarks" / "floor.py").write_text(code)
    assert run(["bench", "--quick"]) == 0
    assert "12.35" in capsys.readouterr().out


def test_bench_without_the_source_says_so(checkout, capsys):
    assert run(["bench"]) == 2
    assert "get the source and run make bench" in capsys.readouterr().err
