import numpy as np
import pandas as pd
import pytest

from kernelwright.inputs.frames.notation import read_numbers, read_numbers_as
from kernelwright.tables import Table, TrainingTable, as_table, describe_columns, prepare


def reading_of(*cells, **choices):
    return read_numbers(pd.Series(cells, dtype=object), **choices)


def text_table(**columns):
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    return Table(frame, "t.csv", np.arange(2, len(frame) + 2))


def column_of(cells, **choices):
    return describe_columns(text_table(x=cells), **choices)[0]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3,671", "12", "1,234,567"], [3671, 12, 1234567]),
        (["3,671", "950", "12,005"], [3671, 950, 12005]),  # groups of three everywhere
        (["3,671", "0,500"], [3.671, 0.5]),  # no thousands begin with a zero
        (["3,671", "3,67"], [3.671, 3.67]),
        (["1,234.50", "2"], [1234.5, 2]),
        (["1.234,50", "2"], [1234.5, 2]),
        (["1.234,5", "3.671"], [1234.5, 3671]),  # one cell settles the others
        (["1.234.567", "1"], [1234567, 1]),
        (["1 234,5", "0,5"], [1234.5, 0.5]),
        (["1 234", "12"], [1234, 12]),
        (["1\u202f234,5", "1\u00a0000"], [1234.5, 1000]),
        (["1'234.50", "1\u2019000"], [1234.5, 1000]),
        (["12,34,567", "1"], [1234567, 1]),
        (["3.671", "1.234"], [3.671, 1.234]),  # as everywhere
        (["$1,234.50", "$3"], [1234.5, 3]),
        (["-$1,234.50", "$-3"], [-1234.5, -3]),
        (["($1,234.50)", "$3"], [-1234.5, 3]),
        (["1.234,50 \u20ac", "3 \u20ac"], [1234.5, 3]),
        (["\u20ac 12", "\u20ac12,5"], [12, 12.5]),
        (["USD 12", "USD 12.5"], [12, 12.5]),
        (["12.3%", "4 %", "0"], [12.3, 4, 0]),
        (["12 kg", "3.5kg"], [12, 3.5]),
        (["3.5 cm", "-1 cm", "1e3 cm"], [3.5, -1, 1000]),
        (["5 km/h", "7,5 km/h"], [5, 7.5]),
        (["12 m\u00b2", "3 m\u00b2"], [12, 3]),
        (["36 months", "60 months"], [36, 60]),
        (["\u22125", "5"], [-5, 5]),
        (["12.", "+5", "1E3"], [12, 5, 1000]),
    ],
)
def test_numbers_as_people_write_them(cells, values):
    found = reading_of(*cells, None)
    np.testing.assert_array_equal(found.values, [*values, np.nan])
    assert not found.odd.any()


@pytest.mark.parametrize(
    "cells",
    [
        ["1a", "2b"],
        ["12 kg", "500 g"],
        ["50%", "0.5"],
        ["10:30", "11:00"],
        ["1/2", "3/4"],
        ["2020-01-01", "2021-01-01"],
        ["31.12.2020", "01.02.2021"],
        ["192.168.0.1", "10.0.0.1"],
        ["3,5,7", "1,2"],
        ["12,5,000", "x"],
        ["A1", "A2"],
        ["5 to 6", "7"],
        ["inf", "nan kg"],
        ["+-5", "--5"],
        ["9" * 61 + " kg", "x"],
        ["1,2.3,4", "1.2,3.4"],
    ],
)
def test_what_is_no_column_of_numbers(cells):
    assert reading_of(*cells).odd.any()


def test_a_column_that_can_be_read_in_two_ways_says_how_it_was_and_what_would_change_it():
    cells = [f"{k},{100 + k}" for k in range(1, 40)]
    column = column_of(cells)
    assert (column.low, column.treatment) == (1101.0, "'1,101' read as 1101")
    assert "'1,101' can be read in two ways and was read as 1101. --decimal comma" in column.remark
    assert column.remark.endswith("reads it as 1.101 (in Python, convert the column to numbers).")
    said = column_of(cells, decimal="comma")
    assert (said.low, said.treatment, said.remark) == (1.101, "'1,101' read as 1.101", "")
    assert column_of(cells, decimal="point").remark == ""
    with pytest.raises(ValueError, match=r"decimal must be 'comma' or 'point'. Got '.' instead"):
        column_of(cells, decimal=".")


@pytest.mark.parametrize("cells", [["1.5", "12"], ["3.671", "0.671"], ["0,5", "12"], ["$12", "$3"], ["7", "8"]])
def test_a_column_that_leaves_no_doubt_has_no_remark(cells):
    assert column_of(cells * 10).remark == ""


def test_columns_that_leave_no_doubt_settle_those_that_do():
    doubtful = {"a": ["3,671", "1,234", "2,500"] * 5, "b": ["3.671", "1.234", "2.500"] * 5}
    commas = describe_columns(text_table(**doubtful, c=["0,5", "1,25", "3"] * 5))
    assert [column.low for column in commas] == [1.234, 1234.0, 0.5]
    assert all("can be read in two ways" in column.remark for column in commas[:2])
    points = describe_columns(text_table(**doubtful, c=["0.5", "1.25", "3"] * 5))
    assert [column.low for column in points] == [1234.0, 1.234, 0.5]
    both = describe_columns(text_table(**doubtful, c=["0.5", "1.25", "3"] * 5, d=["0,5", "1,25", "3"] * 5))
    assert [column.low for column in both] == [1234.0, 1.234, 0.5, 0.5]


