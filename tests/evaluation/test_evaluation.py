import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm
from sklearn import metrics
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from kernelwright.evaluation import (
    Evaluation,
    cross_validate,
    hardest_rows,
    prediction_sets,
    score,
    stratified_folds,
)
from kernelwright.evaluation.importance import permuted_rows
from kernelwright.uncertainty.scores import expected_calibration_error

CLASSES = ("a", "b", "c")


@pytest.fixture
def said(rng):
    """Return true probabilities and labels drawn from them."""
    p = rng.dirichlet([1.0, 0.7, 0.4], size=300)
    return p, np.array([rng.choice(3, p=row) for row in p])


def test_scores_are_those_of_scikit_learn(said):
    p, y = said
    found = score(p, y)
    assert found.accuracy.value == metrics.accuracy_score(y, p.argmax(1))
    assert found.log_loss.value == pytest.approx(metrics.log_loss(y, p))
    assert found.brier.value == pytest.approx(
        np.mean([(row - np.eye(3)[k]) @ (row - np.eye(3)[k]) for row, k in zip(p, y, strict=True)])
    )
    assert found.calibration_error.value == expected_calibration_error(p, y)
    counted = np.zeros((p.shape[1], p.shape[1]), dtype=int)
    for actual, given in zip(y, p.argmax(1), strict=True):
        counted[actual, given] += 1
    found = Evaluation.of(p, y, classes=[str(k) for k in range(p.shape[1])], protocol="by hand")
    assert np.array_equal(found.confusion(), counted)


@pytest.mark.parametrize("hits", [0, 7, 20])
def test_the_interval_of_the_accuracy_is_wilsons(hits):
    p = np.tile([0.9, 0.1], (20, 1))
    found = score(p, np.array([0] * hits + [1] * (20 - hits))).accuracy
    expected = binomtest(hits, 20).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    for end in (found.low, found.high):  # where the score test is just not significant
        assert abs(end - hits / 20) == pytest.approx(norm.ppf(0.975) * math.sqrt(end * (1 - end) / 20), abs=1e-9)


def test_the_intervals_hold_the_truth_about_as_often_as_they_say(rng):
    inside = np.zeros(3)
    p = rng.dirichlet([2.0, 1.0], size=20_000)
    truth = [p.max(1).mean(), -(p * np.log(p)).sum(1).mean(), (2 * p.prod(1)).mean()]
    for _ in range(100):
        rows = rng.integers(len(p), size=100)
        y = (rng.random(100) > p[rows, 0]).astype(int)
        found = score(p[rows], y)
        scores = (found.accuracy, found.log_loss, found.brier)
        inside += [each.low <= true <= each.high for each, true in zip(scores, truth, strict=True)]
    assert np.all(inside / 100 > 0.88)


def test_the_calibration_error_lies_in_its_interval_and_tells_lies_from_truth(said):
    p, y = said
    honest, boastful = score(p, y).calibration_error, score(np.eye(3)[p.argmax(1)], y).calibration_error
    for found in (honest, boastful):
        assert 0 <= found.low <= found.value <= found.high <= 1
    assert boastful.low > honest.high


def test_a_probability_of_zero_is_not_infinitely_bad():
    found = score(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]))
    assert found.log_loss.value == pytest.approx(-0.5 * math.log(1e-15))


def test_scores_refuse_what_does_not_fit_together():
    with pytest.raises(ValueError, match="a row of probabilities for each label"):
        score(np.ones((3, 2)) / 2, np.zeros(2, dtype=int))


def test_the_hardest_rows_come_first_with_their_numbers():
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    found = hardest_rows(p, np.array([0, 0, 1]), rows=np.array([12, 15, 19]), classes=("no", "yes"), count=2)
    assert [(row.row, row.actual, row.predicted) for row in found] == [(15, "no", "yes"), (19, "yes", "no")]
    assert found[0].loss == pytest.approx(-math.log(0.2))


def test_folds_are_fewer_where_a_class_is_small_and_hold_all_classes():
    y = np.array([0] * 30 + [1] * 3)
    splits = stratified_folds(y, 5, seed=1)
    assert len(splits) == 3
    assert all(set(y[train]) == set(y[test]) == {0, 1} for train, test in splits)
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(33))


def test_cross_validation_gives_each_row_the_model_that_has_not_seen_it():
    X, y = load_iris(return_X_y=True)
    names = []
    found = cross_validate(
        lambda: LogisticRegression(max_iter=500),
        X,
        y,
        classes=CLASSES,
        splits=stratified_folds(y, 3, seed=5),
        rivals={"majority class": lambda: DummyClassifier(strategy="prior")},
        progress=names.append,
    )
    folds = StratifiedKFold(3, shuffle=True, random_state=5)
    expected = cross_val_predict(LogisticRegression(max_iter=500), X, y, cv=folds, method="predict_proba")
    assert found.probabilities == pytest.approx(expected)
    assert names == ["", "majority class"] * 3
    rival = found.rivals["majority class"]
    assert rival.scores.log_loss.value == pytest.approx(np.log(3), abs=0.01)
    assert rival.gain.value == pytest.approx(rival.scores.log_loss.value - found.scores.log_loss.value)
    assert rival.gain.low > 0
    assert "3 folds" in found.protocol


