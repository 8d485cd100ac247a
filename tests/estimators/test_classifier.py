import copy
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import torch
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification, make_moons
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data, parametrize_with_checks
from threadpoolctl import threadpool_info

import kernelwright as kw
from kernelwright import EmbeddingClassifier, learning, solvers
from kernelwright.embedding import fitted
from kernelwright.errors import CollapseWarning, MemoryBudgetError, NumericalError
from kernelwright.features import RandomFourier
from kernelwright.kernels import ConvexSum, Gaussian, Laplace, Linear, Matern, Polynomial, Spectrum, Tabular
from kernelwright.learning import LBFGS, Adam, Folds, Given, HeldOut, LeaveOneOut, Rademacher
from kernelwright.solvers import Exact, Herding, Landmarks

# A row of weight two is one observation, two equal rows are two: they differ wherever rows are left out.
NOT_COPIES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "calibration leaves out rows, and a weight is one row"
    for kind in ("dense", "sparse")
}

# Outputs of methods that have no prior (f of Eq. 5, all but "auto") do not sum to one: a probability is no function of
# the difference of the two, whatever the support.
NO_PRIOR = {"check_decision_proba_consistency": "outputs without a prior do not sum to one"}
WITH_OBJECTS = EmbeddingClassifier(Gaussian(), learn=learning.Auto("4e/n", max_iter=3), solver=Exact("double"))
NESTED = EmbeddingClassifier(
    Gaussian(), learn=Rademacher(optimizer=Adam(max_iter=5), batch_size=20), solver=Landmarks(30)
)


@parametrize_with_checks(
    [EmbeddingClassifier(), EmbeddingClassifier(Gaussian()), WITH_OBJECTS, NESTED],
    expected_failed_checks=lambda model: NOT_COPIES | (NO_PRIOR if isinstance(model.learn, Rademacher) else {}),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplace("median")], ids=["gaussian", "laplace"])
def test_where_nothing_is_left_out_a_weight_equals_copies(kernel):
    model = EmbeddingClassifier(kernel, learn=None, probability="clip")
    check_sample_weight_equivalence_on_dense_data("EmbeddingClassifier", model)


@pytest.fixture(scope="module")
def wine():
    return train_test_split(*load_wine(return_X_y=True), random_state=0, stratify=load_wine().target)


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(120, noise=0.25, random_state=0)
    return X, y


def given(**options):
    """Return an embedding with given hyperparameters, so that everything can be computed by hand."""
    return EmbeddingClassifier(Gaussian(lengthscale=0.7), ridge=0.02, learn=None, **options)


# The formulas of the paper ---------------------------------------------------------------------------------------


def by_hand(X, y, X_new, ridge=0.02, lengthscale=0.7):
    K = rbf_kernel(X, gamma=0.5 / lengthscale**2)
    V = np.linalg.solve(K + len(X) * ridge * np.eye(len(X)), np.eye(y.max() + 1)[y])
    return K, V, rbf_kernel(X_new, X, gamma=0.5 / lengthscale**2) @ V


def test_raw_outputs_are_equation_5(moons):
    X, y = moons
    model = given().fit(X, y)
    np.testing.assert_allclose(model.raw_outputs(X[:9] + 0.1), by_hand(X, y, X[:9] + 0.1)[2], atol=1e-12)


def test_complexity_and_bound_are_equation_11(moons):
    X, y = moons
    model = given().fit(X, y)
    K, V, outputs = by_hand(X, y, X)
    r = np.sqrt(np.trace(V.T @ K @ V))
    loss = -np.log(np.clip(outputs[np.arange(len(y)), y], 1e-15, 1)).mean()
    bound = model.risk_bound(beta=0.1)
    assert model.complexity_ == pytest.approx(r, rel=1e-10)
    assert list(bound.parts.values()) == pytest.approx([loss, 4 * np.e * r, np.sqrt(8 / len(y) * np.log(20))], rel=1e-9)
    assert bound.confidence == pytest.approx(0.9)
    assert bound.vacuous
    assert "Vacuous" in str(bound)


def test_embedding_weights_are_equation_2(moons):
    X, y = moons
    model = given().fit(X, y)
    weights = model.embedding_weights(X[:5] + 0.05)
    np.testing.assert_allclose(weights @ np.eye(2)[y], model.raw_outputs(X[:5] + 0.05), atol=1e-10)
    K = rbf_kernel(X, gamma=0.5 / 0.49)
    k = rbf_kernel(X[:5] + 0.05, X, gamma=0.5 / 0.49)
    np.testing.assert_allclose(weights, k @ np.linalg.inv(K + len(X) * 0.02 * np.eye(len(X))), atol=1e-9)


def test_clip_probabilities_are_equation_6_and_keep_the_argmax(moons):
    X, y = moons
    model = given(probability="clip").fit(X, y)
    outputs = np.maximum(model.raw_outputs(X), 0)
    np.testing.assert_allclose(model.predict_proba(X), outputs / outputs.sum(1, keepdims=True), atol=1e-12)


def test_entropies_are_equations_33_and_37(moons):
    X, y = moons
    model = given().fit(X, y)
    f = model.raw_outputs(X)
    u = np.where(f > 0, -np.log(np.where(f > 0, f, 1)), 0)
    weights = model.embedding_weights(X)
    expected = [(weights[i] * u[i][y]).sum() for i in range(len(X))]  # the sum over training rows of (37)
    np.testing.assert_allclose(model.entropy(X), expected, atol=1e-9)
    p = np.maximum(f, 0) / np.maximum(f, 0).sum(1, keepdims=True)
    np.testing.assert_allclose(model.entropy(X, method="clip"), -np.where(p > 0, p * np.log(p + (p == 0)), 0).sum(1))
    assert model.entropy(X, clip=True).min() >= 0
    with pytest.raises(ValueError, match="'embedding' or 'clip'"):
        model.entropy(X, method="shannon")


# Every way to learn ----------------------------------------------------------------------------------------------

WAYS = [
    "auto",
    "rademacher",
    "held-out",
    "leave-one-out",
    "folds",
    "regularised-folds",
    "cross-validation",
    "median",
    None,
]


