import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import minmax_scale
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelwright.kernels import Gaussian, Kernel, Linear
from kernelwright.research.baselines import IndefiniteMKL
from kernelwright.research.baselines.indefinite_mkl import fista, group_soft_threshold, soft_threshold


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps save time
@parametrize_with_checks([IndefiniteMKL(max_iter=500), IndefiniteMKL(norm="l12", max_iter=500)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


class Log(Kernel):
    """-log(1 + |x - z|), which is not positive definite."""

    def forward(self, X, Z=None):
        return -torch.log1p(torch.cdist(X, X if Z is None else Z))


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(30, noise=0.2, random_state=0)
    return minmax_scale(X), y


KERNELS = [Linear(), Gaussian(0.2), Log()]


def dictionary(X):
    return np.hstack([kernel(X) for kernel in KERNELS])


def loss(F, y, C):
    return C * (np.maximum(0.0, 1.0 - y * F) ** 2).sum()


def by_split_variables(D, y, C):
    """Solve the l1 problem with alpha = p - m, p and m not negative, and a free bias: smooth, by L-BFGS-B."""
    k = D.shape[1]

    def value(x):
        F = D @ (x[:k] - x[k : 2 * k]) + x[-1]
        g = -2.0 * C * y * np.maximum(0.0, 1.0 - y * F)
        return loss(F, y, C) + x[: 2 * k].sum(), np.r_[D.T @ g + 1.0, -D.T @ g + 1.0, g.sum()]

    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-8}
    bounds = [(0, None)] * (2 * k) + [(None, None)]
    return minimize(value, np.zeros(2 * k + 1), jac=True, bounds=bounds, method="L-BFGS-B", options=options).fun


def by_cone(D, y, C, n_kernels):
    """Solve the group problem with the norms in epigraph form t_g >= |alpha_g|, by SLSQP."""
    k = D.shape[1]

    def groups(x):
        return x[:k].reshape(n_kernels, -1)

    def value(x):
        F = D @ x[:k] + x[k]
        g = -2.0 * C * y * np.maximum(0.0, 1.0 - y * F)
        return loss(F, y, C) + x[k + 1 :].sum(), np.r_[D.T @ g, g.sum(), np.ones(n_kernels)]

    # t^2 - |a|^2 >= 0 with t >= 0 has no gradient at zero; t is kept off it by less than the tolerance of the test.
    member = np.kron(np.eye(n_kernels), np.ones(k // n_kernels))
    cone = {
        "type": "ineq",
        "fun": lambda x: x[k + 1 :] ** 2 - (groups(x) ** 2).sum(1),
        "jac": lambda x: np.hstack([-2.0 * member * x[:k], np.zeros((n_kernels, 1)), 2.0 * np.diag(x[k + 1 :])]),
    }
    bounds = [(None, None)] * (k + 1) + [(1e-7, None)] * n_kernels
    start = np.r_[np.zeros(k + 1), np.ones(n_kernels)]
    options = {"maxiter": 5000, "ftol": 1e-13}
    return minimize(value, start, jac=True, bounds=bounds, constraints=[cone], method="SLSQP", options=options).fun


@pytest.mark.parametrize("C", [0.03, 0.5, 5.0])
def test_the_l1_objective_is_that_of_a_general_solver(moons, C):
    X, y = moons
    model = IndefiniteMKL(KERNELS, C=C, tol=1e-4, max_iter=200_000).fit(X, y)
    signs = 2.0 * y - 1.0
    assert loss(model.decision_function(X), signs, C) + np.abs(model.coef_).sum() == pytest.approx(model.objective_)
    assert model.objective_ == pytest.approx(by_split_variables(dictionary(X), signs, C), rel=1e-5)


@pytest.mark.parametrize("C", [0.03, 0.5])
def test_the_group_objective_is_that_of_a_general_solver(moons, C):
    X, y = moons[0][:10], moons[1][:10]
    model = IndefiniteMKL(KERNELS, C=C, norm="l12", tol=1e-5, max_iter=200_000).fit(X, y)
    signs = 2.0 * y - 1.0
    penalty = np.linalg.norm(model.coef_[:, :, 0], axis=1).sum()
    assert loss(model.decision_function(X), signs, C) + penalty == pytest.approx(model.objective_)
    assert model.objective_ == pytest.approx(by_cone(dictionary(X), signs, C, 3), rel=1e-4)


def test_the_l1_machine_of_another_library(moons):
    # liblinear penalises its bias; a large constant column makes that penalty vanish.
    X, y = moons
    C = 0.5
    other = LinearSVC(
        penalty="l1", loss="squared_hinge", dual=False, C=C, intercept_scaling=1e3, tol=1e-5, max_iter=10**6
    ).fit(dictionary(X), y)
    model = IndefiniteMKL(KERNELS, C=C, tol=1e-4, max_iter=200_000).fit(X, y)
    F = other.decision_function(dictionary(X))
    assert model.objective_ == pytest.approx(loss(F, 2.0 * y - 1.0, C) + np.abs(other.coef_).sum(), rel=1e-3)
    np.testing.assert_allclose(model.decision_function(X), F, atol=0.02)


def test_many_classes_at_once_are_the_classes_one_by_one():
    X, y = load_iris(return_X_y=True)
    X, y = minmax_scale(X[::4]), y[::4]
    for norm in ("l1", "l12"):
        settings = {"C": 0.3, "norm": norm, "tol": 1e-5, "max_iter": 200_000}
        together = IndefiniteMKL(**settings).fit(X, y)
        alone = [IndefiniteMKL(**settings).fit(X, y == label) for label in range(3)]
        assert together.objective_ == pytest.approx(sum(m.objective_ for m in alone), rel=1e-6)
        F = np.stack([m.decision_function(X) for m in alone], 1)
        np.testing.assert_allclose(together.decision_function(X), F, atol=1e-3)
        np.testing.assert_array_equal(together.predict(X), F.argmax(1))


@pytest.mark.parametrize("t", [0.1, 0.8, 2.0])
@pytest.mark.parametrize(
    ("operator", "norm"),
    [(soft_threshold, lambda B: np.abs(B).sum()), (group_soft_threshold, lambda B: np.linalg.norm(B, axis=0).sum())],
)
def test_proximal_operators_minimise_what_they_should(operator, norm, t):
    A = np.random.default_rng(0).normal(size=(3, 4))

    def value(b):
        return 0.5 * ((b.reshape(3, 4) - A) ** 2).sum() + t * norm(b.reshape(3, 4))

    B = operator(torch.from_numpy(A), torch.tensor(t, dtype=torch.float64)).numpy()
    brute = minimize(value, A.ravel(), method="Powell", options={"maxiter": 40_000, "ftol": 1e-14, "xtol": 1e-10})
    # The function is 1-strongly convex: this holds for every b if, and only if, B is its minimum.
    for b in (brute.x, *np.random.default_rng(1).normal(size=(50, 12))):
        assert value(b) >= value(B.ravel()) + 0.5 * ((b - B.ravel()) ** 2).sum() - 1e-12
    assert value(brute.x) == pytest.approx(value(B.ravel()), abs=2e-2)


def test_fista_minimises_a_quadratic_of_bad_condition():
    curvature = torch.logspace(-3, 0, 20, dtype=torch.float64)[:, None]
    goal = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    x, steps, violation = fista(
        lambda x: curvature * (x - goal),
        lambda x, t: x,
        torch.zeros_like(goal),
        torch.ones_like(goal),
        tol=1e-9,
        max_iter=10_000,
    )
    torch.testing.assert_close(x, goal, atol=1e-5, rtol=0)
    assert violation <= 1e-9
    assert steps < 2000  # plain gradient steps would need about 17,000


def test_penalties_drop_columns_and_kernels():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 3))
    y = (X @ [1.0, -1.0, 0.5] > 0.2).astype(int)
    few = IndefiniteMKL(C=0.3).fit(X, y)
    assert (few.coef_ != 0).sum() < 60
    groups = IndefiniteMKL(C=0.01, norm="l12").fit(X, y)
    dropped = ~groups.coef_.any((1, 2))
    assert dropped.any()
    assert not dropped.all()


def test_indefinite_kernels_alone_can_classify():
    X, y = make_moons(200, noise=0.15, random_state=0)
    model = IndefiniteMKL([Log()], C=10.0).fit(X[:100], y[:100])
    assert np.linalg.eigvalsh(Log()(X)).min() < -1
    assert model.score(X[100:], y[100:]) > 0.93


def test_one_row_is_predicted_as_in_a_batch(moons):
    X, y = moons
    model = IndefiniteMKL().fit(X, y)
    one_by_one = np.concatenate([model.decision_function(x[None]) for x in X])
    np.testing.assert_allclose(one_by_one, model.decision_function(X), atol=1e-10)


def test_too_few_steps_are_reported(moons):
    with pytest.warns(ConvergenceWarning, match="did not converge in 3 steps"):
        model = IndefiniteMKL(max_iter=3).fit(*moons)
    assert model.n_iter_ == 3
