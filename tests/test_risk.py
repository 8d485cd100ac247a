"""Losses against loops and finite differences, and the risk bound."""

import math

import numpy as np
import pytest
import torch

from kernelwright.risk import (
    RiskBound,
    brier_loss,
    clipped_log_loss,
    complexity_multiplier,
    rademacher_bound,
)
from tests import reference as naive

LOSSES = {"log": clipped_log_loss, "brier": brier_loss}
RNG = np.random.default_rng(0)
LABELS = np.arange(10) % 3
Y = np.eye(3)[LABELS]
F = RNG.uniform(-0.3, 1.3, size=(10, 3))
ONES, WEIGHTS = np.ones(10), RNG.uniform(0.2, 3.0, 10)
weightings = pytest.mark.parametrize("w", [ONES, WEIGHTS], ids=["ones", "weights"])


def tensors(*arrays):
    return [torch.from_numpy(np.asarray(a, dtype=np.float64)) for a in arrays]


@weightings
@pytest.mark.parametrize("epsilon", [1e-15, 0.01, 1 / math.e])
def test_clipped_log_loss_equals_a_loop(w, epsilon):
    value, _ = clipped_log_loss(*tensors(F, Y, w), epsilon)
    assert value == pytest.approx(naive.log_loss(F, Y, w, epsilon), rel=1e-12)


@weightings
def test_brier_loss_equals_a_loop(w):
    value, _ = brier_loss(*tensors(F, Y, w))
    assert value == pytest.approx(naive.brier(F, Y, w), rel=1e-12)


@weightings
@pytest.mark.parametrize(("loss", "formula"), [("log", naive.log_loss), ("brier", naive.brier)])
def test_gradients_equal_finite_differences(w, loss, formula):
    _, gradient = LOSSES[loss](*tensors(F, Y, w), 0.05)
    for i, k in np.ndindex(*F.shape):
        step = np.zeros_like(F)
        step[i, k] = 1e-6
        slope = (formula(F + step, Y, w, 0.05) - formula(F - step, Y, w, 0.05)) / 2e-6
        assert float(gradient[i, k]) == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_log_loss_is_flat_on_both_sides_of_the_clip():
    outputs, targets, weights = tensors(
        [[-5.0, 0.0], [0.0, 0.0], [1.5, 0.0], [0.5, 0.0]], np.eye(2)[[0] * 4], np.ones(4)
    )
    value, gradient = clipped_log_loss(outputs, targets, weights, 1e-15)
    assert value == pytest.approx((2 * math.log(1e15) + 0 + math.log(2)) / 4)
    np.testing.assert_allclose(gradient[:, 0], [0, 0, 0, -0.5])


@pytest.mark.parametrize("loss", list(LOSSES))
def test_weights_are_relative_and_whole_weights_are_repetitions(loss):
    whole = np.array([1, 2, 3, 1, 1, 2, 1, 1, 4, 1])
    weighted, _ = LOSSES[loss](*tensors(F, Y, whole), 0.01)
    scaled, _ = LOSSES[loss](*tensors(F, Y, 5.0 * whole), 0.01)
    repeated, _ = LOSSES[loss](*tensors(np.repeat(F, whole, 0), np.repeat(Y, whole, 0), np.ones(whole.sum())), 0.01)
    assert weighted == pytest.approx(scaled, rel=1e-12)
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("4e", 4 * math.e),
        ("4e/n", 4 * math.e / 25),
        ("4e/sqrt(n)", 4 * math.e / 5),
        ("1/n", 0.04),
        (0.3, 0.3),
        (0, 0.0),
    ],
)
def test_complexity_multiplier(word, number):
    assert complexity_multiplier(word, 25) == pytest.approx(number, rel=1e-14)


@pytest.mark.parametrize("word", ["5e", "auto?", "", "4e / n"])
def test_an_unknown_multiplier_is_refused_with_the_choices(word):
    with pytest.raises(
        ValueError, match=r"The 'complexity_weight' parameter must be .*'4e/sqrt\(n\)'.* Got .* instead"
    ):
        complexity_multiplier(word, 10)


@pytest.mark.parametrize("number", [-0.1, math.nan, math.inf])
def test_a_multiplier_that_is_no_weight_is_refused(number):
    with pytest.raises(ValueError, match="must be at least 0 and finite"):
        complexity_multiplier(number, 10)


def test_rademacher_bound_has_the_parts_of_theorem_4():
    bound = rademacher_bound(loss=0.4, complexity=2.0, n=100, beta=0.05)
    assert bound.parts["training loss"] == 0.4
    assert bound.parts["4e x complexity"] == pytest.approx(8 * math.e)
    assert bound.parts["sample size"] == pytest.approx(math.sqrt(8 * math.log(40) / 100))
    assert bound.total == pytest.approx(0.4 + 8 * math.e + math.sqrt(0.08 * math.log(40)))
    assert bound.confidence == pytest.approx(0.95)
    assert bound.vacuous


def test_a_bound_below_its_ceiling_is_not_vacuous():
    assert not rademacher_bound(loss=0.1, complexity=0.0, n=10**6, beta=0.05).vacuous


def test_a_bound_at_its_ceiling_is_vacuous():
    assert RiskBound("any", {"part": 1.0}, 0.9, 1.0, "").vacuous


def test_a_bound_prints_its_parts_its_verdict_and_its_conditions():
    text = str(rademacher_bound(loss=0.4, complexity=2.0, n=100, beta=0.05))
    lines = text.splitlines()
    assert lines[0] == "Risk bound (rademacher), holds with probability 0.95"
    assert any(line.split() == ["training", "loss", "0.4000"] for line in lines)
    assert any(line.split() == ["total", f"{0.4 + 8 * math.e + math.sqrt(0.08 * math.log(40)):.4f}"] for line in lines)
    assert "vacuous: the loss itself is at most 1" in lines
    assert "Theorem 4" in lines[-1]
    assert "not vacuous" in str(RiskBound("any", {"part": 0.2}, 0.9, 1.0, ""))


def test_an_empirical_bound_says_so():
    kwargs = {"loss": 0.4, "complexity": 2.0, "n": 100, "beta": 0.05}
    assert "unbounded" in rademacher_bound(**kwargs, empirical=True).conditions
    assert "unbounded" not in rademacher_bound(**kwargs).conditions


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.5, 2.0, math.nan])
def test_beta_lies_between_zero_and_one(beta):
    with pytest.raises(ValueError, match="The 'beta' parameter must lie between 0 and 1"):
        rademacher_bound(0.4, 2.0, 100, beta)
