"""Learnable parameters: plain values outside, unconstrained inside."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from kernelwright.parameters import (
    Parametrised,
    Positive,
    Simplex,
    bounds_from_here,
    plain_gradients,
    plain_values,
    raw_bounds,
)


class Model(nn.Module):
    """One parameter of each kind."""

    length = Positive(1e-2, 1e3)
    mixture = Simplex()

    def __init__(self, length=2.0, mixture=(0.2, 0.3, 0.5)):
        super().__init__()
        self.length, self.mixture = length, mixture
        self.slope = nn.Parameter(torch.tensor(0.5, dtype=torch.float64))


class Outer(nn.Module):
    """A model inside a model."""

    height = Positive()

    def __init__(self):
        super().__init__()
        self.height, self.inner = 3.0, Model()


@given(st.lists(st.floats(1e-8, 1e8), min_size=1, max_size=4))
def test_positive_is_read_as_it_was_set(values):
    np.testing.assert_allclose(Model(length=values).length.detach(), values, rtol=1e-13)


@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=5))
def test_simplex_is_read_as_it_was_set(values):
    weights = np.array(values) / np.sum(values)
    np.testing.assert_allclose(Model(mixture=weights).mixture.detach(), weights, rtol=1e-12)


def test_a_number_a_list_an_array_and_a_tensor_may_be_set():
    for value in (2, 2.0, np.float32(2.0), torch.tensor(2.0)):
        model = Model(length=value)
        assert model.length.shape == ()
        assert model.length.dtype == torch.float64
    for value in ([1, 2], np.array([1.0, 2.0]), torch.tensor([1.0, 2.0])):
        assert Model(length=value).length.tolist() == pytest.approx([1.0, 2.0])


def test_what_an_optimiser_moves_is_unconstrained():
    model = Model(length=2.0)
    assert dict(model.named_parameters()).keys() == {"slope", "log_length", "logit_mixture"}
    assert float(model.log_length.detach()) == pytest.approx(np.log(2.0))
    np.testing.assert_allclose(model.logit_mixture.detach(), np.log([0.3 / 0.2, 0.5 / 0.2]))
    with torch.no_grad():
        model.log_length -= 100.0
        model.logit_mixture += 3.0
    assert float(model.length.detach()) > 0
    assert float(model.mixture.detach().sum()) == pytest.approx(1.0)


def test_setting_copies_a_tensor():
    value = torch.tensor([1.0, 2.0], dtype=torch.float64)
    model = Model(length=value)
    value[0] = 9.0
    assert model.length.tolist() == pytest.approx([1.0, 2.0])


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, [], [1.0, 0.0], [[1.0, 2.0]]], ids=str)
def test_positive_refuses_with_a_sentence(value):
    with pytest.raises(
        ValueError, match=r"The 'length' parameter of Model must be a positive number.* Got .* instead\."
    ):
        Model(length=value)


@pytest.mark.parametrize("value", [[0.5, 0.6], [1.0, 0.0], [2.0, -1.0], 1.0, [[0.5, 0.5]], [np.nan, 1.0]], ids=str)
def test_simplex_refuses_with_a_sentence(value):
    with pytest.raises(ValueError, match=r"The 'mixture' parameter of Model must be positive weights with sum 1"):
        Model(mixture=value)


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"]
)
def test_copies_keep_values_and_share_nothing(duplicate):
    model = Outer()
    twin = duplicate(model)
    twin.inner.length = 7.0
    assert float(model.inner.length.detach()) == pytest.approx(2.0)
    assert float(twin.height.detach()) == pytest.approx(3.0)


def test_freezing_outlives_setting():
    model = Model()
    model.log_length.requires_grad_(False)
    model.length = 5.0
    assert not model.log_length.requires_grad
    assert model.logit_mixture.requires_grad


def test_plain_values_of_nested_modules():
    values = plain_values(Outer())
    assert values.keys() == {"height", "inner.length", "inner.mixture", "inner.slope"}
    assert values["height"] == pytest.approx(3.0)
    assert values["inner.slope"] == pytest.approx(0.5)
    np.testing.assert_allclose(values["inner.mixture"], [0.2, 0.3, 0.5])


def test_plain_values_are_a_snapshot():
    model = Model()
    values = plain_values(model)
    with torch.no_grad():
        model.slope += 1.0
        model.log_length += 1.0
    assert values["slope"] == pytest.approx(0.5)
    assert values["length"] == pytest.approx(2.0)


def test_plain_gradients_are_those_of_the_plain_values():
    model = Outer()

    def function(length, mixture, slope, height):
        return height * (torch.sin(length) + (mixture * torch.tensor([1.0, 4.0, 9.0])).sum() ** 2) + slope**2

    inner = model.inner
    raw = dict(model.named_parameters())
    value = function(inner.length, inner.mixture, inner.slope, model.height)
    gradients = dict(zip(raw, torch.autograd.grad(value, list(raw.values())), strict=True))
    found = plain_gradients(model, gradients)

    plain = [t.detach().requires_grad_() for t in (inner.length, inner.mixture, inner.slope, model.height)]
    expected = torch.autograd.grad(function(*plain), plain)
    assert found["inner.length"] == pytest.approx(float(expected[0]))
    assert found["inner.slope"] == pytest.approx(float(expected[2]))
    assert found["height"] == pytest.approx(float(expected[3]))
    # Weights can only move along the simplex, so a gradient is known up to a constant.
    along = found["inner.mixture"] - expected[1].numpy()
    np.testing.assert_allclose(along, along[0], rtol=1e-10)
    assert found["inner.mixture"] @ inner.mixture.detach().numpy() == pytest.approx(0.0, abs=1e-12)


def test_bounds_are_those_that_were_declared():
    model = Outer()
    assert raw_bounds(model, "inner.log_length") == pytest.approx((np.log(1e-2), np.log(1e3)))
    assert raw_bounds(model, "log_height") == pytest.approx((np.log(1e-5), np.log(1e5)))
    low, high = raw_bounds(model, "inner.logit_mixture")
    assert low < 0 < high
    assert raw_bounds(model, "inner.slope") == (-np.inf, np.inf)


class Firm(nn.Module):
    soft, hard = Positive(0.1, 10.0), Positive(0.1, 10.0, firm=True)


def test_a_start_beyond_the_bounds_widens_them_unless_they_are_firm():
    model = Firm()
    model.soft, model.hard = [0.01, 1.0, 100.0], [0.01, 1.0, 100.0]
    low, high = (limit.exp() for limit in bounds_from_here(model, "log_soft"))
    np.testing.assert_allclose(low, [0.01, 0.1, 0.1])
    np.testing.assert_allclose(high, [10.0, 10.0, 100.0])
    low, high = (limit.exp() for limit in bounds_from_here(model, "log_hard"))
    np.testing.assert_allclose(low, [0.1] * 3)
    np.testing.assert_allclose(high, [10.0] * 3)


# Parts -------------------------------------------------------------------------------------------------------


class Part(Parametrised):
    """A module that records the steps it receives."""

    def __init__(self, size=1.0):
        super().__init__()
        self.size, self.steps = size, []

    def prepare_(self, X, weights=None):
        self.steps.append(("prepare", len(X), None if weights is None else float(weights.sum())))

    def use_median_(self):
        self.steps.append("median")

    def tie_(self):
        self.steps.append("tie")

    def penalty(self):
        return torch.tensor(self.size, dtype=torch.float64)


class Whole(Parametrised):
    def __init__(self, left, right):
        super().__init__()
        self.left, self.right = left, right


def test_steps_of_learning_reach_all_parts():
    whole = Whole(Part(2.0), Whole(Part(3.0), Part(4.0)))
    points = torch.zeros(5, 2)
    whole.prepare_(points, torch.ones(5))
    whole.use_median_()
    whole.tie_()
    for part in (whole.left, whole.right.left, whole.right.right):
        assert part.steps == [("prepare", 5, 5.0), "median", "tie"]
    assert float(whole.penalty()) == 9.0


def test_a_prepared_copy_leaves_the_object_as_it_was():
    whole = Whole(Part(), Part())
    made = whole.prepared(torch.zeros(5, 2))
    assert type(made) is Whole
    assert made.left.steps == [("prepare", 5, None)]
    assert whole.left.steps == whole.right.steps == []
