"""Losses against loops and finite differences; loss objects against their functions."""

import math

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.objectives.losses import (
    BrierLoss,
    CalibratedLogLoss,
    ClippedLogLoss,
    brier_loss,
    clipped_log_loss,
    complexity_multiplier,
    loss_named,
)
from kernelwright.uncertainty.calibration import calibrated_log_loss
from tests import reference as naive

LOSSES = {"log": clipped_log_loss, "brier": lambda F, Y, w, _: brier_loss(F, Y, w)}
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


# Objects --------------------------------------------------------------------------------------------------------

PRIOR = np.array([0.5, 0.3, 0.2])


def rows(w, prior=None) -> TrainingSet:
    outputs, targets, weights = tensors(F, Y, w)
    return TrainingSet.of(outputs, targets, weights=weights, prior=None if prior is None else torch.from_numpy(prior))


def assert_same(found, expected):
    assert found[0] == expected[0]
    assert torch.equal(found[1], expected[1])


@weightings
@pytest.mark.parametrize("prior", [None, PRIOR], ids=["no-prior", "prior"])
def test_objects_are_their_functions_at_the_targets_and_weights_of_rows(w, prior):
    data, (outputs, targets, weights) = rows(w, prior), tensors(F, Y, w)
    assert_same(ClippedLogLoss()(outputs, data), clipped_log_loss(outputs, targets, weights))
    assert_same(ClippedLogLoss(0.05)(outputs, data), clipped_log_loss(outputs, targets, weights, 0.05))
    assert_same(BrierLoss()(outputs, data), brier_loss(outputs, targets, weights))
    frequencies = None if prior is None else torch.from_numpy(prior)
    assert_same(CalibratedLogLoss()(outputs, data), calibrated_log_loss(outputs, targets, weights, frequencies))


@weightings
def test_the_prior_matters_to_the_calibrated_loss_alone(w):
    outputs = torch.from_numpy(F)
    for loss in (ClippedLogLoss(), BrierLoss()):
        assert_same(loss(outputs, rows(w)), loss(outputs, rows(w, PRIOR)))
    assert CalibratedLogLoss()(outputs, rows(w))[0] != CalibratedLogLoss()(outputs, rows(w, PRIOR))[0]


@pytest.mark.parametrize(
    ("word", "expected"), [("log", ClippedLogLoss(0.02)), ("brier", BrierLoss()), ("calibrated", CalibratedLogLoss())]
)
def test_words_for_losses(word, expected):
    assert loss_named(word, 0.02) == expected


def test_an_unknown_loss_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"must be one of \('log', 'normalised', .* Got 'hinge' instead"):
        loss_named("hinge")


@weightings
@pytest.mark.parametrize("epsilon", [1e-15, 0.01, 0.3])
def test_normalised_and_centred_losses_are_equations_55_and_56(w, epsilon):
    """Row by row: L / M with M = -log epsilon, and L / M minus its value at outputs of zero, which is one."""
    outputs, targets, weights = tensors(F, Y, w)
    rows = TrainingSet.of(outputs, targets, weights=weights)
    M = -math.log(epsilon)
    normalised = sum(
        weight * -math.log(min(max(f[label], epsilon), 1.0)) / M for f, label, weight in zip(F, LABELS, w, strict=True)
    ) / sum(w)
    at_zero = naive.log_loss(np.zeros_like(F), Y, w, epsilon) / M
    plain, slope = ClippedLogLoss(epsilon)(outputs, rows)
    for form, expected in (("normalised", normalised), ("centred", normalised - at_zero)):
        value, gradient = loss_named(form, epsilon)(outputs, rows)
        assert value == pytest.approx(expected, rel=1e-12)
        torch.testing.assert_close(gradient * M, slope)
    assert 0.0 <= normalised <= 1.0
    assert plain == pytest.approx(M * normalised)


def test_an_unknown_form_of_the_clipped_loss_is_refused():
    with pytest.raises(ValueError, match="'form'"):
        ClippedLogLoss(0.1, "scaled")


@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1 / math.e, 1.0, math.nan])
def test_a_clip_that_is_none_is_refused(epsilon):
    with pytest.raises(ValueError, match="must lie between 0 and 1/e"):
        ClippedLogLoss(epsilon)
