"""Runs that can be killed and resumed, and cells next to published numbers."""

import math
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.research.experiments import hsu_network
from kernelwright.research.experiments.claims import NOT_RUN, Verdict
from kernelwright.research.experiments.page import MISPRINTS, cell_rows, reproduction_page
from kernelwright.research.experiments.registry import ALIASES, EXPERIMENTS, find
from kernelwright.research.experiments.runner import (
    Cell,
    Experiment,
    Published,
    Result,
    Task,
    cells_of,
    read_published,
    read_results,
    run,
    write_cells,
)
from kernelwright.research.experiments.verdicts import (
    Tally,
    expected_misses,
    expected_misses_file,
    left_out,
    misses,
    read_expected_misses,
    tally,
)

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "src" / "kernelwright" / "research" / "experiments"


def double(x, log):
    with open(log, "a") as file:
        file.write(f"{x}\n")
    return {"accuracy": 2.0 * x, "error": 0.1}


@pytest.fixture
def experiment(tmp_path):
    log = tmp_path / "log"
    tasks = [Task("wine", "ours", x, double, (x, str(log))) for x in range(4)]
    return Experiment("toy", "A toy", lambda quick: tasks[:2] if quick else tasks), log


def test_a_run_goes_on_where_it_was_killed(experiment, tmp_path):
    made, log = experiment
    folder = tmp_path / "out"
    results = run(made, folder)
    assert [r.value for r in results if r.measure == "accuracy"] == [0.0, 2.0, 4.0, 6.0]
    path = folder / "toy.csv"
    whole = path.read_text()
    assert len(whole.splitlines()) == 9
    path.write_text(whole[: whole.index("wine,ours,2,error") + 9])  # killed in the middle of a line
    seen = []
    again = run(made, folder, progress=lambda done, total, what: seen.append((done, total)))
    assert seen[0] == (3, 4)
    assert sorted(log.read_text().split()) == ["0", "1", "2", "3", "3"]
    assert {(r.trial, r.value) for r in again if r.measure == "accuracy"} == {(x, 2.0 * x) for x in range(4)}


def test_a_quick_run_has_a_file_of_its_own(experiment, tmp_path):
    made, _ = experiment
    assert len(run(made, tmp_path / "out", quick=True)) == 4
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["toy-quick.csv"]


def cell(mean, theirs=90.0, measure="accuracy", tolerance=1.0, deviation=2.0):
    published = Published("wine", "ours", measure, theirs, deviation, tolerance, "a paper")
    return Cell("wine", "ours", measure, mean, 1.0, 10, published)


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(95.0, "better"), (91.0, "reproduced"), (89.0, "reproduced"), (88.9, "worse")],
)
@pytest.mark.parametrize("deviation", [2.0, math.nan])
def test_higher_accuracies_are_better(mean, verdict, deviation):
    assert cell(mean, deviation=deviation).verdict == verdict


@pytest.mark.parametrize(
    ("mean", "verdict"), [(0.01, "better"), (0.08, "reproduced"), (0.12, "reproduced"), (0.13, "worse")]
)
def test_lower_errors_are_better(mean, verdict):
    assert cell(mean, 0.1, "error", 0.02, math.nan).verdict == verdict


def test_times_and_numbers_of_our_own_have_no_verdict():
    assert cell(1.0, 90.0, "CPU seconds").verdict is None
    assert Cell("wine", "ours", "accuracy", 90.0, 1.0, 10).verdict is None


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_a_tolerance_is_the_printed_deviation(name):
    for p in read_published(EXPERIMENTS[name].published):
        assert math.isnan(p.deviation) or p.tolerance == p.deviation


