import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from kernelwright import learning, solvers
from kernelwright.embedding import fitted
from kernelwright.errors import MemoryBudgetError, NumericalError
from kernelwright.estimators import ConditionalMeanEmbedding, EmbeddingClassifier
from kernelwright.kernels import Gaussian, KroneckerDelta, Laplace, Linear, Matern, Polynomial, Spectrum
from kernelwright.learning import LBFGS, Folds, LeaveOneOut
from kernelwright.numerics.linalg import low_rank_root

# Naive references: a matrix inverse, and refits without the rows that are tested -----------------------------------


def naive_weights(K, k_new, ridge):
    """Compute Eq. (2), one row for each new point."""
    return k_new @ np.linalg.inv(K + len(K) * ridge * np.eye(len(K)))


def refit_loss(K, L, ridge, folds):
    """Return the mean of ``|l(y_i, .) - mu(x_i)|^2``, with mu refitted without the fold of row i.

    The diagonal gets ``n ridge`` with the n of all rows.
    """
    n, total = len(K), 0.0
    for fold in np.unique(folds):
        T, B = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        W = K[np.ix_(B, T)] @ np.linalg.inv(K[np.ix_(T, T)] + n * ridge * np.eye(len(T)))
        for w, i in zip(W, B, strict=True):
            total += L[i, i] - 2 * w @ L[T, i] + w @ L[np.ix_(T, T)] @ w
    return total / n


def gaussian(D2, lengthscale):
    return np.exp(-D2 / (2 * lengthscale**2))


def default_target_gram(Y):
    """Return a Gaussian at the median distance of standardised targets, or the Kronecker delta."""
    if Y.dtype.kind in "OUb":
        return (Y[:, None] == Y).astype(float)
    Z = Y.reshape(len(Y), -1)
    Z = (Z - Z.mean(0)) / Z.std(0)
    D2 = ((Z[:, None] - Z) ** 2).sum(-1)
    return gaussian(D2, np.median(np.sqrt(D2[np.tril_indices(len(Y), -1)])))


@pytest.fixture
def sine():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 1))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=80)


def targets_of_all_kinds():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(42, 2))  # 861 pairs: an odd number, so that one of them has the median distance
    real = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=42)
    vectors = np.column_stack([real, X[:, 1] ** 2 + 0.2 * rng.normal(size=42), rng.normal(size=42)])
    labels = np.array(["low", "middle", "high"])[np.digitize(real, [-0.5, 0.5])]
    return X, {"real": real, "vectors": vectors, "labels": labels}


KINDS = ["real", "vectors", "labels"]
NEW = np.linspace(-1.2, 1.2, 25)[:, None]


# The model ---------------------------------------------------------------------------------------------------------


def test_weights_are_equation_2(sine):
    X, y = sine
    kernel = Gaussian(lengthscale=0.5)
    model = ConditionalMeanEmbedding(kernel, ridge=1e-3, learn=None, prior="zero").fit(X, y)
    expected = naive_weights(kernel(X), kernel(NEW, X), 1e-3)
    np.testing.assert_allclose(model.weights(NEW), expected, atol=1e-10)
    assert model.ridge_ == 1e-3
    assert np.isnan(model.objective_)


def test_equal_rows_share_their_weight_and_change_nothing_else(sine):
    X, y = sine
    X, y = X[:20], y[:20]
    X = np.vstack([X, X[:5], X[:2], X[:3]])
    y = np.concatenate([y, y[:5], y[:2], y[5:8]])  # the last three: equal inputs, other targets
    kernel = Laplace(lengthscale=0.5)
    model = ConditionalMeanEmbedding(kernel, ridge=1e-2, learn=None, prior="zero").fit(X, y)
    assert len(model.points_) == 23
    expected = naive_weights(kernel(X), kernel(NEW, X), 1e-2)
    np.testing.assert_allclose(model.weights(NEW), expected, atol=1e-10)
    np.testing.assert_allclose(model.expectation(NEW, np.cos), expected @ np.cos(y), atol=1e-10)


