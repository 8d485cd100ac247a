"""Risk bounds of classifiers, on a distribution whose risk is known exactly."""

import math

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_wine

from kernelwright import EmbeddingClassifier, EmbeddingNetworkClassifier, learning
from kernelwright.features import RandomFourier
from kernelwright.inputs.arrays import generator
from kernelwright.kernels import Gaussian, Linear
from kernelwright.learning import LBFGS, Given, LeaveOneOut, Median, Rademacher
from kernelwright.solvers import Herding
from kernelwright.uncertainty.bounds import CLASS_LOSSES

# Inputs are 20 places with known probabilities of the second class, so a risk is a sum over 20 places, and thousands of
# rows are 40 distinct ones.
PLACES = np.linspace(-1.0, 1.0, 20)[:, None]
P_SECOND = 1 / (1 + np.exp(-6 * np.sin(3 * PLACES[:, 0])))


def draw(n, seed):
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 20, n)
    return PLACES[at], (rng.random(n) < P_SECOND[at]).astype(int)


def true_risks(model):
    """Return the expected clipped loss and the error rate."""
    losses = -np.log(np.clip(model.raw_outputs(PLACES), math.exp(-1), 1.0))
    answers = model.predict(PLACES)
    clipped = (1 - P_SECOND) * losses[:, 0] + P_SECOND * losses[:, 1]
    return clipped.mean(), np.where(answers == 1, 1 - P_SECOND, P_SECOND).mean()


def fixed(learn=None, **parameters):
    return EmbeddingClassifier(Gaussian(0.5), learn=learn, ridge=0.1, **parameters)


N_DRAWS, BETA = 200, 0.2


def test_each_guaranteed_bound_holds_as_often_as_it_says():
    held = {"rademacher": 0, "rademacher-fixed-kernel": 0, "holdout": 0, "holdout error": 0}
    for seed in range(N_DRAWS):
        X, y = draw(300, seed)
        model = fixed(Given(holdout_share=0.3), random_state=seed).fit(X, y)
        clipped, error = true_risks(model)
        for method in ("rademacher", "rademacher-fixed-kernel", "holdout"):
            held[method] += model.risk_bound(method, beta=BETA).total >= clipped
        bound = model.risk_bound("holdout", beta=BETA, loss="error")
        assert not bound.vacuous
        held["holdout error"] += bound.total >= error
        assert not model.risk_bound("holdout", beta=BETA).vacuous
        assert model.risk_bound(beta=BETA).vacuous  # as printed
    assert min(held.values()) >= (1 - BETA) * N_DRAWS, held


@pytest.mark.parametrize("epsilon", [0.02, 0.3])
def test_bounds_at_another_clip_hold_as_often_as_they_say(epsilon):
    n_draws, held = 40, {"rademacher": 0, "rademacher-fixed-kernel": 0, "holdout": 0}
    for seed in range(n_draws):
        (X, y), new = draw(300, seed), draw(100, 1000 + seed)
        model = fixed().fit(X, y)
        losses = -np.log(np.clip(model.raw_outputs(PLACES), epsilon, 1.0))
        risk = ((1 - P_SECOND) * losses[:, 0] + P_SECOND * losses[:, 1]).mean()
        for method in held:
            rows = new if method == "holdout" else ()
            held[method] += model.risk_bound(method, *rows, beta=BETA, epsilon=epsilon).total >= risk
    assert min(held.values()) >= (1 - BETA) * n_draws, held


def test_the_training_loss_of_a_bound_is_clipped_as_it_was_learned():
    X, y = draw(300, 0)
    for method in (Rademacher(epsilon=0.2), LeaveOneOut(loss="log", epsilon=0.2), LeaveOneOut()):
        model = fixed(method).fit(X, y)
        own = model.raw_outputs(X)[np.arange(len(y)), y]
        expected = -np.log(np.clip(own, method.epsilon, 1.0)).mean()
        assert model.risk_bound().parts["training loss"] == pytest.approx(expected)
        assert model.training_loss_ == pytest.approx(expected)
        general = -np.log(np.clip(own, 0.05, 1.0)).mean()
        assert model.risk_bound(epsilon=0.05).parts["training loss"] == pytest.approx(general)
    with pytest.raises(ValueError, match="between 0 and 1/e"):
        model.risk_bound(epsilon=0.5)
    with pytest.raises(ValueError, match="needs rows"):
        model.risk_bound("holdout", epsilon=0.1)


