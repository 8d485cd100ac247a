import math

import pytest

from kernelwright.evaluation import Rival, Score
from kernelwright.reports.formatting import column_range, count_of, interval, number, percent, record_rows, verdict
from kernelwright.tables import Column


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.000"),
        (5e-16, "0.000"),
        (0.5, "0.500"),
        (-0.0123, "-0.012"),
        (1.2345e-5, "1.23e-05"),
        (31.52, "31.5"),
        (12345.6, "12,346"),
        (2.5e7, "2.5e+07"),
        (math.inf, "unbounded"),
        (math.nan, "unknown"),
    ],
)
def test_numbers(value, shown):
    assert number(value) == shown


def test_shares_and_counts():
    assert percent(0.1234) == "12.3\N{NO-BREAK SPACE}%"
    assert [count_of(1, "class"), count_of(2, "class"), count_of(1200, "row")] == ["1 class", "2 classes", "1,200 rows"]


def test_an_interval_of_one_row_is_none():
    assert interval(Score(0.3, 0.0, math.inf)) == "too few rows for an interval"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.01, 0.2, "this model is better"), (-0.2, -0.01, "this model is worse"), (-0.1, 0.1, "no clear difference")],
)
def test_the_verdict_needs_an_interval_on_one_side_of_zero(low, high, said):
    assert verdict(Rival(None, Score((low + high) / 2, low, high), 1.0)) == said


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (Column("a", "number", "", low=1.5, high=2e6), "1.5 to 2e+06"),
        (Column("a", "date", "", low=0.0, high=365.5), "1970-01-01 to 1971-01-01"),
        (Column("a", "date", "", low=-1e9, high=0.0), "day -1e+09 after 1970 to 1970-01-01"),
        (Column("a", "boolean", "", categories=("no", "yes")), "no or yes"),
        (Column("a", "category", "", categories=("u", "v", "w", "x"), counts=(1, 9, 5, 7)), "v, x, w and 1 more"),
        (Column("a", "identifier", ""), ""),
    ],
)
def test_ranges_of_columns(column, shown):
    assert column_range(column) == shown


def test_settings_become_words():
    rows = record_rows({"some_seed": 3, "ridge": 0.123456789, "columns": ("a", "b"), "kernel": "x" * 400})
    assert rows[:3] == [("some seed", "3"), ("ridge", "0.123457"), ("columns", "a, b")]
    assert len(rows[3][1]) == 301
