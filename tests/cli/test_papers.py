from dataclasses import replace
from importlib.metadata import version

import pytest

import kernelwright
from kernelwright.cli import papers, run
from kernelwright.research.experiments import demo, registry
from kernelwright.research.experiments.claims import Claim, Verdict
from kernelwright.research.experiments.runner import Experiment, Task


def test_version_and_help(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == kernelwright.__version__
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for command in ("fit", "predict", "evaluate", "learn-kernel", "apply-kernel", "report", "reproduce", "bench"):
        assert command in out
        assert run([command, "--help"]) == 0
    click = tuple(map(int, version("click").split(".")[:2]))
    assert run([]) == (2 if click >= (8, 2) else 0)  # what click makes of being asked nothing
    out, err = capsys.readouterr()
    assert "Usage" in out + err
    assert "--show-completion" in out + err


@pytest.mark.slow
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


def toy(mean):
    """Return an experiment with one published number, 97.2."""
    return Experiment(
        "hsu-table1",
        "A table",
        lambda quick: [Task("wine", "GMCE", 0, accuracy, (mean,))],
        published="hsu2018_table1.csv",
        deviations=("Nothing differs.",),
        quick="Only wine.",
    )


def accuracy(mean):
    return {"accuracy": mean}


@pytest.mark.parametrize(("mean", "status"), [(97.0, 0), (80.0, 1)])
def test_reproduce_fails_when_a_number_is_missed(monkeypatch, tmp_path, mean, status, capsys):
    monkeypatch.setitem(registry.EXPERIMENTS, "hsu-table1", toy(mean))
    assert run(["reproduce", "table1", "--quick", "--jobs", "1", "--output", str(tmp_path)]) == status
    out = capsys.readouterr().out
    assert "97.2 ± 3.7" in out
    assert "Nothing differs." in out
    assert "Quick: Only wine." in out
    assert ("docs/reproduction.md" in out) == bool(status)
    cells = (tmp_path / "hsu-table1-quick-cells.csv").read_text().splitlines()
    assert cells[1] == f"wine,GMCE,accuracy,97.2,3.7,3.7,{mean:g},0,1,{'worse' if status else 'reproduced'}"


@pytest.mark.parametrize(("options", "status", "word"), [(["--quick"], 0, "Quick"), ([], 1, "Full")])
def test_a_quick_run_may_miss_what_the_page_misses(monkeypatch, tmp_path, options, status, word, capsys):
    task = Task("fertility", "hyper-KRR (Wishart)", 0, accuracy, (80.0,))  # published: 90.2 +- 2.3
    missed = replace(toy(0.0), name="liu-table2", tasks=lambda quick: [task], published="liu2021_table2.csv")
    monkeypatch.setitem(registry.EXPERIMENTS, "liu-table2", missed)
    assert run(["reproduce", "liu-table2", *options, "--jobs", "1", "--output", str(tmp_path)]) == status
    out = capsys.readouterr().out
    assert f"{word} run: A table" in out
    assert f"{word} run, 1 published numbers of papers' own methods: 0 reproduced, 0 better, 1 worse." in out
    assert ("1 that a quick run misses" in out) == (status == 0)


def test_reproduce_fails_when_a_claim_does_not_hold(monkeypatch, tmp_path, capsys):
    verdicts = {"Ours is above 96": Verdict(True, "97"), "Ours is above 98": Verdict(False, "97")}
    claims = tuple(Claim("A paper", sentence, lambda results, v=verdict: v) for sentence, verdict in verdicts.items())
    claimed = replace(toy(97.0), name="toy", claims=claims)  # whose quick run misses nothing
    monkeypatch.setitem(registry.EXPERIMENTS, "hsu-table1", claimed)
    assert run(["reproduce", "table1", "--quick", "--jobs", "1", "--output", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "Ours is above 96: holds (97)" in out
    assert "Ours is above 98: contradicted (97)" in out


def test_reproduce_writes_pictures(tmp_path, capsys):
    assert run(["reproduce", "learning-rate", "--quick", "--jobs", "1", "--output", str(tmp_path)]) == 0
    assert (tmp_path / "learning-rate-quick.png").read_bytes().startswith(b"\x89PNG")
    assert "m = 33" in capsys.readouterr().out


def test_reproduce_lists_what_there_is(capsys):
    assert run(["reproduce"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in registry.EXPERIMENTS)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Make the package seem to be in a temporary folder, and return the folder."""
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
    assert "Get the source code and run make bench" in capsys.readouterr().err