@pytest.mark.parametrize("shape", [(80,), (80, 1), (80, 3)])
def test_mean_equals_kernel_ridge_regression(sine, shape):
    X, y = sine
    Y = y if len(shape) == 1 else np.column_stack([y, y**2, X[:, 0]])[:, : shape[1]]
    model = ConditionalMeanEmbedding(Gaussian(lengthscale=0.4), ridge=2e-3, learn=None, prior="zero").fit(X, Y)
    rival = KernelRidge(alpha=len(X) * 2e-3, kernel="rbf", gamma=1 / (2 * 0.4**2)).fit(X, Y)
    assert model.expectation(NEW).shape == (25, *shape[1:])
    np.testing.assert_allclose(model.expectation(NEW), rival.predict(NEW), atol=1e-10)


def test_learned_mean_is_close_to_the_truth():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (300, 1))
    y = np.sin(3 * X[:, 0]) + 0.2 * rng.normal(size=300)
    inside = np.linspace(-0.9, 0.9, 50)[:, None]
    truth = np.sin(3 * inside[:, 0])
    for learn in ("auto", "leave-one-out", "folds"):
        model = ConditionalMeanEmbedding(Gaussian(lengthscale="median"), learn=learn, random_state=0).fit(X, y)
        assert np.abs(model.expectation(inside) - truth).mean() < 0.06, learn
        assert np.abs(model.expectation(inside, np.square) - truth**2 - 0.04).mean() < 0.08, learn
    default = ConditionalMeanEmbedding(random_state=0).fit(X, y)
    assert np.abs(default.expectation(inside) - truth).mean() < 0.08


