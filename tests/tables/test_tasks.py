"""Classes are told from numbers by the target, and the user can say otherwise."""

import numpy as np
import pandas as pd
import pytest

from kernelwright.tables import TrainingTable, as_table
from kernelwright.tables.quantities import read_target
from kernelwright.tables.tasks import read_rows, told_task
from tests.tables.made_up import text_table


def told(cells):
    table = text_table(y=cells)
    return told_task(table, "y", read_target(table, "y"))


@pytest.mark.parametrize(
    ("cells", "task"),
    [
        (["yes", "no"] * 20, "classes"),
        (["0", "1"] * 20, "classes"),
        (["0.5", "1.5"] * 20, "classes"),
        ([str(k % 10) for k in range(200)], "classes"),  # digits
        ([str(k % 20) for k in range(200)], "classes"),
        ([str(k % 21) for k in range(200)], "numbers"),
        ([str(k) for k in range(12)], "numbers"),  # few, but nearly one for each row
        ([f"{k % 9 / 2}" for k in range(90)], "numbers"),  # fractions are quantities
        ([f"{100 * (k * k % 283)}" for k in range(2000)], "numbers"),  # prices
        ([f"${k},{k:03d}" for k in range(101, 160)], "numbers"),
        ([f"{k}.5 kg" for k in range(60)], "numbers"),
        ([f"{k}A" for k in range(60)], "classes"),  # codes
        ([f"{k:05d}" for k in range(900, 960)], "classes"),  # postcodes
        ([*(f"{k / 7}" for k in range(99)), "call us"], "numbers"),  # an error in one cell
        ([*(f"{k / 7}" for k in range(70)), *["call us"] * 30], "classes"),
        (["True", "False"] * 10, "classes"),
    ],
)
def test_what_is_taken(cells, task):
    assert told(cells)[0] == task


def test_a_sentence_says_how_to_say_otherwise():
    for cells, other in (([str(k % 7) for k in range(70)], "numbers"), ([f"{k / 4}" for k in range(70)], "classes")):
        assert f"--task {other} (in Python, task='{other}')" in told(cells)[1]
    assert told(["a", "b", "c"])[1] == told(["0", "1"])[1] == ""


def test_prices_are_numbers_and_can_be_asked_for_as_classes():
    rng = np.random.default_rng(0)
    price = rng.integers(1, 284, size=2000) * 1000
    table = as_table(pd.DataFrame({"size": price + rng.normal(size=2000), "price": price}))
    data = TrainingTable.of(table, "price")
    assert (data.numbers.rows, data.classes, data.labels.dtype) == (2000, (), np.float64)
    assert np.array_equal(data.labels, price)
    assert any("283 different whole numbers in 2000 rows, so numbers are predicted" in note for note in data.notes)
    data = TrainingTable.of(table, "price", task="classes")
    assert (len(data.classes), data.numbers) == (283, None)
    assert not any("--task" in note for note in data.notes)


def test_grades_are_classes_and_can_be_asked_for_as_numbers():
    frame = pd.DataFrame({"x": np.arange(60.0) ** 2, "grade": [1, 2, 3, 4, 5, 6] * 10})
    data = TrainingTable.of(as_table(frame), "grade")
    assert data.classes == tuple("123456")
    assert any(
        "'grade' has 6 different whole numbers in 60 rows, which are taken as classes" in note for note in data.notes
    )
    assert TrainingTable.of(as_table(frame), "grade", task="numbers").labels.tolist() == frame["grade"].tolist()


def test_a_task_must_be_one_of_two():
    with pytest.raises(ValueError, match="must be 'classes' or 'numbers'"):
        read_rows(text_table(y=["1", "2"]), "y", task="regression")


def test_the_decimal_sign_is_that_of_the_other_columns_and_a_remark_names_an_ambiguous_one():
    cells = [f"{k},{k:03d}" for k in range(101, 131)]
    assert read_rows(text_table(y=cells), "y").y[0] == 101101
    assert any("--decimal comma" in note for note in read_rows(text_table(y=cells), "y").notes)
    assert read_rows(text_table(x=[f"{k},5" for k in range(30)], y=cells), "y").y[0] == 101.101
    found = read_rows(text_table(y=cells), "y", decimal="comma")
    assert (found.y[0], found.numbers.notation.decimal) == (101.101, ",")
    assert not any("--decimal" in note for note in found.notes)