@pytest.mark.parametrize("learn", WAYS)
def test_every_way_to_learn_beats_the_prior(moons, learn):
    X, y = moons
    model = EmbeddingClassifier(Gaussian(lengthscale="median", ard=True), learn=learn, random_state=0).fit(
        X[:90], y[:90]
    )
    assert model.score(X[90:], y[90:]) > 0.8
    assert log_loss(y[90:], model.predict_proba(X[90:])) < 0.5
    assert np.isfinite(model.ridge_)
    assert len(model.history_) == (0 if learn in ("median", None) else model.n_iter_)


def test_the_training_loss_alone_overfits(moons):
    X, y = moons
    model = EmbeddingClassifier(Gaussian(), learn="empirical-risk").fit(X[:90], y[:90])
    assert model.score(X[:90], y[:90]) == 1.0
    assert model.objective_ < 1e-3
    assert model.complexity_ > EmbeddingClassifier(Gaussian(), learn="rademacher").fit(X[:90], y[:90]).complexity_


@pytest.mark.parametrize(
    "kernel",
    [None, Gaussian(), Laplace(ard=True), Matern(nu=2.5), Linear() + 1.0, 0.5 * Gaussian() + Laplace(2.0) * Matern()],
    ids=repr,
)
def test_every_kernel_can_be_learned(wine, kernel):
    X_train, X_test, y_train, y_test = wine
    scale = "auto" if kernel is None else "standard"
    model = EmbeddingClassifier(kernel, scale=scale).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.9


def test_the_default_is_better_than_logistic_regression_on_a_nonlinear_problem():
    X, y = make_moons(400, noise=0.2, random_state=1)
    model, rival = EmbeddingClassifier().fit(X[:200], y[:200]), LogisticRegression().fit(X[:200], y[:200])
    assert log_loss(y[200:], model.predict_proba(X[200:])) < 0.7 * log_loss(y[200:], rival.predict_proba(X[200:]))


@pytest.mark.parametrize("order", ["random", "sequential"])
def test_mini_batches_learn_too(wine, order):
    X_train, X_test, y_train, y_test = wine
    learn = Rademacher(batch_size=40, optimizer=Adam(max_iter=60, batch_order=order))
    model = EmbeddingClassifier(Gaussian(lengthscale="median"), learn=learn, scale="unit", random_state=0)
    model.fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.9
    assert model.n_iter_ == 60


def test_adam_stops_when_it_no_longer_gains(moons):
    learn = Rademacher(optimizer=Adam(max_iter=400, patience=10, tol=1e-3))
    patient = EmbeddingClassifier(Gaussian(), learn=learn).fit(*moons)
    assert 10 < patient.n_iter_ < 400


def test_the_printed_complexity_weight_collapses_and_warns(moons):
    X, y = moons
    with pytest.warns(CollapseWarning, match="overall frequencies"):
        model = EmbeddingClassifier(Gaussian(), learn=Rademacher("4e")).fit(X, y)
    assert np.ptp(model.raw_outputs(X), axis=0).max() < 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        EmbeddingClassifier(Gaussian(), learn=Rademacher("4e/n")).fit(X, y)


def test_the_optimiser_never_ends_worse_than_it_started(moons):
    X, y = moons
    for learn in (Rademacher, LeaveOneOut, HeldOut):
        model = EmbeddingClassifier(Gaussian(), learn=learn(optimizer=LBFGS(8))).fit(X, y)
        assert model.objective_ <= model.history_[0].objective


# Kinds of input --------------------------------------------------------------------------------------------------


def test_precomputed_equals_the_kernel_itself(moons):
    X, y = moons
    kernel = Gaussian(lengthscale=0.7)
    model = EmbeddingClassifier("precomputed", ridge=0.02, learn=None).fit(kernel(X), y)
    reference = given().fit(X, y)
    np.testing.assert_allclose(model.raw_outputs(kernel(X[:7], X)), reference.raw_outputs(X[:7]), atol=1e-10)
    learned = EmbeddingClassifier("precomputed", learn="leave-one-out").fit(kernel(X), y)
    assert learned.ridge_ != 0.01
    assert cross_val_score(EmbeddingClassifier("precomputed"), kernel(X), y, cv=3).mean() > 0.8


def test_strings(moons):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    strings = ["".join(rng.choice(list("ACGT"), 20)) + ("TATAAT" if label else "GGCCGG") for label in y]
    model = EmbeddingClassifier(Spectrum(k=3) + Spectrum(k=4)).fit(strings[:40], y[:40])
    assert model.score(strings[40:], y[40:]) > 0.9
    assert not hasattr(model, "n_features_in_")


def test_dna_with_a_learned_mix_of_substring_lengths(data_folder):
    X, y = kw.datasets.load("promoters")
    kernel = ConvexSum([Spectrum(k) for k in (1, 2, 3, 4, 5)])
    model = EmbeddingClassifier(kernel, learn="leave-one-out")
    assert cross_val_score(model, X, y, cv=5).mean() > 0.8


def test_data_frames_keep_their_names_and_labels(wine):
    X_train, X_test, y_train, _ = wine
    names = load_wine().feature_names
    labels = np.array(["red", "white", "rose"])[y_train]
    model = EmbeddingClassifier().fit(pd.DataFrame(X_train, columns=names), labels)
    assert list(model.feature_names_in_) == names
    assert set(model.predict(pd.DataFrame(X_test, columns=names))) <= {"red", "white", "rose"}
    same = EmbeddingClassifier().fit(pl.DataFrame(X_train, schema=names), pl.Series(labels))
    assert list(same.feature_names_in_) == names
    np.testing.assert_array_equal(
        same.predict_proba(pl.DataFrame(X_test, schema=names)), model.predict_proba(pd.DataFrame(X_test, columns=names))
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X_test, columns=names[::-1]))


