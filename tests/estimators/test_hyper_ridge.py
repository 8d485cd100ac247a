"""Kernel functions learned by ridge regression over pairs."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.svm import SVC

import kernelwright as kw
from kernelwright import HyperKernelRidge
from kernelwright.hyper import AutoPairs, HeldOutMetric, LandmarkPairs, LearnedKernel, Partition
from kernelwright.hyper.bases import PairBasis
from kernelwright.hyper.kernels import Gaussian, PointPairs, Sum, Wishart
from kernelwright.hyper.partition import random_parts
from kernelwright.hyper.solvers import SOLVERS
from kernelwright.inputs.arrays import generator
from tests.hyper.problems import gaussian, log_kernel, points, relative_error


@pytest.mark.parametrize("similarity", [gaussian, log_kernel])
def test_a_known_kernel_is_extended_to_new_points(similarity):
    X = points(400)
    old, new = X[:300], X[300:]
    model = HyperKernelRidge(random_state=0).fit(old, similarity(old, old))
    assert relative_error(model.predict(new), similarity(new, new)) < 0.02
    assert relative_error(model.predict(new, old), similarity(new, old)) < 0.02
    assert model.errors_.min() < 0.02
    assert model.ridge_ in model.ridges_


def test_learned_kernel_is_symmetric_and_of_single_rows():
    X = points(50)
    model = HyperKernelRidge(random_state=0).fit(X, log_kernel(X, X))
    K = model.predict(X)
    assert np.allclose(K, K.T, atol=1e-10)
    assert np.allclose(model.predict(X[3:4], X[7:8]), K[3, 7], atol=1e-10)
    assert np.allclose(model.kernel_.diag(X), np.diag(K), atol=1e-8)


@pytest.mark.parametrize("solver", ["nystroem", "midpoint"])
def test_solvers_agree_on_an_easy_target(solver):
    X = points(30, d=2)
    Y = gaussian(X, X)
    model = HyperKernelRidge(Gaussian(sigma=1.0, sigma_h=1.5), ridge=1e-6, solver=SOLVERS[solver](30, choose="uniform"))
    exact = clone(model).set_params(solver="exact").fit(X, Y)
    new = points(10, d=2, seed=1)
    assert model.fit(X, Y).solver_ == solver
    assert relative_error(model.predict(new), exact.predict(new)) < 0.05


def test_nystroem_with_all_points_equals_exact():
    X = points(12, d=2)
    Y = log_kernel(X, X)
    landmarks = LandmarkPairs(12, choose="uniform")
    for hyper in (Gaussian(sigma=0.7), Wishart(delta=2.0)):
        exact = HyperKernelRidge(hyper, ridge=1e-3, solver="exact").fit(X, Y)
        nystroem = HyperKernelRidge(hyper, ridge=1e-3, solver=landmarks).fit(X, Y)
        new = points(8, d=2, seed=1)
        assert np.allclose(exact.predict(new, X), nystroem.predict(new, X), atol=1e-6)


@pytest.mark.parametrize("hyper", [Gaussian(), Wishart()])
def test_algorithm_1_with_one_part_equals_nystroem(hyper):
    X = points(40)
    settings = {"ridge": 1e-4, "random_state": 3}
    one = HyperKernelRidge(hyper, solver=Partition(1, LandmarkPairs(6)), **settings).fit(X, gaussian(X, X))
    other = HyperKernelRidge(hyper, solver=LandmarkPairs(6), **settings).fit(X, gaussian(X, X))
    assert np.array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_divide_and_conquer_is_the_mean_of_its_parts(n_jobs):
    X = points(90)
    Y = gaussian(X, X)
    model = HyperKernelRidge(Wishart(), solver=Partition(3, LandmarkPairs(5), n_jobs=n_jobs), random_state=0)
    K = model.fit(X, Y).predict(X)
    assert relative_error(K, Y) < 0.3
    again = clone(model).set_params(solver__n_jobs=None).fit(X, Y)
    assert np.allclose(again.predict(X), K, atol=1e-12)
    kernel, parts = model.kernel_, []
    for part in range(3):  # fifteen functions each
        pairs = PointPairs(*(half[15 * part : 15 * (part + 1)] for half in kernel.basis.pairs))
        weights = 3.0 * kernel.weights[15 * part : 15 * (part + 1)]
        parts.append(LearnedKernel(PairBasis(kernel.hyperkernel, pairs), weights, kernel.bias)(X))
    assert np.allclose(np.mean(parts, 0), K, atol=1e-10)
    assert all(relative_error(part, Y) < 0.5 for part in parts)


def test_parts_of_midpoints_share_their_centres_and_are_averaged():
    X = points(60)
    Y = gaussian(X, X)
    model = HyperKernelRidge(Gaussian(), solver=Partition(3, AutoPairs(8)), ridge=1e-6, bias=False, random_state=0)
    kernel = model.fit(X, Y).kernel_
    assert len(kernel.basis) == 8
    parts = random_parts(60, 3, generator(0))
    i, j = np.triu_indices(20)
    naive = []
    for rows in parts:  # (K_nM^T K_nM + lambda n K_MM)^-1 K_nM^T y over all pairs of a part, those apart twice
        pairs = PointPairs(torch.from_numpy(X)[rows[i]], torch.from_numpy(X)[rows[j]])
        K_nM, K_MM = kernel.basis.at(pairs).numpy(), kernel.basis.gram().numpy()
        counts = np.where(i == j, 1.0, 2.0)
        A = (K_nM.T * counts) @ K_nM + 1e-6 * counts.sum() * K_MM
        naive.append(np.linalg.solve(A, (K_nM.T * counts) @ Y[rows[i], rows[j]]))
    assert np.allclose(kernel.weights.numpy(), np.mean(naive, 0), rtol=1e-5)


def test_two_labels_equal_the_matrix_y_times_y():
    X = points(40)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    order = np.lexsort(X.T[::-1])  # labelled rows are sorted, and centres depend on the order: the same for both
    X, y = X[order], y[order]
    by_label = HyperKernelRidge(random_state=0, ridge=1e-4).fit(X, y)
    by_matrix = HyperKernelRidge(random_state=0, ridge=1e-4, refine=False).fit(X, np.outer(y, y))
    assert np.allclose(by_label.predict(X), by_matrix.predict(X), atol=1e-6)


def test_weights_of_pairs_and_points():
    X = points(60)
    Y = gaussian(X, X)
    wrong = Y.copy()
    wrong[:10] = wrong[:, :10] = 5.0
    weights = np.ones(60)
    weights[:10] = 0.0
    new = points(20, seed=1)
    clean = HyperKernelRidge(random_state=0, ridge=1e-6).fit(X, wrong, sample_weight=weights)
    pairs = HyperKernelRidge(random_state=0, ridge=1e-6).fit(X, wrong, sample_weight=np.outer(weights, weights))
    assert relative_error(clean.predict(new), gaussian(new, new)) < 0.15
    assert np.allclose(clean.predict(new), pairs.predict(new))


def test_imbalanced_classes_can_be_balanced():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(180, 2)), random.normal(size=(20, 2)) + 2.0])
    y = np.repeat([0, 1], [180, 20])
    rare = {}
    for weight in (None, "balanced"):
        K = HyperKernelRidge(Gaussian(), random_state=0, ridge=1e-3, class_weight=weight).fit(X, y).predict(X)
        rare[weight] = K[180:, 180:].mean() - K[180:, :180].mean()
    assert rare["balanced"] > rare[None]


def test_nonnegative_is_positive_definite_by_construction():
    X = points(80)
    model = HyperKernelRidge(nonnegative=True, ridge=1e-5, random_state=0).fit(X, gaussian(X, X))
    assert model.kernel_.definite
    new = points(100, seed=1)
    assert model.kernel_.signature(new).negative == 0
    assert relative_error(model.predict(new), gaussian(new, new)) < 0.05


def test_signature_and_split_tell_how_indefinite_it_is():
    X = points(80)
    model = HyperKernelRidge(random_state=0).fit(X, log_kernel(X, X))
    assert not model.kernel_.definite
    assert model.kernel_.signature(X).negative > 0
    plus, minus = model.kernel_.split()
    assert np.allclose(plus(X) - minus(X), model.kernel_(X), atol=1e-6 * np.abs(plus(X)).max())
    for part in (plus, minus):
        assert part.definite
        assert part.signature(X).smallest > -1e-8 * part.signature(X).largest


def test_bound_cuts_the_values():
    X, y = load_iris(return_X_y=True)
    K = HyperKernelRidge(Gaussian(), bound="auto", random_state=0).fit(X, y).predict(3 * X)
    assert np.abs(K).max() <= 1.0
    assert np.abs(HyperKernelRidge(bound=0.3, random_state=0).fit(X, y).predict(X)).max() == pytest.approx(0.3)


def test_ridge_by_a_schedule():
    X = points(64)
    assert HyperKernelRidge(ridge="m^-0.5").fit(X, gaussian(X, X)).ridge_ == pytest.approx(0.125)
    with pytest.raises(ValueError, match=r"'m\^-0.5'"):
        HyperKernelRidge(ridge="small").fit(X, gaussian(X, X))


@pytest.mark.parametrize("hyper", [None, Wishart()])
@pytest.mark.slow
def test_learning_the_metric_helps_where_features_are_useless(hyper):
    X = np.hstack([points(160, d=2), 3.0 * points(160, d=4, seed=5)])
    Y = gaussian(X[:, :2], X[:, :2])
    old, new = X[:120], X[120:]
    errors = {}
    for learn in (None, "held-out"):
        model = HyperKernelRidge(hyper, learn=learn, random_state=0, solver=AutoPairs(12, n_pairs=3000))
        model.fit(old, Y[:120, :120])
        errors[learn] = relative_error(model.predict(new), Y[120:, 120:])
    assert errors["held-out"] < 0.6 * errors[None]
    scales = model.kernel_.hyperkernel.lengthscale.numpy()
    assert scales[:2].max() < scales[2:].min()
    assert model.n_iter_ > 1


def test_in_other_machines():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    kernel = HyperKernelRidge(random_state=0).fit(X[::2], y[::2]).kernel_
    assert SVC(kernel=kernel).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.93
    assert kw.KreinSVC(kernel).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.93
    with pytest.warns(kw.NumericalRepairWarning, match=r"indefinite.*flipped.*negative"):
        model = kw.EmbeddingClassifier(kernel).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.93
    assert np.allclose(model.predict_proba(X).sum(1), 1.0)


def test_more_pairs_than_memory_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 2.0**20)
    X = points(200)
    with pytest.raises(kw.MemoryBudgetError, match=r"exact solution for 200 points.*midpoint"):
        HyperKernelRidge(solver="exact").fit(X, gaussian(X, X))
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 2.0**19)
    with pytest.raises(kw.MemoryBudgetError, match=r"20100 pairs.*n_pairs"):
        HyperKernelRidge(solver=AutoPairs(n_pairs="all")).fit(X, gaussian(X, X))


def test_sum_of_scales_beats_one_scale():
    X = points(200)
    old, new = X[:150], X[150:]
    narrow = np.exp(-(np.linalg.norm(X[:, None] - X, axis=-1) ** 2) / 0.5)
    errors = [
        relative_error(
            HyperKernelRidge(hyper, random_state=0).fit(old, narrow[:150, :150]).predict(new), narrow[150:, 150:]
        )
        for hyper in (Sum(), Gaussian())
    ]
    assert errors[0] < 0.2 * errors[1]


def test_far_from_all_points_the_kernel_returns_to_about_the_mean():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    model = HyperKernelRidge(random_state=0).fit(X, y)
    mean = np.where(y[:, None] == y, 1.0, -1.0).mean()
    assert np.allclose(model.predict(1000 * X[:5], X), mean, atol=0.3)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("hyper", [None, Gaussian(), Wishart()])
@pytest.mark.slow
def test_units_of_the_points_do_not_matter(hyper, scale):
    X = points(60, d=2)
    for learn in (None, HeldOutMetric(max_iter=6)):
        model = HyperKernelRidge(hyper, learn=learn, random_state=0, solver=AutoPairs(8))
        plain = clone(model).fit(X, gaussian(X, X)).predict(X)
        scaled = clone(model).fit(scale * X, gaussian(X, X)).predict(scale * X)
        assert relative_error(scaled, plain) < 0.02


def test_refinement_trusts_weights():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(150, 3))
    f = np.sin(6 * X)
    Y = f @ f.T
    wrong = np.triu(random.random(Y.shape) < 0.1, 1)
    spoiled, weights = Y + 5.0 * (wrong | wrong.T), 1.0 - 0.999999 * (wrong | wrong.T)
    old, new = slice(0, 110), slice(110, 150)
    errors = [
        relative_error(
            HyperKernelRidge(random_state=0).fit(X[old], spoiled[old, old], sample_weight=w).predict(X[new]),
            Y[new, new],
        )
        for w in (None, weights[old, old])
    ]
    assert errors[1] < 0.8 * errors[0]


def test_an_indefinite_kernel_is_fixed_and_goes_through_landmarks():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    kernel = HyperKernelRidge(random_state=0).fit(X, y).kernel_ + kw.kernels.Gaussian(3.0)
    with pytest.warns(kw.NumericalRepairWarning):
        model = kw.EmbeddingClassifier(kernel, random_state=0).fit(X, y)
    assert float(model.kernel_.features.kernel.right.lengthscale) == pytest.approx(3.0)
    with pytest.raises(ValueError, match="solver='nystroem'"):
        kw.EmbeddingClassifier(kernel, solver="exact").fit(X, y)


def test_exact_is_equation_6_written_out():
    X = points(8, d=2)
    Y = log_kernel(X, X)
    sigma, sigma_h, ridge = 0.9, 0.6, 1e-3
    model = HyperKernelRidge(Gaussian(sigma=sigma, sigma_h=sigma_h), ridge=ridge, bias=False, solver="exact").fit(X, Y)
    new = points(5, d=2, seed=1)

    def hyper(x, y, r, s):
        a, c = 2 * sigma**2, sigma**2 + sigma_h**2
        lengths = np.sum((x - y) ** 2) + np.sum((r - s) ** 2)
        return np.exp(-lengths / (2 * a) - np.sum((x + y - r - s) ** 2) / (8 * c))

    pairs = [(x, y) for x in X for y in X]
    K = np.array([[hyper(*one, *other) for other in pairs] for one in pairs])
    beta = np.linalg.solve(K + ridge * 64 * np.eye(64), Y.ravel())
    expected = [[sum(b * hyper(x, z, *pair) for b, pair in zip(beta, pairs, strict=True)) for z in X] for x in new]
    assert np.allclose(model.predict(new, X), expected, atol=1e-8)


@pytest.mark.parametrize("labels", ["xor", "stripes", "chance"])
def test_the_ridge_is_not_chosen_by_what_rounding_has_left(labels):
    """Huge weights cancel at left-out points; what is left of them must not look like a small error."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 1 if labels == "stripes" else 2))
    y = {"xor": X[:, 0] * X[:, -1] > 0, "stripes": np.sin(3.0 * X[:, 0]) > 0, "chance": rng.random(500) > 0.5}[labels]
    model = HyperKernelRidge(random_state=0).fit(X[:250], y[:250].astype(int))
    assert np.abs(model.predict(X[250:])).max() < 10.0  # targets are +-1