def test_the_fixed_kernel_bound_says_something_with_many_rows():
    for seed in range(20):
        model = fixed().fit(*draw(20_000, seed))
        bound = model.risk_bound("rademacher-fixed-kernel")
        assert true_risks(model)[0] <= bound.total < 1.0
        assert bound.total < model.risk_bound().total


def test_a_kernel_learned_from_other_rows_is_fixed():
    for seed in range(5):
        X, y = draw(600, seed)
        learn = learning.Auto(max_iter=3, kernel_share=0.5, holdout_share=0.3)
        model = EmbeddingClassifier(learn=learn, random_state=seed).fit(X, y)
        clipped, error = true_risks(model)
        assert model.risk_bound("rademacher-fixed-kernel").total >= clipped
        assert model.risk_bound("holdout", loss="error").total >= error
        assert model.embedding_.rows.given.sum() == round(0.5 * 420)  # rows of the embedding


def test_the_embedding_of_a_split_fit_knows_only_its_own_rows():
    """By hand: a kernel from some rows, the solve on the others, nothing of the rest."""
    X, y = draw(100, 0)
    model = fixed(Given(kernel_share=0.4, holdout_share=0.2), random_state=3).fit(X, y)
    used = model.embedding_.rows.given
    assert used.sum() == 48
    other = fixed().fit(X[used], y[used])
    np.testing.assert_allclose(model.raw_outputs(PLACES), other.raw_outputs(PLACES), atol=1e-12)
    assert model._holdout[0].shape == (20,)


def test_held_out_rows_may_be_passed():
    X, y = draw(300, 0)
    model = fixed().fit(X[:200], y[:200])
    bound = model.risk_bound("holdout", X[200:], y[200:], loss="error")
    assert bound.parts["held-out error rate"] == pytest.approx(1 - model.score(X[200:], y[200:]))
    own = model.raw_outputs(X[200:])[np.arange(100), y[200:]]
    clipped = model.risk_bound("holdout", X[200:], y[200:])
    assert clipped.parts["held-out loss"] == pytest.approx(-np.log(np.clip(own, 1 / math.e, 1)).mean())


def test_a_label_never_seen_costs_the_most():
    X, y = draw(60, 0)
    bound = fixed().fit(X, y).risk_bound("holdout", X[:3], [5, 5, 5])
    assert bound.parts["held-out loss"] == 1.0
    assert fixed().fit(X, y).risk_bound("holdout", X[:3], [5, 5, 5], loss="error").total == 1.0


def test_leave_one_out_is_the_mean_over_refitted_models():
    X, y = draw(25, 1)
    X = X + np.linspace(0, 0.01, 25)[:, None]  # no equal rows
    model = fixed(probability="clip").fit(X, y)
    losses, wrong = [], []
    for i in range(25):
        kept = np.arange(25) != i
        other = fixed(probability="clip").set_params(ridge=0.1 * 25 / 24).fit(X[kept], y[kept])
        losses.append(-np.log(np.clip(other.raw_outputs(X[[i]])[0, y[i]], 1 / math.e, 1)))
        wrong.append(other.predict(X[[i]])[0] != y[i])
    closed_form = {
        loss: next(iter(model.risk_bound("leave-one-out", loss=loss).parts.values())) for loss in CLASS_LOSSES
    }
    assert closed_form["clipped"] == pytest.approx(np.mean(losses), rel=1e-8)
    assert closed_form["error"] == pytest.approx(np.mean(wrong))
    assert not model.risk_bound("leave-one-out").guaranteed