def test_labels_equal_the_classifier():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    kernel = Gaussian(lengthscale=1.5)
    model = ConditionalMeanEmbedding(kernel, ridge=1e-3, learn=None, prior="zero").fit(X[::2], labels[::2])
    rival = EmbeddingClassifier(kernel, ridge=1e-3, learn=None).fit(X[::2], labels[::2])
    np.testing.assert_array_equal(model.classes_, rival.classes_)
    np.testing.assert_allclose(model.expectation(X), rival.raw_outputs(X), atol=1e-10)
    np.testing.assert_allclose(model.weights(X), rival.embedding_weights(X), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prior", ["zero", "marginal"])
def test_expectations_are_linear_in_g_and_the_sum_of_weights_times_g(kind, prior):
    X, targets = targets_of_all_kinds()
    Y = targets[kind]
    model = ConditionalMeanEmbedding(Matern(), ridge=1e-2, learn=None, prior=prior).fit(X, Y)
    rng = np.random.default_rng(0)
    f, g = rng.normal(size=(2, len(Y)))
    W = model.weights(X[:7])
    np.testing.assert_allclose(model.expectation(X[:7], lambda _: f), W @ f, atol=1e-10)
    together = model.expectation(X[:7], lambda _: np.column_stack([2 * f - 3 * g, g]))
    apart = 2 * model.expectation(X[:7], f) - 3 * model.expectation(X[:7], g)
    assert together.shape == (7, 2)
    np.testing.assert_allclose(together[:, 0], apart, atol=1e-10)
    np.testing.assert_allclose(model.expectation(X[:7], np.ones(len(Y))), W.sum(1), atol=1e-10)


def test_mapping_of_labels():
    X, targets = targets_of_all_kinds()
    model = ConditionalMeanEmbedding(Gaussian(), ridge=1e-2, learn=None).fit(X, targets["labels"])
    price = {"low": 1.0, "middle": 2.0, "high": 5.0}
    expected = model.expectation(X) @ [price[label] for label in model.classes_]
    np.testing.assert_allclose(model.expectation(X, price), expected, atol=1e-12)


def test_marginal_prior_has_mass_one_and_moves_with_a_shift(sine):
    X, y = sine
    model = ConditionalMeanEmbedding(Gaussian(lengthscale=0.3), ridge=1e-2, learn=None, prior="marginal")
    mean = model.fit(X, y).expectation(NEW)
    np.testing.assert_allclose(model.weights(NEW).sum(1), 1.0)
    np.testing.assert_allclose(model.fit(X, y + 1000).expectation(NEW), mean + 1000, atol=1e-8)
    np.testing.assert_allclose(model.expectation([[1e6]]), [y.mean() + 1000])
    zero = model.set_params(prior="zero").fit(X, y)
    assert np.abs(zero.expectation([[1e6]])).max() == 0


def test_one_row_equals_the_same_row_in_a_batch_and_in_blocks(sine, monkeypatch):
    X, y = sine
    model = ConditionalMeanEmbedding(learn=learning.Auto(max_iter=3), random_state=0).fit(X, y)
    asks = [model.weights, model.expectation, lambda X: model.quantile(X, [0.1, 0.5]), lambda X: model.sample(X, 9)]
    whole = [ask(NEW) for ask in asks]
    score = model.score(X, y)
    monkeypatch.setattr(fitted, "PREDICTED_ENTRIES", 300)  # three rows a block
    for ask, batch in zip(asks, whole, strict=True):
        np.testing.assert_allclose(ask(NEW), batch, atol=1e-10)
        np.testing.assert_allclose(np.concatenate([ask(row[None]) for row in NEW]), batch, atol=1e-10)
    assert model.score(X, y) == pytest.approx(score, abs=1e-12)


# Learning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_leave_one_out_objective_equals_brute_force(kind):
    X, targets = targets_of_all_kinds()
    Y = targets[kind]
    kernel, L = Gaussian(lengthscale=0.8, ard=True), default_target_gram(Y)
    model = ConditionalMeanEmbedding(kernel, ridge=5e-3, learn=LeaveOneOut(0.0), prior="zero").fit(X, Y)
    each = np.arange(len(Y))
    assert model.history_[0].objective == pytest.approx(refit_loss(kernel(X), L, 5e-3, each), abs=1e-8)
    assert model.objective_ == pytest.approx(refit_loss(model.kernel_(X), L, model.ridge_, each), abs=1e-8)
    assert model.objective_ < model.history_[0].objective
    assert model.n_iter_ == len(model.history_)


@pytest.mark.parametrize("kind", KINDS)
def test_folds_objective_equals_brute_force(kind):
    X, targets = targets_of_all_kinds()
    Y = targets[kind]
    kernel, L = Laplace(lengthscale=1.5), default_target_gram(Y)
    model = ConditionalMeanEmbedding(kernel, ridge=5e-3, learn=Folds(4, optimizer=LBFGS(5)), prior="zero").fit(X, Y)
    # Rows take turns after sorting by inputs, for labels by class first.
    order = np.lexsort([X[:, 1], X[:, 0], Y if kind == "labels" else np.zeros(len(Y))])
    folds = np.empty(len(Y), dtype=int)
    folds[order] = np.arange(len(Y)) % 4
    assert model.history_[0].objective == pytest.approx(refit_loss(kernel(X), L, 5e-3, folds), abs=1e-8)
    assert model.objective_ == pytest.approx(refit_loss(model.kernel_(X), L, model.ridge_, folds), abs=1e-8)
    assert model.objective_ < model.history_[0].objective


@pytest.mark.parametrize("target_kernel", [Linear(), Polynomial(degree=2), Matern(nu=0.5), 3.0 * Laplace() + 1.0])
def test_given_target_kernels_are_used_as_given(target_kernel):
    X, targets = targets_of_all_kinds()
    Y = 10 * targets["vectors"] + 4
    model = ConditionalMeanEmbedding(
        Gaussian(), ridge=1e-2, learn=LeaveOneOut(0.0), target_kernel=target_kernel, prior="zero"
    )
    model.fit(X, Y)
    expected = refit_loss(Gaussian()(X), target_kernel(Y), 1e-2, np.arange(len(Y)))
    assert model.history_[0].objective == pytest.approx(expected, rel=1e-8)


def test_what_is_learned_does_not_depend_on_the_scale_of_the_target_kernel():
    X, targets = targets_of_all_kinds()
    fits = [
        ConditionalMeanEmbedding(Gaussian(), target_kernel=kernel, random_state=0).fit(X, targets["real"])
        for kernel in (Matern(), 1e4 * Matern())
    ]
    assert fits[1].ridge_ == pytest.approx(fits[0].ridge_, rel=1e-6)
    assert fits[1].objective_ == pytest.approx(1e4 * fits[0].objective_, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_squared_distances_in_the_space_of_the_target_kernel(kind):
    X, targets = targets_of_all_kinds()
    Y, B = targets[kind], np.arange(30, 42)
    target_kernel = None if kind == "labels" else Matern()
    model = ConditionalMeanEmbedding(Gaussian(), ridge=1e-2, learn=None, target_kernel=target_kernel, prior="zero")
    model.fit(X[:30], Y[:30])
    L = default_target_gram(Y) if kind == "labels" else Matern()(Y.reshape(len(Y), -1))
    W = naive_weights(Gaussian()(X[:30]), Gaussian()(X[30:], X[:30]), 1e-2)
    loss = [L[i, i] - 2 * w @ L[:30, i] + w @ L[:30, :30] @ w for w, i in zip(W, B, strict=True)]
    np.testing.assert_allclose(model.losses(X[30:], Y[30:]), loss, atol=1e-10)
    of_marginal = [L[i, i] - 2 * L[:30, i].mean() + L[:30, :30].mean() for i in B]
    assert model.score(X[30:], Y[30:]) == pytest.approx(1 - np.mean(loss) / np.mean(of_marginal), abs=1e-10)


def test_score_of_a_label_that_was_never_seen():
    X, targets = targets_of_all_kinds()
    model = ConditionalMeanEmbedding(Gaussian(), ridge=1e-2, learn=None).fit(X, targets["labels"])
    p = model.expectation(X[:1])
    np.testing.assert_allclose(model.losses(X[:1], ["other"]), 1 + (p**2).sum())
    assert np.isfinite(model.score(X[:1], ["other"]))


@pytest.mark.parametrize("learn", ["auto", "leave-one-out", "folds", "regularised-folds", "rademacher", "held-out"])
def test_learning_beats_the_median_heuristic_on_new_rows(learn):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (360, 4))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=360)  # two columns are noise
    kernel, target_kernel = Gaussian(lengthscale="median", ard=True), Gaussian(lengthscale=1.0)
    train, test = slice(0, 160), slice(160, None)
    learned, median = (
        ConditionalMeanEmbedding(kernel, learn=word, target_kernel=target_kernel, random_state=0)
        .fit(X[train], y[train])
        .score(X[test], y[test])
        for word in (learn, "median")
    )
    assert 1 - learned < 0.75 * (1 - median)


