import numpy as np
import pandas as pd
import pytest

from kernelwright.evaluation import cross_validate, stratified_folds
from kernelwright.tables import Table, TabularModel, TrainingTable, as_table
from kernelwright.tables.pipelines import make_pipeline, rival_makers


@pytest.fixture
def frame(rng):
    """Return a table whose class depends on a number with missing values and on a category, not on other columns."""
    n = 90
    y = rng.integers(2, size=n)
    size = y + 0.3 * rng.normal(size=n)
    size[::10] = np.nan
    return pd.DataFrame(
        {
            "id": range(n),
            "size": size,
            "town": np.where(rng.random(n) < 0.8, np.where(y, "Ulm", "Bonn"), "Rom"),
            "fixed": 1,
            "answer": np.where(y, "yes", "no"),
        }
    )


def test_a_model_learns_predicts_and_knows_its_columns(frame):
    data = TrainingTable.of(as_table(frame), "answer")
    model = TabularModel.fit(data)
    assert model.used == ("size", "town")
    assert model.identifiers == ("id",)
    assert (model.classes, sum(model.class_counts)) == (("no", "yes"), 90)
    p = model.predict_proba(frame)
    assert p.sum(1) == pytest.approx(np.ones(90))
    assert np.mean(model.predict(frame) == frame["answer"]) > 0.9
    assert p[:5] == pytest.approx(model.predict_proba(frame[:5].drop(columns=["answer", "id"])))
    assert model.extra_columns(as_table(frame.assign(new=1))) == ["new"]


def test_a_category_never_seen_and_gaps_are_predicted_all_the_same(frame):
    model = TabularModel.fit(TrainingTable.of(as_table(frame), "answer"))
    new = pd.DataFrame({"size": [None, 0.5], "town": ["Paris", None]})
    assert np.isfinite(model.predict_proba(new)).all()


def test_rows_far_away_have_little_support(frame):
    model = TabularModel.fit(TrainingTable.of(as_table(frame), "answer"))
    assert np.mean(model.support(frame) < 1) < 0.1
    assert np.mean(model.support(frame.assign(size=1000.0)) < 1) > 0.2


def test_rivals_take_the_same_table(frame):
    data = TrainingTable.of(as_table(frame), "answer")
    found = cross_validate(
        lambda: make_pipeline(data.columns),
        data.frame,
        data.labels,
        classes=data.classes,
        splits=stratified_folds(data.labels, 2),
        rivals=rival_makers(data.columns),
    )
    assert list(found.rivals) == ["majority class", "logistic regression", "random forest"]
    assert found.rivals["majority class"].gain.low > 0


def test_classes_that_are_numbers_stand_in_their_order():
    frame = pd.DataFrame({"x": np.arange(12.0) ** 2, "y": ["10", "9", "2"] * 4})
    assert TrainingTable.of(as_table(frame), "y").classes == ("2", "9", "10")


def test_rows_without_a_label_are_left_out_and_lines_stay_right():
    frame = pd.DataFrame({"x": np.arange(8.0) ** 2, "y": ["a", None, "b", "a", "b", "a", "b", "a"]})
    data = TrainingTable.of(Table(frame, "t.csv", np.arange(2, 10)), "y")
    assert data.rows.tolist() == [2, 4, 5, 6, 7, 8, 9]
    assert data.frame["x"].tolist()[:2] == [0.0, 4.0]
    assert "1 row without a value of 'y' left out." in data.notes


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (["a"] * 30, "only one value, 'a'"),
        ([None] * 30, "is empty"),
        ([f"k{k}" for k in range(30)], "30 classes in 30 rows, nearly one for each row"),
        ([0.5 + k for k in range(30)], "looks like a quantity"),
        (list(range(30)), "looks like a quantity"),
    ],
)
def test_a_target_that_is_none_is_refused(y, sentence):
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=30), "y": y})
    with pytest.raises(ValueError, match=sentence):
        TrainingTable.of(as_table(frame), "y")


def test_many_whole_numbers_in_many_rows_are_classes():
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=300), "y": list(range(30)) * 10})
    assert len(TrainingTable.of(as_table(frame), "y").classes) == 30


def test_notes_say_what_is_odd(frame):
    rare = frame.assign(answer=["yes"] * 84 + ["no"] * 5 + ["perhaps"])
    notes = " ".join(TrainingTable.of(as_table(rare), "answer").notes)
    for words in (
        "Left out: id (a different whole number in every row)",
        "'yes' has 84 rows",
        "Only one row of class 'perhaps'",
    ):
        assert words in notes


def test_a_table_without_a_column_to_learn_from_is_refused(frame):
    with pytest.raises(ValueError, match=r"no column to learn from: id \(identifier\), fixed \(constant\)"):
        TrainingTable.of(as_table(frame[["id", "fixed", "answer"]]), "answer")
    with pytest.raises(ValueError, match="no column besides the target"):
        TrainingTable.of(as_table(frame[["answer"]]), "answer")


def test_names_that_are_not_there_are_answered_with_the_nearest(frame):
    with pytest.raises(ValueError, match=r"no target column 'anser' \(did you mean 'answer'\?\)\. It has: id, size"):
        TrainingTable.of(as_table(frame), "anser")
    with pytest.raises(ValueError, match="no column 'zip'"):
        TrainingTable.of(as_table(frame), "answer", drop=["zip"])


def test_labels_of_new_rows_must_be_known(frame):
    model = TabularModel.fit(TrainingTable.of(as_table(frame), "answer"))
    _, labels = model.label_numbers(as_table(frame))
    assert labels.tolist() == (frame["answer"] == "yes").astype(int).tolist()
    with pytest.raises(ValueError, match=r"class 'Yes' in row 1 .* \(did you mean 'yes'\?\)\. It knows: no, yes"):
        model.label_numbers(as_table(frame.assign(answer="Yes")))
