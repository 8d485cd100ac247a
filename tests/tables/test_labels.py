import numpy as np
import pandas as pd
import pytest

from kernelwright.tables import TabularModel, TrainingTable, as_table, read_table
from kernelwright.tables.labels import labelled, spelling_notes


def labels_of(cells):
    frame = pd.DataFrame({"y": pd.Series(cells, dtype=object)})
    _, labels, classes, notes = labelled(as_table(frame), "y")
    return labels.tolist(), classes, " ".join(notes)


def test_the_same_number_is_the_same_class():
    labels, classes, notes = labels_of(["1", "1.0", "0", "0.00", "1", "2"])
    assert (labels, classes) == ([1, 1, 0, 0, 1, 2], ("0", "1", "2"))
    assert "'0' and '0.00' of 'y' are the same number and count as one class, '0'." in notes
    assert "'1' and '1.0' of 'y'" in notes


def test_numbers_that_are_written_in_one_way_keep_it():
    assert labels_of(["1.0", "0.0", "1.0"])[1:] == (("0.0", "1.0"), "")


def test_leading_zeros_are_names():
    assert labels_of(["007", "7", "07"])[1] == ("007", "07", "7")
    assert labels_of([".", "e5", "-"])[1] == ("-", ".", "e5")


def test_classes_with_marks_and_units_stand_in_their_order():
    assert labels_of(["10,000", "9", "1,000"])[1] == ("9", "1,000", "10,000")
    assert labels_of(["10 years", "9 years"])[1] == ("9 years", "10 years")


def test_spellings_are_told_and_kept_apart():
    _, classes, notes = labels_of(["Yes", "yes", "no", " yes ", "NO"])
    assert classes == ("NO", "Yes", "no", "yes")
    assert "y: 'Yes' and 'yes' differ only in case or blanks and are kept apart; if they mean" in notes
    assert "'NO' and 'no'" in notes
    assert spelling_notes(["New York", "new  york", "NEW YORK", "Rome"])[0].startswith(
        "'New York', 'new  york' and 'NEW YORK' differ"
    )
    assert spelling_notes(["a", "b"]) == []


def test_spellings_in_a_category_are_told_too():
    frame = pd.DataFrame({"town": ["Bonn", "bonn", "Ulm"] * 10, "y": ["a", "b"] * 15})
    assert any(
        note.startswith("town: 'Bonn' and 'bonn' differ") for note in TrainingTable.of(as_table(frame), "y").notes
    )


@pytest.mark.parametrize("word", ["None", "NA", "null", "n/a", "?"])
def test_a_word_for_missing_values_in_the_target_is_named(tmp_path, word):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{k * k % 17},{['mild', 'severe', word][k % 3]}\n" for k in range(30)))
    data = TrainingTable.of(read_table(path), "y")
    assert data.classes == ("mild", "severe")
    assert f"10 rows without a value of 'y' left out. The word {word!r} counts as missing there" in data.notes[0]


def test_blanks_in_the_target_are_no_word(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,a\n2,\n5,b\n3,a\n4,b\n")
    assert TrainingTable.of(read_table(path), "y").notes == ("1 row without a value of 'y' left out.",)


def test_a_target_of_nothing_but_such_words_says_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,None\n2,None\n5,NA\n")
    with pytest.raises(ValueError, match=r"is empty. 'None', 'NA' count as missing there"):
        TrainingTable.of(read_table(path), "y")


def test_new_labels_may_be_written_as_other_numbers():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=40)
    frame = pd.DataFrame({"x": y + rng.normal(size=40), "y": [str(k) for k in y]})
    model = TabularModel.fit(TrainingTable.of(as_table(frame), "y"))
    _, labels = model.label_numbers(as_table(frame.assign(y=[f"{k}.0" for k in y])))
    assert labels.tolist() == y.tolist()
