"""Kernels learned as printed against plain formulas: nothing of the library in what is expected."""

import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from scipy.spatial.distance import cdist
from sklearn.svm import SVR

from kernelwright.research.baselines import HyperKernelAsPrinted


def hyper_gaussian(first, second, variance, variance_h):
    """Section 2.4 as printed, without its constants: a product of three Gaussians."""
    lengths = [((x - z) ** 2).sum(1) for x, z in (first, second)]
    middles = cdist((first[0] + first[1]) / 2, (second[0] + second[1]) / 2, "sqeuclidean")
    product = -np.add.outer(*lengths) / (2 * variance) - middles / (2 * (variance + variance_h))
    return np.exp(product)


def all_pairs(X, Z):
    return np.repeat(X, len(Z), 0), np.tile(Z, (len(X), 1))


@pytest.fixture
def problem():
    random = np.random.default_rng(0)
    X = random.random((18, 3))
    K = np.exp(-0.5 * cdist(X, X, "sqeuclidean") / 0.3)
    return X[:12], K[:12, :12], X[12:]


def test_ridge_is_eq_6_on_all_ordered_pairs(problem):
    X, Y, new = problem
    model = HyperKernelAsPrinted(random_state=0).fit(X, Y)
    kernel = X.var(0).sum(), model.sigma_h_**2
    pairs = all_pairs(X, X)
    beta = np.linalg.solve(hyper_gaussian(pairs, pairs, *kernel) + model.ridge_ * 144 * np.eye(144), Y.ravel())
    expected = hyper_gaussian(all_pairs(new, new), pairs, *kernel) @ beta
    np.testing.assert_allclose(model.predict(new).ravel(), expected, atol=1e-7)
    assert np.isclose(model.sigma_h_**2 / X.var(0).sum(), (0.25, 0.5, 1, 2, 4)).any()
    assert round(float(np.log10(model.ridge_)), 9) in range(-5, 6)


def test_the_choice_is_that_of_five_folds_of_points(problem):
    X, Y, _ = problem
    model = HyperKernelAsPrinted(random_state=0).fit(X, Y)
    order = model_order(len(X))
    X, Y = X[order], Y[np.ix_(order, order)]
    errors = {}
    for share in (0.25, 0.5, 1.0, 2.0, 4.0):
        for power in range(-5, 6):
            errors[share, power] = 0.0
            for fold in range(5):
                out = np.arange(len(X)) % 5 == fold
                inside = all_pairs(X[~out], X[~out])
                K = hyper_gaussian(inside, inside, X.var(0).sum(), share * X.var(0).sum())
                beta = np.linalg.solve(K + 10.0**power * len(K) * np.eye(len(K)), Y[~out][:, ~out].ravel())
                everything = all_pairs(X, X)
                gap = hyper_gaussian(everything, inside, X.var(0).sum(), share * X.var(0).sum()) @ beta - Y.ravel()
                judged = np.logical_or.outer(out, out).ravel()
                errors[share, power] += (gap[judged] ** 2).sum()
    share, power = min(errors, key=errors.get)
    assert model.sigma_h_**2 == pytest.approx(share * X.var(0).sum())
    assert model.ridge_ == pytest.approx(10.0**power)


def model_order(n):
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).numpy()


def test_support_vectors_are_eq_8_on_all_ordered_pairs(problem):
    X, Y, new = problem
    model = HyperKernelAsPrinted("SVR", random_state=0).fit(X, Y)
    kernel = X.var(0).sum(), model.sigma_h_**2
    pairs = all_pairs(X, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = SVR(kernel="precomputed", C=model.C_, epsilon=0.1, tol=1e-6, max_iter=1_000_000)
        machine.fit(hyper_gaussian(pairs, pairs, *kernel), Y.ravel())
    expected = machine.predict(hyper_gaussian(all_pairs(new, new), pairs, *kernel))
    np.testing.assert_allclose(model.predict(new).ravel(), expected, atol=1e-2)


def landmarks_of(model):
    """Return the landmarks: the kernel has the midpoints of their pairs."""
    first, second = np.triu_indices(4)
    return model.kernel_.basis.centres.numpy()[first == second]


def test_landmarks_are_eq_9_on_all_ordered_pairs(problem):
    X, Y, new = problem
    model = HyperKernelAsPrinted(n_landmarks=4, random_state=0).fit(X, Y)
    kernel = X.var(0).sum(), model.sigma_h_**2
    pairs, some = all_pairs(X, X), landmarks_of(model)
    assert len(some) == 4
    chosen = all_pairs(some, some)
    K, G = hyper_gaussian(pairs, chosen, *kernel), hyper_gaussian(chosen, chosen, *kernel)
    beta = np.linalg.lstsq(K.T @ K + model.ridge_ * 144 * G, K.T @ Y.ravel(), rcond=1e-13)[0]
    expected = hyper_gaussian(all_pairs(new, new), chosen, *kernel) @ beta
    np.testing.assert_allclose(model.predict(new).ravel(), expected, atol=1e-4)


def test_nonnegative_weights_on_landmarks(problem):
    X, Y, new = problem
    model = HyperKernelAsPrinted("nonnegative", n_landmarks=4, random_state=0).fit(X, Y)
    kernel = X.var(0).sum(), model.sigma_h_**2
    free = HyperKernelAsPrinted(n_landmarks=4, random_state=0).fit(X, Y)  # functions of weight zero are dropped
    pairs, some = all_pairs(X, X), landmarks_of(free)
    chosen = all_pairs(some, some)
    K, G = hyper_gaussian(pairs, chosen, *kernel), hyper_gaussian(chosen, chosen, *kernel)
    values, vectors = np.linalg.eigh(G)
    root = (vectors * np.sqrt(values.clip(0) * 144 * model.ridge_)).T
    beta, _ = nnls(np.concatenate([K, root]), np.concatenate([Y.ravel(), np.zeros(len(G))]), maxiter=1000)
    expected = hyper_gaussian(all_pairs(new, new), chosen, *kernel) @ beta
    np.testing.assert_allclose(model.predict(new).ravel(), expected, atol=1e-4)
    assert np.linalg.eigvalsh(model.predict(new)).min() > -1e-10


def test_parts_are_averaged_and_wishart_works_on_labels():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = X[:, 0] > 0
    for settings in ({"hyperkernel": "Wishart"}, {"n_landmarks": 8, "n_parts": 3}):
        for regression in ("KRR", "SVR"):
            model = HyperKernelAsPrinted(regression, random_state=0, **settings).fit(X[:45], y[:45])
            ideal = np.where(np.equal.outer(y[45:], y[45:]), 1.0, -1.0)
            assert np.corrcoef(model.predict(X[45:]).ravel(), ideal.ravel())[0, 1] > 0.3
