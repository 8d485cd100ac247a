import math

import pytest

from kernelwright.inputs.frames.numerals import NumberCell, is_number, is_unit


@pytest.mark.parametrize(
    ("word", "is_one"), [("1,5", True), (" 2 ", True), ("1e3", True), ("5 kg", False), ("a", False)]
)
def test_a_cell_is_a_number_or_not(word, is_one):
    assert is_number(word) is is_one


def test_a_cell_has_a_value_for_each_decimal_sign_and_a_unit():
    cell = NumberCell.of("$3,671")
    assert (cell.values["."], cell.values[","], cell.unit) == (3671.0, 3.671, "$")
    assert math.isnan(NumberCell.of("1.234,5").values["."])
    assert NumberCell.of("(12)").values["."] == -12.0
    assert NumberCell.of("+-3") is None


def test_units_are_told_from_letters_of_codes():
    assert is_unit("kg")
    assert is_unit("US$")
    assert is_unit("")
    assert not is_unit("A")
