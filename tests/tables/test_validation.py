"""Rows that belong together, and rows in the order of time: which are tested, by what, and how well."""

import json

import numpy as np
import pandas as pd
import pytest

from kernelwright.cli import run
from kernelwright.evaluation import cross_validate, cross_validate_numbers
from kernelwright.tables import TabularModel, TrainingTable, as_table
from kernelwright.tables.pipelines import make_number_pipeline, make_pipeline
from kernelwright.tables.validation import groups_of, times_of

from .made_up import text_table


def patients_table(n=40, visits=5, seed=0):
    """Return visits of patients who can be recognised; which of them are sick is a toss of a coin."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), visits)
    frame = pd.DataFrame(random.normal(size=(n, 2))[who], columns=["a", "b"])
    frame += 0.02 * random.normal(size=frame.shape)
    frame["patient"] = [f"p{k}" for k in who]
    frame["sick"] = np.where(random.permutation(np.arange(n) % 2 == 0), "yes", "no")[who]
    frame["dose"] = random.normal(size=n)[who] + 0.02 * random.normal(size=len(who))
    return frame.sample(frac=1, random_state=0).reset_index(drop=True)


def drifting_table(n=160, seed=0):
    """Return a series whose level wanders off in time; the rows are not in its order."""
    random = np.random.default_rng(seed)
    days = pd.date_range("2020-01-01", periods=n)
    level = np.cumsum(random.normal(size=n)) + 4 * np.sin(np.arange(n) / 12)
    frame = pd.DataFrame({"day": days, "x": random.normal(size=n)})
    frame["y"] = (frame["x"] + level + 0.1 * random.normal(size=n)).round(3)
    return frame.sample(frac=1, random_state=1).reset_index(drop=True)


def judged(data, folds=3):
    """Cross-validate the model of the command line, without rivals."""
    found = data.validation(folds)
    options = {"splits": found.splits, "params": data.fit_params, "protocol": found.protocol}
    if data.numbers is None:
        make = lambda: make_pipeline(data.columns)  # noqa: E731
        return cross_validate(make, data.frame, data.labels, classes=data.classes, **options)
    return cross_validate_numbers(lambda: make_number_pipeline(data.columns), data.frame, data.labels, **options)


@pytest.mark.slow
def test_rows_of_a_patient_flatter_unless_they_are_left_out_together():
    table = as_table(patients_table().drop(columns="dose"))
    alone = judged(TrainingTable.of(table, "sick", drop=["patient"]))
    together = judged(TrainingTable.of(table, "sick", groups="patient"))
    assert alone.scores.accuracy.value > 0.95
    assert 0.3 < together.scores.accuracy.value < 0.7
    assert together.scores.log_loss.value < 0.8  # not overconfident: calibration leaves out whole groups, too
    assert "3 folds of whole groups (40 by 'patient')" in together.protocol


@pytest.mark.slow
def test_numbers_of_a_patient_flatter_unless_they_are_left_out_together():
    table = as_table(patients_table().drop(columns="sick"))
    alone = judged(TrainingTable.of(table, "dose", drop=["patient"]))
    together = judged(TrainingTable.of(table, "dose", groups="patient"))
    assert alone.scores.r2.value > 0.5
    assert together.scores.r2.value < 0.2
    assert together.scores.coverage.value > 0.75
    assert len(together.rows) == 200


@pytest.mark.slow
def test_a_drifting_series_is_predicted_worse_forward_than_shuffled():
    table = as_table(drifting_table())
    shuffled = judged(TrainingTable.of(table, "y"), folds=4)
    forward = judged(data := TrainingTable.of(table, "y", time="day"), folds=4)
    assert forward.scores.crps.low > 1.5 * shuffled.scores.crps.value
    assert forward.protocol.startswith("validation forward in time, in 4 windows by 'day': each of 128 rows")
    earliest = np.argsort(drifting_table()["day"].to_numpy())[:32]
    assert set(forward.rows - 1) == set(range(160)) - set(earliest)
    assert np.array_equal(forward.actual, data.labels[forward.rows - 1])


def test_the_group_column_is_left_out_and_the_model_learns_by_groups():
    frame = patients_table().drop(columns="dose")
    data = TrainingTable.of(as_table(frame), "sick", groups="patient")
    (column,) = [each for each in data.columns if each.name == "patient"]
    assert (column.kind, column.treatment) == ("identifier", "left out: rows with the same value are a group")
    assert any("Rows with the same 'patient' (40 groups) are left out together" in note for note in data.notes)
    grouped, alone = (
        TabularModel.fit(TrainingTable.of(as_table(frame), "sick", **given))
        for given in ({"groups": "patient"}, {"ids": ["patient"]})
    )
    assert grouped.identifiers == ("patient",)
    assert grouped.predict_proba(frame).max(1).mean() < 0.8 < alone.predict_proba(frame).max(1).mean()
    assert set(grouped.settings) == {"table", "rows", "seed"}


def test_a_column_that_only_knows_the_patients_is_no_leak():
    frame = patients_table(n=60, visits=8).drop(columns="dose")
    frame["a"], frame["b"] = frame.groupby("patient")["a"].transform("first"), np.random.default_rng(0).normal(size=480)
    assert any("leak" in note for note in TrainingTable.of(as_table(frame), "sick", drop=["patient"]).notes)
    assert not any("leak" in note for note in TrainingTable.of(as_table(frame), "sick", groups="patient").notes)


def test_times_are_dates_or_numbers_as_they_are_written():
    days = text_table(day=["02.01.2020", "01.03.2020", "15.01.2020", "30.12.2019"])
    assert np.argsort(times_of(days, "day").values).tolist() == [3, 0, 2, 1]
    years = text_table(year=["2001", "1999", "2000"])
    assert times_of(years, "year").values.tolist() == [2001, 1999, 2000]
    order = text_table(day=["03/04/2020", "02/05/2020"])
    assert np.argsort(times_of(order, "day", dates="day-first").values).tolist() == [0, 1]
    assert np.argsort(times_of(order, "day", dates="month-first").values).tolist() == [1, 0]


def test_the_time_column_is_a_column_like_any_other():
    table = as_table(drifting_table())
    used = TrainingTable.of(table, "y", time="day")
    assert any(note.endswith("also learned from, like any column: --drop day leaves it out.") for note in used.notes)
    assert "day" in used.frame
    dropped = TrainingTable.of(table, "y", time="day", drop=["day"])
    assert "Validation goes forward in time by 'day'. The column is not learned from." in dropped.notes
    assert "day" not in dropped.frame
    assert np.array_equal(dropped.times.values, used.times.values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"groups": "patiemt"}, "has no group column 'patiemt' (did you mean 'patient'?)"),
        ({"time": "when"}, "has no time column 'when'"),
        ({"groups": "sick"}, "The group column 'sick' is the target column"),
        ({"time": "sick"}, "The time column 'sick' is the target column"),
        ({"groups": "patient", "keep": ["patient"]}, "The group column 'patient' cannot be learned from"),
        ({"groups": "patient", "time": "a"}, "not both"),
        ({"groups": "gaps"}, "The group column 'gaps' has no value in row 4 and 2 more rows: every row needs a group."),
        ({"time": "gap"}, "The time column 'gap' has no value in row 8: every row needs a time."),
        ({"groups": "one"}, "The group column 'one' has only one value, 'u'"),
        ({"time": "one"}, "The time column 'one' must hold dates or numbers"),
        ({"time": "few"}, "The time column 'few' has no value in row 3: every row needs a time."),
        ({"time": "patient"}, "The time column 'patient' must hold dates or numbers. It is taken as a category."),
        ({"time": "clock"}, "It holds times of day without a date."),
    ],
)
def test_columns_that_are_no_groups_or_times_are_refused_by_name(options, words):
    frame = patients_table(8, 3).assign(one="u", gaps="g", gap=np.arange(24.0) % 5)
    frame["clock"] = [f"{k % 24:02d}:30" for k in range(24)]
    frame["few"] = [f"2020-01-{k:02d}" if k != 3 else "soon" for k in range(1, 25)]
    frame.loc[[3, 5, 9], "gaps"] = None
    frame.loc[7, "gap"] = np.nan
    with pytest.raises(ValueError, match=r"column|both") as caught:
        TrainingTable.of(as_table(frame), "sick", **options)
    assert words in str(caught.value)


def test_a_gap_in_a_row_without_a_target_does_not_matter():
    frame = patients_table(8, 3)
    frame.loc[3, ["sick", "patient"]] = None
    assert len(TrainingTable.of(as_table(frame), "sick", groups="patient").labels) == 23
    assert groups_of(as_table(frame[:3]), "patient").values.max() < 3


def test_few_groups_and_few_times_make_fewer_folds_and_say_so():
    table = as_table(patients_table(4, 6))
    data = TrainingTable.of(table, "dose", groups="patient", drop=["sick"])
    assert data.validation(9).protocol.endswith("(9 were requested, but there are few groups)")
    assert len(data.validation(9).splits) == 4


@pytest.mark.slow
def test_the_command_line_takes_groups_and_time(tmp_path, capsys):
    patients_table(20, 4).drop(columns="dose").to_csv(tmp_path / "p.csv", index=False)
    drifting_table(80).to_csv(tmp_path / "d.csv", index=False)
    model, page = str(tmp_path / "m.kw"), tmp_path / "m.html"
    fit = ["fit", str(tmp_path / "p.csv"), "-t", "sick", "--groups", "patient", "--folds", "2", "-o", model]
    assert run(fit) == 0
    out = capsys.readouterr().out
    assert "left out: 1 identifier" in out
    assert "Rows with the same 'patient' (20 groups) are left out together" in out
    assert "2 folds of whole groups (20 by 'patient')" in out
    fit = [
        "fit",
        str(tmp_path / "d.csv"),
        "-t",
        "y",
        "--time",
        "day",
        "--folds",
        "3",
        "-o",
        model,
        "--report",
        str(page),
    ]
    assert run([*fit, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["evaluation"]["rows"] == 60
    assert "20 earliest rows were not tested" in found["evaluation"]["protocol"]
    assert "forward in time" in page.read_text()
    assert run(["days" if word == "day" else word for word in fit]) == 2
    assert "d.csv has no time column 'days' (did you mean 'day'?)" in capsys.readouterr().err