def test_every_published_number_is_counted():
    published = [
        Published("wine", "ours", "accuracy", 90.0, 1.0, 1.0, ""),
        Published("ecoli", "ours", "accuracy", 90.0, 1.0, 1.0, ""),
        Published("yeast", "ours", "error", 0.5, math.nan, 0.02, ""),
        Published("robot", "ours", "accuracy", 90.0, 1.0, 1.0, ""),
        Published("wine", "SVM", "accuracy", 90.0, 1.0, 1.0, "", rival=True),
        Published("wine", "slow", "accuracy", 90.0, 1.0, 1.0, "", rival=True),
        Published("wine", "slow", "seconds", 90.0, math.nan, 0.0, "", rival=True),
    ]
    found = {("wine", "ours"): 90.5, ("ecoli", "ours"): 99.0, ("wine", "SVM"): 99.0, ("robot", "ours"): 80.0}
    results = [Result(*place, 0, "accuracy", value) for place, value in found.items()]
    results += [Result("yeast", "ours", 0, "error", 0.6), Result("wine", "new", 0, "accuracy", 1.0)]
    cells = cells_of(results, published)
    assert tally(cells, published, rival=False) == Tally(reproduced=1, better=1, worse=2)
    assert tally(cells, published, rival=True) == Tally(better=1, left_out=1)
    assert left_out(cells, published) == [published[5]]
    assert (Tally(1, 1, 2) + Tally(better=1, left_out=1)).published == 6


def test_no_published_number_is_forgotten():
    """Counted without the functions that count: lines of the files that are not times."""
    lines = [line for path in RESULTS.glob("published/*.csv") for line in path.read_text().splitlines()[1:]]
    numbers = [line for line in lines if "seconds" not in line]
    page = (ROOT / "docs" / "reproduction.md").read_text()
    assert f"Each of the {len(numbers)} published numbers" in page
    listed = re.findall(r"\| (reproduced|better|worse) \|$", page, re.MULTILINE)
    assert len(listed) + page.count("(published: ") == len(numbers)
    for verdict in ("reproduced", "better", "worse"):
        assert re.search(rf"^\| all \|.* {listed.count(verdict)} \|", page, re.MULTILINE)


def test_known_misses_of_quick_runs_are_those_of_the_page():
    """Run ``python -m docs.tables`` to bring them up to date."""
    known = expected_misses_file(EXPERIMENTS.values(), ROOT / "docs" / "reproduction")
    assert (RESULTS / "quick.csv").read_text() == known
    assert read_expected_misses("liu-figure3") == {("claim", "1", ""), ("claim", "2", "")}


def test_a_quick_run_should_miss_what_the_same_trials_miss():
    made = EXPERIMENTS["hsu-table1"]  # three folds when quick; published: 97.2 +- 3.7
    accuracies = [98.0, 98.0, 98.0] + [80.0] * 7
    results = [Result("wine", "GMCE", fold, "accuracy", value) for fold, value in enumerate(accuracies)]
    assert misses(made, results) == {("wine", "GMCE", "accuracy")}
    assert expected_misses(made, results) == set()
    assert expected_misses(made, [replace(r, value=178.0 - r.value) for r in results]) == {("wine", "GMCE", "accuracy")}