@pytest.mark.parametrize(
    "labels", [np.array([False, True]), np.array(["no", "yes"]), np.array([-7, 3]), np.array([0.0, 1.0])]
)
def test_labels_of_any_type(moons, labels):
    X, y = moons
    model = EmbeddingClassifier().fit(X, labels[y])
    np.testing.assert_array_equal(model.classes_, np.sort(labels))
    assert model.predict(X).dtype == labels.dtype
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(1)])


def test_hundreds_of_classes():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(150, 5)) * 4
    y = np.repeat(np.arange(150), 4)
    X = centres[y] + 0.05 * rng.normal(size=(600, 5))
    model = EmbeddingClassifier(learn=learning.Auto(max_iter=5)).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.95
    np.testing.assert_allclose(model.predict_proba(X[:20]).sum(1), 1)


# Weights ---------------------------------------------------------------------------------------------------------


WEIGHABLE = {
    "auto": {},
    "rademacher": {"kernel": Gaussian(ard=True), "learn": Rademacher(optimizer=LBFGS(10))},
    "leave-one-out": {"kernel": Gaussian(ard=True), "learn": LeaveOneOut(optimizer=LBFGS(10))},
    "folds": {"kernel": Gaussian(ard=True), "learn": Folds(optimizer=LBFGS(10))},
    "held-out": {"kernel": Gaussian(ard=True), "learn": HeldOut(optimizer=LBFGS(10))},
    "cross-validation": {"kernel": Gaussian(), "learn": "cross-validation"},
    "as given": {"kernel": Gaussian(), "learn": None},
    "features": {"features": RandomFourier(60), "learn": LeaveOneOut(optimizer=LBFGS(10))},
    "features by folds": {"features": RandomFourier(60), "learn": Folds(optimizer=LBFGS(10))},
    "landmarks": {"solver": Landmarks(30)},
    "herding": {"solver": Herding(40)},
}
weighable = pytest.mark.parametrize("way", list(WEIGHABLE))


# Landmarks hold out rows or groups that are drawn in different ways.
@pytest.mark.parametrize("way", [way for way in WEIGHABLE if way != "landmarks"])
def test_copies_of_a_row_in_one_group_are_one_row_of_their_weight(moons, way):
    X, y = moons
    w = np.random.default_rng(1).integers(0, 3, len(y))
    model = EmbeddingClassifier(random_state=0, **WEIGHABLE[way])
    weighted = clone(model).fit(X, y, sample_weight=w)
    copies, rows = (np.repeat(X, w, axis=0), np.repeat(y, w)), np.repeat(np.arange(len(y)), w)
    repeated = clone(model).fit(*copies, groups=rows)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    assert weighted.ridge_ == pytest.approx(repeated.ridge_, rel=1e-5)


@weighable
@pytest.mark.parametrize("factor", [1.1, 2.0, 1e-3, 1e300])
def test_a_factor_on_all_weights_changes_nothing(moons, way, factor):
    X, y = moons
    w = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    first, second = (
        EmbeddingClassifier(random_state=0, **WEIGHABLE[way]).fit(X, y, sample_weight=c * w) for c in (1.0, factor)
    )
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-8)
    equal, plain = (
        EmbeddingClassifier(random_state=0, **WEIGHABLE[way]).fit(X, y, sample_weight=c)
        for c in (np.full(len(y), factor), None)
    )
    np.testing.assert_allclose(equal.predict_proba(X), plain.predict_proba(X), atol=1e-8)


