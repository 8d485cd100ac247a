"""Losses, scores and bounds of embeddings of any target."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

import kernelwright
from kernelwright import learning
from kernelwright.estimators import ConditionalMeanEmbedding
from kernelwright.kernels import Brownian, Gaussian, KroneckerDelta, Linear, Matern
from kernelwright.solvers import Landmarks

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (90, 2))
Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1] ** 2]) + 0.2 * RNG.normal(size=(90, 2))
TRAIN, TEST = slice(0, 60), slice(60, None)


def fitted(target_kernel, Y=Y, **settings):
    model = ConditionalMeanEmbedding(Gaussian(0.5), ridge=1e-3, learn=None, target_kernel=target_kernel, **settings)
    return model.fit(X[TRAIN], Y[TRAIN])


# Losses and scores ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", [0.0, 40.0])
def test_the_loss_of_the_brownian_kernel_is_the_crps(origin):
    """Against the integral of the squared difference of distribution functions, and the formula of pairs."""
    y = Y[:, 0]
    model = fitted(Brownian(origin), y)
    W = model.weights(X[TEST])
    assert (W < 0).any()  # the identity does not need probabilities, only a sum of one
    t = np.sort(y)
    below = (y[TRAIN] <= t[:-1, None]) @ W.T  # a row for each threshold
    integral = ((below - (y[TEST] <= t[:-1, None])) ** 2 * np.diff(t)[:, None]).sum(0)
    D = np.abs(y[TRAIN][:, None] - y[TRAIN])
    pairs = (W * np.abs(y[TEST][:, None] - y[TRAIN])).sum(1) - 0.5 * ((W @ D) * W).sum(1)
    np.testing.assert_allclose(model.losses(X[TEST], y[TEST]), integral, atol=1e-10)
    np.testing.assert_allclose(model.losses(X[TEST], y[TEST]), pairs, atol=1e-10)


def test_for_vectors_it_is_the_energy_score():
    model = fitted(Brownian([1.0, -2.0]))
    W = model.weights(X[TEST])
    to_all = np.linalg.norm(Y[TEST][:, None] - Y[TRAIN], axis=-1)
    between = np.linalg.norm(Y[TRAIN][:, None] - Y[TRAIN], axis=-1)
    expected = (W * to_all).sum(1) - 0.5 * ((W @ between) * W).sum(1)
    np.testing.assert_allclose(model.losses(X[TEST], Y[TEST]), expected, atol=1e-10)


def test_learning_by_the_brownian_kernel_minimises_the_left_out_crps():
    y = Y[:60, 0]
    model = ConditionalMeanEmbedding(
        Gaussian(0.5), ridge=1e-2, learn=learning.LeaveOneOut(0.0), target_kernel=Brownian(), prior="zero"
    ).fit(X[:60], y)
    K, scores = Gaussian(0.5)(X[:60]), []
    for i in range(60):
        others = np.delete(np.arange(60), i)
        w = np.linalg.solve(K[np.ix_(others, others)] + 60 * 1e-2 * np.eye(59), K[others, i])
        L = Brownian()(y[:, None])
        scores.append(L[i, i] - 2 * w @ L[others, i] + w @ L[np.ix_(others, others)] @ w)
    assert model.history_[0].objective == pytest.approx(np.mean(scores), abs=1e-8)
    assert model.objective_ < model.history_[0].objective


def test_score_of_the_linear_kernel_is_r_squared():
    y = Y[:, 0] - Y[TRAIN, 0].mean() + Y[TEST, 0].mean()  # so that both means are the same
    y[TRAIN] += y[TEST].mean() - y[TRAIN].mean()
    model = fitted(Linear(), y)
    assert model.score(X[TEST], y[TEST]) == pytest.approx(r2_score(y[TEST], model.expectation(X[TEST])), abs=1e-10)


def test_score_of_labels_is_a_brier_skill_score():
    labels = np.array(["low", "middle", "high"])[np.digitize(Y[:, 0], [-0.5, 0.5])]
    model = fitted(KroneckerDelta(), labels)
    one_hot = labels[:, None] == model.classes_
    brier, rival = (
        ((p - one_hot[TEST]) ** 2).sum(1).mean() for p in (model.expectation(X[TEST]), one_hot[TRAIN].mean(0))
    )
    assert model.score(X[TEST], labels[TEST]) == pytest.approx(1 - brier / rival, abs=1e-10)


@pytest.mark.parametrize("solver", ["exact", Landmarks(30)])
def test_scores_run_from_nothing_known_to_everything_known(solver):
    noise = np.random.default_rng(1).normal(size=90)
    blind = ConditionalMeanEmbedding(Gaussian(), ridge=1e6, learn=None, solver=solver).fit(X[TRAIN], noise[TRAIN])
    assert blind.score(X[TEST], noise[TEST]) == pytest.approx(0.0, abs=1e-4)
    y = X[:, 0] + X[:, 1]
    sharp = ConditionalMeanEmbedding(Gaussian(), solver=solver, random_state=0).fit(X[TRAIN], y[TRAIN])
    assert 0.95 < sharp.score(X[TEST], y[TEST]) <= 1.0


def test_score_of_one_value():
    model = ConditionalMeanEmbedding(Gaussian(), learn=None, target_kernel=Gaussian()).fit(X, np.full(90, 2.0))
    assert model.score(X, np.full(90, 2.0)) == 1.0
    assert model.score(X, np.full(90, 3.0)) == pytest.approx(0.0)


@pytest.mark.parametrize("target", ["numbers", "vectors", "labels"])
def test_cross_validation_gives_numbers(target):
    y = {"numbers": Y[:, 0], "vectors": Y, "labels": np.where(Y[:, 0] > 0, "up", "down")}[target]
    model = ConditionalMeanEmbedding(Gaussian(), learn=learning.LeaveOneOut(), random_state=0)
    scores = cross_val_score(model, X, y, cv=3)
    assert np.isfinite(scores).all()
    assert scores.mean() > 0.25


@pytest.mark.parametrize("target_kernel", [None, Brownian()], ids=["Gaussian", "Brownian"])
def test_nothing_is_learned_from_noise(target_kernel):
    scores = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(330, 4)), rng.normal(size=330)
        model = ConditionalMeanEmbedding(target_kernel=target_kernel, random_state=0).fit(X[:30], y[:30])
        scores.append(model.score(X[30:], y[30:]))
    assert -0.02 < np.mean(scores) < 0.01


def test_huge_targets_do_not_overflow():
    y = Y[:, 0]
    plain, huge = (fitted(Gaussian(), y * unit).expectation(X[TEST]) for unit in (1.0, 1e300))
    np.testing.assert_allclose(huge, 1e300 * plain, rtol=1e-9)


# Bounds --------------------------------------------------------------------------------------------------------------

P = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.6, 0.2, 0.1], [0.0, 0.1, 0.3, 0.6]])  # of each target, given x
VALUES, POINTS = np.array([0.0, 0.5, 1.0, 3.0]), np.array([[0.0], [1.0], [2.0]])


def draw(n, rng):
    x = rng.integers(3, size=n)
    below = P[x].cumsum(1)
    return POINTS[x], VALUES[(rng.random(n)[:, None] > below).sum(1)]


def true_risk(model):
    """Return the expected clipped loss of a model, over the known distribution."""
    losses = np.column_stack([model.losses(POINTS, np.full(3, value)) for value in VALUES])
    return (P * np.minimum(losses / 2.0, 1.0)).sum() / 3


def fixed(n, rng, **settings):
    model = ConditionalMeanEmbedding(
        Gaussian(0.5), ridge=1e-3, learn=None, target_kernel=Gaussian(), random_state=0, **settings
    )
    return model.fit(*draw(n, rng))


@pytest.mark.parametrize("prior", ["marginal", "zero"])
def test_bounds_hold_at_least_as_often_as_they_say(prior):
    rng, beta, n_draws, held = np.random.default_rng(0), 0.2, 150, {"holdout": 0, "rademacher-fixed-kernel": 0}
    for _ in range(n_draws):
        model = fixed(40, rng, prior=prior)
        risk = true_risk(model)
        held["holdout"] += model.risk_bound("holdout", *draw(30, rng), beta=beta).total >= risk
        held["rademacher-fixed-kernel"] += model.risk_bound("rademacher-fixed-kernel", beta=beta).total >= risk
    assert min(held.values()) >= (1 - beta) * n_draws


def test_the_bound_from_training_rows_says_something_about_many():
    rng = np.random.default_rng(0)
    model = fixed(20_000, rng)
    bound = model.risk_bound("rademacher-fixed-kernel")
    assert not bound.vacuous
    assert true_risk(model) < bound.total < true_risk(model) + 0.35
    assert "never above 1" in str(bound)


def test_what_is_missing_for_a_bound_is_said():
    rng = np.random.default_rng(0)
    learned = ConditionalMeanEmbedding(Gaussian(), learn="median").fit(*draw(30, rng))
    with pytest.raises(ValueError, match="kernel_share"):
        learned.risk_bound("rademacher-fixed-kernel")
    default = ConditionalMeanEmbedding(Gaussian(), learn=None).fit(*draw(30, rng))  # its target kernel has a median
    with pytest.raises(ValueError, match="was chosen with the rows"):
        default.risk_bound("rademacher-fixed-kernel")
    with pytest.raises(ValueError, match="holdout_share"):
        learned.risk_bound("holdout")
    with pytest.raises(ValueError, match="both X and y"):
        learned.risk_bound("holdout", POINTS)
    with pytest.raises(ValueError, match="'method' of risk_bound"):
        learned.risk_bound("rademacher")
    with pytest.raises(ValueError, match="Only method='holdout'"):
        learned.risk_bound("rademacher-fixed-kernel", *draw(5, rng))
    unbounded = ConditionalMeanEmbedding(Gaussian(), learn=None, target_kernel=Brownian()).fit(*draw(30, rng))
    bound = unbounded.risk_bound("rademacher-fixed-kernel")
    assert not bound.guaranteed
    assert "l(y, y) has no known bound" in bound.conditions


def test_shares_set_rows_apart():
    """Rows that learn the kernel, solve the embedding and are held out are different ones."""
    X, y = draw(200, np.random.default_rng(0))
    X = X + np.random.default_rng(1).normal(size=(200, 1)) * 1e-3  # distinct rows
    learn = learning.LeaveOneOut(kernel_share=0.5, holdout_share=0.2)
    model = ConditionalMeanEmbedding(Matern(), learn=learn, random_state=0).fit(X, y)
    assert model.weights(X[:2]).shape == (2, 80)
    assert len(model.targets_) == 80
    assert model.risk_bound("holdout").parts["held-out loss"] < 0.3
    assert model.risk_bound("rademacher-fixed-kernel").guaranteed
    assert np.abs(model.expectation(POINTS) - P @ VALUES).max() < 0.5
    with pytest.raises(ValueError, match="fewer than 2 of 6 rows"):
        ConditionalMeanEmbedding(learn=learning.LeaveOneOut(kernel_share=0.9)).fit(X[:6], y[:6])


# Landmarks -----------------------------------------------------------------------------------------------------------


def test_landmarks_answer_like_the_exact_embedding():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 1))
    y = np.sin(3 * X[:, 0]) + (0.1 + 0.3 * (X[:, 0] > 0)) * rng.normal(size=1500)
    new, test = np.linspace(-0.9, 0.9, 40)[:, None], slice(1200, None)
    settings = {"kernel": Gaussian(0.3), "ridge": 1e-4, "learn": None, "random_state": 0}
    exact, few = (
        ConditionalMeanEmbedding(**settings, solver=solver).fit(X[:1200], y[:1200])
        for solver in ("exact", Landmarks(40))
    )
    np.testing.assert_allclose(few.expectation(new), exact.expectation(new), atol=0.01)
    np.testing.assert_allclose(few.expectation(new, np.square), exact.expectation(new, np.square), atol=0.02)
    np.testing.assert_allclose(few.weights(new).sum(1), 1.0)
    np.testing.assert_allclose(few.weights(new) @ y[:1200], few.expectation(new), atol=1e-8)
    levels = [0.1, 0.5, 0.9]
    assert np.abs(few.quantile(new, levels) - exact.quantile(new, levels)).mean() < 0.03
    assert few.score(X[test], y[test]) == pytest.approx(exact.score(X[test], y[test]), abs=0.01)
    assert np.abs(few.sample(new, 50).mean(1) - exact.expectation(new)).mean() < 0.05


def test_landmarks_for_vectors_and_strings():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1400, 1))
    Y = np.column_stack([np.sin(3 * X[:, 0]), np.cos(3 * X[:, 0])]) + 0.2 * rng.normal(size=(1400, 2))
    exact, few = (
        ConditionalMeanEmbedding(Gaussian(0.3), ridge=1e-4, learn=None, solver=solver, target_kernel=Gaussian(0.7)).fit(
            X[:1200], Y[:1200]
        )
        for solver in ("exact", Landmarks(40))
    )
    assert few.sample(X[:3], 5).shape == (3, 5, 2)
    assert few.score(X[1200:], Y[1200:]) == pytest.approx(exact.score(X[1200:], Y[1200:]), abs=0.01)
    labels = ConditionalMeanEmbedding(Gaussian(0.3), learn=None, solver=Landmarks(40)).fit(
        X, np.where(Y > 0, "a", "b")[:, 0]
    )
    assert labels.expectation(X[:4]).shape == (4, 2)
    assert set(labels.sample(X[:4], 3).ravel()) <= {"a", "b"}


def test_landmarks_of_a_matrix_are_refused():
    with pytest.raises(ValueError, match="a kernel that can be evaluated"):
        ConditionalMeanEmbedding("precomputed", solver="nystroem", learn=None).fit(np.eye(40), np.arange(40.0))


def test_a_file_from_before_the_marginal_prior_keeps_its_own():
    old = kernelwright.load(Path(__file__).parents[1] / "data" / "conditional-mean-embedding.v1.kw")
    assert old.prior == "zero"
    assert (old.expectation([[1e9, 1e9]], np.ones(12)) < 0.99).all()
    assert np.isfinite(old.score(X[:5], Y[:5, 0]))
    with pytest.raises(ValueError, match="holdout_share"):
        old.risk_bound("holdout")
