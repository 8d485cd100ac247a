"""Tests that all classifiers with calibrated probabilities share."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score

from kernelwright import CalibrationWarning, EmbeddingClassifier, OverfitWarning
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.bad_fit import warn_of_bad_fit
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian

X, Y = make_moons(80, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def model():
    return EmbeddingClassifier(Gaussian(0.7, ard=True), learn=None, ridge=0.02).fit(X, Y)


@pytest.fixture(scope="module")
def flowers():
    inputs, labels = load_iris(return_X_y=True)
    return EmbeddingClassifier(Gaussian(1.0), learn=None).fit(inputs, labels), inputs, labels


def test_probabilities_and_support_at_the_price_of_one(model):
    p, support = model.predict_with_support(X + 0.1)
    np.testing.assert_allclose(p, model.predict_proba(X + 0.1), rtol=1e-14)
    np.testing.assert_array_equal(support, model.support(X + 0.1))


def test_decision_values_are_raw_outputs_as_scikit_learn_has_them(model, flowers):
    outputs = model.raw_outputs(X)
    np.testing.assert_array_equal(model.decision_function(X), outputs[:, 1] - outputs[:, 0])
    three, inputs, _ = flowers
    np.testing.assert_array_equal(three.decision_function(inputs), three.raw_outputs(inputs))


def test_probabilities_are_the_link_of_outputs_and_support(flowers):
    model, inputs, _ = flowers
    outputs, support = torch.from_numpy(model.raw_outputs(inputs)), torch.from_numpy(model.support(inputs))
    np.testing.assert_array_equal(model.predict_log_proba(inputs), model.link_(outputs, support).numpy())
    np.testing.assert_allclose(model.predict_proba(inputs).sum(1), 1.0)
    np.testing.assert_array_equal(model.predict(inputs), model.classes_[model.predict_proba(inputs).argmax(1)])


def test_the_score_is_the_accuracy_with_or_without_weights(flowers):
    model, inputs, labels = flowers
    wrong = np.where(np.arange(150) % 3 == 0, (labels + 1) % 3, labels)
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 150)
    for w in (None, weights):
        expected = accuracy_score(wrong, model.predict(inputs), sample_weight=w)
        assert model.score(inputs, wrong, w) == pytest.approx(expected)
        assert 0.5 < expected < 0.8


def test_parts_of_the_link_are_read_off_it(model):
    assert model.probability_map_ is model.link_.probability_map
    assert model.trust_ == model.link_.trust
    np.testing.assert_array_equal(model.class_prior_, model.link_.prior.numpy())
    with pytest.raises(AttributeError):
        model.trust_ = 0.5


ASKS = {
    "raw_outputs": lambda m: m.raw_outputs(X),
    "decision_function": lambda m: m.decision_function(X),
    "predict": lambda m: m.predict(X),
    "predict_proba": lambda m: m.predict_proba(X),
    "predict_log_proba": lambda m: m.predict_log_proba(X),
    "predict_with_support": lambda m: m.predict_with_support(X),
    "score": lambda m: m.score(X, Y),
    "support": lambda m: m.support(X),
    "entropy": lambda m: m.entropy(X),
    "risk_bound": lambda m: m.risk_bound(),
    "holdout": lambda m: m.risk_bound("holdout", X, Y),
    "relevance": lambda m: m.relevance(),
    "embedding_weights": lambda m: m.embedding_weights(X),
    "without_each_row": lambda m: m.without_each_row(),
    "output_blocks": lambda m: next(m.output_blocks(X)),
}


@pytest.mark.parametrize("ask", ASKS)
def test_nothing_is_answered_before_a_fit(ask, model):
    with pytest.raises(NotFittedError, match="EmbeddingClassifier"):
        ASKS[ask](EmbeddingClassifier(Gaussian()))
    ASKS[ask](model)


# Warnings of a fit that rows left out contradict -----------------------------------------------------------------


def said(answers, log_p, labels=None):
    """Return the warnings about given predictions at training rows and leave-one-out probabilities."""
    labels = np.arange(len(answers)) % 2 if labels is None else labels
    rows = TrainingSet.of(torch.zeros(len(labels), 1), one_hot(labels, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_bad_fit(torch.as_tensor(answers), rows, torch.as_tensor(log_p).double(), rows)
    return caught


def probabilities(answers, confidence):
    p = np.where(np.eye(2)[answers] == 1, confidence, 1 - confidence)
    return np.log(p)


def test_right_about_all_fitted_rows_and_none_the_wiser_is_overfitting():
    labels = np.arange(40) % 2
    half = np.where(np.arange(40) % 4 < 2, labels, 1 - labels)
    (found,) = said(labels, probabilities(half, 0.6))
    assert found.category is OverfitWarning
    assert "accuracy is 100 % on training rows, but only 50 % on rows left out" in str(found.message)
    assert "always predicting the most frequent class has 50 %" in str(found.message)
    better = np.where(np.arange(40) % 4 < 3, labels, 1 - labels)
    assert said(labels, probabilities(better, 0.6)) == []  # better than the most frequent class
    assert said(half, probabilities(half, 0.6)) == []  # no better at fitted rows: not overfitted


def test_far_more_often_right_than_stated_is_timid():
    labels = np.arange(40) % 2
    (found,) = said(labels, probabilities(labels, 0.65))
    assert found.category is CalibrationWarning
    assert "the accuracy on rows left out is 100 %, but the mean confidence is 65 %" in str(found.message)
    assert said(labels, probabilities(labels, 0.75)) == []


def test_of_few_rows_nothing_is_said():
    labels = np.arange(19) % 2
    assert said(labels, probabilities(labels, 0.55)) == []
    assert len(said(np.arange(20) % 2, probabilities(np.arange(20) % 2, 0.55))) == 1
