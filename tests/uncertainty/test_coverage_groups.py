import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

from kernelwright.uncertainty.coverage_groups import LabelGroups, WidthGroups, labels_by, make_groups

WIDTHS = np.arange(9.0)


def test_without_by_all_rows_are_one_group():
    groups = make_groups(None, None, WIDTHS)
    assert groups.names == ["all rows"]
    assert groups.indices(None, WIDTHS).tolist() == [0] * 9


def test_widths_are_divided_at_their_terciles():
    groups = make_groups("scale", None, WIDTHS)
    assert np.bincount(groups.indices(None, WIDTHS)).tolist() == [3, 3, 3]
    assert len(groups.names) == 3
    assert WidthGroups(groups.edges).indices(None, np.array([-1.0, 100.0])).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("values", "new", "expected"),
    [
        (["b", "a", "b", "no"], ["a", "b", "no", "c"], [0, 1, 2, -1]),
        ([3, 1, 3], [1.0, 3.0, 2.0, 9.0], [0, 1, -1, -1]),
        ([1.0, np.nan, 2.0], [np.nan, 2.0, 0.0], [2, 1, -1]),
        ([True, False], [False, True], [0, 1]),
        ([1, 2], ["2", "one"], [1, -1]),
        (["1", "2"], [2, 3], [-1, -1]),  # text is compared as text: "2.0" is not "2"
    ],
)
def test_labels_are_found_again_and_new_ones_belong_to_no_group(values, new, expected):
    table = pd.DataFrame({"other": 0.0, "label": values})
    groups = make_groups("label", table, np.zeros(len(values)))
    assert groups.indices(pd.DataFrame({"label": new}), np.zeros(len(new))).tolist() == expected


def test_a_column_of_any_table():
    table = np.arange(6.0).reshape(3, 2)
    for X in (table, table.tolist(), csr_matrix(table), pd.DataFrame(table)):
        assert labels_by(1, X).tolist() == [1.0, 3.0, 5.0]
    groups = LabelGroups(lambda X: X[:, 0] > 1, np.array([0.0, 1.0]))
    assert groups.indices(table, np.zeros(3)).tolist() == [0, 1, 1]
    assert groups.names == ["0.0", "1.0"]


@pytest.mark.parametrize("by", ["town", -1])
def test_a_column_of_any_frame_with_gaps(by):
    frame = pd.DataFrame({"size": [1.0, 2, 3], "town": pd.array(["Ulm", None, "Bonn"], dtype="string")})
    for each in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.astype({"town": "category"})):
        assert labels_by(by, each).tolist() == ["Ulm", "nan", "Bonn"]
    for each in (frame, pl.from_pandas(frame)):
        with pytest.raises(ValueError, match="no column of X"):
            labels_by(7, each)


def test_groups_of_numbers_are_found_with_and_without_gaps():
    groups = make_groups("n", pd.DataFrame({"n": pd.array([1, None, 2], dtype="Int64")}), WIDTHS[:3])
    new = pd.DataFrame({"n": pd.array([2, 1, 1], dtype="Int64")})
    assert groups.indices(new, WIDTHS[:3]).tolist() == [1, 0, 0]
    assert groups.indices(new.astype(float), WIDTHS[:3]).tolist() == [1, 0, 0]
