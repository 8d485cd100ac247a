import pickle

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import digamma, gammaln
from sklearn.datasets import load_wine, make_moons
from sklearn.preprocessing import minmax_scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelwright.errors import MemoryBudgetError
from kernelwright.kernels import Gaussian, Linear, Polynomial, Spectrum
from kernelwright.research.baselines import BayesianMKL

LOG_2PI = np.log(2 * np.pi)


@pytest.fixture
def moons():
    return make_moons(60, noise=0.2, random_state=0)


@parametrize_with_checks([BayesianMKL(max_iter=20)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def naive_inference(K, y, *, margin, s, max_iter, shape=1.0, scale=1.0):
    """Run the published updates for two classes, row by row; return the means, and the bound by SciPy's entropies."""
    p, n = len(K), len(y)
    a_mean, a_cov = np.zeros(n), np.eye(n)
    G, f = np.tile((1 + margin) * y, (p, 1)), (1 + margin) * y
    b_e, b_e_cov = np.r_[0.0, np.ones(p)], np.eye(p + 1)
    for _ in range(max_iter):
        lam = 1 / (1 / scale + 0.5 * (a_mean**2 + np.diag(a_cov)))
        a_cov = np.linalg.inv(np.diag((shape + 0.5) * lam) + sum(k @ k for k in K) / s**2)
        a_mean = a_cov @ sum(K[m] @ G[m] for m in range(p)) / s**2
        b, e, ee = b_e[0], b_e[1:], np.outer(b_e[1:], b_e[1:]) + b_e_cov[1:, 1:]
        eb = e * b + b_e_cov[1:, 0]
        G_cov = np.linalg.inv(np.eye(p) / s**2 + ee)
        for i in range(n):
            G[:, i] = G_cov @ (np.array([K[m][:, i] @ a_mean for m in range(p)]) / s**2 + e * f[i] - eb)
        gam = 1 / (1 / scale + 0.5 * (b**2 + b_e_cov[0, 0]))
        om = 1 / (1 / scale + 0.5 * np.diag(ee))
        stack = np.vstack([np.ones(n), G])
        moments = stack @ stack.T
        moments[1:, 1:] += n * G_cov
        b_e_cov = np.linalg.inv(np.diag((shape + 0.5) * np.r_[gam, om]) + moments)
        b_e = b_e_cov @ stack @ f
        m_f = b_e @ stack
        low, high = np.where(y > 0, margin - m_f, -40.0), np.where(y > 0, 40.0, -margin - m_f)
        q_f = stats.truncnorm(low, high, loc=m_f)
        f = q_f.mean()
    bound = sum(q_f.entropy()) + stats.multivariate_normal(a_mean, a_cov).entropy()
    bound += stats.multivariate_normal(b_e, b_e_cov).entropy() + n * stats.multivariate_normal(cov=G_cov).entropy()
    numbers = np.r_[a_mean, b_e] ** 2 + np.r_[np.diag(a_cov), np.diag(b_e_cov)]
    for t, square in zip(np.r_[lam, gam, om], numbers, strict=True):
        mean, mean_log = (shape + 0.5) * t, digamma(shape + 0.5) + np.log(t)
        bound += stats.gamma(shape + 0.5, scale=t).entropy()
        bound += (shape - 1) * mean_log - mean / scale - gammaln(shape) - shape * np.log(scale)
        bound += 0.5 * (mean_log - LOG_2PI - mean * square)
    for m in range(p):
        residual = np.sum((G[m] - K[m] @ a_mean) ** 2) + n * G_cov[m, m] + np.trace(K[m] @ a_cov @ K[m])
        bound -= 0.5 * (residual / s**2 + n * (LOG_2PI + 2 * np.log(s)))
    second = np.outer(b_e, b_e) + b_e_cov
    for i in range(n):
        z = np.outer(stack[:, i], stack[:, i])
        z[1:, 1:] += G_cov
        square = q_f.var()[i] + f[i] ** 2 - 2 * f[i] * m_f[i] + np.sum(second * z)
        bound -= 0.5 * (LOG_2PI + square)
    return a_mean, b_e, bound


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 3.0)])
def test_updates_and_bound_are_the_published_ones(moons, prior):
    X, labels = moons[0][:25], moons[1][:25]
    kernels = [Gaussian(0.4), Gaussian(2.0), Gaussian(0.05)]
    settings = {"sample_prior": prior, "bias_prior": prior, "kernel_prior": prior, "margin": 0.7, "noise": 0.3}
    model = BayesianMKL(kernels, **settings, max_iter=7).fit(X, labels)
    # The estimator starts from E[a^2] = 1, that is, from mean zero and unit variance.
    a, b_e, bound = naive_inference(
        [k(X) for k in kernels], 2.0 * labels - 1, margin=0.7, s=0.3, max_iter=7, shape=prior[0], scale=prior[1]
    )
    np.testing.assert_allclose(model.coefficients_[:, 0], a, atol=1e-9)
    np.testing.assert_allclose(np.r_[model.intercept_, model.kernel_weights_], b_e, atol=1e-9)
    np.testing.assert_allclose(model.lower_bound_[-1], bound, rtol=1e-9)