@pytest.mark.parametrize("weighted", [False, True])
def test_without_symmetry_the_fit_is_equation_6_on_all_ordered_pairs(weighted):
    random = np.random.default_rng(0)
    X, new = points(8, d=2), points(5, d=2, seed=1)
    Y = log_kernel(X, X) + random.normal(size=(8, 8))
    Y[random.random((8, 8)) < 0.2] = np.nan
    W = random.gamma(2.0, size=(8, 8)) if weighted else None
    hyper, ridge = Wishart(delta=2.0), 1e-2
    model = HyperKernelRidge(hyper, ridge=ridge, bias=False, symmetric=False, solver="exact", refine=False)
    model.fit(X, Y, sample_weight=W)
    i, j = np.nonzero(~np.isnan(Y))
    w = np.ones(len(i)) if W is None else W[i, j]
    K = hyper((X[i], X[j]), (X[i], X[j]))
    beta = np.linalg.solve(K + ridge * w.sum() * np.diag(1 / w), Y[i, j])
    k, s = np.divmod(np.arange(40), 8)
    expected = (hyper((new[k], X[s]), (X[i], X[j])) @ beta).reshape(5, 8)
    assert np.allclose(model.predict(new, X), expected, atol=1e-8)
    assert np.allclose(model.predict(new), model.predict(new).T)
    with pytest.raises(ValueError, match="symmetric=False"):
        HyperKernelRidge(hyper).fit(X, Y, sample_weight=W)


def test_two_answers_are_better_than_one():
    random = np.random.default_rng(0)
    X, new = points(100), points(40, seed=1)
    answers = gaussian(X, X) + random.normal(scale=0.5, size=(100, 100))
    one = np.where(np.triu(np.ones((100, 100))) == 1, answers, np.nan)
    errors = [
        relative_error(HyperKernelRidge(symmetric=False, random_state=0).fit(X, Y).predict(new), gaussian(new, new))
        for Y in (answers, one)
    ]
    assert errors[0] < errors[1] < 0.3