def test_balanced_classes_do_not_overfit():
    """The rare class has weights far above one: a part of a row must not stay when the row is left out."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1300, 4)), (rng.random(1300) < 0.1).astype(int)
    X[:, 0] += 1.5 * y
    balanced = EmbeddingClassifier(class_weight="balanced", random_state=0).fit(X[:300], y[:300])
    rival = LogisticRegression(class_weight="balanced").fit(X[:300], y[:300])
    score = [balanced_accuracy_score(y[300:], model.predict(X[300:])) for model in (balanced, rival)]
    assert score[0] > score[1] - 0.05
    assert balanced.risk_bound("leave-one-out", loss="error").total > 0.1


def test_rows_that_occur_twice_are_two_observations():
    """In a table of categories that is how frequencies are learned."""
    rng = np.random.default_rng(0)
    X, p = rng.integers(0, 2, (400, 2)).astype(float), np.array([[0.1, 0.6], [0.7, 0.4]])
    truth = p[X[:, 0].astype(int), X[:, 1].astype(int)]
    y = (rng.random(400) < truth).astype(int)
    model = EmbeddingClassifier(random_state=0).fit(X, y)
    assert np.abs(model.predict_proba(X)[:, 1] - truth).mean() < 0.08


def test_groups_that_give_the_answer_away_are_left_out(moons):
    """Ten nearly equal rows a person, whose labels say nothing of others: with groups nothing is found."""
    rng = np.random.default_rng(0)
    people, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    rows = np.repeat(np.arange(40), 10)
    X = people[rows] + 1e-3 * rng.normal(size=(400, 3))
    fooled, grouped = EmbeddingClassifier(random_state=0), EmbeddingClassifier(random_state=0)
    fooled.fit(X, y[rows]), grouped.fit(X, y[rows], groups=rows)
    assert fooled.risk_bound("leave-one-out", loss="error").total < 0.05
    assert grouped.risk_bound("leave-one-out", loss="error").total > 0.3
    new, new_y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    losses = [log_loss(new_y, model.predict_proba(new)) for model in (grouped, fooled)]
    assert losses[0] < min(losses[1], np.log(2) + 0.01)


def test_groups_are_checked(moons):
    X, y = moons
    for groups, sentence in (
        ([1, 2], "a group for each of the 120 rows"),
        (np.zeros(120), "at least 2 different groups"),
        ([None, *range(119)], "1 missing values"),
        (np.array(["a", 1] * 60, dtype=object), "mixes numbers and text"),
    ):
        with pytest.raises((ValueError, TypeError), match=sentence):
            EmbeddingClassifier().fit(X, y, groups=groups)
    names = np.array([f"patient {i // 2}" for i in range(120)])
    shuffled = np.random.default_rng(0).permutation(60)[np.arange(120) // 2]
    first, second = (EmbeddingClassifier(random_state=0).fit(X, y, groups=g) for g in (names, shuffled))
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-7)


def test_metadata_routing_brings_weights_and_groups(moons):
    X, y = moons
    groups, w = np.arange(120) // 4, np.linspace(0.5, 2.0, 120)
    with sklearn.config_context(enable_metadata_routing=True):
        model = EmbeddingClassifier(Gaussian(), learn=None).set_fit_request(groups=True, sample_weight=True)
        model.set_score_request(sample_weight=False)
        scores = cross_val_score(model, X, y, cv=GroupKFold(3), params={"groups": groups, "sample_weight": w})
    expected = [
        EmbeddingClassifier(Gaussian(), learn=None).fit(X[a], y[a], w[a], groups[a]).score(X[b], y[b])
        for a, b in GroupKFold(3).split(X, y, groups)
    ]
    np.testing.assert_allclose(scores, expected)


def test_held_back_rows_are_whole_groups(moons):
    X, y = moons
    groups = np.arange(120) // 6
    model = EmbeddingClassifier(Gaussian(), learn=learning.Auto(kernel_share=0.5, holdout_share=0.3), random_state=0)
    model.fit(X, y, groups=groups)
    inside = model.embedding_.rows.given
    assert all(len(set(inside[groups == g])) == 1 for g in range(20))
    assert inside.sum() == 7 * 6


@pytest.mark.parametrize(
    ("class_weight", "sentence"),
    [
        ({0: -1.0, 1: 1.0}, r"class_weight\[0\] must be a number of at least 0 and finite.*Got -1.0"),
        ({0: np.nan, 1: 1.0}, r"class_weight\[0\].*Got nan"),
        ({0: 1.0, 1: np.inf}, r"class_weight\[1\].*Got inf"),
        ({0: 1.0, 1: "2"}, r"class_weight\[1\].*Got '2'"),
        ({0: None, 1: 1.0}, r"class_weight\[0\].*Got None"),
    ],
)
@pytest.mark.parametrize("estimator", [EmbeddingClassifier, kw.EmbeddingNetworkClassifier, kw.KreinSVC])
def test_class_weights_that_are_none_are_refused_by_name(moons, class_weight, sentence, estimator):
    with pytest.raises(ValueError, match=sentence):
        estimator(class_weight=class_weight).fit(*moons)


def test_probabilities_of_rows_as_they_come_under_class_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (rng.random(3000) < 1 / (1 + np.exp(3 - 2 * X[:, 0]))).astype(int)
    model = EmbeddingClassifier(class_weight="balanced", random_state=0).fit(X[:800], y[:800])
    weighted, plain = model.predict_proba(X[800:]), model.predict_proba(X[800:], unweighted=True)
    assert weighted[:, 1].mean() > 0.3
    assert plain[:, 1].mean() == pytest.approx(y[800:].mean(), abs=0.03)
    by_hand = weighted / model.class_weight_
    np.testing.assert_allclose(plain, by_hand / by_hand.sum(1, keepdims=True), rtol=1e-10)
    same = EmbeddingClassifier(random_state=0).fit(X[:800], y[:800])
    np.testing.assert_allclose(same.predict_proba(X, unweighted=True), same.predict_proba(X), rtol=1e-12)
    assert log_loss(y[800:], plain) < log_loss(y[800:], same.predict_proba(X[800:])) + 0.02


ONE_STEP = [learning.EmpiricalRisk(optimizer=LBFGS(1)), None, Rademacher(optimizer=LBFGS(1))]


@pytest.mark.parametrize("learn", ONE_STEP, ids=["empirical-risk", "as given", "rademacher"])
def test_overfitting_is_said_for_every_way_to_learn(learn):
    """A length scale so short that no row says anything of another: each training row is told by itself alone."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 30)), np.arange(100) % 2
    model = EmbeddingClassifier(Gaussian(1e-3), learn=learn, ridge=1e-6)
    with pytest.warns(kw.OverfitWarning, match=r"accuracy is 100 % on training rows, but only \d+ %"):
        model.fit(X, y)


def test_nothing_is_said_of_overfitting_where_there_is_none(moons, wine):
    with warnings.catch_warnings():
        warnings.simplefilter("error", kw.OverfitWarning)
        warnings.simplefilter("error", kw.CalibrationWarning)
        EmbeddingClassifier(random_state=0).fit(*moons)
        EmbeddingClassifier(random_state=0).fit(wine[0], wine[2])
        rng = np.random.default_rng(0)
        EmbeddingClassifier(random_state=0).fit(rng.normal(size=(60, 3)), np.arange(60) % 2)  # nothing to learn


def test_probabilities_that_are_far_too_timid_are_told():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(kw.CalibrationWarning, match="probabilities are underconfident"):
        EmbeddingClassifier(Gaussian(3.0), learn=None, ridge=1.0, probability="clip").fit(X, y)


@pytest.mark.parametrize(("classes", "rows"), [(520, 2), (300, 3), (60, 5)])
def test_many_classes_of_few_rows_do_not_collapse(classes, rows):
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.normal(size=(classes, 20))
    y = np.repeat(np.arange(classes), rows)
    X, new = (centres[y] + rng.normal(size=(len(y), 20)) for _ in range(2))
    model = EmbeddingClassifier(random_state=0).fit(X, y)
    assert log_loss(y, model.predict_proba(new), labels=model.classes_) < 0.03


def test_labels_that_are_none_or_of_mixed_kinds_get_one_sentence(moons):
    X, y = moons
    for labels, sentence in (
        (np.where(y == 1, None, "a"), r"have \d+ missing values \(None or NaN"),
        (np.array(["a", 1] * 60, dtype=object), r"mix text \('a'\) and other values \(1\)"),
    ):
        for model in (EmbeddingClassifier(), kw.EmbeddingNetworkClassifier(), kw.KreinSVC(), kw.HyperKernelRidge()):
            with pytest.raises(ValueError, match=sentence):
                model.fit(X, labels)


