import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelwright.kernels import Gaussian
from kernelwright.research.baselines import RandomFeatureAlignment, random_alignment
from kernelwright.research.baselines.random_alignment import best_in_chi2_ball, best_in_kl_ball


@parametrize_with_checks([RandomFeatureAlignment(200), RandomFeatureAlignment(200, divergence="kl")])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def chi2(q):
    return len(q) * ((q - 1.0 / len(q)) ** 2).sum()


def kl(q):
    q = np.maximum(q, 1e-300)
    return (q * np.log(len(q) * q)).sum()


def by_slsqp(scores, divergence, limit):
    """Solve the same linear objective with convex constraints by a general solver."""
    M = len(scores)
    constraints = [
        {"type": "eq", "fun": lambda q: q.sum() - 1.0},
        {"type": "ineq", "fun": lambda q: limit - divergence(q)},
    ]
    options = {"maxiter": 2000, "ftol": 1e-14}
    scale = scores.max()
    start = np.full(M, 1.0 / M)
    bounds = [(0.0, 1.0)] * M
    result = minimize(lambda q: -(q @ scores) / scale, start, bounds=bounds, constraints=constraints, options=options)
    return result.x @ scores


@pytest.mark.parametrize("rho", [0.01, 0.3, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_weights_are_those_of_a_general_solver(rho, seed):
    scores = np.random.default_rng(seed).chisquare(1, 12)
    for best, divergence, limit in ((best_in_chi2_ball, chi2, rho), (best_in_kl_ball, kl, np.log1p(rho))):
        q = best(torch.from_numpy(scores), rho).numpy()
        assert q.sum() == pytest.approx(1.0)
        assert (q >= 0).all()
        assert divergence(q) == pytest.approx(limit, rel=1e-9)
        assert q @ scores == pytest.approx(by_slsqp(scores, divergence, limit), rel=1e-5)


@given(
    scores=st.lists(st.integers(0, 6), min_size=1, max_size=30),
    rho=st.one_of(st.just(0.0), st.floats(1e-6, 100.0)),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
)
def test_chi2_weights_satisfy_the_conditions_of_optimality(scores, rho, scale):
    """q = (u + t s - c)_+ with the ball active, or all weight on the best: with many ties and at any scale."""
    s = np.array(scores, dtype=float)
    q = best_in_chi2_ball(torch.from_numpy(scale * s), rho).numpy()
    assert q.sum() == pytest.approx(1.0)
    assert q.min() >= 0
    assert chi2(q) <= rho * (1 + 1e-9) + 1e-9
    if (q[s < s.max()] == 0).all():
        return
    assert chi2(q) == pytest.approx(rho, rel=1e-6, abs=1e-9)
    positive = np.flatnonzero(q > 1e-9)
    slope, offset = np.polyfit(s[positive], q[positive], 1) if len(set(s[positive])) > 1 else (0.0, q[positive[0]])
    np.testing.assert_allclose(q, np.maximum(slope * s + offset, 0.0), atol=1e-7)


@pytest.mark.parametrize("best", [best_in_chi2_ball, best_in_kl_ball])
def test_ends_of_the_range(best):
    scores = torch.tensor([1.0, 5.0, 2.0, 5.0])
    assert best(scores, 0.0).tolist() == pytest.approx([0.25] * 4)
    assert best(scores, 1e6).tolist() == [0.0, 0.5, 0.0, 0.5]
    assert best(torch.ones(4), 3.0).tolist() == [0.25] * 4


def test_many_features_take_one_sort():
    scores = torch.from_numpy(np.random.default_rng(0).chisquare(1, 10**6))
    q = best_in_chi2_ball(scores, 50.0).numpy()
    assert chi2(q) == pytest.approx(50.0, rel=1e-6)
    assert 0.01 < (q > 0).mean() < 0.1


def test_uniform_weights_give_the_gaussian_kernel():
    X, y = make_moons(40, random_state=0)
    learner = RandomFeatureAlignment(40_000, width=0.8, rho=0.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(learner.kernel_(X), Gaussian(0.8)(X), atol=0.05)


def test_scores_are_the_alignments_of_the_features_one_by_one(monkeypatch):
    X, y = load_iris(return_X_y=True)
    learner = RandomFeatureAlignment(30, rho=0.0, random_state=0).fit(X, y)
    features = learner.kernel_.features
    Y = np.eye(3)[y] - 1 / 3
    Phi = features(X)
    naive = [np.trace(np.outer(phi, phi) @ Y @ Y.T) for phi in Phi.T]
    monkeypatch.setattr(random_alignment, "BLOCK_FEATURE_VALUES", 30 * 7)
    scores = random_alignment.feature_scores(features, torch.from_numpy(X), torch.from_numpy(Y))
    np.testing.assert_allclose(scores.numpy(), naive, rtol=1e-10, atol=1e-12)
    labels = random_alignment._codes(y).numpy()
    np.testing.assert_allclose(labels, Y)
    assert random_alignment._codes(np.array([0, 1])).tolist() == [[-1.0], [1.0]]


def test_the_kernel_is_that_of_the_weighted_features():
    X, y = make_moons(50, noise=0.1, random_state=0)
    learner = RandomFeatureAlignment(300, rho=5.0, random_state=3).fit(X, y)
    whole = RandomFeatureAlignment(300, rho=0.0, random_state=3).fit(X, y).kernel_.features
    Phi = np.cos(X @ whole.frequencies.numpy().T + whole.phases.numpy())
    np.testing.assert_allclose(learner.kernel_(X), 2.0 * (Phi * learner.weights_) @ Phi.T, atol=1e-12)
    assert learner.kernel_.features.n_features == (learner.weights_ > 0).sum() < 300
    assert learner.kernel_.diag(X).max() <= float(learner.kernel_.sup_diag())
    assert learner.width_ == pytest.approx(np.median(pdist(X)), rel=0.02)


def test_a_feature_of_the_labels_gets_more_weight():
    # One input of ten decides; frequencies that look along it gain weight.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10))
    y = (np.sin(2.0 * X[:, 0]) > 0).astype(int)
    uniform, learned = (
        RandomFeatureAlignment(4000, width=2.0, rho=rho, random_state=0).fit(X[:200], y[:200]) for rho in (0.0, 20.0)
    )

    def along(learner):
        features = learner.kernel_.features
        W = features.frequencies**2
        return float((features.weights * W[:, 0] / W.sum(1)).sum())

    assert along(learned) > 2.0 * along(uniform)
    scores = [SVC(kernel=m.kernel_).fit(X[:200], y[:200]).score(X[200:], y[200:]) for m in (uniform, learned)]
    assert scores[1] > scores[0]


def test_pickle_and_repeat():
    X, y = make_moons(30, random_state=0)
    first, second = (RandomFeatureAlignment(100, random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.kernel_(X), second.kernel_(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).kernel_(X), first.kernel_(X))
    assert "features of 2 inputs" in repr(first.kernel_)
    with pytest.raises(ValueError, match="cannot be applied to points with 5 inputs"):
        first.kernel_(np.ones((2, 5)))
