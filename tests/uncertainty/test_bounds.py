"""Bounds on the risk."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

from kernelwright.uncertainty.bounds import (
    LeftOutLoss,
    RiskBound,
    any_target_bound,
    clipped_losses,
    fixed_kernel_bound,
    holdout_error_bound,
    holdout_loss_bound,
    left_out_estimate,
    rademacher_bound,
)

RNG = np.random.default_rng(0)
LABELS = np.arange(10) % 3
Y = np.eye(3)[LABELS]
F = RNG.uniform(-0.3, 1.3, size=(10, 3))
ONES, WEIGHTS = np.ones(10), RNG.uniform(0.2, 3.0, 10)
weightings = pytest.mark.parametrize("w", [ONES, WEIGHTS], ids=["ones", "weights"])


def tensors(*arrays):
    return [torch.from_numpy(np.asarray(a, dtype=np.float64)) for a in arrays]


def test_rademacher_bound_has_the_parts_of_theorem_4():
    bound = rademacher_bound(loss=0.4, complexity=2.0, n=100, beta=0.05)
    assert bound.parts["training loss"] == 0.4
    assert bound.parts["4e x complexity"] == pytest.approx(8 * math.e)
    assert bound.parts["sample size"] == pytest.approx(math.sqrt(8 * math.log(40) / 100))
    assert bound.total == pytest.approx(0.4 + 8 * math.e + math.sqrt(0.08 * math.log(40)))
    assert bound.confidence == pytest.approx(0.95)
    assert bound.vacuous


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.3, math.exp(-1)])
def test_lemma_15_is_its_formula_times_the_largest_loss(epsilon):
    """Eq. (61) bounds the loss divided by M: data fit, the Lipschitz constant of that loss, and the sample size."""
    M, loss, r, n, beta = -math.log(epsilon), 0.4, 2.0, 100, 0.05
    steps = np.linspace(epsilon, 1.0, 200_001)
    lipschitz = np.max(np.abs(np.diff(np.log(steps) / M)) / np.diff(steps))
    assert lipschitz == pytest.approx(1 / (epsilon * math.log(1 / epsilon)), rel=0.01)
    normalised = loss / M + 4 / (epsilon * math.log(1 / epsilon)) * r + math.sqrt(8 / n * math.log(2 / beta))
    bound = rademacher_bound(loss, r, n, beta, epsilon=epsilon)
    assert bound.total == pytest.approx(M * normalised, rel=1e-12)
    assert bound.largest == pytest.approx(M)
    assert bound.vacuous == (normalised >= 1)
    with_prior = rademacher_bound(loss, r, n, beta, epsilon=epsilon, prior=0.7)
    assert with_prior.total - bound.total == pytest.approx(4 / epsilon * 0.7 / 10)


def test_at_the_clip_of_theorem_4_lemma_15_is_theorem_4():
    published, general = (rademacher_bound(0.4, 2.0, 100, 0.05, prior=0.3, epsilon=e) for e in (None, math.exp(-1)))
    assert general.parts == published.parts
    assert (general.largest, general.bounded_loss) == (1.0, published.bounded_loss)


def test_the_bound_is_tightest_at_the_clip_of_theorem_4():
    """The multiplier of the complexity of the normalised loss, 1 / (epsilon log(1 / epsilon)), is least at 1/e."""
    share = [
        (b := rademacher_bound(0.0, 1.0, 10**9, 0.05, epsilon=e)).total / b.largest for e in (0.1, 0.3, 1 / math.e)
    ]
    assert share == sorted(share, reverse=True)


@pytest.mark.parametrize("epsilon", [0.0, -0.1, 0.4, 1.0, math.nan])
@pytest.mark.parametrize("bound", [rademacher_bound, fixed_kernel_bound])
def test_a_clip_outside_the_lemma_is_refused(bound, epsilon):
    with pytest.raises(ValueError, match="'epsilon' of a risk bound must lie between 0 and 1/e"):
        bound(0.4, 2.0, 100, 0.05, epsilon=epsilon)


def test_the_fixed_kernel_bound_at_another_clip_has_the_same_constants():
    usual, other = (fixed_kernel_bound(0.2, 3.0, 400, 0.1, epsilon=e) for e in (math.exp(-1), 0.01))
    assert other.parts["4/0.01/sqrt(n) x complexity"] == pytest.approx(
        usual.parts["4e/sqrt(n) x complexity"] * 100 / math.e
    )
    assert other.parts["sample size"] == pytest.approx(usual.parts["sample size"] * math.log(100))
    assert "clipped at 0.01 (never above 4.605)" in str(other)


def test_what_is_added_to_all_outputs_counts_too():
    bound = rademacher_bound(loss=0.4, complexity=2.0, n=100, beta=0.05, prior=0.7)
    assert bound.parts["4e/sqrt(n) x prior"] == pytest.approx(0.28 * math.e)


def test_a_bound_below_one_is_not_vacuous():
    assert not rademacher_bound(loss=0.1, complexity=0.0, n=10**6, beta=0.05).vacuous
    assert RiskBound("any", {"part": 1.0}, 0.9, "").vacuous


def test_a_bound_prints_its_parts_its_verdict_and_its_conditions():
    text = str(rademacher_bound(loss=0.4, complexity=2.0, n=100, beta=0.05))
    lines = text.splitlines()
    assert lines[0].startswith('Upper bound by "rademacher" on the cross entropy')
    assert any(line.split() == ["training", "loss", "0.4000"] for line in lines)
    assert any(line.split() == ["total", f"{0.4 + 8 * math.e + math.sqrt(0.08 * math.log(40)):.4f}"] for line in lines)
    assert "Vacuous: the loss is never above 1 anyway. Holds with probability 0.95." in lines
    assert "Theorem 4" in lines[-1]
    estimate = str(RiskBound("any", {"part": 0.2}, 0.0, "", loss="error"))
    assert "Estimate" in estimate
    assert "Not vacuous. No guarantee." in estimate


@pytest.mark.parametrize("complexity", [1e-9, 0.03, 0.999, 1.0, 1.1, 7.3, 1e4])
def test_the_fixed_kernel_bound_rounds_the_complexity_up_a_little(complexity):
    bound = fixed_kernel_bound(0.2, complexity, n=400, beta=0.1)
    used = bound.parts["4e/sqrt(n) x complexity"] * 20 / (4 * math.e)
    assert complexity * (1 - 1e-6) <= used <= 1.1 * complexity * (1 + 1e-6)
    assert bound.parts["sample size"] > math.sqrt(8 / 400 * math.log(2 / 0.1))


def test_shares_of_beta_over_the_grid_of_norms_have_sum_one():
    """The share behind each radius is read off the bound; together they must not promise more than beta."""
    n, beta = 8.0, 0.1
    shares = []
    for j in range(-2000, 2001):
        term = fixed_kernel_bound(0.0, 1.1**j, n, beta).parts["sample size"] if j > -280 else None
        shares.append(2 * math.exp(-(term**2)) / beta if term else 1 / (1.5 * (abs(j) + 1) * (abs(j) + 2)))
    assert 0.999 < sum(shares) <= 1.0


def test_the_binomial_bound_is_the_rate_at_which_so_few_errors_are_unlikely():
    for n, k in [(20, 0), (50, 3), (300, 40)]:
        bound = holdout_error_bound([1] * k + [0] * (n - k), beta=0.05)
        assert scipy.stats.binom.cdf(k, n, bound.total) == pytest.approx(0.05, rel=1e-6)
    assert holdout_error_bound([1, 1], beta=0.05).total == 1.0


def test_the_bernstein_bound_has_its_published_parts():
    losses = np.array([0.1, 0.4, 0.0, 1.0, 0.2])
    variance = sum((a - b) ** 2 for a in losses for b in losses) / (2 * 5 * 4)  # as printed: over pairs
    bound = holdout_loss_bound(losses, beta=0.1)
    assert bound.parts["held-out loss"] == pytest.approx(0.34)
    assert bound.parts["spread"] == pytest.approx(math.sqrt(2 * variance * math.log(20) / 5))
    assert bound.parts["sample size"] == pytest.approx(7 * math.log(20) / 12)


def test_bounds_from_held_out_rows_hold_as_often_as_they_say():
    rng, beta, n_draws = np.random.default_rng(0), 0.2, 2000
    error = sum(holdout_error_bound(rng.random(60) < 0.3, beta).total >= 0.3 for _ in range(n_draws))
    loss = sum(holdout_loss_bound(rng.beta(0.5, 2.0, 60), beta).total >= 0.2 for _ in range(n_draws))
    assert error / n_draws >= 1 - beta
    assert loss / n_draws >= 1 - beta
    assert error / n_draws < 0.9  # and is not just loose


@pytest.mark.parametrize("rows", [[], [0.5]])
def test_too_few_held_out_rows_are_refused(rows):
    with pytest.raises(ValueError, match="at least 2 held-out rows"):
        holdout_loss_bound(rows, 0.05)


def test_an_estimate_is_a_weighted_mean_and_promises_nothing():
    estimate = left_out_estimate(LeftOutLoss.of([0.0, 1.0], [3.0, 1.0]), "clipped", 0.05)
    assert estimate.total == pytest.approx(0.25)
    assert (estimate.confidence, estimate.guaranteed) == (0.0, False)
    refitted = left_out_estimate(LeftOutLoss.of([0, 1], [1, 1]), "error", 0.05, LeftOutLoss.of([1, 1], [1, 1]), 2)
    assert refitted.total == pytest.approx(1.0)
    assert list(refitted.parts.values()) == pytest.approx([0.5, 0.5])


def test_how_exact_a_mean_of_losses_is():
    values = RNG.random(50)
    plain = LeftOutLoss.of(values, np.ones(50))
    assert plain.standard_error == pytest.approx(values.std(ddof=1) / math.sqrt(50))
    assert plain.n_effective == pytest.approx(50)
    copies = LeftOutLoss.of(np.repeat(values, 3), np.ones(150), groups=np.repeat(np.arange(50), 3))
    assert copies == plain or copies.standard_error == pytest.approx(plain.standard_error)
    assert copies.n_effective == pytest.approx(50)
    merged = LeftOutLoss.of(values, 3 * np.ones(50), counts=3 * np.ones(50))
    apart = LeftOutLoss.of(np.repeat(values, 3), np.ones(150))
    assert merged.standard_error == pytest.approx(apart.standard_error, rel=1e-9)
    weights = RNG.uniform(0.1, 10, 50)
    assert LeftOutLoss.of(values, weights).n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


@pytest.mark.parametrize("p", [0.03, 0.2, 0.5])
def test_the_upper_limit_of_a_share_holds_as_often_as_it_says(p):
    rng = np.random.default_rng(0)
    trials = [LeftOutLoss.of(rng.random(80) < p, np.ones(80)).upper(0.1, share=True) for _ in range(800)]
    assert np.mean(np.array(trials) >= p) >= 0.9 - 2 * math.sqrt(0.1 * 0.9 / 800)
    assert LeftOutLoss.of(np.zeros(30), np.ones(30)).upper(0.05, share=True) == pytest.approx(1 - 0.05 ** (1 / 30))
    assert LeftOutLoss.of(np.ones(30), np.ones(30)).upper(0.05, share=True) == 1.0


def test_clipped_losses_lie_between_zero_and_one():
    outputs, targets = tensors([[2.0, 0.0], [0.5, 0.0], [0.1, 0.0], [-3.0, 0.0]], np.eye(2)[[0] * 4])
    np.testing.assert_allclose(clipped_losses(outputs, targets), [0.0, math.log(2), 1.0, 1.0])


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.5, 2.0, math.nan])
def test_beta_lies_between_zero_and_one(beta):
    with pytest.raises(ValueError, match="The 'beta' parameter must lie between 0 and 1"):
        rademacher_bound(0.4, 2.0, 100, beta)


def test_the_bound_for_any_target_has_the_parts_of_its_theorem():
    bound = any_target_bound(0.2, 1.1**3, n=400, beta=0.1, shift=1.0)
    R = 1.1**3 + 1.0
    assert bound.parts["(2R + R^2)/sqrt(n)"] == pytest.approx((2 * R + R**2) / 20)
    assert bound.parts["sample size"] == pytest.approx(math.sqrt(math.log(1.5 * 4 * 5 / 0.1) / 800))
    assert bound.total == pytest.approx(0.2 + sum(list(bound.parts.values())[1:]))
    assert (bound.loss, bound.confidence) == ("embedding", 0.9)


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("radius", [0.3, 2.0])
def test_the_complexity_of_squared_distances_is_below_that_of_the_theorem(radius, shift):
    """Find the largest correlation of the loss with random signs by ascent: it must stay below the bound on it.

    For signs s, inputs phi and targets t of norm one, ascend in W and pi the mean of ``s_i |t_i - pi - W phi_i|^2``.
    """
    rng, n, found = np.random.default_rng(0), 50, []
    for _ in range(20):
        phi, t = (
            v / np.linalg.norm(v, axis=1, keepdims=True) for v in (rng.normal(size=(n, 3)), rng.normal(size=(n, 2)))
        )
        signs, best = rng.choice([-1.0, 1.0], n), 0.0
        for _ in range(4):
            W, pi = rng.normal(size=(2, 3)), shift * rng.normal(size=2)
            for _ in range(60):
                gap = signs[:, None] * (pi + phi @ W.T - t)
                W, pi = W + gap.T @ phi * 2 / n, pi + gap.sum(0) * 2 / n
                W, pi = (v * min(1.0, r / max(np.linalg.norm(v), 1e-300)) for v, r in ((W, radius), (pi, shift)))
            best = max(best, float(signs @ ((pi + phi @ W.T - t) ** 2).sum(1) / n - signs.sum() / n))
        found.append(best)
    R = radius + shift
    assert 0 < np.mean(found) <= (2 * R + R**2) / math.sqrt(n)
