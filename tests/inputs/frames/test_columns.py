import pytest

from kernelwright.inputs.frames.columns import Column, columns_summary
from kernelwright.tables import describe_columns
from tests.tables.made_up import text_table

N = 12


def kind_of(cells, name="x", **choices):
    return describe_columns(text_table(**{name: cells}), **choices)[0]


@pytest.mark.parametrize(
    ("cells", "name", "kind"),
    [
        (["1", "2.5", "-3e2", None] * 3, "x", "number"),
        (["0", "1"] * 6, "x", "number"),
        (["yes", "no", None] * 4, "x", "boolean"),
        (["True", "FALSE"] * 6, "x", "boolean"),
        (["a", "b", "c"] * 4, "x", "category"),
        (["2020-01-01", "2021-12-31T10:00:00"] * 6, "x", "date"),
        (["2020-13-45", "2021-12-31"] * 6, "x", "category"),  # no such month
        ([str(k) for k in range(100, 112)], "x", "identifier"),  # counts the rows
        ([str(k * k) for k in range(N)], "x", "number"),  # different, but does not count
        ([str(k * k) for k in range(N)], "customerId", "identifier"),
        ([str(k * k) for k in range(N)], "liquid", "number"),
        ([f"k{k}" for k in range(N)], "x", "identifier"),
        (["a", "b", "c", "d"], "x", "category"),  # few rows, no telling name
        (["a", "b", "c", "d"], "row_id", "identifier"),
        ([f"word {k // 2}" for k in range(30)] + [f"once {k}" for k in range(10)], "x", "text"),
        (["same"] * N, "x", "constant"),
        ([None] * N, "x", "constant"),
        (["x", None] * 6, "ticked", "category"),
        (["1", None, None] * 4, "ticked", "number"),
        (["same"] * (N - 1) + [None], "x", "constant"),  # one gap says nothing, nor does
        (["same"] + [None] * (N - 1), "x", "constant"),  # one value
    ],
)
def test_kinds_are_found_from_the_cells(cells, name, kind):
    assert kind_of(cells, name).kind == kind


def test_the_user_has_the_last_word():
    cells = [f"k{k}" for k in range(N)]
    assert kind_of(cells, keep=["x"]).kind == "category"
    assert kind_of(["1", "2"] * 6, ids=["x"]).kind == "identifier"
    assert kind_of(["1", "2"] * 6, drop=["x"]).kind == "dropped"
    assert kind_of([str(k) for k in range(N)], keep=["x"]).kind == "number"


def test_what_was_seen_is_recorded():
    number, category = describe_columns(text_table(n=["3", "-1", None, "7"] * 3, c=["b", "a", "a", None] * 3))
    assert (number.low, number.high, number.missing, number.distinct) == (-1.0, 7.0, 3, 3)
    assert (category.categories, category.counts, category.missing) == (("a", "b"), (6, 3), 3)


def test_free_text_is_summed_up_as_bags_of_words():
    one, other = Column("a", "words", ""), Column("b", "words", "")
    assert columns_summary([one, Column("c", "text", "")]) == "1 bag of words; left out: 1 text"
    assert columns_summary([one, other]) == "2 bags of words"