@pytest.mark.parametrize("solver", [Landmarks(60), Herding(200)])
def test_few_groups_that_are_held_out_speak_for_all(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    y, groups = (X[:, 0] > 0).astype(int), np.arange(900) // 15
    model = EmbeddingClassifier(learn="median", random_state=0, solver=solver).fit(X, y, groups=groups)
    assert model.trust_ > 0.9
    assert model.score(X, y) > 0.95


def test_a_bound_from_held_out_groups_counts_groups():
    """The label of a group is a coin: no model can be right about half of them."""
    held = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(24), 12)
        X = rng.normal(size=(24, 2))[groups] + 0.01 * rng.normal(size=(288, 2))
        y = np.where(np.arange(24) < 2, np.arange(24), rng.integers(0, 2, 24))[groups]
        model = EmbeddingClassifier(Gaussian(), learn=Given(holdout_share=0.25), random_state=seed)
        bound = model.fit(X, y, groups=groups).risk_bound("holdout", loss="error")
        held.append(bound.total >= 0.5)
        assert "Each group counts once" in bound.conditions
    assert np.mean(held) >= 0.95


def test_rows_are_not_added_to_a_model_of_groups(moons):
    X, y = moons
    model = EmbeddingClassifier(features=RandomFourier(20), learn=None).fit(X, y, groups=np.arange(120) // 3)
    with pytest.raises(ValueError, match="cannot be added to a fit with 'groups'"):
        model.partial_fit(X, y)


def test_rows_that_were_merged_count_as_they_did_when_others_are_added(moons):
    X, y = moons
    twice = np.tile(X, (3, 1)), np.tile(y, 3)
    first, second = (EmbeddingClassifier(features=RandomFourier(20), learn=None, random_state=0) for _ in range(2))
    first.fit(*twice).partial_fit(X[:5], y[:5])
    second.partial_fit(*twice).partial_fit(X[:5], y[:5])
    assert len(first.embedding_.sums.sample) == 365
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-9)


def test_an_estimate_is_of_the_model_that_was_fitted(moons):
    model = EmbeddingClassifier(Gaussian(), learn=None, random_state=0).fit(*moons)
    model.set_params(kernel=Gaussian(50.0), ridge=10.0)
    assert list(model.risk_bound("leave-one-out", loss="error").parts) == ["leave-one-out error"]
    model.set_params(kernel=Gaussian(), ridge="auto")
    refitted = model.risk_bound("leave-one-out", loss="error")
    assert len(refitted.parts) > 1
    model.set_params(ridge=10.0)
    assert list(model.risk_bound("leave-one-out", loss="error").parts) == ["leave-one-out error"]
    few = EmbeddingClassifier(Gaussian(), learn=None).fit(*moons, groups=np.arange(120) % 3)
    assert "in 3 parts" in few.risk_bound("leave-one-out").conditions


def test_weights_of_classes_that_are_not_there_are_no_error_but_a_name_that_none_has_is(moons):
    X, y = moons
    model = EmbeddingClassifier(Gaussian(), learn=None, class_weight={1: 2.0, 7: 3.0}).fit(X, y)
    assert model.class_weight_[1] == pytest.approx(2.0 * model.class_weight_[0])
    with pytest.raises(ValueError, match="names none of the classes"):
        EmbeddingClassifier(class_weight={"yes": 2.0}).fit(X, y)


@pytest.mark.parametrize("weight", [5e-324, 1e-308, 1e308])
def test_weights_at_the_end_of_the_numbers_are_relative_too(moons, weight):
    X, y = moons
    plain = EmbeddingClassifier(Gaussian(), learn=None).fit(X, y)
    extreme = EmbeddingClassifier(Gaussian(), learn=None).fit(X, y, sample_weight=np.full(len(y), weight))
    np.testing.assert_allclose(extreme.predict_proba(X), plain.predict_proba(X), atol=1e-12)


def test_class_weight_multiplies_the_weights_of_rows(moons):
    X, y = moons
    X, y = np.r_[X[y == 0], X[y == 1][:10]], np.r_[np.zeros(60, int), np.ones(10, int)]
    balanced = EmbeddingClassifier(Gaussian(), learn=None, class_weight="balanced").fit(X, y)
    by_hand = EmbeddingClassifier(Gaussian(), learn=None).fit(X, y, sample_weight=np.where(y == 1, 70 / 20, 70 / 120))
    np.testing.assert_allclose(balanced.predict_proba(X), by_hand.predict_proba(X), atol=1e-12)
    plain = EmbeddingClassifier(Gaussian(), learn=None).fit(X, y)
    assert (balanced.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()
    as_dict = EmbeddingClassifier(Gaussian(), learn=None, class_weight={0: 70 / 120, 1: 70 / 20}).fit(X, y)
    np.testing.assert_allclose(as_dict.predict_proba(X), balanced.predict_proba(X), atol=1e-12)


# Living with scikit-learn ----------------------------------------------------------------------------------------


def test_pipeline_grid_search_over_a_length_scale_and_clone(moons):
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), EmbeddingClassifier(Gaussian(), learn=None))
    search = GridSearchCV(pipeline, {"embeddingclassifier__kernel__lengthscale": [1e-3, 0.5, 50.0]}, cv=3).fit(X, y)
    assert search.best_params_["embeddingclassifier__kernel__lengthscale"] == 0.5
    kernel = Gaussian(lengthscale=3.0)
    copied = clone(EmbeddingClassifier(kernel))
    assert copied.kernel is not kernel
    assert copied.kernel.get_params()["lengthscale"] == 3.0


def test_fit_leaves_the_given_kernel_alone(moons):
    kernel = Gaussian(lengthscale=3.0, ard=True)
    model = EmbeddingClassifier(kernel).fit(*moons)
    assert kernel.get_params() == {"lengthscale": 3.0, "ard": True}
    assert model.kernel_.get_params()["lengthscale"].shape == (2,)


