import numpy as np
import pandas as pd
import pytest

from kernelwright.evaluation import cross_validate, cross_validate_numbers, number_folds, stratified_folds
from kernelwright.tables import Table, TabularModel, TrainingTable, as_table
from kernelwright.tables.pipelines import make_number_pipeline, make_pipeline, number_rival_makers, rival_makers


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
    ],
)
def test_a_target_that_is_none_is_refused(y, sentence):
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=30), "y": y})
    with pytest.raises(ValueError, match=sentence):
        TrainingTable.of(as_table(frame), "y")


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


@pytest.fixture
def prices(rng):
    """Return a table whose number depends on a number with gaps and on a category; its noise is 0.3."""
    n = 150
    size, town = rng.uniform(1, 5, n), rng.choice(["Ulm", "Bonn"], n)
    price = size**2 + 3.0 * (town == "Ulm") + 0.3 * rng.normal(size=n)
    size[::25] = np.nan
    return pd.DataFrame({"id": range(n), "size": size, "town": town, "price": price})


def test_a_model_of_numbers_learns_predicts_and_knows_its_errors(prices):
    train, test = prices[:100], prices[100:]
    model = TabularModel.fit(TrainingTable.of(as_table(train), "price"))
    assert (model.task, model.used, model.classes, model.class_counts) == ("numbers", ("size", "town"), (), ())
    known = test["size"].notna()
    errors = (model.predict(test) - test["price"])[known]
    assert np.sqrt(np.mean(errors**2)) < 0.6  # the noise is 0.3, and the spread of the prices 7
    low, high = model.interval(test, 0.9).T
    assert 0.75 < np.mean((low <= test["price"]) & (test["price"] <= high)) <= 1
    assert model.quantile(test, [0.05, 0.95]) == pytest.approx(np.column_stack([low, high]))
    found, drift = model.answer_numbers(as_table(test), [0.05, 0.95])
    assert found.means == pytest.approx(model.predict(test))
    assert found.quantiles == pytest.approx(np.column_stack([low, high]))
    assert not drift.found


def test_rows_far_away_get_the_distribution_of_all_numbers(prices):
    model = TabularModel.fit(TrainingTable.of(as_table(prices), "price"))
    far = prices[:1].assign(size=1e6, town="Paris")
    low, high = model.interval(far, 0.9)[0]
    assert high - low > 0.5 * np.ptp(np.quantile(prices["price"], [0.05, 0.95]))
    assert "little more than the distribution of all training targets" in model.drift(as_table(far)).sentences()[0]


def test_rivals_of_numbers_take_the_same_table(prices):
    data = TrainingTable.of(as_table(prices), "price")
    found = cross_validate_numbers(
        lambda: make_number_pipeline(data.columns),
        data.frame,
        data.labels,
        splits=number_folds(len(prices), 2),
        rivals=number_rival_makers(data.columns),
    )
    assert list(found.rivals) == ["training mean", "ridge regression", "random forest", "gradient boosting"]
    assert all(rival.gain.low > 0 for rival in found.rivals.values())
    ridge = found.rivals["ridge regression"].scores.r2.value
    assert 0.8 < ridge < found.scores.r2.value  # the rivals are no straw men


def test_targets_of_new_rows_are_numbers_as_in_training(prices):
    model = TabularModel.fit(TrainingTable.of(as_table(prices), "price"))
    rows, y = model.with_target(as_table(prices.assign(price=[None, *prices["price"][1:]])))
    assert (len(rows), y.tolist()) == (149, prices["price"][1:].tolist())
    with pytest.raises(ValueError, match="holds numbers, but the table has 'cheap' in row 2"):
        model.with_target(as_table(prices.assign(price=[1, "cheap", *prices["price"][2:]])))
    assert not model.target_drift(y).found
    assert model.target_drift(y + 5).found


def test_a_number_far_away_from_all_others_is_named(prices):
    frame = prices.assign(price=[9e6, *prices["price"][1:]])
    assert any(
        "'price' is 9e+06 in row 1, far away" in note for note in TrainingTable.of(as_table(frame), "price").notes
    )
    assert not any("far away" in note for note in TrainingTable.of(as_table(prices), "price").notes)


def test_importance_is_by_columns_of_the_table_with_their_shares_of_the_kernel(frame):
    data = TrainingTable.of(as_table(frame[:60]), "answer")
    folds = {"classes": data.classes, "splits": stratified_folds(data.labels, 2)}
    measured = cross_validate(lambda: make_pipeline(data.columns), data.frame, data.labels, **folds)
    model = TabularModel.fit(data, evaluation=measured)
    rows = {row.name: row for row in model.importance().rows}
    assert set(rows) == {"size", "town"}
    assert all(row.clear for row in rows.values())
    shares = {row.name: row.share for row in model.estimator.relevance().rows}
    assert {name: row.share for name, row in rows.items()} == pytest.approx(shares)
    new = model.importance(frame[60:], n_repeats=4)
    assert {row.name: row.share for row in new.rows} == {name: row.share for name, row in rows.items()}
    assert (new.n_rows, new.n_repeats) == (30, 4)
    with pytest.raises(ValueError, match="was not cross-validated"):
        TabularModel.fit(data).importance()
