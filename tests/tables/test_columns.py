import numpy as np
import pandas as pd
import pytest

from kernelwright.tables import Table, as_table, describe_columns, prepare
from kernelwright.tables.columns import numbers, texts

N = 12


def text_table(**columns):
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    return Table(frame, "t.csv", np.arange(2, len(frame) + 2))


def kind_of(cells, name="x", **choices):
    return describe_columns(text_table(**{name: cells}), **choices)[0]


@pytest.mark.parametrize(
    ("cells", "name", "kind"),
    [
        (["1", "2.5", "-3e2", None] * 3, "x", "number"),
        (["0", "1"] * 6, "x", "number"),
        (["yes", "no", None] * 4, "x", "boolean"),
        (["True", "FALSE"] * 6, "x", "boolean"),
        (["a", "b", "c"] * 4, "x", "category"),
        (["2020-01-01", "2021-12-31T10:00:00"] * 6, "x", "date"),
        (["2020-13-45", "2021-12-31"] * 6, "x", "category"),  # no such month
        ([str(k) for k in range(100, 112)], "x", "identifier"),  # counts the rows
        ([str(k * k) for k in range(N)], "x", "number"),  # different, but does not count
        ([str(k * k) for k in range(N)], "customerId", "identifier"),
        ([str(k * k) for k in range(N)], "liquid", "number"),
        ([f"k{k}" for k in range(N)], "x", "identifier"),
        (["a", "b", "c", "d"], "x", "category"),  # few rows, no telling name
        (["a", "b", "c", "d"], "row_id", "identifier"),
        ([f"word {k // 2}" for k in range(30)] + [f"once {k}" for k in range(10)], "x", "text"),
        (["same"] * N, "x", "constant"),
        ([None] * N, "x", "constant"),
        (["x", None] * 6, "ticked", "category"),
        (["1", None, None] * 4, "ticked", "number"),
        (["same"] * (N - 1) + [None], "x", "constant"),  # one gap says nothing, nor does
        (["same"] + [None] * (N - 1), "x", "constant"),  # one value
    ],
)
def test_kinds_are_found_from_the_cells(cells, name, kind):
    assert kind_of(cells, name).kind == kind


def test_the_user_has_the_last_word():
    cells = [f"k{k}" for k in range(N)]
    assert kind_of(cells, keep=["x"]).kind == "category"
    assert kind_of(["1", "2"] * 6, ids=["x"]).kind == "identifier"
    assert kind_of(["1", "2"] * 6, drop=["x"]).kind == "dropped"
    assert kind_of([str(k) for k in range(N)], keep=["x"]).kind == "number"


def test_few_words_among_many_numbers_are_missing_values_then_and_later():
    cells = [str(1.5 * k) for k in range(40)] + ["unknown", None]
    column = kind_of(cells)
    assert (column.kind, column.missing, column.categories) == ("number", 2, ("unknown",))
    frame, _ = prepare([column], text_table(x=["unknown", "3"]))
    assert frame["x"].isna().tolist() == [True, False]
    with pytest.raises(ValueError, match=r"held numbers in training, but t.csv has 'abc' in line 3"):
        prepare([column], text_table(x=["1", "abc"]))


def test_what_was_seen_is_recorded():
    number, category = describe_columns(text_table(n=["3", "-1", None, "7"] * 3, c=["b", "a", "a", None] * 3))
    assert (number.low, number.high, number.missing, number.distinct) == (-1.0, 7.0, 3, 3)
    assert (category.categories, category.counts, category.missing) == (("a", "b"), (6, 3), 3)


def test_typed_columns_and_text_are_the_same_to_a_model():
    typed = pd.DataFrame({"n": [1.0, np.nan, 2.5], "i": [3, 4, 4], "b": [True, False, True], "c": ["u", None, "v"]})
    typed["d"] = pd.to_datetime(["2020-01-01", "2020-01-02", None])
    written = text_table(
        n=["1", None, "2.5"],
        i=["3", "4", "4"],
        b=["True", "False", "True"],
        c=["u", None, "v"],
        d=["2020-01-01", "2020-01-02", None],
    )
    columns = describe_columns(written)
    assert [c.kind for c in columns] == [c.kind for c in describe_columns(as_table(typed))]
    pd.testing.assert_frame_equal(prepare(columns, typed)[0], prepare(columns, written)[0])
    assert texts(as_table(typed), "n").tolist()[0] == "1"


def test_infinity_is_no_number():
    assert numbers(text_table(x=["inf", "2"]), "x")[1].tolist() == [True, False]
    values, odd = numbers(as_table(pd.DataFrame({"x": [np.inf, 2.0]})), "x")
    assert odd.tolist() == [True, False]
    np.testing.assert_array_equal(values, [np.nan, 2.0])


def test_what_is_new_is_found_with_its_lines():
    columns = describe_columns(text_table(n=["1", "5"] * 6, c=["a", "b"] * 6, b=["yes", "no"] * 6))
    frame, findings = prepare(columns, text_table(n=["0", "9", "3"], c=["a", "z", None], b=["no", "perhaps", "yes"]))
    found = {(f.column, f.what): (f.count, f.rows) for f in findings}
    assert found == {
        ("n", "below range"): (1, (2,)),
        ("n", "above range"): (1, (3,)),
        ("c", "new category"): (1, (3,)),
        ("c", "missing"): (1, (4,)),
        ("b", "new category"): (1, (3,)),
    }
    assert frame["b"].tolist()[::2] == [0.0, 1.0]
    assert str(findings[0]) == "n: 1 row below every training value ('0')"


def test_a_column_that_is_not_there_is_named():
    columns = describe_columns(text_table(n=["1", "5"] * 6, c=["a", "b"] * 6))
    with pytest.raises(ValueError, match=r"t.csv lacks the column 'c', which .* It has: n, other"):
        prepare(columns, text_table(n=["1"], other=["2"]))


def test_text_where_dates_were_is_named():
    columns = describe_columns(text_table(d=["2020-01-01", "2021-01-01"] * 6))
    with pytest.raises(ValueError, match=r"held dates \(YYYY-MM-DD\) in training, but t.csv has 'soon' in line 2"):
        prepare(columns, text_table(d=["soon"]))


def test_a_date_may_be_far_in_the_future():
    frame = pd.DataFrame({"valid_to": ["2020-01-31", "9999-12-31", "1970-01-02T12:00:00+00:00"] * 5})
    columns = describe_columns(as_table(frame))
    assert columns[0].kind == "date"
    assert prepare(columns, frame)[0]["valid_to"].tolist()[:3] == [18292.0, 2932896.0, 1.5]


def test_a_column_that_was_constant_is_watched():
    frame = pd.DataFrame({"x": range(20), "unit": ["cm"] * 20})
    columns = describe_columns(as_table(frame))
    findings = prepare(columns, pd.DataFrame({"x": [3, 4], "unit": ["cm", "mm"]}))[1]
    assert [str(finding) for finding in findings] == ["unit: 1 row with a value never seen in training ('mm')"]
    assert prepare(columns, pd.DataFrame({"x": [3]}))[1] == []