def test_same_seed_same_result_and_row_order_does_not_matter():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(700, 2))  # more rows than the first stage of learning takes
    y = X[:, 0] ** 2 + 0.3 * rng.normal(size=700)
    model = ConditionalMeanEmbedding(Gaussian(lengthscale="median"), learn=learning.Auto(max_iter=4), random_state=7)
    first = model.fit(X, y).expectation(X[:20])
    state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    np.testing.assert_array_equal(clone(model).fit(X, y).expectation(X[:20]), first)
    np.testing.assert_array_equal(clone(model).fit(X[::-1], y[::-1]).expectation(X[:20]), first)
    np.testing.assert_array_equal(np.random.get_state()[1], state[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), state[1])


def test_median_uses_the_targets_for_nothing(sine):
    X, y = sine
    model = ConditionalMeanEmbedding(Gaussian(lengthscale=9.0), learn="median").fit(X, y)
    D = np.abs(X - X[:, 0])[np.tril_indices(len(X), -1)]
    assert model.kernel_.get_params()["lengthscale"] == pytest.approx(np.median(D), rel=1e-3)
    assert model.ridge_ == 0.01


FEW_STEPS = [learning.Auto(max_iter=3), LeaveOneOut(0.0, optimizer=LBFGS(3)), Folds(optimizer=LBFGS(3)), "median", None]


@pytest.mark.parametrize("learn", FEW_STEPS, ids=["auto", "leave-one-out", "folds", "median", "None"])
def test_awkward_targets_are_learned_all_the_same(learn):
    X = np.random.default_rng(0).normal(size=(12, 2))
    fit = ConditionalMeanEmbedding(Gaussian(), learn=learn, random_state=0).fit
    assert np.isfinite(fit(X, np.full(12, 3.0)).expectation(X)).all()  # one value
    assert np.isfinite(fit(X, ["same"] * 12).expectation(X)).all()  # one class
    assert fit(X, [f"label {i}" for i in range(12)]).expectation(X).shape == (12, 12)  # a class for each row
    assert np.isfinite(fit(np.ones((12, 2)), np.arange(12.0)).expectation(X)).all()  # one point


# Quantiles and samples -----------------------------------------------------------------------------------------------


def test_quantile_of_equal_weights_is_that_of_numpy():
    y = np.random.default_rng(0).normal(size=37)
    model = ConditionalMeanEmbedding(Gaussian(), ridge=1e-2, learn=None).fit(np.zeros((37, 1)), y)
    levels = [0.0, 0.1, 0.25, 0.5, 0.77, 1.0]
    for method in ("clip", "rearrange"):
        found = model.quantile([[0.0]], levels, method=method)
        np.testing.assert_array_equal(found[0], np.quantile(y, levels, method="inverted_cdf"))
    np.testing.assert_array_equal(model.quantile([[1e9]], 0.5), [np.quantile(y, 0.5, method="inverted_cdf")])