def test_the_share_of_the_steps_of_the_network():
    full, ours = (p.n_train // p.batch_size * p.epochs for p in (hsu_network.FULL, hsu_network.QUICK))
    assert f"a {full / ours:.0f}th of the steps ({ours} of {full})" in hsu_network.EXPERIMENT.explanations[0]


def test_the_difference_is_in_standard_errors():
    assert cell(91.0).standard_errors == pytest.approx(1.0 / math.sqrt((1 + 4) / 10))
    assert cell(91.0, deviation=math.nan).standard_errors == pytest.approx(math.sqrt(10))
    assert math.isnan(Cell("a", "b", "c", 1.0, 0.0, 1).standard_errors)


def test_cells_are_means_over_trials_next_to_what_is_published(tmp_path):
    results = [Result("wine", "ours", t, "accuracy", v) for t, v in enumerate((80.0, 90.0))]
    results.append(Result("wine", "new", 0, "accuracy", 50.0))
    first, second = cells_of(results, [Published("wine", "ours", "accuracy", 84.0, 1.0, 1.0, "")])
    assert (first.mean, first.deviation, first.trials, first.verdict) == (85.0, 5.0, 2, "reproduced")
    assert second.published is None
    assert second.verdict is None
    assert [row["verdict"] for row in cell_rows([first, second], everything=True)] == ["reproduced", ""]
    write_cells(tmp_path / "cells.csv", [first, second])
    assert (tmp_path / "cells.csv").read_text().splitlines()[1] == "wine,ours,accuracy,84.0,1.0,1.0,85,5,2,reproduced"


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_published_cell_has_its_tasks(name):
    experiment = EXPERIMENTS[name]
    places = {(task.row, task.column) for task in experiment.tasks(False)}
    published = read_published(experiment.published)
    assert {(p.row, p.column) for p in published if p.column not in experiment.left_out} <= places
    assert {(task.row, task.column) for task in experiment.tasks(True)} <= places
    assert all(p.tolerance >= 0 and p.source for p in published)


def test_names_and_short_names():
    assert find("table1") == [EXPERIMENTS["hsu-table1"]]
    assert [each.name for each in EXPERIMENTS.values() if each not in find("all")] == ["hsu-figure2-network-full"]
    assert set(ALIASES.values()) <= set(EXPERIMENTS)
    with pytest.raises(ValueError, match=r"There is no experiment 'x'. Known: all, hsu-figure1"):
        find("x")


def test_the_page_says_what_was_reached_and_what_was_not_run(tmp_path):
    (tmp_path / "liu-table2.csv").write_text("row,column,trial,measure,value\nwine,KTA,0,accuracy,97.0\n")
    page = reproduction_page([EXPERIMENTS["liu-table2"], EXPERIMENTS["hsu-table1"]], tmp_path, "pictures")
    assert "Each of the 96 published numbers" in page
    assert "| all | 96 | 1 | 0 | 0 | 95 |" in page
    assert "- heart, KTA, accuracy (published: 83.2 ± 1.6): not run yet." in page
    assert "| wine | KTA | accuracy | rival | 96.2 ± 2.2 | 97.0 | 1 |" in page
    assert "Not run yet: `kernelwright reproduce hsu-table1`" in page
    assert all(what in page for what, _ in MISPRINTS)


def test_a_torn_header_is_no_result(tmp_path):
    (tmp_path / "x.csv").write_text("row,col")
    assert read_results(tmp_path / "x.csv") == []


def test_claims_are_on_the_page(tmp_path):
    rows = [f"m = {m},hyper-KRR,0,error,{error}" for m, error in ((10, 1.0), (20, 0.9))]
    (tmp_path / "learning-rate.csv").write_text("\n".join(["row,column,trial,measure,value", *rows, ""]))
    page = reproduction_page([EXPERIMENTS["learning-rate"]], tmp_path, "pictures")
    assert "| hyper-KRR: at alpha = 1 the error falls at least as fast as m^-0.5 | **contradicted** | the error" in page
    assert "of 6 claims in words, 0 hold, 1 are contradicted and 5 not tested" in page
    page = reproduction_page([EXPERIMENTS["learning-rate"]], tmp_path / "empty", "pictures")
    assert "| not tested | not in these results |  |" in page


@pytest.mark.parametrize(("accuracy", "holds"), [(90.2, True), (89.0, False)])
def test_goals_of_the_default_are_means_over_trials(accuracy, holds):
    results = [Result("n = 500", "default", t, "accuracy", accuracy + t) for t in (-1, 0, 1)]
    judged = [claim.judge(results) for claim in EXPERIMENTS["hsu-figure2-size"].claims if not claim.of_paper]
    assert judged == [Verdict(holds, f"{accuracy:.1f} %"), NOT_RUN, NOT_RUN]


@pytest.mark.parametrize(("learned", "holds"), [(97.0, True), (95.5, False)])
def test_the_margin_of_the_extension(learned, holds):
    columns = {"reciprocal neighbours": 95.0, "hyper-KRR": learned}
    results = [Result("1 vs 9, n = 10", column, 0, "accuracy", value) for column, value in columns.items()]
    assert EXPERIMENTS["liu-figure3"].claims[0].judge(results).holds is holds


def test_runs_that_share_a_folder_keep_all_results_and_count_each_once(tmp_path, experiment):
    made, _ = experiment
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: run(made, tmp_path / "out"), range(4)))
    found = read_results(tmp_path / "out" / "toy.csv")
    assert sorted((r.trial, r.measure) for r in found) == [(t, m) for t in range(4) for m in ("accuracy", "error")]
    assert (tmp_path / "out" / "toy.csv").read_text().count("row,column") == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["toy.csv"]
