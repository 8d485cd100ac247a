"""Estimators accept tensors, including those with gradients, and 64-bit integers."""

import numpy as np
import pytest
import torch

from kernelwright import (
    ConditionalMeanEmbedding,
    EmbeddingClassifier,
    EmbeddingNetworkClassifier,
    HyperKernelRidge,
    KreinSVC,
    LearnedKernelClassifier,
)
from kernelwright.networks import Training
from kernelwright.research.baselines import AlignmentKernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = (X[:, 0] > 0).astype(float)
ESTIMATORS = [
    ConditionalMeanEmbedding(random_state=0),
    EmbeddingNetworkClassifier(training=Training(max_epochs=1), random_state=0),
    HyperKernelRidge(random_state=0),
    KreinSVC(),
    LearnedKernelClassifier(HyperKernelRidge(random_state=0)),
]
CLASSIFIERS = [EmbeddingClassifier(random_state=0), *ESTIMATORS[1:2], *ESTIMATORS[3:]]
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
each_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda estimator: type(estimator).__name__)


def answers(model, new):
    if isinstance(model, ConditionalMeanEmbedding):
        return model.expectation(new)
    return model.predict(new) if isinstance(model, HyperKernelRidge) else model.decision_function(new)


@each
def test_tensors_with_a_gradient_are_taken_for_their_values(estimator):
    expected = answers(estimator.fit(X, Y), X)
    inputs, targets = torch.tensor(X, requires_grad=True), torch.tensor(Y, requires_grad=True)
    np.testing.assert_array_equal(answers(estimator.fit(inputs, targets), X), expected)
    assert inputs.requires_grad  # the user's own stays as it was
    assert inputs.grad is None


@each_classifier
def test_labels_beyond_63_bits_come_out_again(estimator):
    labels = np.where(Y > 0, np.uint64(2**64 - 1), np.uint64(2**64 - 2)).astype(np.uint64)
    model = estimator.fit(X, labels)
    assert model.classes_.tolist() == [2**64 - 2, 2**64 - 1]
    assert np.mean(model.predict(X) == labels) > 0.8


@each_classifier
def test_inputs_beyond_63_bits_are_the_numbers_they_are(estimator):
    whole = np.where(Y[:, None] > 0, np.uint64(2**64 - 2**20), np.uint64(2**63)) + RNG.integers(
        0, 2**19, (50, 1), dtype=np.uint64
    )
    model = estimator.fit(whole, Y)
    assert np.mean(model.predict(whole) == Y) > 0.9


def test_a_baseline_takes_tensors_too():
    expected, tensor = AlignmentKernel().fit(X, Y), torch.tensor(X, requires_grad=True)
    found = AlignmentKernel().fit(tensor, torch.tensor(Y, requires_grad=True))
    np.testing.assert_array_equal(found.kernel_(X[:5], X), expected.kernel_(X[:5], X))
