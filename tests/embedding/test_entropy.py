"""Both entropy estimates against loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.embedding.entropy import clip_entropy, embedding_entropy
from tests import reference as naive

rows = st.lists(st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=3, max_size=3), min_size=1, max_size=4)


def tensor(array) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, dtype=np.float64))


@given(rows)
def test_clip_entropy_is_the_entropy_of_the_clipped_probabilities(outputs):
    p = naive.clip_normalise(np.array(outputs))
    expected = [sum(-v * math.log(v) for v in row if v > 0) for row in p]
    np.testing.assert_allclose(clip_entropy(tensor(outputs)), expected, rtol=1e-10, atol=1e-12)


@given(rows)
def test_embedding_entropy_is_the_expected_information(outputs):
    expected = [sum(-v * math.log(v) for v in row if v > 0) for row in outputs]
    np.testing.assert_allclose(embedding_entropy(tensor(outputs)), expected, rtol=1e-10, atol=1e-12)


@given(rows)
def test_clipped_embedding_entropy_is_never_negative(outputs):
    clipped, raw = embedding_entropy(tensor(outputs), clip=True), embedding_entropy(tensor(outputs))
    torch.testing.assert_close(clipped, raw.clamp(min=0.0))


@given(rows)
def test_clip_entropy_lies_between_zero_and_log_m(outputs):
    entropy = clip_entropy(tensor(outputs))
    assert float(entropy.min()) >= 0.0
    assert float(entropy.max()) <= math.log(3) + 1e-12


@pytest.mark.parametrize("estimate", [clip_entropy, embedding_entropy])
def test_both_agree_with_the_entropy_of_true_probabilities(estimate):
    p = tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    expected = torch.distributions.Categorical(p).entropy()
    torch.testing.assert_close(estimate(p), expected, rtol=1e-6, atol=1e-6)


def test_embedding_entropy_can_be_negative():
    assert float(embedding_entropy(tensor([[1.2, -0.1]]))) == pytest.approx(-1.2 * math.log(1.2))
