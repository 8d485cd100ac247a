"""Tables read in parts: the cells of whole files, and faults that name file and line."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pandas as pd
import pytest

from kernelwright.tables import parts, read_table
from kernelwright.tables.drift import find_drift, joined_drift
from kernelwright.tables.parts import in_parts, table_parts
from kernelwright.tables.writing import written_in_parts

TEXT = 'name;size\n"Ulm; a town";1,5\n\nBonn;\n"two\nlines";NA\nRome;3\n'


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("part_rows", [1, 2, 100])
def test_text_in_parts_has_the_cells_of_the_whole_file(tmp_path, monkeypatch, pack, part_rows):
    monkeypatch.setattr(parts, "PART_ROWS", part_rows)
    file = tmp_path / "towns.csv"
    file.write_bytes(pack(b"\xef\xbb\xbf" + TEXT.encode()))
    expected, found = read_table(file), table_parts(str(file))
    whole = found.table()
    assert [len(each) for each in found.tables()] == [part_rows] * (4 // part_rows) + [4] * (part_rows > 4)
    assert whole.frame["name"].tolist() == expected.frame["name"].tolist()
    assert whole.frame["size"].tolist() == ["1,5", "", "NA", "3"]  # which other modules read as gaps
    assert whole.lines.tolist() == expected.lines.tolist() == [2, 4, 5, 7]
    assert {tuple(each.names) for each in found.tables(["size"])} == {("size",)}


def test_files_may_have_their_own_delimiter_and_order(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y;x\n4;3\n")
    (tmp_path / "_SUCCESS").write_text("")
    for path in (str(tmp_path), str(tmp_path / "*.csv")):
        assert table_parts(path).table().frame.to_numpy().tolist() == [["1", "2"], ["3", "4"]]
        assert in_parts(path)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (b"x,z\n1,2\n", r"b.csv and .*a.csv have different columns: y, z"),
        (b"x,y\n1,2\n3\n", r"b.csv has 1 values in line 3, but 2 in its header"),
        (b'x,y\n1,"2\n', r"b.csv cannot be read after line 2"),
        (b"x,y\n1,\xff\n", r"b.csv is not UTF-8"),
        (b"1,2\n1,2\n", r"first line of .*b.csv holds numbers"),
        (b"", r"b.csv is empty"),
        (b"PAR1", r"b.csv is Parquet and .*a.csv is not"),
        (b"PK\x03\x04", r"b.csv is a zip file"),
        (gzip.compress(b"x,y\n" + b"1,2\n" * 9000, mtime=0)[:-20], r"b.csv is a damaged compressed file"),
    ],
)
def test_a_fault_names_the_file(tmp_path, second, words):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_bytes(second)
    with pytest.raises(ValueError, match=words):
        table_parts(str(tmp_path)).table()


def test_names_are_checked_before_rows_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"no target column 'Y2' \(did you mean 'y'"):
        table_parts(str(tmp_path), {"Y2": "target column"})
    for nothing in (tmp_path / "none.csv", tmp_path / "*.parquet"):
        with pytest.raises(ValueError, match="There is no file"):
            table_parts(str(nothing))


def test_rows_of_parquet_are_numbered_in_their_file(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("kernelwright.inputs.parquet_rows.PART_ROWS", 4)
    frame = pd.DataFrame({"x": np.arange(10.0), "y": list("abcdefghij")})
    frame.to_parquet(tmp_path / "a.parquet")
    found = list(table_parts(str(tmp_path)).tables())
    assert [each.row_numbers()[0] for each in found] == [1, 5, 9]
    pd.testing.assert_frame_equal(table_parts(str(tmp_path)).table().frame, frame, check_dtype=False)


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.csv.bz2", "p.csv.xz", "p.parquet"])
def test_what_is_written_in_parts_reads_as_one_table(tmp_path, name):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"name": ["a", "b", "c"], "p": [0.5, 0.25, 1.0]})
    with written_in_parts(tmp_path / name) as write:
        for row in range(3):
            write(frame.iloc[[row]])
        assert not (tmp_path / name).exists()
    found = read_table(tmp_path / name).frame
    assert found["name"].tolist() == ["a", "b", "c"]
    assert found["p"].astype(float).tolist() == [0.5, 0.25, 1.0]


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    def fail():
        with written_in_parts(tmp_path / "p.csv.gz") as write:
            write(pd.DataFrame({"x": [1]}))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"which .zip files do not allow"), written_in_parts(tmp_path / "p.csv.zip"):
        pass


def test_text_to_standard_output_has_one_header(capsysbinary):
    with written_in_parts("-") as write:
        write(pd.DataFrame({"x": [1]}))
        write(pd.DataFrame({"x": [2]}))
    assert pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))["x"].tolist() == [1, 2]


def test_drift_of_parts_is_that_of_the_whole():
    support = np.random.default_rng(0).exponential(size=1000)
    rows = np.arange(1000)
    whole = find_drift(support, [], rows=rows, n_support_rows=500)
    pieces = [find_drift(support[own], [], rows=own, n_support_rows=500) for own in np.split(rows, [300, 301])]
    assert joined_drift(pieces, 500) == whole