def test_pickle_and_joblib_keep_the_predictions(moons, tmp_path):
    X, y = moons
    model = EmbeddingClassifier().fit(X, y)
    joblib.dump(model, tmp_path / "model")
    for copied in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model"), copy.deepcopy(model)):
        np.testing.assert_array_equal(copied.predict_proba(X), model.predict_proba(X))
    assert joblib.hash(Gaussian(2.0)) == joblib.hash(copy.deepcopy(Gaussian(2.0)))


def test_one_row_equals_the_same_row_in_a_batch_and_in_blocks(moons, monkeypatch):
    X, y = moons
    model = EmbeddingClassifier().fit(X, y)
    whole = model.predict_proba(X)
    np.testing.assert_allclose(np.vstack([model.predict_proba(x[None]) for x in X[:10]]), whole[:10], atol=1e-10)
    monkeypatch.setattr(fitted, "PREDICTED_ENTRIES", 1000)
    np.testing.assert_allclose(model.predict_proba(X), whole, atol=1e-10)


def test_warm_start_goes_on_from_the_last_fit(moons):
    X, y = moons
    model = EmbeddingClassifier(Gaussian(), learn=LeaveOneOut(optimizer=LBFGS(4)), warm_start=True).fit(X, y)
    first = model.objective_
    model.fit(X, y)
    assert model.history_[0].objective == pytest.approx(first, rel=1e-9)
    assert model.objective_ <= first


def test_the_same_twice_and_no_global_state_is_touched():
    X, y = make_classification(1500, 6, n_informative=4, random_state=0)
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    before = np.random.get_state()[1].copy(), torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()  # noqa: NPY002
    threads = [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]
    a, b = (
        EmbeddingClassifier(random_state=5, learn=learning.Auto(max_iter=3)).fit(X, y).predict_proba(X[:50])
        for _ in range(2)
    )
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])
    assert (torch.get_num_threads(), torch.get_default_dtype()) == before[2:]
    assert set(threads) <= {(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()}


def test_callback_and_lines(moons, capsys, caplog):
    steps = []
    EmbeddingClassifier(Gaussian(), callback=steps.append, verbose=2, learn=learning.Auto(max_iter=4)).fit(*moons)
    last = [step for step in steps if step.stage == steps[-1].stage]
    assert last[-1].objective <= last[0].objective
    assert set(steps[0].hyperparameters) == {"ridge", "kernel.lengthscale"}
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [record for record in caplog.records if "objective" in record.getMessage()]
    assert len(lines) == -(-len(steps) // 2)
    assert {record.name for record in caplog.records} == {"kernelwright"}


# Bad input -------------------------------------------------------------------------------------------------------


def test_a_class_of_weight_zero_is_not_there(moons):
    X, y = moons
    three = np.where(X[:, 0] > 1.5, 2, y)
    model = EmbeddingClassifier(learn=learning.Auto(max_iter=3), class_weight={0: 1.0, 1: 1.0, 2: 0.0}).fit(X, three)
    assert list(model.classes_) == [0, 1]


def test_far_from_all_data_the_answer_is_the_class_frequencies(wine):
    X_train, _, y_train, _ = wine
    model = EmbeddingClassifier(Gaussian(ard=True), scale="standard").fit(X_train, y_train)
    outputs = model.raw_outputs(np.full((1, 13), 1e6))
    np.testing.assert_allclose(outputs[0], model.prior_, atol=1e-9)
    np.testing.assert_allclose(model.prior_, np.bincount(y_train) / len(y_train), atol=0.06)
    assert outputs.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_any_scale_gives_the_same_answer(moons, scale):
    X, y = moons
    model = EmbeddingClassifier(learn=learning.Auto(max_iter=3))
    reference = model.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.fit(X * scale, y).predict_proba(X * scale), reference, atol=1e-6)


def test_constant_features_do_no_harm(moons):
    X, y = moons
    wide = np.column_stack([np.full(len(X), 7.0), X, np.zeros(len(X))])
    np.testing.assert_allclose(
        EmbeddingClassifier().fit(wide, y).predict_proba(wide),
        EmbeddingClassifier().fit(X, y).predict_proba(X),
        atol=1e-9,
    )
    with pytest.warns(UserWarning, match="constant"):
        model = EmbeddingClassifier().fit(np.ones((30, 2)), np.arange(30) % 3)
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 2))), 1 / 3, atol=1e-3)


