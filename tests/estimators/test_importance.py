import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance

import kernelwright as kw
from kernelwright import (
    EmbeddingClassifier,
    EmbeddingNetworkClassifier,
    EmbeddingRegressor,
    features,
    kernels,
    learning,
)
from kernelwright.uncertainty.importance import effects_of_columns

FAST = {"learn": None, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    """Return a table in which one column decides, and one is a date that says nothing."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"deciding": rng.normal(size=500), "helping": rng.normal(size=500)})
    frame["date"] = rng.permutation(500) + 19_000.0
    noisy = frame["deciding"] + 0.4 * frame["helping"] + 0.3 * rng.normal(size=500)
    return frame, noisy.to_numpy()


def by_scikit_learn(n, repeats, seed):
    """Return the permutations that ``permutation_importance`` makes of every column."""
    seed = np.random.RandomState(seed).randint(np.iinfo(np.int32).max + 1)
    random, shuffled, order, found = np.random.RandomState(seed), np.arange(n), np.arange(n), []
    for _ in range(repeats):
        random.shuffle(shuffled)
        order = order[shuffled]
        found.append(order)
    return np.stack(found)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_losses_are_those_of_scikit_learn_with_its_permutations(table, kind):
    X, noisy = table[0].iloc[:200], table[1][:200]
    y = noisy > 0 if kind == "classes" else noisy
    model = (EmbeddingClassifier if kind == "classes" else EmbeddingRegressor)(**FAST).fit(X[:100], y[:100])
    X, y = X[100:], y[100:]

    def score(fitted, rows, targets):
        return -fitted.losses_of_rows(rows, targets).mean()

    scoring = "neg_log_loss" if kind == "classes" else score
    expected = permutation_importance(model, X, y, scoring=scoring, n_repeats=3, random_state=5)
    effects = effects_of_columns(
        lambda rows, places: model.losses_of_rows(rows, y[places]),
        X,
        by_scikit_learn(100, 3, 5),
        columns=range(3),
        base=model.losses_of_rows(X, y),
    )
    assert effects.mean(0) == pytest.approx(expected.importances_mean, abs=1e-10)
    assert np.ptp(expected.importances_mean) > 0.1


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_column_of_noise_does_not_help_and_the_deciding_one_does(table, kind):
    X, noisy = table
    y = noisy > 0 if kind == "classes" else noisy
    model = (EmbeddingClassifier if kind == "classes" else EmbeddingRegressor)(random_state=0).fit(X[:200], y[:200])
    found = model.importance(X[200:], y[200:])
    rows = {row.name: row for row in found.rows}
    assert found.rows[0].name == "deciding"
    assert rows["date"].low <= 0 <= rows["date"].high
    assert rows["deciding"].low > 3 * rows["helping"].loss > 0
    assert rows["helping"].clear
    assert found.measure == ("log loss" if kind == "classes" else "CRPS")
    assert found.base == pytest.approx(model.losses_of_rows(X[200:], y[200:]).mean())
    assert sum(row.share for row in found.rows) == pytest.approx(1.0)


def test_copies_of_a_column_share_its_loss(table):
    X, y = table[0].to_numpy(), table[1] > 0
    alone = EmbeddingClassifier(random_state=0).fit(X[:200, :2], y[:200]).importance(X[200:, :2], y[200:])
    copied = X[:, [0, 0, 1]]
    both = EmbeddingClassifier(random_state=0).fit(copied[:200], y[:200]).importance(copied[200:], y[200:])
    single, pair = alone.rows[0], [row for row in both.rows if row.name in ("x0", "x1")]
    assert all(row.low > 0 and row.high < single.loss for row in pair)


def test_rows_that_fit_held_out_are_the_default_until_the_model_is_saved(table, tmp_path):
    X, y = table[0][:200], table[1][:200] > 0
    model = EmbeddingClassifier(kernels.Gaussian(2.0), learn=learning.Given(holdout_share=0.5), random_state=0)
    model.fit(X, y)
    with pytest.raises(ValueError, match="rows that were not fitted"):
        EmbeddingClassifier(**FAST).fit(X, y).importance()
    found = model.importance()
    assert found.n_rows == 200 - model.embedding_.rows.given.sum()
    apart = ~model.embedding_.rows.given
    assert found == model.importance(X[apart], y[apart])
    assert np.isnan(found.rows[0].share)  # one length scale for all columns
    kw.save(model, tmp_path / "model.kw")
    with pytest.raises(ValueError, match="A model file does not keep them"):
        kw.load(tmp_path / "model.kw").importance()


def test_columns_can_be_chosen_and_rows_sampled(table):
    X, y = table[0], table[1] > 0
    model = EmbeddingClassifier(**FAST).fit(X[:100], y[:100])
    found = model.importance(X[100:], y[100:], columns=["date", 0], max_rows=50, n_repeats=2)
    assert {row.name for row in found.rows} == {"date", "deciding"}
    assert (found.n_rows, found.n_repeats) == (50, 2)
    with pytest.raises(ValueError, match="no column 'dat'"):
        model.importance(X[100:], y[100:], columns=["dat"])


def test_several_targets_and_networks_have_an_importance(table):
    X, y = table[0].to_numpy(), table[1]
    both = EmbeddingRegressor(**FAST).fit(X[:100], np.c_[y, 1000 * y][:100])
    assert both.importance(X[100:200], np.c_[y, 1000 * y][100:200]).rows[0].name == "x0"
    training = kw.networks.Training(max_epochs=20)
    network = EmbeddingNetworkClassifier(hidden=(8,), training=training, random_state=0).fit(X[:200], y[:200] > 0)
    assert network.importance(X[200:], y[200:] > 0).rows[0].name == "x0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "both X and y"),
        ({"y": np.arange(20)}, "does not know the classes"),
        ({"y": np.zeros(3)}, "a row for each other"),
        ({"n_repeats": 0}, "n_repeats >= 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, message):
    X, y = load_iris(return_X_y=True)
    model = EmbeddingClassifier(**FAST).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.importance(**({"X": X[:20], "y": y[:20]} | change))


def test_a_kernel_matrix_has_no_columns():
    X, y = load_iris(return_X_y=True)
    K = X @ X.T
    model = EmbeddingClassifier("precomputed", **FAST).fit(K, y)
    with pytest.raises(ValueError, match="no columns to permute"):
        model.importance(K, y)


@pytest.mark.parametrize("estimator", [kw.EmbeddingClassifier, kw.EmbeddingRegressor])
def test_features_are_selected_that_tell_the_target_and_not_those_with_a_large_share(estimator):
    """A date that tells nothing has a large share of the kernel, and is not selected."""
    model = estimator(learn=learning.Auto(max_iter=10), random_state=0)
    with pytest.raises(AttributeError, match="not fitted"):
        model.feature_importances_  # noqa: B018
    for seed in range(3):
        random = np.random.default_rng(seed)
        days = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, 200), "D")
        X = pd.DataFrame({"day": days, "town": random.choice(["a", "b", "c"], 200), "x": random.normal(size=200)})
        y = 2.0 * (X["town"] == "a") + X["x"]
        y = y > 0.7 if estimator is kw.EmbeddingClassifier else y
        chosen = SelectFromModel(model).fit(X, y)
        assert chosen.get_feature_names_out().tolist() == ["town", "x"]
        found = chosen.estimator_.feature_importances_
        assert found.sum() == pytest.approx(1.0)
        assert found[0] < 0.1


def test_importances_of_features_are_changes_of_outputs():
    """Against plain evaluations of a fitted model at all pairs of rows, one column exchanged."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    model = kw.EmbeddingRegressor(kernels.Gaussian(1.5, ard=True), learn=None, random_state=0)
    model.fit(X, X[:, 0] + X[:, 1] ** 2)
    rows, changes = model.points_, []
    outputs = model.embedding_.outputs(rows)[0].numpy()
    for column in range(3):
        squares = []
        for other in rows:
            changed = rows.copy()
            changed[:, column] = other[column]
            squares.append(np.square(model.embedding_.outputs(changed)[0].numpy() - outputs).sum(1).mean())
        changes.append(np.mean(squares))
    expected = np.array(changes) / np.sum(changes)
    np.testing.assert_allclose(model.feature_importances_, expected, atol=0.1)  # one permutation of 60 rows


def test_explicit_features_have_their_share_of_the_kernel():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 2))
    fourier = features.RandomFourier(50, lengthscale=[1.0, 2.0], ard=True, seed=0)
    model = kw.EmbeddingClassifier(features=fourier, learn=None, random_state=0).fit(X, X[:, 0] > 0)
    shares = {row.name: row.share for row in model.relevance().rows}
    assert model.feature_importances_.tolist() == [shares["x0"], shares["x1"]]
