"""EmbeddingClassifier with explicit features, in batches, and with every solver."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split

from kernelwright import EmbeddingClassifier, learning
from kernelwright.estimators import batches as module
from kernelwright.features import Network, Nystroem, Polynomial, RandomFourier
from kernelwright.kernels import Gaussian, Linear, Precomputed
from kernelwright.learning import LBFGS, Adam, LeaveOneOut, Rademacher
from kernelwright.solvers import Exact, Fourier, Herding, Landmarks

SOLVERS = [Exact(), Landmarks(300), Fourier(300), Herding(300)]


def few_are_many(monkeypatch, n_rows):
    """Lower the limit of rows that are learned from at once."""
    for room in ("base", "methods", "recipes", "grid"):
        monkeypatch.setattr(f"kernelwright.learning.{room}.MANY", n_rows)


@pytest.fixture(scope="module")
def circles():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    return train_test_split(X, (np.hypot(*X.T) > 1.1).astype(int), random_state=0)


def fitted(circles, **how):
    X, _, y, _ = circles
    return EmbeddingClassifier(random_state=0, **how).fit(X, y)


# Solvers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.word)
@pytest.mark.parametrize("learn", ["auto", None], ids=["auto", "as-given"])
def test_every_solver_learns(circles, solver, learn):
    _, X_new, _, y_new = circles
    kernel = None if learn else Gaussian(0.7)
    model = fitted(circles, kernel=kernel, learn=learn, ridge=1e-4, solver=solver)
    assert model.solver_ == solver.word
    assert model.score(X_new, y_new) > 0.93
    p = model.predict_proba(X_new)
    np.testing.assert_allclose(p.sum(1), 1.0)
    np.testing.assert_array_equal(model.predict(X_new), model.classes_[p.argmax(1)])
    np.testing.assert_allclose(model.predict_proba(X_new[:1]), p[:1], atol=1e-10)
    assert model.n_landmarks_ == len(model.coefficients_)


def test_all_rows_as_landmarks_predict_like_the_exact_solution(circles):
    _, X_new, _, _ = circles
    how = {"kernel": Gaussian(0.7), "learn": None, "ridge": 1e-4, "probability": "clip"}
    exact, landmarks = (fitted(circles, solver=s, **how) for s in (Exact(), Landmarks(10**6)))
    np.testing.assert_allclose(landmarks.raw_outputs(X_new), exact.raw_outputs(X_new), atol=1e-5)


def test_many_rows_are_solved_by_a_tree_and_verbose_says_so(circles, caplog, monkeypatch):
    monkeypatch.setattr("kernelwright.solvers.automatic.EXACT_UP_TO", 1000)
    monkeypatch.setattr("kernelwright.solvers.automatic.TREE_FROM", 1000)
    few_are_many(monkeypatch, 1000)
    model = fitted(circles, verbose=1)
    assert (model.solver_, model.n_landmarks_) == ("tree", 1125)
    assert "1125 rows: solver tree" in caplog.messages
    _, X_new, _, y_new = circles
    assert model.score(X_new, y_new) > 0.93


def test_weights_of_all_rows_need_an_exact_solution(circles):
    model = fitted(circles, kernel=Gaussian(0.7), learn=None, solver=Landmarks(50))
    with pytest.raises(ValueError, match=r"only with solver='exact'\. Got 'nystroem'"):
        model.embedding_weights(circles[1])


def test_a_precomputed_kernel_is_always_exact(circles):
    X, _, y, _ = circles
    model = EmbeddingClassifier("precomputed", learn=None).fit(Gaussian()(X[:200]), y[:200])
    assert model.solver_ == "exact"
    assert isinstance(model.kernel_, Precomputed)


# Features ----------------------------------------------------------------------------------------------------

MAPS = [RandomFourier(200, lengthscale="median"), Nystroem(Gaussian("median"), 100), Polynomial(2)]


@pytest.mark.parametrize("features", MAPS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(
    "learn",
    [learning.Auto(max_iter=15), LeaveOneOut(optimizer=LBFGS(15)), Rademacher(optimizer=LBFGS(15))],
    ids=lambda learn: learn.word,
)
def test_explicit_features_learn(circles, features, learn):
    _, X_new, _, y_new = circles
    before = repr(features)
    model = fitted(circles, features=features, learn=learn)
    assert model.solver_ == "explicit"
    assert model.score(X_new, y_new) > (0.85 if isinstance(features, Polynomial) else 0.93)
    assert repr(features) == before  # the user's map is copied, not changed
    np.testing.assert_allclose(model.predict_proba(X_new[:1]), model.predict_proba(X_new)[:1], atol=1e-10)


def test_explicit_features_by_mini_batches(circles):
    _, X_new, _, y_new = circles
    learn = Rademacher(batch_size=200, optimizer=Adam(max_iter=60))
    model = fitted(circles, features=RandomFourier(60, lengthscale=3.0), learn=learn)
    assert model.score(X_new, y_new) > 0.9
    assert len(model.history_) == 60


@pytest.mark.parametrize(
    ("learn", "batch_size"),
    [
        (Rademacher(optimizer=Adam(max_iter=5)), 1000),
        (LeaveOneOut(optimizer=Adam(max_iter=5)), 1000),
        ("cross-validation", None),
    ],
    ids=["rademacher", "leave-one-out", "cross-validation"],
)
@pytest.mark.slow
def test_many_rows_are_learned_from_in_mini_batches_or_a_sample(circles, monkeypatch, learn, batch_size):
    few_are_many(monkeypatch, 1100)
    model = fitted(circles, kernel=Gaussian(), learn=learn)
    assert model.batch_size_ == batch_size
    assert model.score(circles[1], circles[3]) > 0.85


def test_features_in_grids_clones_and_pickles(circles):
    X, X_new, y, _ = circles
    grid = GridSearchCV(
        EmbeddingClassifier(features=RandomFourier(60), learn=None, ridge=1e-4),
        {"features__lengthscale": [0.05, 1.0]},
        cv=2,
    ).fit(X, y)
    assert grid.best_params_ == {"features__lengthscale": 1.0}
    model = fitted(circles, features=Polynomial(2), learn=learning.Auto(max_iter=3))
    copies = (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), clone(model).fit(X, y))
    for other in copies:
        np.testing.assert_array_equal(other.predict_proba(X_new), model.predict_proba(X_new))


def test_a_kernel_and_features_are_refused(circles):
    with pytest.raises(ValueError, match="either a kernel or features"):
        fitted(circles, kernel=Gaussian(), features=Polynomial(2))


# Batches -----------------------------------------------------------------------------------------------------


def in_parts(X, y, size):
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]


def test_batches_add_up_to_all_rows():
    X, y = load_digits(return_X_y=True)
    how = {"features": RandomFourier(150, lengthscale=25.0), "learn": None, "random_state": 0}
    whole = EmbeddingClassifier(ridge=1e-4, **how).fit(X, y)
    parts = EmbeddingClassifier(ridge=1e-4 * len(y) / 500, **how)  # the absolute ridge is kept as rows are added
    for X_part, y_part in in_parts(X, y, 500):
        parts.partial_fit(X_part, y_part, classes=np.arange(10))
    assert parts.ridge_ == pytest.approx(whole.ridge_)
    np.testing.assert_allclose(parts.raw_outputs(X), whole.raw_outputs(X), atol=1e-8)


def test_an_iterator_of_batches(monkeypatch):
    monkeypatch.setattr(module, "LEFT_OUT_ROWS", 600)
    X, y = load_digits(return_X_y=True)
    X_train, X_new, y_train, y_new = train_test_split(X, y, random_state=0)
    model = EmbeddingClassifier(features=RandomFourier(300, lengthscale="median"), random_state=0)
    model.fit_batches(in_parts(X_train, y_train, 200))
    assert model.score(X_new, y_new) > 0.93
    assert model.fit_batches(iter([(X_train, y_train)])).score(X_new, y_new) > 0.93


def test_a_memory_mapped_array(tmp_path, circles):
    X, X_new, y, y_new = circles
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = EmbeddingClassifier(features=RandomFourier(100, lengthscale="median"), random_state=0).fit(mapped, y)
    assert model.score(X_new, y_new) > 0.93


def test_batches_know_class_weights_and_go_on_after_fit(circles):
    X, X_new, y, _ = circles
    rare = (y == 1) | (np.arange(len(y)) % 8 == 0)
    how = {"features": RandomFourier(60), "learn": None, "ridge": 1e-4, "probability": "clip"}
    weights = {0: 8.0, 1: 1.0}
    whole = EmbeddingClassifier(class_weight=weights, **how).fit(X[rare], y[rare])
    total = np.where(y[rare] == 0, 8.0, 1.0)
    half = len(total) // 2
    parts = EmbeddingClassifier(class_weight=weights, **(how | {"ridge": 1e-4 * total.sum() / total[:half].sum()}))
    parts.fit(X[rare][:half], y[rare][:half]).partial_fit(X[rare][half:], y[rare][half:])
    np.testing.assert_allclose(parts.raw_outputs(X_new), whole.raw_outputs(X_new), atol=1e-7)
    parts.set_params(class_weight="balanced")
    with pytest.raises(ValueError, match="'balanced' needs all rows at once"):
        parts.partial_fit(X, y)


def test_sorted_batches_are_gathered_until_two_classes_are_seen(circles, monkeypatch):
    monkeypatch.setattr(module, "LEFT_OUT_ROWS", 100)
    X, X_new, y, y_new = circles
    order = np.argsort(y, kind="stable")
    model = EmbeddingClassifier(features=RandomFourier(100, lengthscale="median"), random_state=0)
    assert model.fit_batches(in_parts(X[order], y[order], 100)).score(X_new, y_new) > 0.9


def test_a_network_as_features_gives_the_same_answer_twice(circles):
    net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Dropout(0.5))
    model = fitted(circles, features=Network(net), learn=None)
    np.testing.assert_array_equal(model.predict_proba(circles[1]), model.predict_proba(circles[1]))
    assert net[0].weight.dtype == torch.float32  # the user's own is not touched


def test_faults_of_batches(circles):
    X, _, y, _ = circles
    with pytest.raises(AttributeError, match="partial_fit"):
        EmbeddingClassifier(solver="nystroem").partial_fit(X, y)
    model = EmbeddingClassifier(features=Polynomial(2), learn=None).partial_fit(X[:100], y[:100])
    with pytest.raises(ValueError, match=r"Labels .*7.* are new\. Pass all classes"):
        model.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match="are not among the given classes"):
        clone(model).partial_fit(X, y, classes=[0, 5])
    with pytest.raises(ValueError, match="no batch"):
        model.fit_batches([])


# What later batches bring ----------------------------------------------------------------------------------------


def three_blobs(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.7]])[y] + 0.7 * rng.normal(size=(n, 2)), y


def test_a_class_that_later_batches_show_first_is_as_good_as_any():
    model = EmbeddingClassifier(features=RandomFourier(100, lengthscale="median"), random_state=0)
    model.partial_fit(*three_blobs(1000, 2, 0), classes=[0, 1, 2])
    for k in range(9):
        model.partial_fit(*three_blobs(1000, 3, 1 + k))
    assert model.class_prior_[2] == pytest.approx(0.3, abs=0.03)
    X, y = three_blobs(2000, 3, 20)
    assert (model.predict(X)[y == 2] == 2).mean() > 0.75
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.partial_fit(X, y).predict_proba(X), model.partial_fit(X, y).predict_proba(X))


@pytest.mark.parametrize("weight", [0.001, 0.5, 1.0, 3.0])
def test_a_weight_means_the_same_in_every_batch(weight):
    model = EmbeddingClassifier(features=RandomFourier(50, lengthscale="median"), random_state=0)
    for k in range(2):
        model.partial_fit(*three_blobs(1000, 3, k), sample_weight=np.full(1000, weight))
    sums = model.embedding_.sums
    assert sums.n_rows == 2000
    assert sums.moments.total == pytest.approx(2000)
    sample = sums.sample
    assert float(sample.weights.min()) == pytest.approx(float(sample.weights.max()))


def test_a_new_fit_settles_anew_what_a_weight_means():
    model = EmbeddingClassifier(features=RandomFourier(50, lengthscale="median"), random_state=0)
    model.partial_fit(*three_blobs(1000, 3, 0), sample_weight=np.full(1000, 0.001))
    X, y = three_blobs(1000, 3, 1)
    assert model.fit(X, y).partial_fit(X, y).embedding_.sums.moments.total == pytest.approx(2000)
    model.fit(X, y, sample_weight=np.full(1000, 0.001)).partial_fit(X, y, sample_weight=np.full(1000, 0.001))
    assert model.embedding_.sums.moments.total == pytest.approx(2000)


def test_the_rows_to_calibrate_on_are_of_all_batches_alike_whatever_a_row_weighs():
    model = EmbeddingClassifier(features=RandomFourier(20, lengthscale="median"), learn=None, random_state=0)
    for k in range(4):  # batches that can be told apart by where they lie, each of as many rows
        X, y = three_blobs(4000, 3, k)
        model.partial_fit(X + np.array([100.0 * k, 0.0]), y, sample_weight=np.full(4000, 4.0))
    sample = model.embedding_.sums.sample
    assert (len(sample), model.embedding_.sums.n_rows) == (5000, 16_000)
    of_batches = np.bincount((sample.points[:, 0] / 100.0).round().long(), minlength=4)
    np.testing.assert_allclose(of_batches, 1250, atol=200)


def test_rows_without_weight_are_not_seen():
    model = EmbeddingClassifier(features=RandomFourier(50, lengthscale="median"), random_state=0)
    model.partial_fit(*three_blobs(500, 3, 0))
    X, y = three_blobs(200, 3, 1)
    some = copy.deepcopy(model).partial_fit(X[::2], y[::2])
    model.partial_fit(X, y, sample_weight=np.tile([1.0, 0.0], 100))
    np.testing.assert_allclose(model.predict_proba(X), some.predict_proba(X), atol=1e-12)


def test_batches_may_be_data_frames_whose_names_are_kept():
    def frames(columns=("a", "b")):
        for k in range(6):
            X, y = three_blobs(1000, 3, k)
            yield pd.DataFrame(X, columns=["a", "b"])[list(columns if k > 4 else ("a", "b"))], y

    model = EmbeddingClassifier(features=RandomFourier(50, lengthscale="median"), random_state=0).fit_batches(frames())
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(next(frames())[0])
    with pytest.raises(ValueError, match="feature names"):
        clone(model).fit_batches(frames(("b", "a")))


def test_the_bound_of_features_is_of_all_rows():
    X = np.linspace(0.0, 10.0, 6000)[:, None]
    y = (X[:, 0] > 5).astype(int)
    model = EmbeddingClassifier(features=Polynomial(1), learn=None).partial_fit(X[:4000], y[:4000])
    largest = float((model.features_(torch.from_numpy(X)) ** 2).sum(1).max().detach())
    norm = np.sqrt((model.partial_fit(X[4000:], y[4000:]).coefficients_ ** 2).sum())
    assert model.complexity_ == pytest.approx(np.sqrt(largest) * norm)
    dense = EmbeddingClassifier(Linear(), learn=None, solver=Landmarks(50), random_state=0)
    X = np.linspace(0.0, 10.0, 12_000)[:, None]
    dense.fit(X, X[:, 0] > 5)
    K = dense.points_ @ dense.points_.T
    norm = np.sqrt(np.sum(dense.coefficients_ * (K @ dense.coefficients_)))
    assert dense.complexity_ == pytest.approx(10.0 * norm)


def test_fourier_features_of_a_given_kernel_know_nothing_far_away(circles):
    X, _, y, _ = circles
    model = EmbeddingClassifier(Gaussian("median"), solver=Fourier(200), random_state=0).fit(X, y)
    far = np.random.default_rng(0).normal(size=(50, 2)) * 3.0 + 1000.0
    np.testing.assert_allclose(model.support(far), 0.0, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(far), np.tile(model.class_prior_, (50, 1)), atol=1e-6)


def test_a_refused_batch_leaves_nothing_behind():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    model = EmbeddingClassifier(features=RandomFourier(20), random_state=0)
    with pytest.raises(ValueError, match="not among the given classes"):
        model.partial_fit(X, np.where(np.arange(60) == 7, 2, y), classes=[0, 1])
    model.partial_fit(X, y, classes=[0, 1])
    once = EmbeddingClassifier(features=RandomFourier(20), random_state=0).partial_fit(X, y, classes=[0, 1])
    assert list(model.classes_) == [0, 1]
    np.testing.assert_allclose(model.predict_proba(X), once.predict_proba(X), atol=1e-12)
