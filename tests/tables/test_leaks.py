import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from kernelwright.tables import TrainingTable, as_table
from kernelwright.tables.leaks import find_leaks, find_number_leaks


@pytest.fixture
def wages(rng):
    n = 400
    wage = rng.lognormal(4.6, 0.35, n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["a", "b", "c"], n),
            "log_wage": np.log(wage).round(6),
        }
    )
    return frame, wage


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_a_function_of_the_target_is_named(wages, n_classes):
    frame, wage = wages
    labels = np.digitize(wage, np.quantile(wage, np.arange(1, n_classes) / n_classes))
    (leak,) = find_leaks(frame, labels, "wage class")
    assert leak.column == "log_wage"
    assert leak.accuracy > 0.97 > leak.other_accuracy
    assert "Possible leak: log_wage alone predicts 'wage class' in" in str(leak)


def test_a_code_of_the_class_and_a_gap_that_tells_it_are_named(wages, rng):
    frame, wage = wages
    labels = (wage > np.median(wage)).astype(int)
    frame = frame.drop(columns="log_wage").assign(
        code=np.where(labels, "rich", "poor"), bonus=np.where(labels, rng.gamma(2.0, size=len(labels)), np.nan)
    )
    assert [leak.column for leak in find_leaks(frame, labels)] == ["code", "bonus"]


def test_a_note_names_it(wages):
    frame, wage = wages
    table = as_table(frame.assign(rich=np.where(wage > 100, "yes", "no")))
    assert any("Possible leak: log_wage" in note for note in TrainingTable.of(table, "rich").notes)
    assert not any("leak" in note for note in TrainingTable.of(table, "rich", drop=["log_wage"]).notes)


def test_good_columns_are_no_leaks(rng):
    for load in (load_iris, load_wine, load_breast_cancer):
        bunch = load(as_frame=True)
        assert find_leaks(bunch.data, bunch.target.to_numpy()) == ()
    y = rng.integers(2, size=500)
    assert find_leaks(pd.DataFrame({"x": y + rng.normal(size=500) / 4, "z": rng.normal(size=500)}), y) == ()


def test_classes_that_are_easy_to_tell_by_any_column_are_no_leak(rng):
    y = rng.integers(2, size=200)
    frame = pd.DataFrame({f"x{k}": y + 0.22 * rng.normal(size=200) for k in range(4)}).assign(x4=y + 0.0)
    assert find_leaks(frame, y) == ()


def test_rare_classes_and_columns_of_names_are_no_leaks(rng):
    y = (rng.random(400) < 0.015).astype(int)  # to say "no" is right in 98.5 % of the rows
    frame = pd.DataFrame({"x": rng.normal(size=400), "name": [f"n{k}" for k in range(400)], "one": 1.0})
    assert find_leaks(frame, y) == ()


def test_chance_is_no_leak(rng):
    y = np.array([0, 1] * 10)
    assert find_leaks(pd.DataFrame(rng.normal(size=(20, 5000))).add_prefix("x"), y) == ()
    y = np.array([0, 1] * 20)
    assert find_leaks(pd.DataFrame(rng.normal(size=(40, 500))).add_prefix("x"), y) == ()


@pytest.mark.parametrize("made", [np.log, np.sqrt, lambda wage: -(wage**3), lambda wage: np.log(wage).round(2)])
def test_a_function_of_a_number_is_named(wages, made):
    frame, wage = wages
    (leak,) = find_number_leaks(frame.assign(log_wage=made(wage)), wage, "wage")
    assert leak.column == "log_wage"
    assert leak.accuracy > 0.97 > 0.2 > leak.other_accuracy
    assert "Possible leak: log_wage alone explains" in str(leak)
    assert "of the variance of the ranks of 'wage'" in str(leak)


def test_a_note_names_a_leak_of_numbers(wages):
    frame, wage = wages
    table = as_table(frame.assign(wage=wage))
    assert any("Possible leak: log_wage" in note for note in TrainingTable.of(table, "wage").notes)
    assert not any("leak" in note for note in TrainingTable.of(table, "wage", drop=["log_wage"]).notes)


def test_good_columns_of_numbers_are_no_leaks(rng):
    bunch = load_diabetes(as_frame=True)
    assert find_number_leaks(bunch.data, bunch.target.to_numpy()) == ()
    y = rng.normal(size=500)
    frame = pd.DataFrame({"x": y + 0.2 * rng.normal(size=500), "z": rng.normal(size=500)})
    assert find_number_leaks(frame, y) == ()  # x explains 96 %
    assert find_number_leaks(pd.DataFrame({f"x{k}": y + 0.1 * rng.normal(size=500) for k in range(4)}), y) == ()
    few = pd.DataFrame(rng.normal(size=(40, 500))).add_prefix("x")
    assert find_number_leaks(few.assign(name=[f"n{k}" for k in range(40)], one=1.0), rng.normal(size=40)) == ()
