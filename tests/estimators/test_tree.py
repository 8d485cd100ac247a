"""Estimators whose rows are in the leaves of trees: answers, files, rare classes, weights, groups, frames, numbers."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelwright import EmbeddingClassifier, EmbeddingRegressor, PredictionIntervals, PredictionSets, load, save
from kernelwright.distributions import LocationScale
from kernelwright.kernels import Gaussian, Spectrum
from kernelwright.learning import Auto
from kernelwright.solvers import Exact, Tree

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (1200, 3))
Y = np.digitize(np.sin(2 * X[:, 0]) + 0.5 * X[:, 1], [-0.4, 0.4])
NUMBERS = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * (1 + np.abs(X[:, 1])) * RNG.normal(size=len(X))
SOLVER = Tree(250, trees=2, landmarks=60)
FEW = Auto(max_iter=3)


@pytest.fixture(scope="module")
def classifier():
    return EmbeddingClassifier(learn=FEW, solver=SOLVER, random_state=0).fit(X[:900], Y[:900])


@pytest.fixture(scope="module")
def regressor():
    return EmbeddingRegressor(learn=FEW, solver=SOLVER, random_state=0).fit(X[:900], NUMBERS[:900])


def test_a_classifier_is_as_good_as_the_exact_one(classifier):
    exact = EmbeddingClassifier(learn=FEW, solver="exact", random_state=0).fit(X[:900], Y[:900])
    assert classifier.solver_ == "tree"
    assert classifier.n_landmarks_ == 900
    assert classifier.score(X[900:], Y[900:]) > exact.score(X[900:], Y[900:]) - 0.03
    p = classifier.predict_proba(X[900:])
    np.testing.assert_allclose(p.sum(1), 1.0)
    np.testing.assert_allclose(
        np.vstack([classifier.predict_proba(row[None]) for row in X[900:920]]), p[:20], atol=1e-9
    )
    loss = -np.log(p[np.arange(300), Y[900:]]).mean()
    q = exact.predict_proba(X[900:])
    assert loss < -np.log(q[np.arange(300), Y[900:]]).mean() + 0.05


def test_all_answers_of_a_classifier(classifier):
    new = X[900:910]
    assert (classifier.support(new) > 0.1).all()
    assert classifier.support(new + 100).max() < 1e-3
    far = classifier.predict_proba(new + 100)
    np.testing.assert_allclose(far, np.tile(classifier.class_prior_, (10, 1)), atol=0.05)
    assert classifier.entropy(new).shape == (10,)
    assert len(classifier.relevance().rows) == 3
    assert classifier.importance(X[900:], Y[900:], n_repeats=1)
    assert classifier.risk_bound("rademacher").total > 0
    assert classifier.risk_bound("holdout", X[900:], Y[900:]).total < 1
    with pytest.raises(ValueError, match="kernel was chosen with the rows"):
        classifier.risk_bound("rademacher-fixed-kernel")
    with pytest.raises(ValueError, match="only with solver='exact'"):
        classifier.embedding_weights(new)
    with pytest.raises(ValueError, match="solver='exact' or features"):
        classifier.without_each_row()
    with pytest.raises(ValueError, match="within its leaves only"):
        next(classifier.output_blocks(new))


def test_files_and_pickles_give_the_same_bits(classifier, regressor, tmp_path):
    for model, ask in ((classifier, "predict_proba"), (regressor, "predict")):
        save(model, tmp_path / "model.kw")
        for again in (load(tmp_path / "model.kw"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(getattr(again, ask)(X[900:]), getattr(model, ask)(X[900:]))


def test_a_class_that_most_leaves_lack(classifier):
    rare = np.where((X[:, 0] > 1.8) & (X[:, 1] > 1.0), 3, Y)
    how = {"kernel": Gaussian(0.5), "learn": None, "ridge": 1e-4, "random_state": 0}
    model = EmbeddingClassifier(solver=Tree(120, trees=2), **how).fit(X, rare)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.score(X, rare) > 0.9
    assert (model.predict(X)[rare == 3] == 3).mean() > 0.7
    many = np.arange(len(X)) % 150
    model = EmbeddingClassifier(solver=Tree(250), **how).fit(X, many)
    assert model.predict_proba(X[:5]).shape == (5, 150)


def test_prediction_sets_and_intervals_hold(classifier, regressor):
    simple = EmbeddingClassifier(Gaussian(0.5), learn=None, ridge=1e-4, solver=Tree(250))
    sets = PredictionSets(simple, coverage=0.9, method="split", random_state=0).fit(X[:900], Y[:900])
    covered = sets.predict_set(X[900:])[np.arange(300), Y[900:]]
    assert covered.mean() > 0.85
    low, high = regressor.interval(X[900:], 0.9).T
    assert 0.83 < ((low <= NUMBERS[900:]) & (high >= NUMBERS[900:])).mean() < 0.97
    numbers = EmbeddingRegressor(Gaussian(0.5), learn=None, ridge=1e-4, solver=Tree(250))
    intervals = PredictionIntervals(numbers, 0.9, method="split", random_state=0).fit(X[:900], NUMBERS[:900])
    low, high = intervals.interval(X[900:]).T
    assert ((low <= NUMBERS[900:]) & (high >= NUMBERS[900:])).mean() > 0.83


def test_a_regressor_is_as_good_as_the_exact_one(regressor):
    exact = EmbeddingRegressor(learn=FEW, solver="exact", random_state=0).fit(X[:900], NUMBERS[:900])
    assert regressor.score(X[900:], NUMBERS[900:]) > exact.score(X[900:], NUMBERS[900:]) - 0.02
    scores = [model.crps(X[900:], NUMBERS[900:]).mean() for model in (regressor, exact)]
    assert scores[0] < 1.1 * scores[1]
    assert regressor.left_out_band()[0].shape == (900, 2)
    assert regressor.risk_bound("leave-one-out").total > 0
    with pytest.raises(ValueError, match="needs an exact solution"):
        regressor.risk_bound("rademacher")


def test_one_leaf_is_the_exact_regressor():
    models = [
        EmbeddingRegressor(learn=FEW, solver=solver, random_state=0).fit(X[:300], NUMBERS[:300])
        for solver in (Tree(300, trees=2, landmarks=20), Exact())
    ]
    found, expected = (model.quantile(X[900:], [0.1, 0.9]) for model in models)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_several_targets_weights_and_groups():
    both = np.column_stack([NUMBERS, X[:, 2] ** 2])
    weights = RNG.uniform(0.5, 2.0, len(X))
    how = {"kernel": Gaussian(0.5), "learn": None, "ridge": 1e-4, "random_state": 0}
    model = EmbeddingRegressor(solver=SOLVER, distribution=LocationScale(transform="identity"), **how)
    assert model.fit(X, both, sample_weight=weights).predict(X[:4]).shape == (4, 2)
    groups = np.arange(len(X)) // 4
    for solver in (Tree(250), SOLVER):
        model = EmbeddingClassifier(solver=solver, **how)
        assert model.fit(X, Y, groups=groups, sample_weight=weights).score(X, Y) > 0.85


def test_only_relative_weights_matter_and_duplicates_count():
    how = {"kernel": Gaussian(0.5), "learn": None, "ridge": 1e-3, "solver": Tree(250), "random_state": 0}
    weights = RNG.uniform(0.5, 2.0, 600)
    plain, scaled = (EmbeddingClassifier(**how).fit(X[:600], Y[:600], c * weights) for c in (1.0, 9.0))
    np.testing.assert_allclose(plain.predict_proba(X[900:]), scaled.predict_proba(X[900:]), atol=1e-6)
    twice = np.vstack([X[:600], X[:600]]), np.append(Y[:600], Y[:600])
    model = EmbeddingClassifier(**how).fit(*twice)
    assert model.score(X[900:], Y[900:]) > 0.9


def test_frames_with_categories_gaps_and_constants():
    few = Auto(max_iter=1, polish=False)
    frame = pd.DataFrame(X, columns=list("abc")).assign(
        colour=np.array(["red", "blue", "green"])[RNG.integers(0, 3, len(X))], same=1.0
    )
    frame.loc[::7, "c"] = np.nan
    y = np.where(frame["colour"] == "red", Y, 2 - Y)
    model = EmbeddingClassifier(learn=few, solver=Tree(200), random_state=0).fit(frame[:900], y[:900])
    assert model.score(frame[900:], y[900:]) > 0.8


def test_strings_get_another_solver_with_a_warning():
    words = np.array(["ACGT", "CGTA", "GGTA", "ACCT"] * 20, dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(UserWarning, match="A tree can split"):
            model = EmbeddingClassifier(Spectrum(2), learn=None, solver=Tree(50)).fit(words, np.arange(80) % 2)
    assert model.solver_ in {"exact", "nystroem"}
