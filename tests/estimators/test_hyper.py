"""Tests that all learners of a kernel function share."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelwright as kw
from kernelwright import HyperKernelRidge, HyperKernelSVR
from kernelwright.hyper import Partition
from kernelwright.hyper.kernels import Gaussian
from tests.hyper.problems import gaussian, points, relative_error

MATRIX = "predict returns the matrix of its rows with each other: rows of it are not functions of single rows"
NOT_OF_SINGLE_ROWS = {
    "check_methods_sample_order_invariance": MATRIX,
    "check_methods_subset_invariance": MATRIX,
}


@parametrize_with_checks(
    [HyperKernelRidge(), HyperKernelSVR()], expected_failed_checks=lambda estimator: NOT_OF_SINGLE_ROWS
)
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


def test_labels_give_the_ideal_kernel():
    X, y = load_iris(return_X_y=True)
    K = HyperKernelRidge(random_state=0).fit(X, y).predict(X)
    same = y[:, None] == y
    assert K[same].mean() > 0.5
    assert K[~same].mean() < -0.5
    K = HyperKernelRidge(random_state=0, coding="indicator").fit(X, y).predict(X)
    assert abs(K[~same].mean()) < 0.2


def test_missing_entries_are_unknown():
    X = points(150)
    Y = gaussian(X, X)
    hidden = np.triu(np.random.default_rng(0).random(Y.shape) < 0.5, 1)
    known = Y.copy()
    known[hidden | hidden.T] = np.nan
    K = HyperKernelRidge(random_state=0).fit(X, known).predict(X)
    assert relative_error(K[hidden], Y[hidden]) < 0.03


def test_saves_small_and_survives_pickling():
    X = points(500)
    model = HyperKernelRidge(random_state=0).fit(X, gaussian(X, X))
    data = pickle.dumps(model)
    assert len(data) < 100_000  # the matrix alone has 2,000,000 bytes
    assert np.array_equal(pickle.loads(data).predict(X[:5]), model.predict(X[:5]))


def test_names_of_columns_are_kept():
    X = pd.DataFrame(points(30), columns=["a", "b", "c"])
    model = HyperKernelRidge(random_state=0).fit(X, gaussian(X.to_numpy(), X.to_numpy()))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"a": "z"}))


def test_deterministic_by_random_state():
    X = points(100)
    one, two = (HyperKernelRidge(random_state=1).fit(X, gaussian(X, X)).predict(X) for _ in range(2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("X", "target", "message"),
    [
        (points(2), np.eye(2), "minimum of 3"),
        (points(5), np.eye(4), "5 points"),
        (points(5), np.triu(np.ones((5, 5))), "differ by 1"),
        (points(5), np.full((5, 5), 2.0), "All known entries of the target matrix are 2"),
        (points(5), np.full((5, 5), np.nan), "no known similarity"),
        (points(5), np.zeros(5, dtype=int), "only one class"),
        (points(5), np.linspace(0, 1, 5), "Unknown label type"),
    ],
)
def test_bad_input(X, target, message):
    for model in (HyperKernelRidge(), HyperKernelSVR()):
        with pytest.raises(ValueError, match=message):
            model.fit(X, target)


def test_unseen_dimension_at_prediction():
    model = HyperKernelRidge().fit(points(10), gaussian(points(10), points(10)))
    with pytest.raises(ValueError, match="4 features"):
        model.predict(points(3, d=4))
    with pytest.raises(ValueError, match="features"):
        model.kernel_(points(3, d=4))


@pytest.mark.parametrize("make", [HyperKernelRidge, HyperKernelSVR])
@pytest.mark.parametrize("solver", ["exact", "midpoint"])
@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e-3), (1e4, 1.0), (-3.0, 1e6)])
def test_offset_and_scale_of_the_similarities_do_not_matter(make, solver, offset, scale):
    X = points(40, d=2)
    model = make(solver=solver, random_state=0)
    new = points(10, d=2, seed=1)
    plain = clone(model).fit(X, gaussian(X, X)).predict(new)
    moved = clone(model).fit(X, offset + scale * gaussian(X, X)).predict(new)
    assert np.allclose((moved - offset) / scale, plain, atol=5e-3)


def test_numbers_of_the_hyperkernel_can_be_searched():
    X, y = load_iris(return_X_y=True)
    model = kw.LearnedKernelClassifier(HyperKernelRidge(Gaussian(), ridge=1e-3, random_state=0), SVC())
    search = GridSearchCV(model, {"learner__hyperkernel__sigma": [0.001, 2.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"learner__hyperkernel__sigma": 2.0}
    low, high = search.cv_results_["mean_test_score"]
    assert high > low


def test_score_is_the_share_of_variance_explained():
    X = points(100)
    model = HyperKernelRidge(random_state=0).fit(X[:70], gaussian(X[:70], X[:70]))
    assert model.score(X[70:], gaussian(X[70:], X[70:])) > 0.99
    X, y = load_iris(return_X_y=True)
    assert 0.3 < HyperKernelRidge(random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) < 1.0


def test_similarities_to_one_reference_only():
    X = points(40)
    Y = np.full((40, 40), np.nan)
    Y[0] = Y[:, 0] = gaussian(X, X)[0]
    for model in (HyperKernelRidge(random_state=0), HyperKernelSVR(random_state=0)):
        assert np.isfinite(model.fit(X, Y).predict(X)).all()


@pytest.mark.parametrize("make", [HyperKernelRidge, HyperKernelSVR])
def test_parts_that_are_too_small_are_refused(make):
    X = points(40)
    with pytest.raises(ValueError, match="at least 3"):
        make(solver=Partition(20)).fit(X, gaussian(X, X))


def test_no_global_random_state_is_used():
    X, y = load_iris(return_X_y=True)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for model in (HyperKernelSVR(random_state=0), HyperKernelRidge(random_state=0), kw.LearnedKernelClassifier()):
        model.fit(X[::3], y[::3])
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
