"""Labels of classes: checked, numbered, one-hot."""

import numpy as np
import pytest

from kernelwright.inputs.labels import check_labels, class_labels, one_hot


def test_one_hot():
    np.testing.assert_array_equal(one_hot(np.array([2, 0, 2]), 3), [[0, 0, 1], [1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", None, "b"], r"1 missing values \(None or NaN; the first at row 1\)\. Leave these rows out"),
        (["a", float("nan"), float("nan")], r"2 missing values .* the first at row 1"),
        (["a", 1, "b"], r"mix text \('a'\) and other values \(1\).*y\.astype\(str\)"),
    ],
    ids=["none", "nan", "mixed"],
)
def test_what_are_no_labels_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        check_labels(np.array(y, dtype=object))


def test_measurements_are_no_labels():
    with pytest.raises(ValueError, match="continuous"):
        check_labels(np.array([0.5, 1.7, 2.2]))


@pytest.mark.parametrize("y", [["b", "a", "b"], [3, -1, 3], [True, False, True]], ids=["text", "numbers", "booleans"])
def test_classes_are_sorted_and_numbered(y):
    classes, labels = class_labels(np.array(y), object())
    assert classes.tolist() == sorted(set(y))
    assert classes[labels].tolist() == y


def test_one_class_is_refused_by_the_name_of_who_asks():
    class Owner: ...

    with pytest.raises(ValueError, match=r"Owner needs rows of at least 2 classes.*only one class: \['a'\]"):
        class_labels(np.array(["a", "a"]), Owner())