def test_a_class_that_a_fold_has_not_learned_has_no_probability():
    X, y = np.arange(10.0)[:, None], np.array([0, 1] * 4 + [0, 2])
    splits = [(np.arange(5), np.arange(5, 10)), (np.arange(5, 10), np.arange(5))]
    found = cross_validate(lambda: LogisticRegression(), X, y, classes=CLASSES, splits=splits)
    assert found.probabilities[9, 2] == 0.0
    assert found.probabilities.sum(1) == pytest.approx(np.ones(10))


def test_prediction_sets_hold_the_true_class_as_often_as_they_say(rng):
    p = rng.dirichlet([1.0, 1.0, 1.0], size=4000)
    y = np.array([rng.choice(3, p=row) for row in p])
    seen = Evaluation.of(p[:2000], y[:2000], classes=CLASSES, protocol="drawn")
    for coverage in (0.6, 0.9):
        inside = prediction_sets(seen, p[2000:], coverage)
        hit = inside[np.arange(2000), y[2000:]].mean()
        assert coverage - 0.03 < hit < coverage + 0.06
    assert prediction_sets(seen, p[2000:], 0.99999).all()  # too few rows to leave any class out
    with pytest.raises(ValueError, match="between 0 and 1"):
        prediction_sets(seen, p, 1.5)


def test_a_summary_is_plain(said):
    import json

    found = Evaluation.of(*said, classes=CLASSES, protocol="drawn")
    found.rivals["same"] = found.compare(said[0])
    again = json.loads(json.dumps(found.summary()))
    assert again["rivals"]["same"]["gain"]["value"] == 0.0
    assert again["accuracy"]["value"] == found.scores.accuracy.value


class Refuses:
    def fit(self, X, y):
        raise ValueError("no such numbers")


def test_a_rival_that_fails_is_left_out():
    X, y = load_iris(return_X_y=True)
    found = cross_validate(
        lambda: LogisticRegression(max_iter=500),
        X,
        y,
        classes=("a", "b", "c"),
        splits=stratified_folds(y, 2),
        rivals={"refuses": Refuses, "majority class": lambda: DummyClassifier(strategy="prior")},
    )
    assert list(found.rivals) == ["majority class"]
    with pytest.raises(ValueError, match="no such numbers"):
        cross_validate(Refuses, X, y, classes=("a", "b", "c"), splits=stratified_folds(y, 2))


def test_a_class_of_one_row_does_not_lower_the_number_of_folds():
    assert len(stratified_folds(np.array([0] * 20 + [1] * 20 + [2]), 5)) == 5
    splits = stratified_folds(y := np.array([0] * 20 + [1]), 5)
    assert len(splits) == 4  # one fold would have one class to learn from
    assert all(len(np.unique(y[train])) == 2 for train, _ in splits)
    with pytest.raises(ValueError, match="at least two rows"):
        stratified_folds(np.array([0, 1]), 5)


def test_the_models_of_the_folds_say_which_columns_they_look_at(rng):
    X = pd.DataFrame({"noise": rng.permutation(300) + 1e4, "deciding": rng.normal(size=300)})
    y = (X["deciding"] + 0.5 * rng.normal(size=300) > 0).to_numpy().astype(int)
    splits = stratified_folds(y, 3)
    found = cross_validate(LogisticRegression, X, y, classes=("no", "yes"), splits=splits)
    first, second = found.importance.rows
    assert (first.name, second.name) == ("deciding", "noise")
    assert first.low > 0.1
    assert second.low <= 0 <= second.high
    assert (found.importance.measure, found.importance.n_rows) == ("log loss", 300)
    assert found.importance.base == pytest.approx(found.scores.log_loss.value)  # all rows were permuted
    expected = []
    for train, test in splits:  # every permutation is about as good as any other
        model = LogisticRegression().fit(X.iloc[train], y[train])
        expected += list(
            permutation_importance(model, X.iloc[test], y[test], scoring="neg_log_loss", n_repeats=10).importances[1]
        )
    assert first.low < np.mean(expected) < first.high


def test_importance_costs_a_bounded_number_of_predictions():
    for n_test, n_columns, n_folds in ((10, 3, 5), (600, 10, 5), (5000, 4, 2), (600, 299, 5), (600, 301, 5), (5, 1, 2)):
        rows, repeats = permuted_rows(n_test, n_columns, n_folds)
        assert rows * repeats * n_columns <= 6000
        assert rows * n_folds <= 2000
        assert (rows > 0) == (n_columns <= 300)
