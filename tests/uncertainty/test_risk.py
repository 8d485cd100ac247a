"""Risk bounds from the results of a fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.uncertainty.bounds import (
    LeftOutLoss,
    clipped_losses,
    fixed_kernel_bound,
    holdout_error_bound,
    holdout_loss_bound,
    rademacher_bound,
)
from kernelwright.uncertainty.risk import (
    WEIGHTED,
    RiskTerms,
    check_method,
    held_out_bound,
    left_out_losses,
    means_of_groups,
    training_bound,
)

N, M, BETA = 40, 3, 0.05
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.5, 2.0, N)


def rows(**columns) -> TrainingSet:
    labels = RNG.integers(0, M, N)
    return TrainingSet.of(torch.zeros(N, 1).double(), torch.from_numpy(np.eye(M)[labels]), **columns)


def terms(**changes) -> RiskTerms:
    data = rows(weights=torch.from_numpy(WEIGHTS))
    outputs, log_p = torch.from_numpy(RNG.uniform(0, 1, (N, M))), torch.from_numpy(RNG.normal(size=(N, M)))
    found = RiskTerms.of((outputs, data), (outputs, log_p, data), epsilon=0.02, n_rows=N)
    return replace(found, **changes)


def test_terms_have_the_weighted_mean_of_clipped_losses():
    data, outputs = rows(weights=torch.from_numpy(WEIGHTS)), torch.from_numpy(RNG.uniform(-0.2, 1.2, (N, M)))
    found = RiskTerms.of((outputs, data), (outputs, outputs, data), epsilon=0.02, n_rows=50.0, prior=0.3)

    def mean(clip: float) -> float:
        own = [float(f @ y) for f, y in zip(outputs, data.targets, strict=True)]
        return np.average([-np.log(min(max(f, clip), 1.0)) for f in own], weights=WEIGHTS)

    assert found.clipped_loss == pytest.approx(mean(1 / np.e))
    assert found.training_loss == pytest.approx(mean(0.02))  # the clip that was learned with
    assert found.loss_at(0.2) == pytest.approx(mean(0.2))  # and any other
    assert (found.n_clipped, found.n_rows) == (pytest.approx(WEIGHTS.sum()), 50.0)
    assert (found.prior, found.fixed_kernel, found.faults) == (0.3, False, ())


def test_terms_of_an_older_file_have_no_other_clip():
    with pytest.raises(ValueError, match="Fit it again"):
        terms(own=None, weights=None).loss_at(0.1)


@pytest.mark.parametrize("groups", [None, torch.arange(N) // 4], ids=["rows", "groups"])
def test_losses_of_rows_left_out_are_two(groups):
    data = rows(weights=torch.from_numpy(WEIGHTS), groups=groups)
    outputs, log_p = torch.from_numpy(RNG.uniform(0, 1, (N, M))), torch.from_numpy(RNG.normal(size=(N, M)))
    found = left_out_losses(outputs, log_p, data)
    wrong = log_p.argmax(1) != data.targets.argmax(1)
    for word, values in (("clipped", clipped_losses(outputs, data.targets)), ("error", wrong)):
        assert found[word] == LeftOutLoss.of(values, data.weights, groups=groups)


def test_means_of_groups_equal_a_loop():
    groups = np.array(["b", "a", "b", "c"])
    losses, wrong = np.array([0.1, 0.4, 0.3, 0.9]), np.array([True, False, False, True])
    found = means_of_groups((losses, wrong), groups)
    np.testing.assert_allclose(found[0], [0.4, 0.2, 0.9])
    np.testing.assert_allclose(found[1], [0.0, 0.5, 1.0])


@pytest.mark.parametrize("method", ["rademacher", "rademacher-fixed-kernel"])
def test_a_bound_of_the_training_loss_is_that_of_its_formula(method):
    given = terms(fixed_kernel=True, prior=0.1)
    found = training_bound(given, method, 2.0, BETA)
    if method == "rademacher":
        assert found == rademacher_bound(given.training_loss, 2.0, N, BETA, prior=0.1)
    else:
        assert found == fixed_kernel_bound(given.clipped_loss, 2.0, given.n_clipped, BETA)
    assert found.guaranteed


@pytest.mark.parametrize("method", ["rademacher", "rademacher-fixed-kernel"])
def test_a_bound_at_another_clip_has_the_training_loss_there(method):
    given = terms(fixed_kernel=True)
    found = training_bound(given, method, 2.0, BETA, epsilon=0.05)
    assert found.parts["training loss"] == pytest.approx(given.loss_at(0.05))
    assert found.largest == pytest.approx(np.log(20.0))


def test_a_bound_from_held_out_rows_at_another_clip_scales_with_the_largest_loss():
    losses = RNG.uniform(0, np.log(20.0), 60)
    found = held_out_bound(losses, losses > 1, "clipped", BETA, 0.05)
    expected = holdout_loss_bound(losses / np.log(20.0), BETA)
    assert found.total == pytest.approx(np.log(20.0) * expected.total)
    assert found.parts["held-out loss"] == pytest.approx(losses.mean())


def test_a_kernel_that_was_chosen_with_the_rows_has_no_fixed_kernel_bound():
    with pytest.raises(ValueError, match=r"does not hold here.*kernel_share=0\.5"):
        training_bound(terms(), "rademacher-fixed-kernel", 2.0, BETA)


def test_a_fault_takes_the_guarantee_and_is_said():
    given = terms()
    found = training_bound(replace(given, faults=(WEIGHTED,)), "rademacher", 2.0, BETA)
    sound = training_bound(given, "rademacher", 2.0, BETA)
    assert not found.guaranteed
    assert found.conditions.endswith(WEIGHTED)
    assert found.parts == sound.parts


@pytest.mark.parametrize("loss", ["clipped", "error"])
def test_a_bound_from_rows_held_out(loss):
    losses, wrong = RNG.uniform(0, 1, 60), RNG.random(60) < 0.3
    expected = holdout_error_bound(wrong, BETA) if loss == "error" else holdout_loss_bound(losses, BETA)
    assert held_out_bound(losses, wrong, loss, BETA) == expected
    grouped = held_out_bound(*means_of_groups((losses, wrong), np.arange(60) // 3), loss, BETA)
    assert grouped.loss == loss
    assert "Each group counts once" in grouped.conditions
    assert grouped.total > expected.total  # twenty groups say less than sixty rows


@pytest.mark.parametrize(
    ("method", "loss", "epsilon"),
    [("leave-one-out", "clipped", 0.1), ("holdout", "error", 0.1), ("rademacher", "clipped", 0.5)],
)
def test_a_clip_that_does_not_go_with_the_method_is_refused(method, loss, epsilon):
    with pytest.raises(ValueError, match="'epsilon'"):
        check_method(method, loss, epsilon)


@pytest.mark.parametrize(
    ("method", "loss", "message"),
    [
        ("luck", "clipped", "Got 'luck' and 'clipped' instead"),
        ("holdout", "hinge", "Got 'holdout' and 'hinge' instead"),
        ("rademacher", "error", "bounds the clipped loss only"),
        ("rademacher-fixed-kernel", "error", "bounds the clipped loss only"),
    ],
)
def test_what_is_no_method_or_loss_is_refused(method, loss, message):
    with pytest.raises(ValueError, match=message):
        check_method(method, loss)


@pytest.mark.parametrize("method", ["holdout", "leave-one-out"])
@pytest.mark.parametrize("loss", ["clipped", "error"])
def test_what_is_one_is_taken(method, loss):
    check_method(method, loss)
