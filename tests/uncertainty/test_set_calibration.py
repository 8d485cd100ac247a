import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import SVC

from kernelwright import EmbeddingClassifier
from kernelwright.inputs.labelled_rows import LabelledRows
from kernelwright.kernels import Gaussian
from kernelwright.uncertainty.conformal import CalibrationScores, Promise, scores_of
from kernelwright.uncertainty.set_calibration import (
    LeftOutCalibration,
    SplitCalibration,
    calibrate_by_mapie,
    calibrate_cross,
    calibrate_left_out,
    calibrate_split,
    log_probabilities,
)

X, Y = make_blobs(90, centers=3, cluster_std=3.0, random_state=0)
NEW = make_blobs(30, centers=3, cluster_std=3.0, random_state=0)[0] + 0.5
PROMISE = Promise(0.8)
both = pytest.mark.parametrize("by_class", [False, True])


def naive_counts(scores, labels, new, by_class):
    """Count the calibration scores that are smaller than each new score, one by one."""
    counted = [[labels == k if by_class else slice(None) for k in range(3)] for _ in new]
    return np.array([[(scores[counted[i][k]] < row[k]).sum() for k in range(3)] for i, row in enumerate(new)])


@both
def test_split_counts_the_scores_below(by_class):
    model = LogisticRegression().fit(X[:40], Y[:40])
    found = calibrate_split(model, X[40:], Y[40:], Promise(0.8, by_class))
    odds = lambda rows: -np.log(model.predict_proba(rows) / (1 - model.predict_proba(rows)))  # noqa: E731
    own = odds(X[40:])[np.arange(50), Y[40:]]
    expected = naive_counts(own, Y[40:], odds(NEW), by_class)
    np.testing.assert_array_equal(found.smaller(NEW), expected)
    n = np.bincount(Y[40:]) if by_class else 50
    np.testing.assert_array_equal(found.sets(NEW), expected < 0.8 * (n + 1) - 1e-9)
    assert found.n_rows == 50


@both
def test_cross_adds_up_its_folds(by_class):
    rows = LabelledRows.of(X, Y)
    promise = Promise(0.8, by_class)
    found = calibrate_cross(LogisticRegression(), rows, np.arange(3), promise, n_folds=3, random_state=0)
    expected = torch.zeros(30, 3, dtype=torch.float64)
    for others, own in rows.folds(3, 0):
        expected += calibrate_split(others.fit(LogisticRegression()), own.X, own.y, promise).smaller(NEW)
    torch.testing.assert_close(found.smaller(NEW), expected)
    assert found.n_rows == 90


def test_rows_that_no_fold_can_calibrate_count_as_missed():
    y = np.array([0] * 89 + [1])
    found = calibrate_cross(
        LogisticRegression(), LabelledRows.of(X, y), np.arange(2), PROMISE, n_folds=3, random_state=0
    )
    assert len(found.parts) == 2
    assert found.n_rows == 90
    assert int(torch.isinf(found.scores.scores).sum()) == 30


def test_cross_needs_two_classes_without_any_fold():
    rows = LabelledRows.of(X[Y < 2], Y[Y < 2], groups=Y[Y < 2])
    with pytest.raises(ValueError, match="needs at least two classes"):
        calibrate_cross(LogisticRegression(), rows, np.arange(2), PROMISE, n_folds=2, random_state=0)


@both
def test_blocks_of_rows_have_the_sets_of_all(by_class, monkeypatch):
    model = EmbeddingClassifier(Gaussian(3.0), learn=None, ridge=0.02).fit(X, Y)
    found = calibrate_left_out(model, Promise(0.8, by_class))
    assert isinstance(found, LeftOutCalibration)
    assert found.n_rows == 90
    whole = found.smaller(NEW)
    monkeypatch.setattr("kernelwright.uncertainty.set_calibration.LEFT_OUT_OUTPUTS", 7 * 90 * 3)
    torch.testing.assert_close(found.smaller(NEW), whole, rtol=0, atol=0)
    assert 0 < found.sets(NEW).mean() < 1


def test_mapie_has_the_sets_of_its_own_score():
    model = LogisticRegression().fit(X[:40], Y[:40])
    ours = calibrate_split(model, X[40:], Y[40:], PROMISE)
    theirs = calibrate_by_mapie(model, X[40:], Y[40:], coverage=0.8, conformity="lac", random_state=0)
    assert theirs.n_rows == 50
    np.testing.assert_array_equal(theirs.sets(NEW), ours.sets(NEW))


def test_probabilities_have_a_column_for_each_class():
    some = Y < 2
    model = LogisticRegression().fit(X[some], Y[some])
    found = log_probabilities(model, NEW, np.arange(-1, 3)).exp()
    np.testing.assert_allclose(found[:, 1:3], model.predict_proba(NEW))
    assert not found[:, [0, 3]].any()


@pytest.mark.parametrize("machine", [SVC(), RidgeClassifier()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_values_make_scores_of_the_same_order(machine, n_classes):
    some = n_classes > Y
    machine.fit(X[some], Y[some])
    found, values = log_probabilities(machine, NEW, np.arange(n_classes)), machine.decision_function(NEW)
    np.testing.assert_allclose(found.exp().sum(1), 1.0)
    values = np.column_stack([-values, values]) if n_classes == 2 else values
    np.testing.assert_array_equal(found.argsort(1), values.argsort(1))


def test_decision_values_of_pairs_are_refused():
    many = make_blobs(50, centers=4, random_state=0)
    machine = SVC(decision_function_shape="ovo").fit(*many)
    with pytest.raises(ValueError, match="a column for each class"):
        log_probabilities(machine, NEW, machine.classes_)


@both
def test_labels_that_are_no_classes(by_class):
    log_p = torch.from_numpy(np.log(np.random.default_rng(0).dirichlet(np.ones(2), 4)))
    found = CalibrationScores.of(log_p, np.array(["b", "a", "z", "b"]), np.array(["a", "b"]), Promise(0.9, by_class))
    own = scores_of(log_p)[[0, 1, 3], [1, 0, 1]]
    torch.testing.assert_close(found.scores, own if by_class else torch.cat([own, torch.tensor([torch.inf]).double()]))
    assert found.labels[:3].tolist() == [1, 0, 1]
    assert found.counts.sum() == (3 if by_class else 4)


def test_records_hold_the_classifier_itself():
    model = LogisticRegression().fit(X, Y)
    found = calibrate_split(model, X, Y, PROMISE)
    assert isinstance(found, SplitCalibration)
    assert found.classifier is model
