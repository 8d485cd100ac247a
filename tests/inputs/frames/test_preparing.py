import numpy as np
import pandas as pd
import pytest

from kernelwright.inputs.frames.cells import texts
from kernelwright.tables import as_table, describe_columns, prepare
from tests.tables.made_up import text_table


def test_few_words_among_many_numbers_are_missing_values_then_and_later():
    cells = [str(1.5 * k) for k in range(40)] + ["unknown", None]
    column = describe_columns(text_table(x=cells))[0]
    assert (column.kind, column.missing, column.categories) == ("number", 2, ("unknown",))
    frame, _ = prepare([column], text_table(x=["unknown", "3"]))
    assert frame["x"].isna().tolist() == [True, False]
    with pytest.raises(ValueError, match=r"held numbers in training, but t.csv has 'abc' in line 3"):
        prepare([column], text_table(x=["1", "abc"]))


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
    with pytest.raises(ValueError, match=r"t.csv has no column 'c', which .* It has: n, other"):
        prepare(columns, text_table(n=["1"], other=["2"]))


def test_text_where_dates_were_is_named():
    columns = describe_columns(text_table(d=["2020-01-01", "2021-01-01"] * 6))
    with pytest.raises(ValueError, match=r"held dates \(YYYY-MM-DD\) in training, but t.csv has 'soon' in line 2"):
        prepare(columns, text_table(d=["soon"]))


def test_a_date_may_be_far_in_the_future():
    frame = pd.DataFrame({"valid_to": ["2020-01-31", "9999-12-31", "1970-01-02T12:00:00+00:00"] * 5})
    columns = describe_columns(as_table(frame))
    assert columns[0].kind == "date"
    found = prepare(columns, frame)[0]["valid_to"].to_numpy()[:3]
    assert found.astype("datetime64[s]").astype(str).tolist() == [
        "2020-01-31T00:00:00",
        "9999-12-31T00:00:00",
        "1970-01-02T12:00:00",
    ]


def test_a_column_that_was_constant_is_watched():
    frame = pd.DataFrame({"x": range(20), "unit": ["cm"] * 20})
    columns = describe_columns(as_table(frame))
    findings = prepare(columns, pd.DataFrame({"x": [3, 4], "unit": ["cm", "mm"]}))[1]
    assert [str(finding) for finding in findings] == ["unit: 1 row with a value never seen in training ('mm')"]
    assert prepare(columns, pd.DataFrame({"x": [3]}))[1] == []
