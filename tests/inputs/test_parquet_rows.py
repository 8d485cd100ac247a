"""Parquet files as a source of rows: what is read, and what is said about files that do not fit together."""

import numpy as np
import pandas as pd
import pytest

from kernelwright.inputs import ParquetRows, parquet_rows

pytest.importorskip("pyarrow")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    size = np.where(rng.uniform(size=90) < 0.2, np.nan, rng.normal(size=90))
    return pd.DataFrame(
        {"size": size, "town": rng.choice(["Ulm", "Bonn", None], 90), "n": np.arange(90), "y": rng.integers(0, 2, 90)}
    )


@pytest.fixture
def folder(frame, tmp_path):
    for number, part in enumerate(np.split(np.arange(90), [20, 70])):
        frame.iloc[part].to_parquet(tmp_path / f"part-{number}.parquet", row_group_size=13)
    return tmp_path


def together(source):
    parts = list(source.parts())
    y = None if source.target is None else np.concatenate([part.y for part in parts])
    return pd.concat([part.X for part in parts], ignore_index=True), y, [part.place for part in parts]


@pytest.mark.parametrize("how", ["folder", "pattern", "list", "data set"])
def test_all_ways_to_name_files_read_the_same_rows(frame, folder, how, monkeypatch):
    monkeypatch.setattr(parquet_rows, "PART_ROWS", 16)
    files = {
        "folder": folder,
        "pattern": str(folder / "part-*.parquet"),
        "list": [folder / "part-0.parquet", str(folder / "part-[12].parquet")],
    }
    if how == "data set":
        import pyarrow.dataset

        files[how] = pyarrow.dataset.dataset(folder, format="parquet")
    source = ParquetRows(files[how], target="y")
    X, y, places = together(source)
    pd.testing.assert_frame_equal(X, frame[["size", "town", "n"]], check_dtype=False)
    np.testing.assert_array_equal(y, frame["y"])
    assert source.n_rows == 90
    assert max(len(part.X) for part in source.parts()) <= 16
    assert places[0].endswith("part-0.parquet, rows 1 to 16")
    assert [len(part.y) for part in source.target_parts()] == [len(part.X) for part in source.parts()]


def test_columns_and_weights_are_chosen_by_name(frame, folder):
    source = ParquetRows(folder, target="y", weight="n", columns=["town"])
    assert list(together(source)[0]) == ["town"]
    np.testing.assert_array_equal(np.concatenate([part.weights for part in source.parts()]), frame["n"])


def test_names_of_folders_are_columns(frame, tmp_path):
    for town, part in frame[["size", "y"]].groupby(frame["n"] % 2):
        (tmp_path / f"half={town}").mkdir()
        part.to_parquet(tmp_path / f"half={town}" / "rows.parquet", index=False)
    X, _, _ = together(ParquetRows(tmp_path, target="y"))
    assert X["half"].tolist() == [0] * 45 + [1] * 45


def test_an_empty_file_is_skipped(frame, folder):
    frame.iloc[:0].to_parquet(folder / "part-1b.parquet")
    assert ParquetRows(folder, target="y").n_rows == 90
    with pytest.raises(ValueError, match=r"part-1b.parquet: no row in 1 file"):
        ParquetRows(folder / "part-1b.parquet", target="y")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "Y2"}, r"part-0.parquet has no target column 'Y2'"),
        ({"target": "towm"}, r"did you mean 'town'\?"),
        ({"target": "y", "weight": "w"}, "no weight column 'w'"),
        ({"target": "y", "columns": ["sise"]}, r"no column 'sise' \(did you mean 'size'\?\)"),
        ({"target": "y", "columns": ["y", "size"]}, "columns to learn from besides y"),
        ({"target": "y", "columns": []}, "columns to learn from"),
    ],
)
def test_a_wrong_name_is_an_error(folder, options, words):
    with pytest.raises(ValueError, match=words):
        ParquetRows(folder, **options)


def test_files_that_do_not_fit_together_are_named(frame, folder):
    later = folder / "part-3.parquet"
    frame.drop(columns="town").to_parquet(later)
    with pytest.raises(ValueError, match=r"part-3.parquet has no column 'town'"):
        ParquetRows(folder, target="y")
    frame.assign(size="large").to_parquet(later)
    with pytest.raises(ValueError, match=r"Column 'size' holds text in .*part-3.parquet, but numbers in .*part-0.parq"):
        ParquetRows(folder, target="y")
    frame.assign(size=[[1, 2]] * 90).to_parquet(later)
    with pytest.raises(ValueError, match=r"part-3.parquet: column 'size' has lists"):
        ParquetRows(folder, target="y")
    frame.assign(size=None, n=frame["n"].astype("float32")).to_parquet(later)  # these fit
    assert ParquetRows(folder, target="y").n_rows == 180


def test_a_file_that_cannot_be_read_is_named(folder):
    (folder / "part-3.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ValueError, match=r"part-3.parquet is a damaged Parquet file"):
        ParquetRows(folder, target="y")
    content = (folder / "part-2.parquet").read_bytes()
    (folder / "part-3.parquet").write_bytes(content[:4] + bytes(200) + content[204:])  # the cells, not their summary
    source = ParquetRows(folder, target="y")
    with pytest.raises(ValueError, match=r"part-3.parquet is a damaged Parquet file"):
        list(source.parts())


def test_what_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"no file .*none.parquet"):
        ParquetRows(tmp_path / "none.parquet", target="y")
    with pytest.raises(ValueError, match=r"no file .*\*.parquet"):
        ParquetRows(str(tmp_path / "*.parquet"), target="y")
    with pytest.raises(ValueError, match="no Parquet file"):
        ParquetRows(tmp_path, target="y")
    with pytest.raises(ValueError, match="Got int instead"):
        ParquetRows(7, target="y")