def test_clipped_quantile_by_hand(sine):
    X, y = sine
    model = ConditionalMeanEmbedding(Gaussian(lengthscale=0.3), ridge=1e-4, learn=None).fit(X, y)
    w = np.maximum(model.weights(NEW[10:11])[0], 0)
    assert (model.weights(NEW[10:11]) < 0).any()
    order = np.argsort(y)
    below = np.cumsum(w[order]) / w.sum()
    for q in (0.05, 0.5, 0.9):
        assert model.quantile(NEW[10:11], q, method="clip")[0] == y[order][np.argmax(below >= q)]


@pytest.mark.parametrize("method", ["clip", "rearrange"])
def test_quantiles_of_a_heteroscedastic_model(method):
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 1, (800, 1))
    y = X[:, 0] + (0.1 + 0.5 * X[:, 0]) * rng.normal(size=800)
    model = ConditionalMeanEmbedding(Laplace(), ridge=1e-2, learn=None).fit(X, y)
    new = np.linspace(0.1, 0.9, 30)[:, None]
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    found = model.quantile(new, levels, method=method)
    truth = new + (0.1 + 0.5 * new) * norm.ppf(levels)
    assert found.shape == (30, 5)
    assert (np.diff(found, axis=1) >= 0).all()
    assert np.abs(found - truth).mean() < 0.1
    spread = found[:, 4] - found[:, 0]
    assert spread[-5:].mean() > 2 * spread[:5].mean()
    np.testing.assert_array_equal(model.quantile(new, 0.25, method=method), found[:, 1])


def test_sample_follows_the_embedding_and_beats_random_draws(sine):
    X, y = sine
    model = ConditionalMeanEmbedding(Gaussian(lengthscale=0.3), ridge=1e-3, learn=None, prior="marginal").fit(X, y)
    L, W = default_target_gram(y), model.weights(NEW)
    number = {value: i for i, value in enumerate(y)}

    def distance(w, picks):
        gap = w - np.bincount(picks, minlength=len(y)) / len(picks)
        return np.sqrt(gap @ L @ gap)

    sample = model.sample(NEW, 40)
    assert sample.shape == (25, 40)
    herded = [distance(w, [number[value] for value in row]) for w, row in zip(W, sample, strict=True)]
    rng, P = np.random.default_rng(0), np.maximum(W, 0)
    random = [distance(w, rng.choice(80, 40, p=p / p.sum())) for w, p in zip(W, P, strict=True)]
    assert np.mean(herded) < 0.5 * np.mean(random)
    np.testing.assert_array_equal(model.sample(NEW, 10), sample[:, :10])
    assert np.abs(sample.mean(1) - model.expectation(NEW))[3:-3].mean() < 0.05


def test_sample_first_pick_is_the_mode_of_the_embedding(sine):
    X, y = sine
    model = ConditionalMeanEmbedding(Gaussian(lengthscale=0.3), ridge=1e-3, learn=None, prior="marginal").fit(X, y)
    mode = (model.weights(NEW) @ default_target_gram(y)).argmax(1)
    np.testing.assert_array_equal(model.sample(NEW, 1)[:, 0], y[mode])


def test_samples_of_vectors_and_labels():
    X, targets = targets_of_all_kinds()
    vectors = ConditionalMeanEmbedding(Gaussian(), learn=None).fit(X, targets["vectors"]).sample(X[:4], 6)
    assert vectors.shape == (4, 6, 3)
    assert {tuple(row) for row in vectors.reshape(-1, 3)} <= {tuple(row) for row in targets["vectors"]}
    model = ConditionalMeanEmbedding(Gaussian(), ridge=1e-2, learn=None, prior="marginal").fit(X, targets["labels"])
    labels = model.sample(X[:4], 200)
    shares = (labels[:, :, None] == model.classes_).mean(1)
    probabilities = model.expectation(X[:4])
    usual = (probabilities >= 0).all(1)
    assert usual.any()
    np.testing.assert_allclose(shares[usual], probabilities[usual], atol=0.01)


