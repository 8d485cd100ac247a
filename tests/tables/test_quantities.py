"""Targets that are numbers: gaps, and cells that are something else."""

import numpy as np
import pandas as pd
import pytest

from kernelwright.tables import Notation, TrainingNumbers, TrainingTable, as_table
from kernelwright.tables.quantities import numbered, read_target
from tests.tables.made_up import text_table

CELLS = [f"{k * k / 7:.3f}" for k in range(1, 41)]


def with_cell(word):
    return [*CELLS[:7], word, *CELLS[8:]]


def read(cells):
    table = text_table(x=[str(k * k) for k in range(len(cells))], y=cells)
    return TrainingTable.of(table, "y")


def test_rows_without_a_number_are_left_out_and_said():
    data = read([None, *with_cell(None)])
    assert data.rows.tolist() == [line for line in range(3, 43) if line != 10]
    assert data.labels.tolist() == [float(cell) for cell in CELLS if cell != CELLS[7]]
    assert "2 rows without a value of 'y' left out." in data.notes


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (with_cell("inf"), "has an infinite number, 'inf' in line 9"),
        (with_cell("-Infinity"), "has an infinite number, '-Infinity' in line 9"),
        (with_cell("call us"), "holds numbers, but t.csv has 'call us' in line 9"),
        (with_cell("2020-01-01"), "holds numbers, but t.csv has '2020-01-01' in line 9"),
        (with_cell("1e300"), "has 1e300 in line 9, beyond 1e.150"),
        ([f"2020-01-{k:02d}" for k in range(1, 32)], "holds dates, not numbers. Add a column with the number of days"),
        ([None] * 30, "is empty"),
    ],
)
def test_a_target_that_is_not_a_number_is_refused_with_its_line(cells, sentence):
    with pytest.raises(ValueError, match=sentence):
        read(cells)


def test_targets_of_data_frames_are_checked_as_well():
    frame = pd.DataFrame({"x": np.arange(40.0) ** 2, "y": np.arange(40) / 3})
    with pytest.raises(ValueError, match="an infinite number, 'inf' in row 4"):
        TrainingTable.of(as_table(frame.replace({"y": {1.0: np.inf}})), "y")
    with pytest.raises(ValueError, match="holds dates"):
        TrainingTable.of(as_table(frame.assign(y=pd.date_range("2020", periods=40))), "y")
    with pytest.raises(ValueError, match=r"only one value, 3, in 40 rows: there is nothing to learn"):
        TrainingTable.of(as_table(frame.assign(y=3.0)), "y", task="numbers")
    assert read_target(as_table(frame), "y").values.tolist() == frame["y"].tolist()


def test_new_tables_are_read_as_the_training_table():
    table = text_table(y=["1,5", "2,25"])
    assert numbered(table, "y", read_target(table, "y", Notation(",")))[1].tolist() == [1.5, 2.25]
    table = text_table(y=["$1,500", "12"])
    assert numbered(table, "y", read_target(table, "y", Notation(".", "$", True)))[1].tolist() == [1500.0, 12.0]


def test_numbers_in_brief(rng):
    y = rng.normal(size=5000)
    kept = TrainingNumbers.of(y, Notation())
    assert (len(kept.values), kept.rows, kept.low, kept.high) == (1000, 5000, y.min(), y.max())
    assert kept.values == pytest.approx(np.quantile(y, np.linspace(0, 1, 1000)), abs=0.3)
    assert kept.rounded(np.array([1.23456789])).tolist() == [1.234568]  # the deviation is just below one
    for unit in (1e-300, 1e-12, 1e12, 1e100):
        kept = TrainingNumbers.of(y * unit, Notation())
        assert kept.rounded(y * unit) == pytest.approx(y * unit, rel=1e-3, abs=1e-5 * unit)