def test_contradicting_duplicates_and_tiny_classes():
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    y = np.r_[np.tile([0, 1], 5), np.full(9, 1), 2]
    model = EmbeddingClassifier().fit(X, y)
    p = model.predict_proba(np.array([[0.0], [1.0]]))
    assert np.isfinite(p).all()
    assert p[0, :2] == pytest.approx([0.5, 0.5], abs=0.15)
    assert p[1].argmax() == 1
    EmbeddingClassifier().fit(np.array([[0.0], [1.0]]), [0, 1]).predict_proba([[0.5]])  # one row a class


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.inf], [1.0]], [0, 1], "infinity"),
        ([[0.0], [1.0]], [1, 1], "only one class"),
        ([[0.0]], [1], "only one class"),
        ([[0.0], [1.0]], [0, 1, 1], "inconsistent numbers of samples"),
        ([0.0, 1.0], [0, 1], "Expected 2D array"),
        ([[0.0], [1.0]], [0.5, 1.7], "Unknown label type"),
    ],
)
def test_bad_data_gets_a_clear_sentence(X, y, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingClassifier().fit(X, y)


def test_gaps_are_for_the_default_kernel():
    with pytest.raises(ValueError, match="NaN"):
        EmbeddingClassifier(Gaussian()).fit([[np.nan], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learn": "magic"}, "'learn' parameter of EmbeddingClassifier must be"),
        ({"learn": learning.Auto("5e")}, "'complexity_weight' parameter"),
        ({"ridge": 0.0}, "'ridge' parameter"),
        ({"kernel": "rbf"}, "'kernel' parameter"),
        ({"learn": Rademacher(batch_size=20, optimizer="lbfgs")}, r"use optimizer=Adam\(\)"),
        ({"scale": "unit"}, "pass a kernel"),
    ],
)
def test_bad_options_get_a_clear_sentence(moons, options, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingClassifier(**options).fit(*moons)


def test_a_wrong_number_of_length_scales_is_refused(moons):
    with pytest.raises(ValueError, match="3 length scales, but the points have 2 features"):
        EmbeddingClassifier(Gaussian([1.0, 2.0, 3.0])).fit(*moons)


def test_a_matrix_that_would_not_fit_is_refused_before_it_is_allocated(monkeypatch):
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 2.0**20)
    with pytest.raises(MemoryBudgetError, match=r"MiB are free\. Use solver='nystroem'"):
        EmbeddingClassifier().fit(np.random.default_rng(0).normal(size=(500, 2)), np.arange(500) % 2)


@pytest.mark.parametrize("learn", ["auto", None])
def test_distances_as_a_precomputed_kernel_are_refused_with_advice(moons, learn):
    X, y = moons
    with pytest.raises(ValueError, match="If the values are distances, convert them to similarities"):
        EmbeddingClassifier("precomputed", learn=learn, ridge=10.0).fit(cdist(X, X), y)


def test_an_indefinite_precomputed_kernel_names_the_machine_that_takes_it(moons):
    X, y = moons
    with pytest.raises(NumericalError, match="the kernel is indefinite: use KreinSVC"):
        EmbeddingClassifier("precomputed").fit(-cdist(X, X), y)


def test_asymmetric_and_rectangular_precomputed_kernels_are_refused():
    with pytest.raises(ValueError, match="square"):
        EmbeddingClassifier("precomputed").fit(np.ones((4, 3)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"symmetric\. Entries differ from their mirror by 1"):
        EmbeddingClassifier("precomputed").fit(np.triu(np.ones((4, 4))), [0, 1, 0, 1])


def test_public_names():
    assert set(kw.__all__) <= set(dir(kw))
    assert isinstance(EmbeddingClassifier().fit(*load_iris(return_X_y=True)).kernel_, Tabular)


# Precision and repairs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"kernel": Gaussian(), "learn": "rademacher"}], ids=["default", "bound"])
def test_single_precision_predicts_what_double_does(moons, options):
    X, y = moons
    single, double = (
        EmbeddingClassifier(**options, solver=solvers.Auto(precision), random_state=0).fit(X, y)
        for precision in ("single", "double")
    )
    assert (single.precision_, double.precision_) == ("single", "double")
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(single.raw_outputs(X), double.raw_outputs(X), atol=1e-5)
    assert single.complexity_ == pytest.approx(double.complexity_, rel=1e-5)


def test_where_single_precision_is_not_enough_double_is_used_and_said(moons):
    X, y = moons
    tiny = {"kernel": Gaussian(2.0), "learn": None, "ridge": 1e-12, "random_state": 0}
    with pytest.warns(kw.PrecisionWarning, match="double precision instead"):
        single = EmbeddingClassifier(**tiny, solver=solvers.Auto("single")).fit(X, y)
    double = EmbeddingClassifier(**tiny).fit(X, y)
    assert single.precision_ == "double"
    np.testing.assert_array_equal(single.predict_proba(X), double.predict_proba(X))


def test_a_repair_is_kept_in_the_model_and_in_its_file(tmp_path):
    X, y = np.repeat([[0.0], [1.0]], 2, axis=0), [0, 1, 0, 1]  # equal rows with different labels are not merged
    with pytest.warns(kw.NumericalRepairWarning) as caught:
        model = EmbeddingClassifier(Gaussian(), learn=None, ridge=1e-18, solver=solvers.Auto("double")).fit(X, y)
    assert model.jitter_ > 0
    assert f"{model.jitter_:.1e} was added to its diagonal" in str(caught[0].message)
    kw.save(model, tmp_path / "model.kw")
    loaded = kw.load(tmp_path / "model.kw")
    assert (loaded.jitter_, loaded.solver.precision, loaded.precision_) == (model.jitter_, "double", "double")


def test_a_model_that_needed_no_repair_says_so(moons):
    assert given().fit(*moons).jitter_ == 0.0


# Very large and very small numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-200, 1e-9, 1e9, 1e200])
def test_length_scales_at_the_median_follow_the_inputs_to_any_scale(moons, size):
    X, y = moons
    expected, found = (EmbeddingClassifier(Gaussian("median"), learn="median").fit(X * s, y) for s in (1.0, size))
    np.testing.assert_allclose(found.predict_proba(X * size), expected.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian("median"), Matern("median"), Matern(nu=2.5), Laplace("median")], ids=repr)
def test_an_outlier_too_large_to_be_squared_spoils_nothing_else(moons, kernel):
    X, y = moons
    far = X.copy()
    far[0] = 1e200
    model = EmbeddingClassifier(kernel, learn="leave-one-out", random_state=0).fit(far, y)
    assert model.score(X[1:], y[1:]) > 0.9


def test_inputs_too_large_to_be_standardised_are_refused_in_words(moons):
    X, y = moons
    with pytest.raises(ValueError, match="too large or too small"):
        EmbeddingClassifier(Gaussian(), scale="standard").fit(X * 1e200, y)


@pytest.mark.parametrize("kernel", [Linear(), Linear() + Gaussian()], ids=["linear", "sum"])
def test_a_new_row_whose_kernel_values_overflow_is_refused_in_words(moons, kernel):
    X, y = moons
    model = EmbeddingClassifier(kernel, learn=None).fit(X, y)
    with pytest.raises(kw.NumericalError, match=r"Row 1 .*overflow"):
        model.predict_proba([[0.0, 1.0], [1.7e308, -1.7e308]])


@pytest.mark.parametrize("kernel", [None, Gaussian("median", ard=True)])
def test_a_model_in_single_precision_predicts_in_it(kernel, monkeypatch):
    X, y = load_wine(return_X_y=True)
    double = EmbeddingClassifier(
        kernel, learn="median" if kernel else "auto", ridge=0.01, scale="standard" if kernel else "auto", random_state=0
    )
    single = clone(double).set_params(solver=solvers.Auto("single")).fit(X, y)
    double.fit(X, y)
    assert single.precision_ == "single"
    seen = []
    kind = type(single.kernel_.local)
    against = kind.against
    monkeypatch.setattr(kind, "against", lambda self, Z: seen.append(Z.dtype) or against(self, Z))
    answers = single.predict_proba(X)
    assert set(seen) == {torch.float32}
    assert answers.dtype == np.float64
    np.testing.assert_allclose(answers, double.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(single.embedding_weights(X[:5]), double.embedding_weights(X[:5]), atol=1e-3)


FEW_STEPS = [learning.Auto(max_iter=3), "median", "cross-validation", LeaveOneOut(optimizer=LBFGS(3))]


@pytest.mark.parametrize("learn", FEW_STEPS, ids=["auto", "median", "cross-validation", "leave-one-out"])
def test_a_part_that_is_frozen_stays_as_it_is(moons, learn):
    X, y = moons
    kernel = Gaussian([1.0, 100.0]).requires_grad_(False)
    model = EmbeddingClassifier(kernel, learn=learn, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.kernel_.get_params()["lengthscale"], [1.0, 100.0])


def test_a_warm_start_is_one_of_what_is_asked_for_now(moons):
    X, y = moons
    model = EmbeddingClassifier(Gaussian(), learn=LeaveOneOut(optimizer=LBFGS(4)), warm_start=True).fit(X, y)
    assert isinstance(model.set_params(kernel=Laplace()).fit(X, y).kernel_, Laplace)
    model.set_params(kernel=Gaussian(2.0), learn=None, ridge=5.0).fit(X, y)
    assert (model.ridge_, float(model.kernel_.lengthscale.detach())) == pytest.approx((5.0, 2.0))


def test_one_heavy_row_does_not_decide_the_kernel():
    """500 copies of one row among 4500 others: rows of weight one must count in the sample, whichever it is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4500, 3))
    y = (X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=4500) > 0).astype(int)
    X, y = np.vstack([X, np.zeros((500, 3))]), np.append(y, np.zeros(500, dtype=int))
    new = rng.normal(size=(1000, 3))
    truth = new[:, 0] * new[:, 1] + 0.5 * rng.normal(size=1000) > 0
    for seed in range(3):
        model = EmbeddingClassifier(Gaussian(1.0), solver=Landmarks(200), random_state=seed).fit(X, y)
        assert float(model.kernel_.lengthscale.detach().max()) < 50.0
        assert model.score(new, truth) > 0.68


def test_a_calibrator_without_an_answer_is_named(moons):
    X, y = moons
    model = EmbeddingClassifier(probability=IsotonicRegression(), learn=None, random_state=0).fit(X[::2], y[::2])
    with pytest.raises(ValueError, match="out_of_bounds='clip'"):
        model.predict_proba(X * 1.5)


def test_weights_that_were_passed_stay_as_they_were(moons):
    X, y = moons
    weights = np.full(len(y), 0.5)
    EmbeddingClassifier(learn=None, class_weight={0: 0.1, 1: 0.3}).fit(X, y, sample_weight=weights)
    assert set(weights) == {0.5}


def test_a_warm_start_after_a_fit_that_failed_begins_anew():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    model = EmbeddingClassifier(warm_start=True, random_state=0)
    with pytest.raises(ValueError, match="class"):
        model.fit(X, np.zeros(60))
    model.fit(X, y)
    other = EmbeddingClassifier(Gaussian(), learn="leave-one-out", warm_start=True).fit(X, y)
    other.set_params(kernel=Laplace())
    with pytest.raises(ValueError, match="class"):
        other.fit(X, np.zeros(60))
    assert isinstance(other.fit(X, y).kernel_, Laplace)


def test_a_warm_start_sees_all_numbers_of_a_kernel():
    X, y = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 2
    settings = {"learn": Rademacher(optimizer=LBFGS(1))}
    model = EmbeddingClassifier(Gaussian([1.0, 1, 1, 1, 1]), warm_start=True, **settings).fit(X, y)
    model.set_params(kernel=Gaussian([1.0, 1, 1, 1, 500.0])).fit(X, y)
    cold = EmbeddingClassifier(Gaussian([1.0, 1, 1, 1, 500.0]), **settings).fit(X, y)
    np.testing.assert_allclose(model.kernel_.lengthscale.detach(), cold.kernel_.lengthscale.detach())


def test_a_warm_start_bears_a_column_that_has_become_constant():
    X, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 2
    model = EmbeddingClassifier(warm_start=True, random_state=0).fit(X, y)
    X[:, 2] = 0.0
    cold = EmbeddingClassifier(random_state=0).fit(X, y)
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X), cold.predict_proba(X), atol=1e-10)


def test_weights_that_fall_beyond_all_measure_are_none():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    weights = np.exp(-11.9 * np.arange(60))  # the last is 1e-305
    model = EmbeddingClassifier(Gaussian(), learn=None, ridge=0.01).fit(X, y, sample_weight=weights)
    few = weights > 1e-150
    fewer = EmbeddingClassifier(Gaussian(), learn=None, ridge=0.01).fit(X[few], y[few], sample_weight=weights[few])
    np.testing.assert_allclose(model.predict_proba(X), fewer.predict_proba(X), atol=1e-10)


def test_a_row_that_overflows_is_called_by_its_number():
    X, y = np.random.default_rng(0).normal(size=(1000, 3)), np.arange(1000) % 2
    new = np.zeros((5000, 3))
    new[4000] = 1e200
    model = EmbeddingClassifier(Polynomial(3), learn=None, ridge=0.01).fit(X, y)
    with pytest.raises(NumericalError, match="Row 4000 is so large"):
        model.predict(new)


def test_landmarks_a_rare_class_and_a_calibrator():
    X, y = np.random.default_rng(0).normal(size=(1000, 2)), (np.arange(1000) < 15).astype(int)
    model = EmbeddingClassifier(
        Gaussian(1.0),
        learn=None,
        ridge=1e-3,
        solver=Landmarks(100),
        probability=LogisticRegression(),
        random_state=0,
    )
    assert model.fit(X, y).predict_proba(X).shape == (1000, 2)