# Kinds of targets and inputs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("Y", "classes"),
    [
        (["b", "a", "b", "a"], ["a", "b"]),
        (np.array([2, 1, 2, 1], dtype=object), [1, 2]),
        (np.array(["2", "10", "2", "10"]), ["10", "2"]),
        ([True, False, True, False], [False, True]),
        (pd.Series(["b", "a", "b", "a"]), ["a", "b"]),
        (pd.Series([2, 1, 2, 1], dtype="category"), [1, 2]),
        (pd.Series(["b", "a", "b", "a"], dtype="category"), ["a", "b"]),
        (pd.Series([True, False, True, False]), [False, True]),
    ],
)
def test_what_counts_as_labels(Y, classes):
    X = np.arange(4.0)[:, None]
    model = ConditionalMeanEmbedding(Gaussian(), learn=None).fit(X, Y)
    assert model.classes_.tolist() == classes
    assert isinstance(model.target_kernel_, KroneckerDelta)
    assert model.expectation(X).shape == (4, 2)
    assert model.expectation(X, lambda labels: labels == classes[0]).shape == (4,)
    assert model.sample(X, 3).shape == (4, 3)
    assert set(model.sample(X, 3).ravel().tolist()) <= set(classes)
    assert model.score(X, Y) > -1


@pytest.mark.parametrize(
    "Y",
    [
        [3, 1, 2, 5],
        np.array([3, 1, 2, 5], dtype=np.uint8),
        np.array([3, 1, 2, 5], dtype=np.float32),
        pd.Series([3, 1, 2, 5]),
        pd.Series([3, 1, 2, 5], dtype="Int64"),
        pd.DataFrame({"a": [3, 1, 2, 5], "b": [0.5, 1, 2, 3]}),
    ],
)
def test_what_counts_as_numbers(Y):
    X = np.arange(4.0)[:, None]
    model = ConditionalMeanEmbedding(Gaussian(), learn=None, ridge=1e-9).fit(X, Y)
    assert not hasattr(model, "classes_")
    assert model.expectation(X).shape == np.shape(Y)
    np.testing.assert_allclose(model.expectation(X), np.asarray(Y, dtype=float), atol=1e-5)


def test_a_second_fit_forgets_the_first():
    X = np.arange(4.0)[:, None]
    model = ConditionalMeanEmbedding(Gaussian(), learn=None).fit(X, list("abab"))
    model.fit(X, [1.0, 2.0, 3.0, 4.0])
    assert not hasattr(model, "classes_")
    assert model.expectation(X).shape == (4,)


