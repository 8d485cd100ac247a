import numpy as np
import pandas as pd
import pytest

from kernelwright.tables.writing import safe_for_spreadsheets


@pytest.mark.parametrize("cell", ["=1+1", "+x", "-x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"])
def test_text_that_begins_like_a_formula_gets_an_apostrophe(cell):
    safe = safe_for_spreadsheets(pd.DataFrame({cell: [cell, "plain", None]}))
    assert list(safe.columns) == [f"'{cell}"]
    assert safe.iloc[:, 0].tolist()[:2] == [f"'{cell}", "plain"]
    assert safe.iloc[2, 0] is None or np.isnan(safe.iloc[2, 0])


def test_numbers_stay_numbers_also_as_text_and_the_frame_stays_as_it_was():
    frame = pd.DataFrame({"n": [-1.5, 2.0], "t": ["-1.5", "+2e-3"], "w": ["-", "a-b"]})
    frame.insert(0, "n", ["=n", "n"], allow_duplicates=True)
    before = frame.copy()
    safe = safe_for_spreadsheets(frame)
    assert safe.to_numpy().tolist() == [["'=n", -1.5, "-1.5", "'-"], ["n", 2.0, "+2e-3", "a-b"]]
    pd.testing.assert_frame_equal(frame, before)
