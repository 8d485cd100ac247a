import pickle

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelwright.errors import MemoryBudgetError
from kernelwright.kernels import Gaussian, Spectrum
from kernelwright.research.baselines.data_adaptive import AdaptiveProblem, DataAdaptiveKernel, project


@pytest.fixture
def moons():
    return make_moons(60, noise=0.2, random_state=0)


@parametrize_with_checks([DataAdaptiveKernel()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def inner_minimum(a, K, y, eta, tau):
    """Compute ``min_F`` of the objective at a given a, and its F, naively."""
    beta = a * y
    values, U = np.linalg.eigh(np.ones_like(K) + np.diag(beta) @ K @ np.diag(beta) / (4 * eta))
    F = U @ np.diag(np.maximum(values - tau / 2, 0)) @ U.T
    return objective(F, a, K, y, eta, tau), F


def objective(F, a, K, y, eta, tau):
    margin = a.sum() - 0.5 * np.trace(np.diag(a * y) @ (F * K) @ np.diag(a * y) @ np.ones_like(K))
    return margin + eta * (np.linalg.norm(F - 1) ** 2 + tau * np.linalg.norm(F, "nuc"))


def over_the_box(function, y, C, start=None):
    """Compute the maximum over ``0 <= a <= C, a . y = 0``, by SLSQP."""
    return minimize(
        lambda a: -function(a),
        np.zeros(len(y)) if start is None else start,
        bounds=[(0.0, C)] * len(y),
        constraints={"type": "eq", "fun": lambda a: a @ y},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )


@pytest.mark.parametrize(("eta", "tau"), [(1.0, 0.01), (0.1, 0.5), (5.0, 0.0)])
def test_the_saddle_point_is_that_of_a_general_optimiser(moons, eta, tau):
    X, labels = moons[0][:14], moons[1][:14]
    y, C, kernel = 2.0 * labels - 1, 2.0, Gaussian(0.5)
    K = kernel(X)
    model = DataAdaptiveKernel(kernel, C=C, eta=eta, tau=tau, tol=1e-9).fit(X, labels)
    brute = over_the_box(lambda a: inner_minimum(a, K, y, eta, tau)[0], y, C)
    np.testing.assert_allclose(model.objective_, -brute.fun, rtol=1e-5)
    np.testing.assert_allclose(model.weights_, inner_minimum(brute.x, K, y, eta, tau)[1], atol=1e-3)


def test_no_other_weights_do_better(moons):
    X, labels = moons[0][:12], moons[1][:12]
    y, K, eta, tau = 2.0 * labels - 1, Gaussian(0.5)(X), 0.2, 0.1
    model = DataAdaptiveKernel(Gaussian(0.5), eta=eta, tau=tau, tol=1e-8).fit(X, labels)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        A = rng.normal(size=(12, 12))
        values, U = np.linalg.eigh(model.weights_ + size * (A + A.T))
        F = U @ np.diag(np.maximum(values, 0)) @ U.T
        worse = -over_the_box(lambda a, F=F: objective(F, a, K, y, eta, tau), y, 1.0).fun
        assert worse > model.objective_ - 1e-6


def test_best_weights_solve_the_inner_problem(moons):
    X = moons[0][:4]
    K, beta = torch.from_numpy(Gaussian(0.5)(X)), torch.tensor([[1.0], [-0.5], [0.3], [-0.8]], dtype=torch.float64)
    problem = AdaptiveProblem(K, beta.sign(), 1.0, 0.1, 0.4)

    def at_root(root):  # every semidefinite matrix is root root^T
        F = root.reshape(4, 4) @ root.reshape(4, 4).T
        return problem.value(torch.from_numpy(F), beta)

    found = minimize(at_root, np.random.default_rng(0).normal(size=16), options={"gtol": 1e-9, "maxiter": 5000})
    np.testing.assert_allclose(problem.value(problem.best_weights(beta), beta), found.fun, rtol=1e-8)
    root = found.x.reshape(4, 4)
    np.testing.assert_allclose(problem.best_weights(beta), root @ root.T, atol=1e-3)


@pytest.mark.parametrize(("C", "eta"), [(4.0, 0.05), (1.0, 1.0), (32.0, 1.0)])
def test_weights_are_semidefinite_and_the_gap_is_closed(moons, C, eta):
    model = DataAdaptiveKernel(C=C, eta=eta).fit(*moons)
    assert np.linalg.eigvalsh(model.weights_).min() > -1e-10
    assert np.linalg.eigvalsh(model.matrix_).min() > -1e-10  # Schur's product theorem
    assert model.gap_ <= 1e-4 * model.objective_
    assert model.n_iter_ < 300


def test_projection_is_the_nearest_feasible_point():
    rng = np.random.default_rng(0)
    Y, V = np.sign(rng.normal(size=(9, 3))), rng.normal(size=(9, 3))
    found = project(torch.from_numpy(V), torch.from_numpy(Y), 0.6).numpy()
    for column in range(3):
        y, v = Y[:, column], V[:, column]
        nearest = over_the_box(lambda a, v=v, y=y: -np.sum((a * y - v) ** 2), y, 0.6).x * y
        np.testing.assert_allclose(found[:, column], nearest, atol=1e-5)


def test_a_fit_cut_short_says_how_far_it_is_from_the_optimum(moons):
    long = DataAdaptiveKernel(eta=1.0, tol=1e-7).fit(*moons)
    with pytest.warns(ConvergenceWarning, match="after 3 steps"):
        short = DataAdaptiveKernel(eta=1.0, max_iter=3).fit(*moons)
    assert short.n_iter_ == 3
    assert 0 < short.objective_ - long.objective_ <= short.gap_


def test_the_margin_grows(moons):
    X, y = moons
    plain = SVC(kernel="precomputed", tol=1e-6).fit(Gaussian(0.5)(X), y)
    learned = DataAdaptiveKernel(Gaussian(0.5), eta=0.3).fit(X, y)
    adapted = SVC(kernel="precomputed", tol=1e-6).fit(learned.matrix_, y)

    def dual(machine, K):
        beta = machine.dual_coef_[0]
        return np.abs(beta).sum() - 0.5 * beta @ K[np.ix_(machine.support_, machine.support_)] @ beta

    assert dual(adapted, learned.matrix_) < dual(plain, Gaussian(0.5)(X))


def test_a_firm_hand_gives_the_kernel_back_and_shrinking_a_low_rank(moons):
    X, y = moons
    firm = DataAdaptiveKernel(Gaussian(0.5), eta=1e6, tau=0.0).fit(X, y)
    np.testing.assert_allclose(firm.matrix_, Gaussian(0.5)(X), atol=1e-5)
    assert np.linalg.matrix_rank(DataAdaptiveKernel(eta=1.0, tau=20.0).fit(X, y).weights_, tol=1e-9) == 1


def test_extension_is_by_reciprocal_neighbours(moons):
    X, y = moons
    new = np.random.default_rng(0).uniform(-1.5, 2.5, (40, 2))
    model = DataAdaptiveKernel(eta=0.1).fit(X, y)
    base = model.kernel_.kernel

    def place(x):
        d = np.linalg.norm(X - x, axis=1)
        i = int(d.argmin())
        return i if all(d[i] <= np.linalg.norm(X[i] - X[j]) for j in range(60) if j != i) else None

    expected = base(new, X)
    places = [place(x) for x in new]
    for row, i in enumerate(places):
        expected[row] *= 1.0 if i is None else model.weights_[i]
    assert 3 < sum(i is not None for i in places) < 37
    np.testing.assert_allclose(model.kernel_(new, X), expected, atol=1e-12)
    both = base(new)
    for row, i in enumerate(places):
        for column, j in enumerate(places):
            both[row, column] *= 1.0 if i is None or j is None else model.weights_[i, j]
    np.testing.assert_allclose(model.kernel_(new), both, atol=1e-12)
    np.testing.assert_allclose(model.kernel_.diag(new), np.diag(both), atol=1e-12)


def test_at_training_points_the_kernel_is_the_learned_matrix(moons):
    X, y = moons
    model = DataAdaptiveKernel(eta=0.1).fit(X, y)
    np.testing.assert_allclose(model.kernel_(X), model.matrix_, atol=1e-12)
    np.testing.assert_allclose(model.kernel_(X[3:4], X), model.matrix_[3:4], atol=1e-12)


def test_three_classes_share_weights():
    X, y = load_iris(return_X_y=True)
    model = DataAdaptiveKernel(eta=0.2, C=2.0).fit(X[::2], y[::2])
    assert model.gap_ <= 1e-4 * model.objective_
    assert SVC(kernel=model.kernel_).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    assert model.weights_[0, 1] > 1.0 > model.weights_[:25, 25:50].min()


def test_names_of_classes_do_not_matter(moons):
    X, y = moons
    one, other = (DataAdaptiveKernel(eta=1.0, tol=1e-6).fit(X, labels) for labels in (y, np.array(["b", "a"])[y]))
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-3)


def test_pickle_clone_and_words(moons):
    X, y = moons
    model = DataAdaptiveKernel(Gaussian("median")).fit(X, y)
    kernel = clone(pickle.loads(pickle.dumps(model.kernel_)))
    np.testing.assert_array_equal(kernel(X[:5], X), model.kernel_(X[:5], X))
    assert "weights of 60 points" in repr(kernel)


def test_bad_input_is_refused(moons, monkeypatch):
    X, y = moons
    with pytest.raises(ValueError, match="kernel on vectors"):
        DataAdaptiveKernel(Spectrum()).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        DataAdaptiveKernel().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="'eta'"):
        DataAdaptiveKernel(eta=0.0).fit(X, y)
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1e4)
    with pytest.raises(MemoryBudgetError):
        DataAdaptiveKernel().fit(X, y)
