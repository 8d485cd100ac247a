import pytest

from tools import tables

ROWS = [{"name": "a", "value": 0.123456}, {"name": "b, quoted", "value": 2, "note": "new column"}]


def test_rows_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "results" / "any.csv"
    tables.write(path, ROWS)
    assert tables.read(path) == [
        {"name": "a", "value": "0.123456", "note": ""},
        {"name": "b, quoted", "value": "2", "note": "new column"},
    ]
    assert [each.name for each in path.parent.iterdir()] == ["any.csv"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_line_that_was_cut_off_is_left_out(tmp_path, line_end):
    path = tmp_path / "any.csv"
    tables.write(path, ROWS, line_end=line_end)
    path.write_bytes(path.read_bytes()[:-3])
    assert [row["name"] for row in tables.read(path)] == ["a"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    class Unprintable:
        def __str__(self):
            raise RuntimeError("on purpose")

    path = tmp_path / "any.csv"
    tables.write(path, ROWS)
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="on purpose"):
        tables.write(path, [{"name": Unprintable()}])
    assert path.read_bytes() == before


def test_a_missing_file_is_an_error_unless_allowed(tmp_path):
    with pytest.raises(FileNotFoundError):
        tables.read(tmp_path / "none.csv")
    assert tables.read(tmp_path / "none.csv", missing_ok=True) == []


def test_appended_rows_have_one_header(tmp_path):
    path = tmp_path / "any.csv"
    for value in (1, 2):
        tables.append(path, [{"a": value}], ["a", "b"])
    assert path.read_text() == "a,b\n1,\n2,\n"


def test_floats_are_shown_in_the_given_format(capsys, monkeypatch):
    monkeypatch.setattr(tables, "console", tables.Console(width=80))
    tables.show("Title", ROWS, number=".2g")
    shown = capsys.readouterr().out
    assert "Title" in shown
    assert "0.12 " in shown
    assert "0.1234" not in shown
    assert "new column" in shown


def test_markdown():
    assert tables.markdown([{"a": "1", "b": tables.bold("2", True)}]) == "| a | b |\n| --- | --- |\n| 1 | **2** |\n"


@pytest.mark.parametrize(
    ("cell", "short"),
    [("12345", "12,345"), ("1234.56", "1,235"), ("0.123456", "0.123"), ("1.5e-07", "1.5e-07"), ("nan", ""), ("a", "a")],
)
def test_shortened(cell, short):
    assert tables.shortened(cell) == short
