import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pandas as pd
import pytest

from kernelwright import MemoryBudgetError
from kernelwright.tables import read_similarities, read_table, write_table
from kernelwright.tables.writing import check_output, write_bytes

TEXT = "name,age\nAda,36\nAlan,41\n"


def packed(suffix):
    content = TEXT.encode()
    if suffix == ".zst":
        return pytest.importorskip("pyarrow").compress(content, codec="zstd", asbytes=True)
    if suffix == ".zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as folder:
            folder.writestr("people.csv", content)
        return buffer.getvalue()
    return {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, "": bytes}[suffix](content)


@pytest.fixture
def place(tmp_path):
    def write(content, name="people.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst", ".zip"])
def test_compressed_files_are_known_by_their_first_bytes(place, suffix):
    for name in (f"people.csv{suffix}", "people.csv"):
        table = read_table(place(packed(suffix), name))
        assert table.frame.to_dict("list") == {"name": ["Ada", "Alan"], "age": ["36", "41"]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_delimiter_byte_order_mark_and_line_ends(place, delimiter, mark, newline):
    text = TEXT.replace(",", delimiter).replace("\n", newline)
    table = read_table(place(mark + text.encode()))
    assert table.frame.to_dict("list") == {"name": ["Ada", "Alan"], "age": ["36", "41"]}


def test_cells_stay_as_they_are_written_and_missing_ones_are_missing(place):
    table = read_table(place("zip,a,b,c,d\n007, x ,NA,?,\n1.50,y,NaN,null,None\n"))
    assert table.frame["zip"].tolist() == ["007", "1.50"]
    assert table.frame[["b", "c", "d"]].isna().all().all()


def test_lines_count_breaks_inside_quotes_and_blank_lines(place):
    table = read_table(place('a,b\n"two\nlines",1\n\n   \nx,2\n'))
    assert len(table) == 2
    assert [table.place(0), table.place(1)] == ["line 2", "line 6"]
    assert table.take(np.array([False, True])).place(0) == "line 6"


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1, 2], "y": [0.5, None], "z": ["a", None]})
    write_table(frame, tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.place(1) == "row 2"
    pd.testing.assert_frame_equal(table.frame, frame, check_dtype=False)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("a,b\n1,2\n3\n", "1 values in line 3, but 2 in its header"),
        ("a,b\n1,2\n\n3,4,5\n", "3 values in line 4"),
        ("a,a\n1,2\n", r"several columns called 'a' \(number 1 and 2\)"),
        ("1,2\n3,4\n", "first line of .* holds numbers"),
        (b"a,b\n1,2\nx,caf\xe9\n", r"not UTF-8: byte 0xe9 at position 13 \(line 3\)"),
        (b"a,b\n1,\0\n", r"NUL byte at position 6 \(line 2\)"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
        ('a,b\n1,"2\n3,4\n', "cannot be read after line 3"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-9], "is a damaged compressed file"),
        (b"PAR1 and nothing else", "damaged Parquet"),
        (b"\xd0\xcf\x11\xe0 old", "a spreadsheet; save it as CSV"),
    ],
)
def test_what_is_wrong_with_a_file_is_a_sentence(place, content, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        read_table(place(content))
    assert "people.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_zip_must_hold_one_table(place):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as folder:
        folder.writestr("a.csv", TEXT)
        folder.writestr("b.csv", TEXT)
    with pytest.raises(ValueError, match=r"exactly one file\. It has 2: a.csv, b.csv"):
        read_table(place(buffer.getvalue(), "two.zip"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as folder:
        folder.writestr("[Content_Types].xml", "")
    with pytest.raises(ValueError, match="is a spreadsheet"):
        read_table(place(buffer.getvalue(), "table.xlsx"))


def test_no_file_a_folder_and_a_false_name(tmp_path, place):
    with pytest.raises(ValueError, match="There is no file"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(ValueError, match="has the name of a Parquet file, but is not one"):
        read_table(place(TEXT, "false.parquet"))


def test_a_file_that_unpacks_to_more_than_the_memory_is_refused(place, monkeypatch):
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 2_000_000)
    assert len(bomb) < 100_000
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1e6)
    with pytest.raises(MemoryBudgetError, match=r"The table in .* needs about"):
        read_table(place(bomb))


def test_a_parquet_file_is_refused_by_the_number_of_rows_it_claims(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    write_table(pd.DataFrame({"x": np.zeros(300_000)}), tmp_path / "long.parquet")
    assert (tmp_path / "long.parquet").stat().st_size < 20_000
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1e6)
    with pytest.raises(MemoryBudgetError, match="claims to have 300000 rows"):
        read_table(tmp_path / "long.parquet")


def test_a_parquet_column_of_lists_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    write_table(pd.DataFrame({"x": [1, 2], "words": [["a"], ["b", "c"]]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="column 'words' has lists or records"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.bz2", "t.csv.xz", "t.csv.zst", "t.zip"])
def test_what_is_written_is_read_again(tmp_path, name):
    if name.endswith(".zst"):
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": ['with "quotes", and comma', "two\nlines"], "b": ["1", "é"]})
    write_table(frame, tmp_path / name)
    assert read_table(tmp_path / name).frame.to_dict("list") == frame.to_dict("list")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_bytes(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_followed_and_a_device_is_not_replaced(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_bytes(tmp_path / "link.csv", b"new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"
    write_bytes("/dev/null", b"gone")
    assert not pytest.importorskip("pathlib").Path("/dev/null").is_file()
    with pytest.raises(OSError, match="No space left"):
        write_bytes("/dev/full", b"x")


def test_a_place_that_cannot_be_written_to_is_named_before(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="it is a folder"):
        check_output(tmp_path)
    with pytest.raises(ValueError, match="there is no folder"):
        check_output(tmp_path / "no" / "file.csv")
    monkeypatch.setattr("os.access", lambda *arguments: False)
    with pytest.raises(ValueError, match="is read-only"):
        check_output(tmp_path / "file.csv")


def test_a_quoted_name_may_hold_another_delimiter(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text('id,"income; net; monthly; eur",y\n' + "".join(f"{k},{k % 7},{'ab'[k % 2]}\n" for k in range(9)))
    assert list(read_table(path).names) == ["id", "income; net; monthly; eur", "y"]


def test_columns_of_a_parquet_file_may_be_called_by_numbers(tmp_path):
    pytest.importorskip("pyarrow")
    matrix = pd.DataFrame(np.eye(5), columns=[str(k) for k in range(5)])
    matrix.to_parquet(tmp_path / "k.parquet")
    assert read_table(tmp_path / "k.parquet").names == list("01234")
    found = read_similarities(tmp_path / "k.parquet", list("01234"), named=False)
    np.testing.assert_array_equal(found.values, np.eye(5))
