"""Data frames of every kind become codes, and new frames are read in the same way."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kernelwright import load, save
from kernelwright.inputs.frames.given import is_frame
from kernelwright.inputs.frames.reader import FrameReader
from kernelwright.tables import as_table

N = 40


def coded(cells, name="x", **options):
    """Return the kind of one column, what its codes stand for, and the codes."""
    frame = pd.DataFrame({name: cells})
    reader = FrameReader.of(frame, **options)
    layout = reader.layout.columns
    return reader.columns[0].kind, layout[0] if layout else None, reader.codes(frame)[:, 0] if layout else None


def days(*words):
    return [(np.datetime64(word, "us") - np.datetime64("1970-01-01")) / np.timedelta64(1, "D") for word in words]


NUMBERS = {
    "nullable integers": pd.array([3, None, 1] * 5, dtype="Int64"),
    "nullable numbers": pd.array([3.0, None, 1.0] * 5, dtype="Float64"),
    "pyarrow": pd.array([3, None, 1] * 5, dtype="int64[pyarrow]"),
    "decimals": [Decimal(3), None, Decimal("1.0")] * 5,
    "objects": np.array([3, None, 1.0] * 5, dtype=object),
    "text": ["3", "?", "1.0"] * 5,
    "text with a unit": ["3 kg", "NA", "1 kg"] * 5,
    "durations": pd.to_timedelta([3, None, 1] * 5, unit="D"),
    "times of day": [dt.time(3), None, dt.time(1)] * 5,
    "clock": ["3:00", "", "01:00"] * 5,
    "sparse": pd.arrays.SparseArray([3.0, np.nan, 1.0] * 5),
}


@pytest.mark.parametrize("cells", NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_every_kind(cells):
    kind, column, codes = coded(cells)
    assert (kind, column.kind) == ("number", "number")
    np.testing.assert_array_equal(codes, [3.0, np.nan, 1.0] * 5)


BOOLEANS = {
    "plain": [True, False, True] * 5,
    "objects": np.array([True, None, False] * 5, dtype=object),
    "nullable": pd.array([True, None, False] * 5, dtype="boolean"),
    "text": ["yes", "N/A", "No"] * 5,
}


@pytest.mark.parametrize("cells", BOOLEANS.values(), ids=BOOLEANS)
def test_truth_values_are_numbers(cells):
    kind, column, codes = coded(cells)
    assert (kind, column.kind) == ("boolean", "number")
    wanted = {"True": 1.0, "yes": 1.0, "False": 0.0, "No": 0.0}
    np.testing.assert_array_equal(codes, [wanted.get(str(cell), np.nan) for cell in cells])


CATEGORIES = {
    "text": ["b", None, "a"] * 5,
    "string": pd.array(["b", None, "a"] * 5, dtype="string"),
    "categorical": pd.Categorical(["b", None, "a"] * 5),
    "blanks": ["b ", " ", "a"] * 5,
    "mixed": np.array(["b", np.nan, "a"] * 5, dtype=object),
}


@pytest.mark.parametrize("cells", CATEGORIES.values(), ids=CATEGORIES)
def test_categories(cells):
    kind, column, codes = coded(cells)
    assert (kind, column.kind, column.words, column.ordered) == ("category", "category", ("a", "b"), False)
    np.testing.assert_array_equal(codes, [1.0, np.nan, 0.0] * 5)


def test_the_dtype_and_the_user_decide_what_is_a_category():
    sizes = pd.Categorical(["m", "s", "l"] * 5, categories=["s", "m", "l", "xl"], ordered=True)
    _, column, codes = coded(sizes)
    assert (column.words, column.ordered) == (("s", "m", "l", "xl"), True)
    assert codes.tolist() == [1.0, 0.0, 2.0] * 5
    _, column, codes = coded(pd.Categorical([10, 2, 10] * 5))  # numbers, but a category
    assert (column.kind, set(column.words)) == ("category", {"2", "10"})
    assert [column.words[int(code)] for code in codes[:3]] == ["10", "2", "10"]
    assert coded([10, 2, 10] * 5)[0] == "number"
    for named in (["x"], [0], [-1]):
        assert coded([10, 2, 10] * 5, categorical=named)[0] == "category"
    mixed = coded(np.array([1, "a", 2.0, None] * 5, dtype=object))
    assert (mixed[0], mixed[1].words) == ("category", ("1", "2", "a"))


def test_a_mask_says_which_columns_are_categories():
    frame = pd.DataFrame({"a": [1.5, 2.5, 1.5], "b": [1, 2, 2], "c": [0.5, 0.1, 0.3]})
    for mask in ([False, True, False], np.array([False, True, False])):
        kinds = [column.kind for column in FrameReader.of(frame, categorical=mask).columns]
        assert kinds == ["number", "category", "number"]
    assert FrameReader.of(frame, categorical=None).columns == FrameReader.of(frame).columns
    with pytest.raises(ValueError, match="True or False for each of the 3 columns"):
        FrameReader.of(frame, keep=[True, False])


DATES = {
    "dtype": pd.to_datetime(["2020-05-01", None, "1988-04-28"] * 5),
    "zone": pd.to_datetime(["2020-05-01T02:00", None, "1988-04-28T02:00"] * 5).tz_localize("Europe/Berlin"),
    "objects": [dt.date(2020, 5, 1), None, dt.date(1988, 4, 28)] * 5,
    "ISO": ["2020-05-01", "NaT", "1988-04-28"] * 5,
    "ISO with a zone": ["2020-05-01T02:00:00+02:00", "", "1988-04-27T19:00:00-05:00"] * 5,
    "day first": ["01/05/2020", None, "28/04/1988"] * 5,
    "month first": ["05/01/2020", None, "04/28/1988"] * 5,
    "points": ["01.05.2020", None, "28.04.1988"] * 5,
    "names": ["1 May 2020", None, "28 Apr 1988"] * 5,
    "American names": ["May 1, 2020", None, "April 28, 1988"] * 5,
    "slashes": ["2020/05/01", None, "1988/04/28"] * 5,
}


@pytest.mark.parametrize("cells", DATES.values(), ids=DATES)
def test_dates_in_every_form(cells):
    kind, column, codes = coded(cells)
    assert (kind, column.kind) == ("date", "date")
    np.testing.assert_allclose(codes, [*days("2020-05-01"), np.nan, *days("1988-04-28")] * 5, atol=1e-9)


def test_periods_are_dates():
    kind, _, codes = coded(pd.PeriodIndex(["2020-05", None, "1988-04"] * 5, freq="M"))
    assert kind == "date"
    np.testing.assert_array_equal(codes[:3], [*days("2020-05-01"), np.nan, *days("1988-04-01")])


def frame_of_all(n=N):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": random.normal(size=n),
            "gaps": np.where(random.random(n) < 0.3, np.nan, random.normal(size=n)),
            "town": random.choice(["Bonn", "Ulm", "Rome"], n),
            "day": pd.date_range("2020-01-30", periods=n, freq="36h"),
            "flag": random.random(n) < 0.5,
            "wait": pd.to_timedelta(random.integers(0, 900, n), unit="h"),
        }
    )


def test_other_libraries_give_the_same_codes():
    frame = frame_of_all()
    wanted = FrameReader.of(frame)
    for given in (pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.convert_dtypes(dtype_backend="pyarrow")):
        reader = FrameReader.of(given)
        assert [(c.name, c.kind) for c in reader.columns] == [(c.name, c.kind) for c in wanted.columns]
        assert reader.layout == wanted.layout
        np.testing.assert_allclose(reader.codes(given), wanted.codes(frame), atol=1e-9)
        np.testing.assert_allclose(wanted.codes(given), wanted.codes(frame), atol=1e-9)


def test_polars_types_of_its_own():
    frame = pl.DataFrame(
        {
            "c": pl.Series(["b", None, "a"] * 5, dtype=pl.Categorical),
            "e": pl.Series(["b", None, "b", "a", "a"] * 3, dtype=pl.Enum(["b", "a"])),
            "t": [dt.time(6), None, dt.time(18)] * 5,
            "d": [Decimal("1.5"), None, Decimal(2)] * 5,
        }
    )
    reader = FrameReader.of(frame)
    assert [column.kind for column in reader.columns] == ["category", "category", "number", "number"]
    np.testing.assert_array_equal(reader.codes(frame)[:3], [[1, 1, 6, 1.5], [np.nan] * 4, [0, 1, 18, 2]])
    with pytest.raises(ValueError, match=r"pass X.collect\(\)"):
        is_frame(frame.lazy())


def test_new_frames_may_differ_in_order_words_gaps_and_more_columns(tmp_path):
    frame = frame_of_all()
    reader = FrameReader.of(frame)
    save(reader, tmp_path / "reader.kw")
    codes = load(tmp_path / "reader.kw").codes(frame)
    np.testing.assert_array_equal(codes, reader.codes(frame))
    new = frame[frame.columns[::-1]].assign(more="x")
    np.testing.assert_array_equal(reader.codes(new), codes)
    new["town"], new["number"] = "Mars", None
    found = reader.codes(new)
    assert (found[:, 2] == -1).all()
    assert np.isnan(found[:, 0]).all()
    np.testing.assert_array_equal(np.delete(found, [0, 2], 1), np.delete(codes, [0, 2], 1))
    np.testing.assert_array_equal(reader.codes(frame[7:8]), codes[7:8])  # one row alone


def test_what_cannot_be_read_is_an_error_that_names_the_place():
    frame = frame_of_all()
    reader = FrameReader.of(frame)
    with pytest.raises(ValueError, match=r"no column 'town' \(did you mean 'Towns'\?\), which the model needs"):
        reader.codes(frame.rename(columns={"town": "Towns"}))
    with pytest.raises(ValueError, match=r"Column 'number' held numbers in training, but the table has 'old' in row 3"):
        reader.codes(frame.assign(number=["1", "2", "old"] + ["4"] * (N - 3)))
    with pytest.raises(ValueError, match=r"contains infinity: column 'gaps', row 2"):
        FrameReader.of(frame.assign(gaps=[0.0, np.inf] + [1.0] * (N - 2)))
    with pytest.raises(ValueError, match="Two columns are named 'town'"):
        FrameReader.of(pd.concat([frame, frame[["town"]]], axis=1))
    for options, message in (
        ({"categorical": "town"}, r"or a list of columns, such as \['town'\]"),
        ({"keep": ["tow"]}, r"did you mean 'town'\?"),
        ({"keep": [9]}, "has the position 9, but there are 6 columns"),
    ):
        with pytest.raises(ValueError, match=message):
            FrameReader.of(frame, **options)


def test_columns_that_say_nothing_are_left_out_with_a_note_unless_they_are_kept():
    frame = frame_of_all()
    frame = frame.assign(
        id=np.arange(N)[::-1] + 1000,
        unit="cm",
        metres=frame["number"] * -0.3048 + 7,
        ort=frame["town"].map({"Bonn": "B", "Ulm": "U", "Rome": "R"}),
        code=[f"k{k}" for k in range(N)],
        surname=[f"name{k % 60}" for k in range(N)],
    )
    reader = FrameReader.of(frame)
    kinds = {column.name: column.kind for column in reader.columns}
    out = {"id": "identifier", "unit": "constant", "metres": "copy", "ort": "copy", "code": "identifier"}
    assert {name: kinds[name] for name in out} == out
    assert reader.codes(frame).shape == (N, 6)
    (note,) = reader.notes()
    assert all(f"{name} (" in note for name in ("id", "unit", "metres", "ort", "code"))
    assert "a linear function of number" in note
    kept = FrameReader.of(frame, keep=["id", "metres", "ort", "code"])
    assert kept.codes(frame).shape == (N, 10)


def test_a_frame_of_numbers_is_plain():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list("abc"))
    assert FrameReader.of(frame).plain
    assert not FrameReader.of(frame.assign(d=1.0)).plain  # a constant is left out
    assert not FrameReader.of(frame.assign(d=[None, *range(0, 87, 3)])).plain


def test_free_text_becomes_a_bag_of_words_only_if_words_are_shared(tmp_path):
    random = np.random.default_rng(0)
    topics = np.array(["the room was clean and quiet", "rude staff at the late desk", "good breakfast and fresh fruit"])
    topic = random.integers(0, 3, 90)
    texts = [f"{' '.join(random.permutation(topics[k].split()))} {row}" for row, k in enumerate(topic)]
    frame = pd.DataFrame({"n": random.normal(size=90), "note": texts})
    reader = FrameReader.of(frame)
    assert reader.columns[1].kind == "words"
    assert reader.layout.sources == ("n", "note")
    save(reader, tmp_path / "reader.kw")
    new = pd.DataFrame({"n": [0.0] * 4, "note": [*topics, None]})
    codes = load(tmp_path / "reader.kw").codes(new)
    np.testing.assert_array_equal(codes, reader.codes(new))
    assert np.isnan(codes[3, 1:]).all()
    own = reader.codes(frame)[:, 1:]
    nearest = ((own[:, None] - codes[:3, 1:]) ** 2).sum(2).argmin(1)
    assert (nearest == topic).mean() > 0.95  # texts lie where those on the same topic lie
    apart = [
        " ".join(random.choice([f"{a}{b}{c}" for a in "bcd" for b in "aeiou" for c in range(999)], 4)) for _ in topic
    ]
    assert FrameReader.of(frame.assign(note=apart)).columns[1].kind in ("text", "identifier")
    assert FrameReader.of(frame.assign(note=[f"www.hotel{k}.com" for k in range(90)])).columns[1].kind == "identifier"


KINDS = {
    "bank_churn": {"RowNumber": "identifier", "CustomerId": "identifier", "Surname": "identifier", "Age": "number"},
    "colleges": {"school_webpage": "text", "zip": "text", "admission_rate": "number", "state": "category"},
    "hotel_rates": {"arrival_date": "date", "country": "category", "lead_time": "number"},
    "wage": {"region": "constant", "education": "category", "logwage": "number"},
    "penguins": {"sex": "category", "bill_length_mm": "number"},
}


@pytest.mark.parametrize("name", KINDS)
def test_real_tables_are_read_as_a_person_would(data_folder, name):
    frame = pd.read_csv(data_folder / "tables" / f"{name}.csv")
    reader = FrameReader.of(frame)
    kinds = {column.name: column.kind for column in reader.columns}
    assert {column: kinds[column] for column in KINDS[name]} == KINDS[name]
    codes = reader.codes(frame)
    for place, column in enumerate(reader.layout.columns):
        if column.kind == "number" and frame[column.source].dtype.kind in "iuf":
            np.testing.assert_array_equal(codes[:, place], frame[column.source])
        if column.kind == "category":
            words = frame[column.source].str.strip().replace("?", None)
            np.testing.assert_array_equal(np.isnan(codes[:, place]), words.isna())
            there = words.notna()
            assert [column.words[int(code)] for code in codes[there, place]] == words[there].tolist()


def test_a_table_is_converted_once():
    frame = frame_of_all()
    table = as_table(frame)
    np.testing.assert_array_equal(FrameReader.of(table).codes(table), FrameReader.of(frame).codes(frame))


def test_wanted_floats_are_described_at_once_as_one_by_one():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(30, 4)).round(1), columns=list("abcd"))
    frame.loc[:4, "b"] = np.nan
    frame["c"] = 1.5
    frame["e"], frame["f"] = np.nan, np.arange(30.0)
    together = FrameReader.of(frame, keep=list("abcdef")).columns
    # objects of the same values are described one by one
    alone = FrameReader.of(frame.astype(object), keep=list("abcdef")).columns
    for one, other in zip(together, alone, strict=True):
        assert (one.name, one.kind, one.missing, one.distinct, one.low, one.high) == (
            (other.name, other.kind, other.missing, other.distinct, other.low, other.high)
        )


@pytest.mark.parametrize("kind", [int, str, float])
def test_days_as_whole_numbers_are_dates_and_no_counter(kind):
    days = pd.date_range("2019-01-01", periods=400)
    frame = pd.DataFrame({"day": days.strftime("%Y%m%d").astype(int).astype(kind), "x": np.arange(400) % 7})
    reader = FrameReader.of(frame)
    assert reader.columns[0].treatment == "a date, written as 20190101"
    since = (days - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_array_equal(reader.codes(frame)[:, 0], since)
    np.testing.assert_array_equal(reader.codes(frame.assign(day=days))[:, 0], since)
    with pytest.raises(ValueError, match=r"'day' held dates \(YYYYMMDD\) in training, but the table has '20201399'"):
        reader.codes(frame[:2].assign(day=[20200101, 20201399]))
    kept = FrameReader.of(frame, keep=["day"]).columns[0]
    assert kept.kind == ("date" if kind is str else "number")


def test_durations_survive_a_text_file(tmp_path):
    lengths = pd.to_timedelta(np.arange(60) * 5000 - 9000, unit="s")
    frame = pd.DataFrame({"length": lengths, "x": np.arange(60) % 7})
    frame.to_csv(tmp_path / "t.csv", index=False)
    written, reader = pd.read_csv(tmp_path / "t.csv"), FrameReader.of(frame)
    assert FrameReader.of(written).columns[0].treatment == reader.columns[0].treatment == "in days"
    np.testing.assert_allclose(FrameReader.of(written).codes(written), reader.codes(frame), atol=1e-12)
    np.testing.assert_allclose(FrameReader.of(written).codes(frame), reader.codes(frame), atol=1e-12)
