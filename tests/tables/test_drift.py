"""Drift of new rows: by counts, and with fitted models on rows from the same distribution."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from kernelwright import EmbeddingClassifier
from kernelwright.kernels import Gaussian
from kernelwright.tables import Notation, TrainingNumbers
from kernelwright.tables.drift import class_drift, find_drift, number_drift


def test_drift_is_told_from_chance():
    rows = np.arange(2, 202)
    usual = np.where(np.arange(200) < 2, 0.5, 2.0)
    assert not find_drift(usual, [], rows=rows).found
    far = np.where(np.arange(200) < 20, 0.5 - 0.01 * np.arange(200), 2.0)
    drift = find_drift(far, [], rows=rows, row_word="line")
    assert drift.found
    assert (drift.below, drift.worst[0][0]) == (20, 21)
    assert "20 of 200 rows (10.0 %)" in drift.sentences()[0]


@pytest.mark.parametrize("n", [100, 400])
def test_rows_of_the_same_kind_are_rarely_called_drift(n):
    """The level is a quantile of n rows: with few of them the share below it varies, which the test allows for."""
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(40):
        X = rng.normal(size=(n, 4))
        model = EmbeddingClassifier(Gaussian(2.0), learn=None, ridge=0.1).fit(X, rng.integers(0, 2, n))
        support = model.support(rng.normal(size=(3000, 4)))
        alarms += find_drift(support, [], rows=np.arange(3000), n_support_rows=model.n_support_rows_).found
    assert alarms <= 2


def test_rows_of_another_kind_are_drift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    model = EmbeddingClassifier(Gaussian(2.0), learn=None, ridge=0.1).fit(X, rng.integers(0, 2, 300))
    support = model.support(rng.normal(size=(100, 4)) + 2.0)
    assert find_drift(support, [], rows=np.arange(100), n_support_rows=300).found


def test_a_single_absurd_row_is_named():
    drift = find_drift(np.array([2.0, 0.0]), [], rows=np.array([2, 3]), row_word="line", n_support_rows=200)
    assert not drift.found
    assert drift.nowhere == (3,)
    assert drift.sentences()[0].startswith("1 of 2 rows is unlike all training rows (line 3)")


@pytest.mark.parametrize("draw", [lambda rng, n: rng.lognormal(size=n), lambda rng, n: rng.poisson(2.0, n) + 0.0])
def test_numbers_of_the_same_kind_are_rarely_called_drift(draw):
    rng, values = np.random.default_rng(0), []
    for _ in range(300):
        trained = TrainingNumbers.of(draw(rng, 1500), Notation())
        values.append(number_drift(trained, draw(rng, 200)).p_value)
    assert np.mean(np.array(values) < 0.01) < 0.03
    assert np.mean(np.array(values) < 0.5) < 0.6


def test_the_test_of_numbers_is_that_of_scipy(rng):
    old, new = rng.normal(size=400), rng.normal(0.3, 1.2, size=250)
    found = number_drift(TrainingNumbers.of(old, Notation()), new)
    assert found.p_value == pytest.approx(ks_2samp(old, new, method="asymp").pvalue, rel=0.5)
    assert found.beyond == np.sum((new < old.min()) | (new > old.max()))
    assert number_drift(TrainingNumbers.of(old, Notation()), new + 1).found
    assert f"the median is {np.median(new):.4g}, and was {np.median(old):.4g}" in found.change


def test_class_frequencies_of_the_same_kind_are_rarely_called_drift():
    rng, shares = np.random.default_rng(0), [0.6, 0.3, 0.09, 0.006, 0.004]
    found = [class_drift(rng.multinomial(1000, shares), rng.choice(5, 200, p=shares), "abcde") for _ in range(300)]
    assert np.mean([drift.found for drift in found]) < 0.03
    drift = class_drift((600, 300, 90, 6, 4), rng.choice(5, 200, p=[0.2, 0.7, 0.09, 0.006, 0.004]), "abcde")
    assert drift.found
    assert drift.sentences()[0].startswith("Drift of the target (p-value:")
    assert "and was 60.0 % in training" in drift.change or "and was 30.0 % in training" in drift.change
    assert class_drift((100, 1), np.zeros(3, dtype=int), "ab").sentences()[0].startswith("No drift of the target")