@pytest.mark.parametrize("data", ["moons", "wine"])
def test_the_bound_never_falls(moons, data):
    X, y = moons if data == "moons" else load_wine(return_X_y=True)
    bounds = BayesianMKL(bias_prior=(2.0, 0.5)).fit(minmax_scale(X), y).lower_bound_
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
    assert bounds[-1] > bounds[0]


def test_probabilities_are_those_of_a_draw_from_the_posterior(moons):
    X, y = moons
    model = BayesianMKL([Gaussian(0.3), Gaussian(1.0)], noise=0.3, max_iter=30).fit(X, y)
    new, rng = np.random.default_rng(0).uniform(-1, 2, (5, 2)), np.random.default_rng(1)
    g = np.array([k(new, X) @ model.coefficients_[:, 0] for k in model.kernels_])
    mean = np.r_[model.intercept_, model.kernel_weights_]
    draws = rng.multivariate_normal(mean, model._posterior.covariance.numpy(), 400_000)
    f = draws @ np.vstack([np.ones(5), g]) + rng.normal(size=(400_000, 5))
    above, below = (f > 1).mean(0), (f < -1).mean(0)
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], above / (above + below), atol=5e-3)


def test_three_classes_share_the_weights_of_kernels():
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    model = BayesianMKL().fit(X[::2], y[::2])
    assert model.kernel_weights_.shape == (14,)
    assert model.coefficients_.shape == (89, 3)
    assert model.score(X[1::2], y[1::2]) > 0.93
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(p.argmax(1), model.decision_function(X).argmax(1))


def test_two_classes_as_outputs_of_opposite_sign(moons):
    X, y = moons
    flipped = BayesianMKL(max_iter=30).fit(X, 1 - y)
    np.testing.assert_allclose(
        flipped.decision_function(X), -BayesianMKL(max_iter=30).fit(X, y).decision_function(X), atol=1e-7
    )


def test_a_useless_kernel_gets_no_weight(moons):
    X, y = moons
    noise = np.random.default_rng(0).normal(size=(60, 1))
    table = np.hstack([X, noise])
    kernels = [Gaussian([0.5, 0.5, 1e4]), Gaussian([1e4, 1e4, 0.5])]
    weights = BayesianMKL(kernels, kernel_prior=(1e-10, 1e10)).fit(table, y).kernel_weights_
    assert abs(weights[1]) < 0.1 * abs(weights[0])


def test_kernels_are_normalised_and_points_may_be_zero():
    X, y = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, -1.0], [-2.0, 5.0]]), [0, 1, 0, 1]
    large = BayesianMKL([Polynomial(3, lengthscale=1e-2), Linear()], max_iter=5).fit(X, y)
    assert np.isfinite(large.predict_proba(X)).all()


def test_pickle_and_repeat(moons):
    X, y = moons
    model = BayesianMKL(max_iter=10).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(BayesianMKL(max_iter=10).fit(X, y).predict_proba(X), model.predict_proba(X))


def test_bad_input_is_refused(moons, monkeypatch):
    X, y = moons
    for kernels in ([], [Spectrum()], ["rbf"]):
        with pytest.raises(ValueError, match="list of at least one kernel"):
            BayesianMKL(kernels).fit(X, y)
    with pytest.raises(ValueError, match="kernel_prior"):
        BayesianMKL(kernel_prior=(1.0, -1.0)).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        BayesianMKL().fit(X, np.zeros(60))
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1e4)
    with pytest.raises(MemoryBudgetError):
        BayesianMKL().fit(X, y)


def test_no_global_random_state_is_touched(moons):
    X, y = moons
    before = torch.random.get_rng_state()
    BayesianMKL(max_iter=2).fit(X, y)
    assert torch.equal(before, torch.random.get_rng_state())
