"""Calibration scores against loops and scikit-learn."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from kernelwright.uncertainty.scores import expected_calibration_error, rejection_curve, reliability
from tests import reference as naive


@pytest.mark.parametrize("n_bins", [1, 5, 15])
def test_expected_calibration_error_equals_a_loop(n_bins):
    rng = np.random.default_rng(0)
    p, labels = rng.dirichlet([0.5, 0.5, 0.5], size=200), rng.integers(0, 3, 200)
    expected = naive.expected_calibration_error(p, labels, n_bins)
    assert expected_calibration_error(p, labels, n_bins) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("label", "error"), [(0, 0.0), (1, 1.0)])
def test_calibration_error_of_certainty(label, error):
    p = np.tile([1.0, 0.0], (10, 1))
    assert expected_calibration_error(p, np.full(10, label)) == error


def test_calibration_error_of_frequencies_that_are_right_is_zero():
    p = np.tile([0.75, 0.25], (8, 1))
    assert expected_calibration_error(p, np.array([0, 0, 0, 1, 0, 0, 0, 1])) == pytest.approx(0.0, abs=1e-15)


def test_reliability_equals_scikit_learns_curve_for_two_classes():
    """Of the predicted class, whose probability is at least one half."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 1, 500)
    labels = (rng.random(500) < p**2).astype(int)
    curve = reliability(np.column_stack([1 - p, p]), labels, n_bins=10)
    confidence, correct = np.maximum(p, 1 - p), (p >= 0.5) == labels
    accuracy, mean = calibration_curve(correct, confidence, n_bins=10)
    np.testing.assert_allclose(curve.accuracy, accuracy)
    np.testing.assert_allclose(curve.confidence, mean)
    assert curve.counts.sum() == 500


def test_expected_calibration_error_by_a_loop():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], 300)
    labels = rng.integers(0, 3, 300)
    total = 0.0
    for low in np.arange(10) / 10:
        rows = [i for i in range(300) if low <= p[i].max() < low + 0.1 or (low == 0.9 and p[i].max() == 1)]
        if rows:
            gap = np.mean([p[i].max() for i in rows]) - np.mean([p[i].argmax() == labels[i] for i in rows])
            total += abs(gap) * len(rows) / 300
    assert expected_calibration_error(p, labels) == pytest.approx(total)


def test_a_rejection_curve_by_a_loop():
    rng = np.random.default_rng(2)
    p = np.round(rng.dirichlet([1, 1, 1], 60), 1)  # rounded: many rows are equally sure
    labels = rng.integers(0, 3, 60)
    answered, accuracy = rejection_curve(p, labels)
    for share, right in zip(answered, accuracy, strict=True):
        sure = np.argsort(-p.max(1), kind="stable")[: round(share * 60)]
        assert right == pytest.approx((p[sure].argmax(1) == labels[sure]).mean())
    assert answered[-1] == 1.0
    assert len(answered) == len(np.unique(p.max(1)))


def test_rows_may_be_refused_by_another_uncertainty():
    p = np.array([[0.9, 0.1], [0.6, 0.4]])
    answered, accuracy = rejection_curve(p, np.array([1, 0]), uncertainty=np.array([2.0, 1.0]))
    assert (answered.tolist(), accuracy.tolist()) == ([0.5, 1.0], [1.0, 0.5])
