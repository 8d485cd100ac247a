"""Tables of goals and synthetic tasks for the documentation."""

from robustness import pages


def task(what, own, best, slope=""):
    row = {"what": what, "rows": "200", "best": "logistic", "behind": f"{best - own:.1f}"}
    for method in ("kernelwright", "logistic", "SVC", "forest"):
        row |= {f"accuracy % {method}": str(best), f"log loss {method}": "0.5", f"logit slope {method}": slope}
    return row | {"accuracy % kernelwright": str(own)}


def test_tasks_far_behind_are_named_the_worst_first(monkeypatch):
    rows = [task("level", 90.0, 90.0), task("near", 87.0, 90.0), task("far", 86.5, 90.0), task("farther", 70.0, 80.0)]
    monkeypatch.setattr(pages, "read", lambda name: rows)
    assert pages.quality_behind().splitlines()[2:] == [
        "| farther | 200 | 70.0 | 80.0 (logistic) |",
        "| far | 200 | 86.5 | 90.0 (logistic) |",
    ]
    monkeypatch.setattr(pages, "read", lambda name: rows[:2])
    assert pages.quality_behind().startswith("*None")


def test_probabilities_that_are_off_are_named(monkeypatch):
    rows = [task("timid", 90, 90, "1.27"), task("good", 90, 90, "1.1"), task("sure", 90, 90, "0.8"), task("-", 90, 90)]
    monkeypatch.setattr(pages, "read", lambda name: rows)
    assert [line.split(" | ")[0] for line in pages.quality_slopes().splitlines()[2:]] == ["| timid", "| sure"]


def goal(what, task, value, failures):
    return {"what": what, "task": task, "value": value, "beside": "0.9", "failures": failures, "note": "a note"}


def test_missed_goals_are_bold(monkeypatch):
    rows = [
        goal("noise", "any", "0.5", "1"),
        goal("many classes", "10 classes x 2 rows, well separated", "0.1", "0"),
        goal("many classes", "50 classes x 2 rows, well separated", "0.2", "1"),
        goal("many classes", "50 classes x 3 rows, well separated", "0.3", "0"),
        goal("left out", "plain: noisy line", "0.4", "1"),
        goal("upper limit", "plain: noisy line", "0.95", "0"),
    ]
    monkeypatch.setattr(pages, "read", lambda name: rows)
    assert pages.goals("noise").splitlines()[2:] == ["| noise | any | **0.5** | 0.9 | a note |"]
    assert pages.TABLES["goals_many_classes"]().splitlines() == [
        "| classes | 2 rows, well separated | 3 rows, well separated |",
        "| --- | --- | --- |",
        "| 10 | 0.1 / 0.9 |  |",
        "| 50 | **0.2 / 0.9** | 0.3 / 0.9 |",
    ]
    assert pages.TABLES["goals_left_out"]().splitlines()[::2] == [
        "| task | left out, plain | upper limit, plain |",
        "| noisy line | **0.4 / 0.9** | 0.95 / 0.9 |",
    ]
    assert "robustness/results/goals.csv" in pages.TABLES["goals_sets"]()