def test_units_that_differ_are_not_merged():
    mixed = [f"{k / 8} kg" for k in range(20)] + [f"{k} g" for k in range(700, 720)]
    column = column_of(mixed)
    assert (column.kind, column.used) == ("text", False)
    assert column.treatment == "left out: numbers in different units (kg in 20 rows, g in 20 rows)"
    assert "Convert them to one unit" in column.remark
    assert "Convert them to one unit" in column_of(mixed, decimal="point").remark
    notes = TrainingTable.of(
        as_table(pd.DataFrame({"x": mixed, "z": ["1", "2"] * 20, "y": ["a", "b"] * 20})), "y"
    ).notes
    assert sum("different units" in note for note in notes) == 1
    few = column_of(["1 kg", "500 g"] * 10)
    assert few.kind == "category"
    assert "units differ: kg in 10 rows, g in 10 rows" in few.treatment
    some = column_of([f"{50 + k} kg" for k in range(30)] * 4 + [f"{k} g" for k in range(700, 720)] * 4)
    assert (some.kind, some.distinct) == ("text", 50)
    assert column_of([f"{k} {unit}" for k in range(30) for unit in ("kg", "g")] * 4, keep=["x"]).kind == "category"
    shares = column_of([f"{k}%" for k in range(20)] + [f"0.{k}" for k in range(1, 20)])
    assert not shares.used


def test_codes_of_a_number_and_a_letter_are_categories():
    column = column_of([f"{k}{letter}" for k in range(1, 8) for letter in "ABC"] * 5)
    assert (column.kind, column.treatment) == ("category", "21 categories")
    assert column_of(["1st", "2nd", "3rd"] * 5).treatment == "3 categories"


def test_numbers_without_the_unit_of_the_others_are_told():
    column = column_of([f"{k} kg" for k in range(0, 60, 3)] + ["70", "80"])
    assert (column.kind, column.high) == ("number", 80.0)
    assert column.treatment == "'0 kg' read as 0; 2 without kg read as if with it"


def test_new_tables_are_read_as_the_training_table_was():
    thousands = column_of([f"{k},{100 + k}" for k in range(1, 40)])
    decimals = column_of([f"{k},{100 + k}" for k in range(1, 40)], decimal="comma")
    assert prepare([thousands], text_table(x=["3,671"]))[0]["x"].tolist() == [3671.0]
    assert prepare([decimals], text_table(x=["3,671"]))[0]["x"].tolist() == [3.671]
    # There is only one way to read these, whatever the training table had.
    assert prepare([thousands], text_table(x=["3,67", "3,671"]))[0]["x"].tolist() == [3.67, 3.671]
    assert prepare([decimals], text_table(x=["1,234.5"]))[0]["x"].tolist() == [1234.5]
    assert prepare([thousands], pd.DataFrame({"x": [3671.0]}))[0]["x"].tolist() == [3671.0]
    plain = column_of(["1.5", "2.5", "3671"] * 5)
    assert prepare([plain], text_table(x=["3,671", "2"]))[0]["x"].tolist() == [3671.0, 2.0]


def test_a_new_table_in_another_unit_is_refused_and_one_without_units_told():
    column = column_of([f"{k} kg" for k in range(0, 60, 3)])
    with pytest.raises(ValueError, match=r"'x' held numbers in kg in training, but t.csv has '500 g' in line 3"):
        prepare([column], text_table(x=["12 kg", "500 g"]))
    frame, findings = prepare([column], text_table(x=["12 kg", "5"]))
    assert frame["x"].tolist() == [12.0, 5.0]
    assert [str(finding) for finding in findings] == ["x: 1 row without the unit of the training values ('5')"]
    percent = column_of([f"{k}%" for k in range(0, 60, 3)])
    with pytest.raises(ValueError, match=r"'x' held numbers in % in training, but t.csv has '0.5' in line 2"):
        prepare([percent], text_table(x=["0.5"]))
    with pytest.raises(ValueError, match=r"held numbers in training, but t.csv has '5 kg'"):
        prepare([column_of(["1", "7"] * 10)], text_table(x=["5 kg"]))


def test_words_for_missing_values_stay_so():
    column = column_of([f"${k},000" for k in range(1, 60)] + ["unknown"])
    assert (column.kind, column.categories, column.high) == ("number", ("unknown",), 59000.0)
    frame, _ = prepare([column], text_table(x=["$3,000", "unknown"]))
    assert frame["x"].tolist()[0] == 3000.0
    assert frame["x"].isna().tolist() == [False, True]


def test_what_was_decided_is_noted_for_the_user():
    frame = pd.DataFrame({"income": [f"{k},{100 + k}" for k in range(1, 41)], "y": ["a", "b"] * 20})
    notes = TrainingTable.of(as_table(frame), "y").notes
    assert any("income: '1,101' can be read in two ways" in note for note in notes)
    assert not any("two ways" in note for note in TrainingTable.of(as_table(frame), "y", decimal="comma").notes)


def test_remarks_on_many_columns_are_few():
    cells = {f"c{k}": [f"{1 + j * j % (97 - k)},{100 + j}" for j in range(40)] for k in range(12)}
    frame = pd.DataFrame(cells).assign(y=["a", "b"] * 20)
    notes = [note for note in TrainingTable.of(as_table(frame), "y").notes if "c" in note]
    assert sum("two ways" in note for note in notes) == 5
    assert "7 more columns like these: c5, c6, c7, c8, c9 and 2 more." in notes


def test_a_reading_is_the_same_for_one_row_and_for_many():
    cells = pd.Series(["1.234,5", "12", "3.671"], dtype=object)
    notation = read_numbers(cells).notation
    alone = [read_numbers_as(cells[k : k + 1].reset_index(drop=True), notation).values[0] for k in range(3)]
    assert alone == [1234.5, 12.0, 3671.0]