def test_pandas_in_and_names_are_kept(sine):
    X, y = sine
    frame = pd.DataFrame({"x": X[:, 0], "u": X[:, 0] ** 2})
    model = ConditionalMeanEmbedding(learn=learning.Auto(max_iter=2), random_state=0).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == ["x", "u"]
    assert model.n_features_in_ == 2
    plain = clone(model).fit(frame.to_numpy(), y)
    np.testing.assert_array_equal(model.expectation(frame), plain.expectation(frame.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        model.expectation(frame[["u", "x"]])


def test_precomputed_kernel_equals_the_kernel(sine):
    X, y = sine
    kernel = Matern(lengthscale=0.5)
    given = ConditionalMeanEmbedding("precomputed", ridge=1e-2, learn=None).fit(kernel(X), y)
    model = ConditionalMeanEmbedding(kernel, ridge=1e-2, learn=None).fit(X, y)
    np.testing.assert_allclose(given.weights(kernel(NEW, X)), model.weights(NEW), atol=1e-10)
    learned = ConditionalMeanEmbedding("precomputed").fit(kernel(X), y)
    assert learned.objective_ <= learned.history_[0].objective


def test_strings_as_inputs_and_as_targets():
    words = ["abab", "abba", "baba", "xyxy", "yxyx", "xxyy"]
    lengths = [0.0, 0.1, 0.2, 1.0, 1.1, 1.2]
    model = ConditionalMeanEmbedding(Spectrum(k=2), ridge=1e-2, learn=None, prior="zero").fit(words, lengths)
    near, far = model.expectation(["abab", "xyxy"])
    assert near < 0.3
    assert far > 0.7
    # A kernel between labels: here most of them occur once.
    X = np.array(lengths)[:, None]
    model = ConditionalMeanEmbedding(Gaussian(), learn=LeaveOneOut(0.0), target_kernel=Spectrum(k=2), prior="zero").fit(
        X, words
    )
    expected = refit_loss(Gaussian()(X), Spectrum(k=2)(words), 0.01, np.arange(6))
    assert model.history_[0].objective == pytest.approx(expected, abs=1e-8)
    assert model.sample(X, 2).shape == (6, 2)


# The contract --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks():
    check_estimator(ConditionalMeanEmbedding(learn=learning.Auto(max_iter=2)))
    check_estimator(
        ConditionalMeanEmbedding(learn=Folds(optimizer=LBFGS(2)), prior="zero", solver=solvers.Landmarks(15))
    )


def test_clone_pickle_and_the_given_kernels_stay_untouched(sine):
    X, y = sine
    kernel, target_kernel = Gaussian(lengthscale=0.7), Gaussian(lengthscale="median")
    model = ConditionalMeanEmbedding(kernel, target_kernel=target_kernel, random_state=0).fit(X, y)
    assert kernel.get_params()["lengthscale"] == 0.7
    assert model.kernel_.get_params()["lengthscale"] != 0.7
    assert target_kernel.get_params()["lengthscale"] == "median"
    assert clone(model).get_params()["kernel__lengthscale"] == 0.7
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.expectation(NEW), model.expectation(NEW))
    np.testing.assert_array_equal(again.sample(NEW, 5), model.sample(NEW, 5))


def test_grid_search_over_the_kernel(sine):
    X, y = sine
    model = ConditionalMeanEmbedding(Gaussian(), ridge=1e-3, learn=None, target_kernel=Gaussian())
    search = GridSearchCV(model, {"kernel__lengthscale": [0.01, 0.4, 100.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel__lengthscale": 0.4}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": 0.0}, "'ridge' parameter"),
        ({"learn": "bayes"}, "'learn' parameter"),
        ({"solver": "fourier"}, "'solver' parameter"),
        ({"solver": solvers.Fourier(10)}, "must be 'auto', 'exact'"),
        ({"kernel": "rbf"}, "'kernel' parameter"),
        ({"prior": None}, "'prior' parameter"),
        ({"learn": Folds(1)}, "'n_folds' parameter"),
        ({"target_kernel": "delta"}, "'target_kernel' parameter"),
    ],
)
def test_wrong_settings_are_named(sine, settings, message):
    with pytest.raises(ValueError, match=message):
        ConditionalMeanEmbedding(**settings).fit(*sine)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.ones((1, 2)), [1.0], "1 sample"),
        (np.ones((3, 2)), [1.0, 2.0], "inconsistent numbers of samples"),
        (np.ones((3, 2)), [1.0, np.nan, 2.0], "contains NaN"),
        (np.array([[1.0], [np.nan], [2.0]]), [1.0, 2.0, 3.0], "contains NaN"),
        (np.ones((3, 2)), None, "requires y to be passed"),
        (np.ones((3, 2)), ["a", None, "b"], "contain None"),
        (np.ones((3, 2)), np.array(["a", 1, "b"], dtype=object), "of one type"),
        (np.ones((3, 2)), np.full((3, 2), "a"), "single column"),
        (np.ones((3, 2)), np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), "dtype datetime64"),
    ],
)
def test_wrong_data_is_said_in_a_sentence(X, Y, message):
    with pytest.raises(ValueError, match=message):
        ConditionalMeanEmbedding(Gaussian(), learn=None).fit(X, Y)


@pytest.mark.parametrize(
    ("target_kernel", "Y"), [(Gaussian(), ["a", "b", "a"]), (Spectrum(), [1.0, 2.0, 3.0])], ids=["labels", "numbers"]
)
def test_a_target_kernel_of_the_wrong_kind(target_kernel, Y):
    with pytest.raises(ValueError, match="does not fit the targets"):
        ConditionalMeanEmbedding(target_kernel=target_kernel).fit(np.arange(3.0)[:, None], Y)


