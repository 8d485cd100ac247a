import numpy as np
import pandas as pd
import pytest

from kernelwright.inputs.frames.cells import days_since_1970, numbers, texts
from kernelwright.tables import as_table
from tests.tables.made_up import text_table


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([1.0, np.nan, 2.5], ["1", None, "2.5"]),
        ([True, False, True], ["True", "False", "True"]),
        ([" a", None, "b "], ["a", None, "b"]),
    ],
)
def test_typed_cells_become_the_text_of_a_file(cells, words):
    found = texts(as_table(pd.DataFrame({"x": cells})), "x")
    assert found.where(found.notna(), None).tolist() == words


def test_days_are_counted_from_1970_and_what_is_no_date_is_odd():
    days, odd = days_since_1970(text_table(x=["1970-01-02", "1969-12-31T12:00", "soon", None]), "x")
    np.testing.assert_array_equal(days, [1.0, -0.5, np.nan, np.nan])
    assert odd.tolist() == [False, False, True, False]


def test_infinity_is_no_number():
    assert numbers(text_table(x=["inf", "2"]), "x")[1].tolist() == [True, False]
    values, odd = numbers(as_table(pd.DataFrame({"x": [np.inf, 2.0]})), "x")
    assert odd.tolist() == [True, False]
    np.testing.assert_array_equal(values, [np.nan, 2.0])
