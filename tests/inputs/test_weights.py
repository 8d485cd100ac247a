"""Weights and groups of rows."""

import operator
from functools import reduce

import numpy as np
import pytest
from sklearn.utils import compute_class_weight

from kernelwright.inputs.weights import ClassTotals, check_class_weight, group_numbers, row_weights


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(100, 3)), rng.choice(["a", "b", "c"], 100), rng.integers(0, 3, 100).astype(float)


def test_totals_of_parts_add_up(rows):
    _, y, weights = rows
    y, weights = y[weights > 0], weights[weights > 0]
    whole = ClassTotals.of(y, weights)
    parts = reduce(operator.add, [ClassTotals.of(y[part], weights[part]) for part in np.array_split(range(len(y)), 9)])
    empty = ClassTotals.of(y[:0], weights[:0])
    for each in (parts, whole + empty, empty + whole):
        assert each.classes.tolist() == ["a", "b", "c"]
        for name in ("rows", "weight", "largest"):
            np.testing.assert_array_equal(getattr(each, name), getattr(whole, name))
    assert whole.rows.tolist() == [(y == label).sum() for label in "abc"]
    assert whole.weight.tolist() == [weights[y == label].sum() for label in "abc"]
    expected = compute_class_weight("balanced", classes=whole.classes, y=y)
    found = whole.factors("balanced")
    np.testing.assert_allclose(found / found[0], expected / expected[0])
    assert found @ whole.weight == pytest.approx(len(y))


def test_weights_are_relative():
    totals = ClassTotals.of(np.array([0, 0, 1]), np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(totals.factors(None), 1.0 / 0.2)
    np.testing.assert_allclose(ClassTotals.of(np.array([0, 1]), np.array([0.5, 2.0])).factors(None), 1.0 / 1.25)
    with pytest.raises(ValueError, match="overflows"):
        ClassTotals.of(np.array([0, 1]), np.array([1.5e308, 1.5e308])).factors(None)


# Rows -----------------------------------------------------------------------------------------------------------


def test_row_weights_have_mean_one_over_the_rows_that_count():
    y, given = np.array([0, 0, 1, 1]), np.array([2.0, 0.0, 1.0, 3.0])
    np.testing.assert_allclose(row_weights(y, given, None), given * 3 / 6)
    np.testing.assert_allclose(row_weights(y, given, {0: 3.0}), np.array([6.0, 0.0, 1.0, 3.0]) * 3 / 10)
    np.testing.assert_array_equal(row_weights(y, None, None), np.ones(4))


def test_balanced_classes_weigh_the_same():
    y = np.array([0, 0, 0, 1])
    weights = row_weights(y, None, "balanced")
    assert weights[y == 0].sum() == pytest.approx(weights[y == 1].sum())
    assert weights.sum() == pytest.approx(4.0)


@pytest.mark.parametrize("factor", [1e-300, 3.7, 1e300])
def test_a_factor_on_all_weights_changes_nothing(factor):
    y, given = np.array([0, 1, 1]), np.array([0.2, 0.7, 1.1])
    np.testing.assert_array_equal(row_weights(y, factor * given, None), row_weights(y, given, None))


def test_a_weight_that_is_nothing_beside_the_others_is_zero():
    assert row_weights(np.array([0, 1, 1]), [1.0, 1.0, 1e-200], None).tolist() == [1.0, 1.0, 0.0]


def test_given_weights_are_left_as_they_were():
    given = np.array([1.0, 2.0])
    row_weights(np.array([0, 1]), given, {0: 5.0})
    assert given.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, "much", None], ids=str)
def test_weights_of_classes_that_are_none_are_refused_by_name(bad):
    with pytest.raises(ValueError, match=r"class_weight\['a'\] must be a number of at least 0 and finite"):
        check_class_weight({"b": 1.0, "a": bad})


def test_weights_of_no_class_are_refused():
    with pytest.raises(ValueError, match=r"names none of the classes: its keys are \['x'\], the classes are \[0, 1\]"):
        row_weights(np.array([0, 1]), None, {"x": 2.0})
    with pytest.raises(ValueError, match="All weights are zero"):
        row_weights(np.array([0, 1]), None, {0: 0.0, 1: 0.0})


# Groups ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [["b", "a", "b"], [7, 2, 7], [[7], [2], [7]]], ids=["text", "numbers", "column"])
@pytest.mark.filterwarnings("ignore:A column-vector")
def test_groups_are_numbered(groups):
    assert group_numbers(groups, 3).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (["a", "b"], ValueError, "for each of the 3 rows. Got 2 instead"),
        (np.array(["a", None, "b"], dtype=object), ValueError, "1 missing values .the first at row 1"),
        ([1.0, 2.0, np.nan], ValueError, "1 missing values .the first at row 2"),
        (np.array(["a", 1, "b"], dtype=object), TypeError, "mixes numbers and text"),
    ],
    ids=["few", "none", "nan", "mixed"],
)
def test_groups_that_are_none_are_refused(groups, error, message):
    with pytest.raises(error, match=message):
        group_numbers(groups, 3)
