import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from kernelwright.errors import DistanceMatrixWarning, MemoryBudgetError, NumericalError
from kernelwright.estimators.krein import KreinSVC
from kernelwright.kernels import Gaussian, Linear, Spectrum
from kernelwright.similarity.indefinite import CORRECTIONS, correct


def bump(X, Z):
    """Return an indefinite similarity: the difference of a wide and a narrow Gaussian."""
    D = cdist(X, Z, "sqeuclidean")
    return np.exp(-0.5 * D) - 0.5 * np.exp(-20.0 * D)


def in_order(X, y):
    """Sort rows as the estimator does, so that another solver has the same start."""
    order = np.lexsort(X.T[::-1])
    return X[order], y[order]


@pytest.fixture
def moons():
    return in_order(*make_moons(80, noise=0.25, random_state=0))


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    return in_order(minmax_scale(X), y)


@parametrize_with_checks([KreinSVC(), KreinSVC(kernel="precomputed"), KreinSVC(C="auto")])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_scikit_learn_contract_with_a_function():  # whose address would be part of a parametrised test's name
    check_estimator(KreinSVC(bump, correction="flip"), on_skip=None)


@pytest.mark.parametrize("how", CORRECTIONS)
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_multi_class_is_svc_on_transformed_matrices(wine, how, shape):
    X, y = wine
    train, test = np.arange(0, 178, 2), np.arange(1, 178, 2)
    model = KreinSVC(bump, C=2.0, correction=how, decision_function_shape=shape, tol=1e-10).fit(X[train], y[train])
    corrected = correct(torch.from_numpy(bump(X[train], X[train])), how)
    rows = corrected.transform(torch.from_numpy(bump(X[test], X[train]))).numpy()
    svc = SVC(kernel="precomputed", C=2.0, decision_function_shape=shape, break_ties=shape == "ovr", tol=1e-10)
    svc.fit(corrected.matrix.numpy(), y[train])
    np.testing.assert_allclose(model.decision_function(X[test]), svc.decision_function(rows), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X[test]), svc.predict(rows))
    np.testing.assert_array_equal(model.support_, np.sort(svc.support_))


def ksvm(K, K_new, y, C):
    """Fit the KSVM of Loosli, Canu and Ong (2016), with SLSQP for its quadratic programme.

    The dual has the matrix ``U S diag(l) U^T`` with S = sign(l); its solution is mapped back by ``U S U^T``.
    """
    values, U = np.linalg.eigh(K)
    S = np.sign(values)
    G = (U * (S * values)) @ U.T
    Q = G * np.outer(y, y)
    found = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.full(len(y), 0.5 * C),
        jac=lambda a: Q @ a - 1.0,
        bounds=[(0.0, C)] * len(y),
        constraints={"type": "eq", "fun": lambda a: a @ y, "jac": lambda a: y},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    beta = found.x * y
    free = (found.x > 1e-5 * C) & (found.x < (1 - 1e-5) * C)
    b = np.mean((y - G @ beta)[free])
    return K_new @ ((U * S) @ U.T @ beta) + b


def test_flip_is_ksvm(moons):
    X, labels = moons
    y, X_new = 2.0 * labels - 1.0, np.random.default_rng(1).normal(size=(30, 2))
    model = KreinSVC(bump, C=3.0, correction="flip", tol=1e-10).fit(X, labels)
    assert model.signature_.negative > 20
    expected = ksvm(bump(X, X), bump(X_new, X), y, 3.0)
    np.testing.assert_allclose(model.decision_function(X_new), expected, atol=1e-4)


@pytest.mark.parametrize("how", CORRECTIONS)
def test_on_a_positive_definite_kernel_all_are_plain_svc(wine, how):
    X, y = wine
    model = KreinSVC(Gaussian(0.5), correction=how, tol=1e-10).fit(X[::2], y[::2])
    svc = SVC(gamma=2.0, tol=1e-10, break_ties=True).fit(X[::2], y[::2])
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), svc.predict(X))
    assert model.signature_.definite
    assert len(model.points_) == len(model.support_) == len(svc.support_)