@pytest.mark.parametrize("groups", [None, np.arange(80) // 4], ids=["rows", "groups"])
def test_an_estimate_learns_anew_without_each_part(groups):
    X, y = draw(80, 3)
    model = EmbeddingClassifier(Gaussian(), scale=None, learn=Rademacher(optimizer=LBFGS(5)), random_state=0)
    model.fit(X, y, groups=groups)
    rows = model.embedding_.rows.training_set(torch.from_numpy(model.points_), torch.from_numpy(model.coefficients_))
    parts = rows.unmerged().random_parts(10, generator(0)).numpy()
    points, labels = rows.unmerged().points.numpy(), rows.unmerged().strata.numpy()
    names = None if groups is None else rows.unmerged().groups.numpy()
    wrong = np.zeros(len(labels))
    for part in range(10):
        out = parts == part
        own = None if names is None else names[~out]
        other = clone(model).fit(points[~out], labels[~out], groups=own)
        wrong[out] = other.predict(points[out]) != labels[out]
    found = model.risk_bound("leave-one-out", loss="error")
    assert found.total == pytest.approx(wrong.mean(), abs=1.5 / 80)
    assert found.total < found.upper <= 1.0
    assert found.upper == model.risk_bound("leave-one-out", loss="error").upper  # not drawn anew
    assert model.risk_bound("leave-one-out", loss="error", beta=0.3).upper < found.upper


def test_what_breaks_a_guarantee_is_said():
    X, y = draw(60, 0)
    weighted = fixed().fit(X, y, sample_weight=np.arange(1, 61))
    assert "weights" in weighted.risk_bound().conditions
    assert weighted.risk_bound().confidence == 0.0
    linear = EmbeddingClassifier(Linear(), learn=None).fit(X, y)
    assert "no known bound" in linear.risk_bound().conditions
    herded = fixed(solver=Herding(10)).fit(X, y)
    assert "herding" in herded.risk_bound().conditions
    assert fixed().fit(X, y, sample_weight=np.full(60, 2.0)).risk_bound().guaranteed


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.risk_bound("rademacher-fixed-kernel"), "kernel_share=0.5"),
        (lambda m: m.risk_bound("holdout"), "holdout_share=0.3"),
        (lambda m: m.risk_bound("holdout", X=[[1.0]]), "both X and y"),
        (lambda m: m.risk_bound("bernstein"), "must be one of"),
        (lambda m: m.risk_bound("rademacher", loss="error"), "use 'holdout'"),
        (lambda m: m.risk_bound("leave-one-out", [[1.0]], [1]), "Only method='holdout' takes X and y"),
        (lambda m: m.risk_bound(beta=1.5), "between 0 and 1"),
    ],
)
def test_what_cannot_be_had_is_refused_with_advice(call, words):
    model = EmbeddingClassifier(learn=learning.Auto(max_iter=2)).fit(*draw(60, 0))
    with pytest.raises(ValueError, match=words):
        call(model)


def test_a_part_with_one_class_is_refused():
    X, y = draw(40, 0)
    y[:] = 0
    y[0] = 1
    with pytest.raises(ValueError, match="Only one class is left"):
        fixed(Given(kernel_share=0.5)).fit(X, y)


def test_features_and_networks_have_bounds_too():
    X, y = load_wine(return_X_y=True)
    learn = learning.Auto(max_iter=2, kernel_share=0.5)
    fourier = EmbeddingClassifier(features=RandomFourier(50), scale="standard", learn=learn)
    assert fourier.fit(X, y).risk_bound("rademacher-fixed-kernel").guaranteed
    network = EmbeddingNetworkClassifier(hidden=(8,), random_state=0).fit(X[::2], y[::2])
    assert 0 < network.risk_bound("holdout", X[1::2], y[1::2], loss="error").total <= 1
    assert not network.risk_bound().guaranteed  # an unbounded network
    assert network.risk_bound("leave-one-out").total > 0


def test_a_warm_start_makes_no_kernel_fixed():
    X, y = draw(100, 0)
    few_steps = LeaveOneOut(optimizer=LBFGS(3))
    model = EmbeddingClassifier(Gaussian(1.0), learn=few_steps, warm_start=True).fit(X, y)
    for learn in (Median(), few_steps):
        with pytest.raises(ValueError, match="kernel_share"):
            model.set_params(learn=learn).fit(X, y).risk_bound("rademacher-fixed-kernel")
    assert model.set_params(learn=None).fit(X, y).risk_bound("rademacher-fixed-kernel").total > 0
    assert float(model.kernel_.lengthscale) == pytest.approx(1.0)  # as given, not as learned before