def test_wrong_questions_are_answered_in_a_sentence(sine):
    X, y = sine
    model = ConditionalMeanEmbedding(Gaussian(), learn=None).fit(X, y)
    labels = ConditionalMeanEmbedding(Gaussian(), learn=None).fit(X, np.where(y > 0, "up", "down"))
    vectors = ConditionalMeanEmbedding(Gaussian(), learn=None).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="fitted on labels"):
        labels.quantile(NEW, 0.5)
    with pytest.raises(ValueError, match="fitted on vectors"):
        vectors.quantile(NEW, 0.5)
    for q in (1.5, [-0.1, 0.5], [[0.5]], np.nan):
        with pytest.raises(ValueError, match="'q' parameter"):
            model.quantile(NEW, q)
    with pytest.raises(ValueError, match="'method' parameter"):
        model.quantile(NEW, 0.5, method="sort")
    with pytest.raises(ValueError, match="each of the 80 training targets"):
        model.expectation(NEW, lambda y: y[:10])
    with pytest.raises(ValueError, match="each of the 80 training targets"):
        model.expectation(NEW, lambda y: y.mean())
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.expectation(NEW, lambda y: y * np.nan)
    with pytest.raises(ValueError, match="A mapping g is for labels"):
        model.expectation(NEW, {1.0: 2.0})
    with pytest.raises(ValueError, match=r"It has none for \['up'\]"):
        labels.expectation(NEW, {"down": 1.0})
    for size in (0, 2.5):
        with pytest.raises(ValueError, match="'size' parameter"):
            model.sample(NEW, size)
    with pytest.raises(ValueError, match="not of the kind"):
        model.score(X, np.where(y > 0, "up", "down"))
    with pytest.raises(ValueError, match="1 features"):
        model.expectation(np.ones((3, 2)))
    with pytest.raises(NotFittedError):
        ConditionalMeanEmbedding().expectation(NEW)


def test_a_function_cannot_change_the_kept_targets(sine):
    X, y = sine
    model = ConditionalMeanEmbedding(Gaussian(), learn=None).fit(X, y)
    before = model.expectation(NEW)
    model.expectation(NEW, lambda targets: targets.sort() or targets)
    np.testing.assert_array_equal(model.expectation(NEW), before)


def test_too_many_rows_are_refused_before_anything_is_allocated(sine, monkeypatch):
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1e4)
    with pytest.raises(MemoryBudgetError, match="80 distinct rows"):
        ConditionalMeanEmbedding().fit(*sine)


# Parts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(), Matern(nu=0.5), Linear(), Polynomial(degree=3)])
def test_low_rank_root(kernel):
    Y = np.random.default_rng(0).normal(size=(60, 1))
    L = torch.from_numpy(kernel(Y))
    R = low_rank_root(L, 1e-10)
    assert float((L - R @ R.T).abs().max()) <= 2e-10 * float(L.diagonal().max())
    ranks = {Gaussian: range(5, 25), Matern: range(55, 61), Linear: range(1, 2), Polynomial: range(4, 5)}
    assert R.shape[1] in ranks[type(kernel)]


def test_low_rank_root_of_what_has_none():
    assert low_rank_root(torch.zeros(3, 3, dtype=torch.float64), 1e-10).shape == (3, 1)
    for L in ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, np.nan], [np.nan, 1.0]]):
        with pytest.raises(NumericalError, match="not positive semidefinite"):
            low_rank_root(torch.tensor(L, dtype=torch.float64), 1e-10)


def test_kronecker_delta():
    X, Z = np.array([[1.0, 2.0], [1.0, 3.0]]), np.array([[1.0, 3.0], [1.0, 2.0], [2.0, 2.0]])
    np.testing.assert_array_equal(KroneckerDelta()(X, Z), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(KroneckerDelta().diag(X), [1, 1])
    assert float(KroneckerDelta().sup_diag()) == 1


def test_a_matrix_that_is_no_kernel_is_refused_with_advice(sine):
    X, y = sine[0], sine[1]
    D = np.abs(X - X.T)
    with pytest.raises(ValueError, match="If the values are distances"):
        ConditionalMeanEmbedding("precomputed", ridge=100.0, learn=None).fit(D, y)
    with pytest.raises(NumericalError, match="KreinSVC"):
        ConditionalMeanEmbedding("precomputed").fit(-D, y)
    D[1, 0] = D[0, 1] = np.nan
    with pytest.raises(ValueError, match="row 0 and column 1 is NaN"):
        ConditionalMeanEmbedding("precomputed").fit(D, y)


def test_the_prior_is_that_of_the_fit(sine):
    model = ConditionalMeanEmbedding(Gaussian(), learn=None, prior="marginal").fit(*sine)
    np.testing.assert_allclose(model.set_params(prior="zero").weights(NEW).sum(1), 1.0)