def test_a_constant_added_to_the_kernel_is_invisible(moons):
    X, y = moons
    plain = KreinSVC(Gaussian(0.5), tol=1e-10).fit(X, y)
    shifted = KreinSVC(Gaussian(0.5) + 3.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(shifted.decision_function(X), plain.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("kernel", ["precomputed", cdist], ids=["precomputed", "function"])
def test_distances_in_place_of_similarities_bring_a_warning_that_helps(wine, kernel):
    X, y = wine
    D = cdist(X, X) if kernel == "precomputed" else X
    with pytest.warns(DistanceMatrixWarning, match="use their negatives"):
        wrong = KreinSVC(kernel).fit(D, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        negated = KreinSVC("precomputed").fit(-cdist(X, X), y)
        bent = KreinSVC("precomputed").fit(np.exp(-cdist(X, X) / cdist(X, X).mean()), y)
    assert wrong.score(D, y) < 0.7
    assert negated.score(-cdist(X, X), y) > 0.95
    assert bent.score(np.exp(-cdist(X, X) / cdist(X, X).mean()), y) > 0.95


def test_links_of_a_network_are_not_refused(moons):
    """With zeros on the diagonal they cannot be told from distances, and are a similarity all the same."""
    X, y = moons
    links = (cdist(X, X) < 1.0).astype(float)
    np.fill_diagonal(links, 0.0)
    with pytest.warns(DistanceMatrixWarning, match="on the diagonal"):
        KreinSVC("precomputed").fit(links, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.fill_diagonal(links, 1.0)
        assert KreinSVC("precomputed").fit(links, y).score(links, y) > 0.8


def test_a_missing_similarity_is_named(moons):
    X, y = moons
    S = bump(X, X)
    S[3, 5] = S[5, 3] = np.nan
    with pytest.raises(ValueError, match=r"row 3 and column 5 is NaN .* leave out objects"):
        KreinSVC("precomputed").fit(S, y)


@pytest.mark.parametrize("how", CORRECTIONS)
def test_precomputed_is_the_kernel_itself(moons, how):
    X, y = moons
    X_new = X[:7] + 0.1
    direct = KreinSVC(bump, correction=how).fit(X, y)
    given = KreinSVC("precomputed", correction=how).fit(bump(X, X), y)
    np.testing.assert_allclose(
        given.decision_function(bump(X_new, X)), direct.decision_function(X_new), rtol=1e-6, atol=1e-9
    )
    assert given.points_.shape[1] == 1
    assert cross_val_score(KreinSVC("precomputed"), bump(X, X), y, cv=3).mean() > 0.5


def test_strings_weights_and_frames(moons):
    X, y = moons
    names = np.array(["no", "yes"])[y]
    frame = pd.DataFrame(X, columns=["a", "b"])
    w = np.random.default_rng(0).integers(0, 4, len(y))
    model = KreinSVC(bump).fit(frame, names, sample_weight=w)
    assert set(model.predict(frame)) == {"no", "yes"}
    assert list(model.feature_names_in_) == ["a", "b"]
    repeated = KreinSVC(bump).fit(np.repeat(X, w, axis=0), np.repeat(names, w))
    np.testing.assert_allclose(model.decision_function(frame), repeated.decision_function(X), rtol=1e-10)
    assert (w[model.support_] > 0).all()
    np.testing.assert_array_equal(model.predict(frame) == "yes", model.decision_function(frame) > 0)


def test_class_weights_are_those_of_svc(moons):
    X, y = moons[0][:60], moons[1][:60]
    y[:15] = 0
    for weight in ("balanced", {0: 1.0, 1: 0.2}):
        model = KreinSVC(Gaussian(0.5), class_weight=weight, tol=1e-10).fit(X, y)
        svc = SVC(gamma=2.0, class_weight=weight, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-6)


def test_predict_is_the_largest_decision_value():
    X, y = make_blobs(150, centers=5, cluster_std=4.0, random_state=0)
    model = KreinSVC(bump).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(1)])


def test_one_row_is_predicted_as_in_a_batch(moons):
    X, y = moons
    model = KreinSVC(bump, correction="flip").fit(X, y)
    alone = np.concatenate([model.decision_function(x[None]) for x in X])
    np.testing.assert_allclose(alone, model.decision_function(X), atol=1e-10)


def test_kernels_of_strings():
    words, y = np.array(["aab", "aba", "baa", "xxy", "xyx", "yxx"], dtype=object), [0, 0, 0, 1, 1, 1]
    model = KreinSVC(Spectrum(2)).fit(words, y, sample_weight=[1, 1, 0, 1, 1, 1])
    np.testing.assert_array_equal(model.predict(["baaba", "yxxy"]), [0, 1])
    assert 2 not in model.support_


def test_clone_grid_and_pickle(moons):
    X, y = moons
    search = GridSearchCV(KreinSVC(Gaussian()), {"kernel__lengthscale": [0.3, 1.0], "correction": ["clip", "flip"]})
    assert search.fit(X, y).best_score_ > 0.7  # folds of sorted rows are hard
    model = clone(KreinSVC(bump)).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))


def test_bad_input_is_refused(moons, monkeypatch):
    X, y = moons
    with pytest.raises(ValueError, match="symmetric"):
        KreinSVC(lambda X, Z: X @ Z.T + X[:, :1]).fit(X, y)
    with pytest.raises(ValueError, match="Got shape"):
        KreinSVC(lambda X, Z: X).fit(X, y)
    with pytest.raises(ValueError, match="correction"):
        KreinSVC(correction="square").fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        KreinSVC().fit(X, y, sample_weight=y)
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1e4)
    with pytest.raises(MemoryBudgetError):
        KreinSVC().fit(X, y)


@pytest.mark.parametrize("C", [1.0, "auto"])
@pytest.mark.filterwarnings("ignore")  # of the scores that cannot be told
def test_kernel_values_too_large_for_the_machine_are_refused_in_words(C):
    X, y = np.array([[0.0], [1.0], [2.0], [1e150]]), [0, 1, 0, 1]
    with pytest.raises(NumericalError, match=r"no finite solution: .*1.0e\+300.*standardised"):
        KreinSVC(Linear(), C=C).fit(X, y)


def test_a_class_of_weight_zero_is_left_out():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3
    model = KreinSVC(class_weight={0: 1.0, 1: 1.0, 2: 0.0}).fit(X, y)
    few = KreinSVC().fit(X[y < 2], y[y < 2])
    assert list(model.classes_) == [0, 1]
    np.testing.assert_allclose(model.decision_function(X), few.decision_function(X), atol=1e-3)
