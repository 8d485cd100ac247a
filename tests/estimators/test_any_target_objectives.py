"""Eqs. (12), (13) and regularised validation for targets of any kind, against formulas in their Gram matrix."""

import math

import numpy as np
import pytest

from kernelwright.estimators import ConditionalMeanEmbedding
from kernelwright.kernels import Gaussian, KroneckerDelta, Matern, Spectrum
from kernelwright.learning import LBFGS, HeldOut, Rademacher, RegularisedFolds

RIDGE, TAU, N = 0.03, 0.2, 30
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
REAL = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=N)
TARGETS = {
    "real": (REAL, Matern()),
    "vectors": (np.column_stack([REAL, X[:, 1] ** 2]), Gaussian(0.7)),
    "labels": (np.array(["low", "middle", "high"])[np.digitize(REAL, [-0.5, 0.5])], KroneckerDelta()),
    "strings": (np.array(["abab", "aabb", "bbbb", "abba"])[RNG.integers(0, 4, N)].astype(object), Spectrum(2)),
}


def fitted(kind, prior, learn):
    """Return a model with its kernel matrices of rows and targets, in the order of its points."""
    Y, target_kernel = TARGETS[kind]
    model = ConditionalMeanEmbedding(Gaussian(), ridge=RIDGE, learn=learn, target_kernel=target_kernel, prior=prior)
    model.fit(X, Y)
    rows, space = model.embedding_.rows, model.target_space_
    L = space.gram().numpy()[np.ix_(rows.number, rows.number)]
    data = rows.training_set(space.features().table, centred=prior == "marginal", classes=space.kind == "labels")
    return model, Gaussian()(rows.points.numpy()), L, data


def loss_and_norm(K, L, train, test, noise, centred):
    """Return the mean ``|l(y, .) - mu(x)|^2`` over the tested rows, and ``|U|_HS^2`` of the embedding of the others."""
    n = len(K)
    share = np.full(n, 1 / n) if centred else np.zeros(n)  # the mean embedding of all targets, as weights of rows
    inverse = np.linalg.inv(K[np.ix_(train, train)] + noise * np.eye(len(train)))
    losses = []
    for i in test:
        weights = share.copy()
        own = K[i, train] @ inverse
        weights[train] += own
        weights -= own.sum() * share
        losses.append(L[i, i] - 2 * weights @ L[i] + weights @ L @ weights)
    H = np.eye(n) - share  # row i: target i minus the mean
    centred_gram = (H @ L @ H.T)[np.ix_(train, train)]
    norm = np.trace(inverse @ centred_gram @ inverse @ K[np.ix_(train, train)])
    return np.mean(losses), norm


each_kind = pytest.mark.parametrize("kind", TARGETS)
each_prior = pytest.mark.parametrize("prior", ["zero", "marginal"])


def unit_of(L):
    """Return the mean of l(y, y), in whose units the objective is: ``loss + tau sqrt(unit) r`` after multiplying."""
    return L.diagonal().mean()


@each_kind
@each_prior
@pytest.mark.parametrize("share", [0.5, 0.3])
def test_the_held_out_objective_is_equation_13_in_the_space_of_the_targets(kind, prior, share):
    model, K, L, data = fitted(kind, prior, HeldOut(TAU, share=share, optimizer=LBFGS(1)))
    part = data.part(share)
    train, test = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    loss, norm = loss_and_norm(K, L, train, test, len(train) * RIDGE, prior == "marginal")
    expected = loss + TAU * math.sqrt(unit_of(L)) * math.sqrt(norm)  # sup k(x, x) is one
    assert 0 < len(test) < N
    assert model.history_[0].objective == pytest.approx(expected, rel=1e-6)


@each_kind
@each_prior
def test_the_training_objective_is_equation_12_in_the_space_of_the_targets(kind, prior):
    model, K, L, _ = fitted(kind, prior, Rademacher(TAU, optimizer=LBFGS(1)))
    everything = np.arange(N)
    loss, norm = loss_and_norm(K, L, everything, everything, N * RIDGE, prior == "marginal")
    assert model.history_[0].objective == pytest.approx(loss + TAU * math.sqrt(unit_of(L) * norm), rel=1e-6)


@each_kind
@each_prior
def test_regularised_validation_adds_the_penalty_of_ridge_regression(kind, prior):
    model, K, L, data = fitted(kind, prior, RegularisedFolds(3, optimizer=LBFGS(1)))
    folds, total, norms = data.folds(3), 0.0, []
    for fold in range(3):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        loss, norm = loss_and_norm(K, L, train, test, N * RIDGE, prior == "marginal")
        total += loss * len(test) / N
        norms.append(norm)
    assert model.history_[0].objective == pytest.approx(total + RIDGE * np.mean(norms), rel=1e-6)


@each_kind
def test_learning_by_equation_13_lowers_it(kind):
    model, *_ = fitted(kind, "marginal", HeldOut(0.01))
    assert model.objective_ < model.history_[0].objective
