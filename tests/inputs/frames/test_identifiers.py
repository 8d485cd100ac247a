import numpy as np
import pandas as pd
import pytest

from kernelwright.inputs.frames.identifiers import counter, is_id_name
from kernelwright.tables import TrainingTable, as_table, describe_columns, read_table


@pytest.fixture
def passengers(rng):
    """Return rows sorted by class, as in a file that was put together class by class."""
    n = 300
    y = np.repeat([0, 1], n // 2)
    return pd.DataFrame({"age": rng.integers(1, 80, n), "fare": rng.gamma(2.0, 20.0, n).round(2), "survived": y})


def kinds_in_file(frame, tmp_path, **choices):
    path = tmp_path / "t.csv"
    frame.to_csv(path)
    table = read_table(path)
    return {column.name: column for column in TrainingTable.of(table, "survived", **choices).columns}


@pytest.mark.parametrize("share", [1.0, 0.7, 0.1])
@pytest.mark.parametrize("in_order", [True, False])
def test_the_row_numbers_that_pandas_writes_are_left_out(passengers, tmp_path, share, in_order):
    part = passengers.sample(frac=share, random_state=0)
    columns = kinds_in_file(part.sort_index() if in_order else part, tmp_path)
    assert columns["column 1"].kind == "identifier"
    assert "without a name" in columns["column 1"].treatment
    assert columns["age"].kind == columns["fare"].kind == "number"


def test_row_numbers_of_parts_that_were_put_together_repeat(passengers, tmp_path):
    parts = pd.concat([passengers.sample(frac=0.5, random_state=k) for k in range(3)])
    assert kinds_in_file(parts, tmp_path)["column 1"].kind == "identifier"


def test_row_numbers_can_be_kept_and_are_named_in_a_note(passengers, tmp_path):
    part = passengers.sample(frac=0.7, random_state=0)
    assert kinds_in_file(part, tmp_path, keep=["column 1"])["column 1"].kind == "number"
    notes = TrainingTable.of(read_table(tmp_path / "t.csv"), "survived").notes
    assert any(note.startswith("Left out: column 1 (") and "--keep COLUMN" in note for note in notes)


def test_a_first_column_without_a_name_may_be_a_feature(passengers, tmp_path):
    passengers.index = np.random.default_rng(0).normal(size=len(passengers)).round(3)
    assert kinds_in_file(passengers, tmp_path)["column 1"].kind == "number"
    passengers.index = np.random.default_rng(0).integers(0, 3, len(passengers))  # no numbers of rows are so few
    assert kinds_in_file(passengers, tmp_path)["column 1"].kind == "number"


def test_a_column_without_a_name_elsewhere_is_like_any_other(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,,y\n" + "".join(f"{k % 7},{k % 40},{'ab'[k % 2]}\n" for k in range(80)))
    assert [column.kind for column in describe_columns(read_table(path))] == ["number", "number", "category"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rows", [30, 300, 3000])
def test_counters_are_found_whatever_their_name(seed, rows):
    rng = np.random.default_rng(seed)
    for values in (
        np.arange(rows) + 500,
        rng.permutation(rows),
        rng.permutation(2 * rows)[: round(1.4 * rows)],
        np.sort(rng.permutation(4 * rows)[:rows]),
    ):
        assert counter("x", values.astype(float))


def test_a_tenth_of_a_long_counter_is_found():
    rng = np.random.default_rng(0)
    assert counter("x", rng.permutation(3000)[:300].astype(float))


@pytest.mark.parametrize("seed", range(20))
def test_whole_numbers_that_say_something_are_no_counters(seed):
    rng = np.random.default_rng(seed)
    columns = {
        "age": rng.integers(18, 90, size=200),
        "children": rng.poisson(1.5, size=200),
        "count": rng.poisson(500, size=40),
        "zip": rng.choice(np.arange(10000, 99999, 37), size=100)[rng.integers(100, size=500)],
        "price": rng.integers(50_000, 900_000, size=300),
        "income": np.round(rng.lognormal(10.5, 0.6, size=400)),
        "year_of_birth": rng.integers(1930, 2005, size=20),
        "odometer": np.sort(rng.integers(0, 300_000, size=300)),
        "seconds": np.sort(1_700_000_000 + rng.integers(0, 10_000_000, size=1000)),
        "squares": np.arange(40) ** 2,
        "dose": np.arange(0, 200, 5),
        "few": rng.permutation(9),
    }
    for name, values in columns.items():
        assert counter(name, values.astype(float)) == "", name


def test_years_that_follow_each_other_are_years():
    assert counter("year", np.arange(1960.0, 2020.0)) == ""
    assert counter("Calendar Year", np.arange(1960.0, 2020.0)) == ""
    assert counter("x", np.arange(1960.0, 2020.0))


def test_gaps_and_fractions_are_no_counters():
    assert counter("x", np.append(np.arange(20.0), np.nan)) == ""
    assert counter("x", np.arange(20.0) / 4) == ""
    assert counter("x", np.array([3.0])) == ""


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "customer_id", "customerId", "RowNumber", "row number", "Unnamed: 0", "obs", "UNITID", "userid"],
)
def test_names_that_say_identifier(name):
    assert is_id_name(name)


@pytest.mark.parametrize("name", ["liquid", "COVID", "orderly", "video", "row_width", "rows", "age"])
def test_names_that_do_not(name):
    assert not is_id_name(name)


def test_numbers_with_a_unit_count_nothing():
    frame = pd.DataFrame({"weight": [f"{k} kg" for k in range(50, 90)], "y": ["a", "b"] * 20})
    assert describe_columns(as_table(frame))[0].kind == "number"
