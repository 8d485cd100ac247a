import numpy as np
import pandas as pd
import pytest
import torch

from kernelwright.inputs.any_targets import (
    DistinctTargets,
    check_any_rows,
    check_any_targets,
    check_levels,
    kind_of,
    values_at,
)

LABELS = np.array(["up", "down", "up"])


@pytest.mark.parametrize(
    ("Y", "kind"),
    [
        ([1, 2, 3], "numbers"),
        ([1.5, 2.0, 3.0], "numbers"),
        ([[1.0, 2.0], [3.0, 4.0]], "vectors"),
        ([True, False, True], "labels"),
        (["a", "b"], "labels"),
        (pd.Series([1, 2, 1], dtype="category"), "labels"),
        (pd.Series(["a", "b"], dtype=object), "labels"),
        (torch.tensor([1.0, 2.0], requires_grad=True), "numbers"),
    ],
)
def test_kinds(Y, kind):
    assert kind_of(check_any_targets(Y)) == kind


def test_negative_zero_is_zero():
    checked = check_any_targets(np.array([-0.0, 0.0]))
    assert not np.signbit(checked).any()


@pytest.mark.parametrize(
    ("Y", "sentence"),
    [
        (np.array([["a", "b"]]), "single column"),
        (np.array(["a", None], dtype=object), "contain None"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "Targets must be numbers"),
        ([1.0, np.nan], "NaN"),
    ],
)
def test_what_is_no_target_is_refused(Y, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_any_targets(Y)


def test_rows_and_targets_must_be_equally_many():
    X, Y = check_any_rows(None, ["ab", "b"], ["u", "v"], vectors=False)
    assert X.dtype == object
    assert Y.tolist() == ["u", "v"]
    with pytest.raises(ValueError, match="inconsistent"):
        check_any_rows(None, ["ab", "b", "c"], ["u", "v"], vectors=False)


@pytest.mark.parametrize("Y", [[2.0, 1.0, 2.0], [[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]], ["b", "a", "b"]])
def test_distinct_targets_are_sorted_and_counted(Y):
    Y = np.array(Y)
    found = DistinctTargets.of(Y)
    assert found.number.tolist() == [1, 0, 1]
    assert found.counts.tolist() == [1, 2]
    np.testing.assert_array_equal(found.values[found.number], Y)


def test_labels_that_cannot_be_sorted_are_refused():
    with pytest.raises(ValueError, match=r"one type.*\['int', 'str'\]"):
        DistinctTargets.of(np.array(["a", 1], dtype=object))


@pytest.mark.parametrize(
    ("g", "expected"),
    [
        (None, [[0, 1], [1, 0], [0, 1]]),
        ({"up": 1.5, "down": -1.0, "sideways": 0.0}, [1.5, -1.0, 1.5]),
        (lambda Y: Y == "up", [1, 0, 1]),
        ([3, 4, 5], [3, 4, 5]),
    ],
)
def test_values_of_functions(g, expected):
    found = values_at(g, LABELS, np.array(["down", "up"]))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)


def test_a_function_cannot_change_the_targets():
    Y = np.array([1.0, 2.0])

    def g(Y):
        Y *= 0.0
        return Y

    np.testing.assert_array_equal(values_at(g, Y, Y), 0.0)
    np.testing.assert_array_equal(values_at(None, Y, Y), [1.0, 2.0])


@pytest.mark.parametrize(
    ("g", "sentence"),
    [
        ({"up": 1.0}, r"none for \['down'\]"),
        ([1.0, 2.0], "each of the 3 training targets"),
        (lambda Y: 1.0, "each of the 3 training targets"),
        ([1.0, np.inf, 0.0], "NaN or infinity"),
    ],
)
def test_values_that_are_none_are_refused(g, sentence):
    with pytest.raises(ValueError, match=sentence):
        values_at(g, LABELS, np.array(["down", "up"]))


def test_a_mapping_is_for_labels():
    with pytest.raises(ValueError, match="for labels"):
        values_at({1.0: 2.0}, np.array([1.0]), np.array([1.0]))


@pytest.mark.parametrize("q", [1.5, [-0.1, 0.5], [[0.5]], np.nan])
def test_levels_outside_the_unit_interval_are_refused(q):
    with pytest.raises(ValueError, match="'q' parameter"):
        check_levels(q)
    assert check_levels([0, 1]).tolist() == [0.0, 1.0]
