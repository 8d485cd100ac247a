"""Support of new rows, and probabilities of rows without support."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine, make_moons

from kernelwright import EmbeddingClassifier, EmbeddingNetworkClassifier
from kernelwright.embedding import TrainingSet
from kernelwright.embedding.support import FeatureSupport, KernelSupport, nearest_other
from kernelwright.features import Nystroem, Polynomial, RandomFourier
from kernelwright.kernels import Gaussian, Laplace
from kernelwright.learning import LBFGS, Auto, LeaveOneOut, Median, Rademacher
from kernelwright.networks import Training
from kernelwright.numerics.linalg import factorise
from kernelwright.solvers import Herding, Landmarks

RNG = np.random.default_rng(0)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def test_nearest_other_is_the_largest_off_the_diagonal():
    K = torch.from_numpy(RNG.normal(size=(9, 9)))
    before = K.clone()
    expected = [max(float(K[i, j]) for j in range(9) if j != i) for i in range(9)]
    rows = TrainingSet.of(K, torch.ones(9, 1, dtype=torch.float64))
    assert nearest_other(K, rows).tolist() == pytest.approx(expected)
    assert torch.equal(K, before)
    assert nearest_other(K, replace(rows, weights=9.0 * rows.weights)).tolist() == pytest.approx(expected)
    twice = torch.ones(9, dtype=torch.float64)
    twice[4] = 2.0  # two equal rows are each other's nearest
    assert float(nearest_other(K, replace(rows, counts=twice))[4]) == float(K[4, 4])


def test_rows_of_the_same_group_are_no_others():
    rng = np.random.default_rng(1)
    K, groups = torch.from_numpy(rng.normal(size=(9, 9))), np.array([0, 0, 1, 2, 2, 2, 3, 3, 3])
    expected = [max(float(K[i, j]) for j in range(9) if groups[j] != groups[i]) for i in range(9)]
    rows = TrainingSet.of(K, torch.ones(9, 1, dtype=torch.float64), groups=torch.from_numpy(groups))
    assert nearest_other(K, rows).tolist() == pytest.approx(expected)


def test_copies_in_one_group_have_the_support_of_one():
    Z = torch.from_numpy(np.random.default_rng(2).normal(size=(60, 5)))
    one = TrainingSet.of(Z, torch.ones(60, 1, dtype=torch.float64))
    halves = TrainingSet.of(
        torch.cat([Z, Z]),
        torch.ones(120, 1, dtype=torch.float64),
        weights=torch.full((120,), 0.5, dtype=torch.float64),
        groups=torch.arange(60).repeat(2),
    )
    factor = factorise(Z.T @ Z, 1.0)
    alone, together = FeatureSupport.of(factor, Z, one), FeatureSupport.of(factor, halves.points, halves)
    assert together.squared_norm == pytest.approx(alone.squared_norm)
    assert together.inverse_leverage == pytest.approx(alone.inverse_leverage, rel=1e-9)


def test_a_sketched_leverage_is_close_to_the_leverage():
    Z = torch.from_numpy(RNG.normal(size=(200, 40)))
    S = Z.T @ Z
    support = FeatureSupport.of(factorise(S, 1.0), Z, TrainingSet.of(Z, torch.ones(200, 1, dtype=torch.float64)))
    new = torch.from_numpy(RNG.normal(size=(300, 40)))
    exact = (new * torch.linalg.solve(S + torch.eye(40), new.T).T).sum(1)
    ratio = (support._inverse_leverage(new) * exact).log().abs()
    assert float(ratio.mean()) < 0.25
    assert float(ratio.max()) < 1.0


def test_a_left_out_row_is_not_its_own_support():
    """(1 - q) / q is one over the leverage that the row would have as a new one."""
    Z = torch.from_numpy(RNG.normal(size=(30, 5)))
    S = Z.T @ Z + torch.eye(5)
    q = (Z * torch.linalg.solve(S, Z.T).T).sum(1)
    without = torch.stack([z @ torch.linalg.solve(S - torch.outer(z, z), z) for z in Z])
    torch.testing.assert_close(1 / q - 1, 1 / without)


def test_the_level_is_a_weighted_quantile():
    values = torch.from_numpy(RNG.permutation(1000)).double() + 1.0
    assert KernelSupport.of(values, torch.ones(1000, dtype=torch.float64)).level == pytest.approx(10, abs=1)
    heavy = torch.ones(1000, dtype=torch.float64)
    heavy[values == 1] = 100.0
    assert KernelSupport.of(values, heavy).level == 1.0


def test_where_training_rows_have_no_support_nothing_is_said():
    assert KernelSupport(0.0)(tensor([[0.0, -1.0], [3.0, 0.0]])).tolist() == [1.0, 1.0]


FEW = Auto(max_iter=5)
MODELS = {
    "default": EmbeddingClassifier(learn=FEW, random_state=0),
    "gaussian": EmbeddingClassifier(Gaussian("median", ard=True), scale="standard", learn=FEW),
    "softmax": EmbeddingClassifier(Laplace("median"), scale="standard", probability="softmax", learn=FEW),
    "the paper's bound": EmbeddingClassifier(Gaussian("median"), learn=Rademacher("4e/n", optimizer=LBFGS(5))),
    "landmarks": EmbeddingClassifier(learn=FEW, solver=Landmarks(40), random_state=0),
    "herding": EmbeddingClassifier(learn=FEW, solver=Herding(60), random_state=0),
    "fourier features": EmbeddingClassifier(features=RandomFourier(300), scale="standard", learn=FEW),
    "nystroem features": EmbeddingClassifier(features=Nystroem(Gaussian("median"), 50), scale="standard", learn=FEW),
    "polynomial": EmbeddingClassifier(features=Polynomial(2), scale="standard", learn=FEW),
    "network": EmbeddingNetworkClassifier(hidden=(16,), training=Training(max_epochs=5), random_state=0),
    "network and kernel": EmbeddingNetworkClassifier(
        hidden=(8,), kernel=Gaussian(), training=Training(max_epochs=5), random_state=0
    ),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_far_from_all_data_the_answer_is_the_class_prior_and_not_a_confident_corner(name):
    X, y = load_wine(return_X_y=True)
    rare = np.flatnonzero(y != 2)[:100]  # two classes of three are most of the rows
    X, y = np.vstack([X[rare], X[y == 2][:12]]), np.append(y[rare], [2] * 12)
    model = MODELS[name].fit(X, y)
    spread = X.max(0) - X.min(0)
    far = X.mean(0) + 1e4 * spread * RNG.choice([-1.0, 1.0], (20, X.shape[1]))
    prior = np.bincount(y) / len(y)
    assert model.support(far).max() < 0.01
    assert np.abs(model.predict_proba(far) - prior).max() < 0.02
    np.testing.assert_allclose(np.exp(model.predict_log_proba(far)), model.predict_proba(far), atol=1e-12)


@pytest.mark.parametrize("name", ["default", "gaussian", "landmarks", "fourier features", "network"])
def test_about_one_new_row_in_a_hundred_is_unusual(name):
    X, y = make_moons(1500, noise=0.2, random_state=0)
    model = MODELS[name].fit(X[:500], y[:500])
    most = 0.08 if name == "landmarks" else 0.035  # a quantile of 25 held-out rows is their smallest value
    assert 0.001 <= (model.support(X[500:]) < 1).mean() <= most


def test_clip_stays_equation_6_far_from_data():
    X, y = make_moons(100, noise=0.2, random_state=0)
    model = EmbeddingClassifier(Gaussian(0.5), learn=None, probability="clip").fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[50.0, 50.0]]), [[0.5, 0.5]])


@pytest.mark.parametrize(
    "learn",
    [Auto(max_iter=3), Rademacher(optimizer=LBFGS(3)), LeaveOneOut(optimizer=LBFGS(3)), Median()],
    ids=lambda learn: learn.word,
)
@pytest.mark.parametrize("method", ["embedding", "clip"])
def test_entropy_far_from_data_is_that_of_the_class_frequencies(learn, method):
    X, y = load_wine(return_X_y=True)
    model = EmbeddingClassifier(Gaussian("median"), scale="standard", learn=learn).fit(X, y)
    prior = np.bincount(y) / len(y)
    expected = -(prior * np.log(prior)).sum()
    assert model.entropy(X[:1] + 1e5, method)[0] == pytest.approx(expected, abs=0.01)


def test_entropy_near_the_data_is_made_of_raw_outputs():
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = EmbeddingClassifier(Gaussian(0.5), learn=None, ridge=0.01).fit(X[:100], y[:100])
    f = model.raw_outputs(X[100:])
    expected = -np.where(f > 0, f * np.log(np.maximum(f, 1e-300)), 0.0).sum(1)
    np.testing.assert_allclose(model.entropy(X[100:]), expected, atol=1e-12)


def test_a_level_below_single_precision_is_no_division_by_zero():
    support = KernelSupport(level=1e-300)
    assert support(torch.zeros(2, 3, dtype=torch.float32)).tolist() == [0.0, 0.0]
