"""Prediction sets: against brute force, against MAPIE, and by counting."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mapie.classification import SplitConformalClassifier
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelwright import EmbeddingClassifier, KreinSVC, PredictionSets, datasets, learning
from kernelwright.embedding.support import KernelSupport
from kernelwright.estimators import prediction_sets
from kernelwright.features import Polynomial, RandomFourier
from kernelwright.kernels import Gaussian
from kernelwright.solvers import Landmarks
from kernelwright.uncertainty.conformal import Promise, scores_of
from kernelwright.uncertainty.set_calibration import calibrate_left_out

RNG = np.random.default_rng(0)
GIVEN = {"learn": None, "ridge": 0.02, "random_state": 0}


def blobs(n, seed=0):
    """Draw three overlapping classes, one of them rare."""
    centers = np.array([[0.0, 0.0], [1.5, 0.0], [0.5, 1.5]])
    return make_blobs([n // 2, n - n // 2 - n // 8, n // 8], centers=centers, cluster_std=0.8, random_state=seed)


@parametrize_with_checks(
    [
        PredictionSets(EmbeddingClassifier(learn=learning.Auto(max_iter=3)), n_folds=3, random_state=0),
        PredictionSets(LogisticRegression(), 0.8, method="split", random_state=0),
    ],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "rows calibrate, whatever they weigh, and copies are two rows",
        "check_sample_weight_equivalence_on_sparse_data": "the same",
    },
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_scores_are_in_the_order_of_one_minus_the_probability():
    p = torch.from_numpy(RNG.dirichlet([0.3, 0.3, 0.3], 50))
    torch.testing.assert_close(scores_of(p.log()), ((1 - p) / p).log(), rtol=1e-6, atol=1e-6)


def test_confident_rows_have_different_scores():
    log_p = torch.log_softmax(torch.tensor([[60.0, 0.0, 0.0], [70.0, 0.0, 1.0]], dtype=torch.float64), 1)
    scores = scores_of(log_p)[:, 0]
    assert scores.tolist() == pytest.approx([np.log(2) - 60, np.log(1 + np.e) - 70])


def leave_out_by_refitting(model, X, y, row):
    """Embed all other rows, with the kernel, absolute ridge, prior and map of all rows."""
    kept = np.arange(len(y)) != row
    K = model.kernel_(X[kept])
    A = K + model.ridge_ * len(y) * np.eye(len(K))
    V = np.linalg.solve(A, np.eye(len(model.classes_))[y[kept]] - model.prior_)
    return lambda new: model.prior_ + model.kernel_(new, X[kept]) @ V


def jackknife_plus(model, X, y, new, coverage, class_conditional=False):
    """Apply the published rule of the jackknife+, with one model per row."""
    p = lambda outputs: model.probability_map_(torch.from_numpy(outputs)).numpy()  # noqa: E731
    scores, new_scores = [], []
    for row in range(len(y)):
        without = leave_out_by_refitting(model, X, y, row)
        scores.append(1 - p(without(X[row : row + 1]))[0, y[row]])
        new_scores.append(1 - p(without(new)))
    sets = np.zeros((len(new), 3), dtype=bool)
    for k in range(3):
        rows = [i for i in range(len(y)) if y[i] == k or not class_conditional]
        below = sum(scores[i] < new_scores[i][:, k] for i in rows)
        sets[:, k] = below < coverage * (len(rows) + 1)
    return sets


@pytest.mark.parametrize("class_conditional", [False, True])
@pytest.mark.parametrize("probability", ["power", "clip"])
def test_leave_one_out_sets_equal_the_jackknife_by_refitting(class_conditional, probability):
    X, y = blobs(60)
    new = RNG.uniform(-1, 2, size=(40, 2))
    classifier = EmbeddingClassifier(Gaussian(0.8), probability=probability, **GIVEN)
    options = {"method": "leave-one-out", "class_conditional": class_conditional}
    sets = PredictionSets(classifier, 0.8, **options).fit(X, y)
    model = sets.classifier_
    model.embedding_ = replace(model.embedding_, support=KernelSupport(0.0))  # no row is far
    sets.calibration_ = calibrate_left_out(model, Promise(0.8, class_conditional))
    expected = jackknife_plus(model, X, y, new, 0.8, class_conditional)
    assert 0 < expected.mean() < 1
    np.testing.assert_array_equal(sets.predict_set(new), expected)


def test_explicit_features_leave_out_as_their_kernel_does():
    X, y = blobs(80)
    new = RNG.uniform(-1, 2, size=(30, 2))
    features = Polynomial(3).fit(X)
    classifier = EmbeddingClassifier(features=features, probability="clip", **GIVEN)
    explicit = PredictionSets(classifier, method="leave-one-out").fit(X, y)
    rows = explicit.calibration_.left_out
    for row in (0, 17, 79):
        kept = np.arange(80) != row
        Z = features(X)
        S = Z[kept].T @ Z[kept] + 0.02 * 80 * np.eye(Z.shape[1])
        W = np.linalg.solve(S, Z[kept].T @ np.eye(3)[y[kept]])
        values, outputs, _ = next(explicit.classifier_.output_blocks(new, 100))
        at = explicit.classifier_.embedding_.rows.place[row]
        without = outputs - (values @ rows.basis)[:, [at]] * rows.change[at]
        np.testing.assert_allclose(without, features(new) @ W, atol=1e-8)
        np.testing.assert_allclose(rows.outputs[at], features(X[[row]])[0] @ W, atol=1e-8)
    assert explicit.predict_set(new).any(1).mean() > 0.5


def test_equal_rows_are_left_out_one_at_a_time():
    X, y = blobs(40)
    classifier = EmbeddingClassifier(Gaussian(0.8), **GIVEN)
    twice = PredictionSets(classifier, method="leave-one-out").fit(np.tile(X, (2, 1)), np.tile(y, 2))
    assert twice.n_calibration_ == 80
    model, rows = twice.classifier_, twice.calibration_.left_out
    everything, labels = np.tile(X, (2, 1)), np.tile(y, 2)
    place = model.embedding_.rows.place
    for row in (0, 5, 33):
        without = leave_out_by_refitting(model, everything, labels, row)(everything[row : row + 1])
        np.testing.assert_allclose(rows.outputs[place[row]], without[0], atol=1e-9)


@pytest.mark.parametrize("coverage", [0.7, 0.9, 0.95])
def test_split_sets_equal_those_of_mapie(coverage):
    X, y = blobs(400)
    X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
    model = EmbeddingClassifier(Gaussian(0.8), **GIVEN).fit(X_fit, y_fit)
    ours = PredictionSets(model, coverage, method="prefit").fit(X_rest[:100], y_rest[:100])
    theirs = SplitConformalClassifier(model, confidence_level=coverage, conformity_score="lac", prefit=True)
    theirs.conformalize(X_rest[:100], y_rest[:100])
    np.testing.assert_array_equal(ours.predict_set(X_rest[100:]), theirs.predict_set(X_rest[100:])[1][:, :, 0])


@pytest.mark.parametrize("conformity", ["aps", "raps", "top_k"])
def test_scores_of_mapie_are_at_hand(conformity):
    X, y = blobs(600)
    model = PredictionSets(LogisticRegression(), 0.9, conformity=conformity, random_state=0).fit(X, y)
    new, truth = blobs(400, seed=1)
    assert model.method_ == "split"
    assert model.predict_set(new)[np.arange(400), truth].mean() > 0.85


def draws(method, n_draws=60, **parameters):
    """Return coverage, coverage by class and set size, one number for each draw of training rows."""
    found = []
    for seed in range(n_draws):
        X, y = blobs(200, seed)
        new, truth = blobs(400, 1000 + seed)
        classifier = EmbeddingClassifier(Gaussian(0.8), **GIVEN)
        model = PredictionSets(classifier, 0.8, method=method, random_state=seed, **parameters).fit(X, y)
        sets = model.predict_set(new)
        hit = sets[np.arange(400), truth]
        found.append([hit.mean(), *(hit[truth == k].mean() for k in range(3)), sets.sum(1).mean()])
    return np.array(found)


METHODS = ("cross", "leave-one-out", "split")
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module")
def by_method():
    return {method: draws(method) for method in METHODS}


@each_method
def test_coverage_is_as_promised(by_method, method):
    coverage = by_method[method][:, 0]
    error = coverage.std() / np.sqrt(len(coverage))
    assert abs(coverage.mean() - 0.8) < 2 * error + 1 / 60  # a rank among 60 rows is a whole number


@pytest.mark.parametrize("method", ["cross", "leave-one-out"])
def test_sets_that_all_rows_calibrate_are_smaller(by_method, method):
    assert by_method[method][:, 4].mean() < by_method["split"][:, 4].mean()


@each_method
def test_class_conditional_coverage_holds_for_the_rare_class_too(by_method, method):
    conditional = draws(method, class_conditional=True)
    for k in range(3):
        error = conditional[:, 1 + k].std() / np.sqrt(len(conditional))
        assert conditional[:, 1 + k].mean() > 0.8 - 2 * error
    assert by_method[method][:, 3].mean() < 0.7  # which the marginal promise leaves out


@each_method
def test_by_class_is_class_conditional(method):
    X, y = blobs(100)
    classifier = EmbeddingClassifier(Gaussian(0.8), **GIVEN)
    found = [
        PredictionSets(classifier, 0.8, method=method, random_state=0, **how).fit(X, y).predict_set(X)
        for how in ({"by": "class"}, {"class_conditional": True}, {})
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_other_groups_of_coverage_are_refused():
    with pytest.raises(ValueError, match="'by' parameter"):
        PredictionSets(LogisticRegression(), by="age").fit(*blobs(40))


def test_too_few_rows_for_a_promise_give_all_classes():
    X, y = blobs(40)
    model = PredictionSets(EmbeddingClassifier(Gaussian(0.8), **GIVEN), 0.99).fit(X, y)
    assert model.predict_set(X).all()


def test_labels_and_names_are_those_of_the_classifier():
    X, y = load_iris(return_X_y=True, as_frame=True)
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    model = PredictionSets(EmbeddingClassifier(learn=learning.Auto(max_iter=3))).fit(X, words)
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    assert list(model.feature_names_in_) == list(X.columns)
    assert set(model.predict(X)) <= set(words)
    np.testing.assert_array_equal(model.predict_proba(X), model.classifier_.predict_proba(X))


def test_the_method_is_chosen_by_size_and_classifier(monkeypatch):
    X, y = blobs(100)
    assert PredictionSets(LogisticRegression()).fit(X, y).method_ == "split"
    landmarks = EmbeddingClassifier(Gaussian(0.8), solver=Landmarks(20), **GIVEN)
    fourier = EmbeddingClassifier(features=RandomFourier(30), **GIVEN)
    for classifier in (landmarks, fourier):
        assert PredictionSets(classifier).fit(X, y).method_ == "cross"
    monkeypatch.setattr(prediction_sets, "CROSS_UP_TO", 50)
    assert PredictionSets(landmarks).fit(X, y).method_ == "split"
    assert PredictionSets(fourier).fit(X, y).method_ == "leave-one-out"
    with pytest.raises(ValueError, match=r"method='leave-one-out' needs .* use method='cross' or 'split'"):
        PredictionSets(LogisticRegression(), method="leave-one-out").fit(X, y)
    exact = EmbeddingClassifier("precomputed", **GIVEN)
    assert PredictionSets(exact).fit(np.asarray(Gaussian(0.8)(X)), y).method_ == "leave-one-out"


@pytest.mark.parametrize("class_conditional", [False, True])
@pytest.mark.parametrize("groups", [None, np.arange(60) // 3], ids=["rows", "groups"])
@pytest.mark.parametrize("classifier", [EmbeddingClassifier(Gaussian(0.8), **GIVEN), LogisticRegression()], ids=repr)
def test_cross_sets_equal_cv_plus_by_hand(class_conditional, groups, classifier):
    """The rule of CV+ as it is printed: a class is out if it is odder than too many rows by the models without them."""
    X, y = blobs(60)
    new = RNG.uniform(-1, 2, size=(40, 2))
    options = {"method": "cross", "n_folds": 4, "random_state": 3, "class_conditional": class_conditional}
    sets = PredictionSets(classifier, 0.8, **options).fit(X, y, groups=groups)
    unit = np.arange(60) if groups is None else groups
    part = (np.random.RandomState(3).permutation(unit.max() + 1) % 4)[unit]
    below, counts = np.zeros((40, 3)), np.zeros(3)
    for fold in range(4):
        own, others = part == fold, part != fold
        known = {} if groups is None or isinstance(classifier, LogisticRegression) else {"groups": groups[others]}
        model = clone(classifier).fit(X[others], y[others], **known)
        oddness, odd_new = 1 - model.predict_proba(X), 1 - model.predict_proba(new)
        for row in np.flatnonzero(own):
            for k in range(3):
                if y[row] == k or not class_conditional:
                    below[:, k] += oddness[row, y[row]] < odd_new[:, k] - 1e-12
                    counts[k] += 1
    np.testing.assert_array_equal(sets.predict_set(new), below < 0.8 * (counts + 1) - 1e-9)


def test_sets_of_rows_that_belong_together_are_honest():
    """Ten nearly equal rows of each of forty people: without groups the sets are far too small for new people."""
    rng = np.random.default_rng(0)
    people, labels = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    rows = np.repeat(np.arange(40), 10)
    X, y = people[rows] + 1e-3 * rng.normal(size=(400, 3)), labels[rows]
    new, truth = rng.normal(size=(500, 3)), rng.integers(0, 3, 500)
    classifier = EmbeddingClassifier(Gaussian(), random_state=0)
    covered = [
        PredictionSets(classifier, random_state=0).fit(X, y, groups=g).predict_set(new)[np.arange(500), truth].mean()
        for g in (None, rows)
    ]
    assert covered[0] < 0.75
    assert covered[1] > 0.85


def test_a_class_that_a_part_lacks_is_no_error():
    X, y = blobs(60)
    y[0] = 7
    model = PredictionSets(EmbeddingClassifier(Gaussian(0.8), **GIVEN), random_state=0).fit(X, y)
    assert model.predict_set(X).shape == (60, 4)


def test_a_class_with_one_row_is_fitted_and_not_lost():
    X, y = blobs(60)
    y[0] = 7
    for seed in range(5):
        model = PredictionSets(LogisticRegression(), method="split", random_state=seed).fit(X, y)
        assert 7 in model.classes_


def test_a_label_never_seen_counts_as_missed():
    X, y = blobs(100)
    model = EmbeddingClassifier(Gaussian(0.8), **GIVEN).fit(X[y < 2], y[y < 2])
    sets = PredictionSets(model, 0.9, method="prefit").fit(X, np.where(y == 2, 2, y))
    assert sets.predict_set(X).all()  # an eighth of the rows can never be covered: the others cannot make up for it


def test_scores_of_mapie_have_no_leave_one_out():
    with pytest.raises(ValueError, match="and marginal coverage"):
        PredictionSets(EmbeddingClassifier(), conformity="aps", class_conditional=True).fit(*blobs(40))


REAL = ("banknote", "segment", "yeast", "australian", "digits", "wdbc")


def on_real_data(name, method, seeds=3):
    """Return the mean coverage on new rows, and its standard error."""
    X, y = datasets.load(name)
    kept = np.isin(y, np.flatnonzero(np.bincount(y) >= 10))
    hits = []
    for seed in range(seeds):
        X_fit, X_new, y_fit, y_new = train_test_split(X[kept], y[kept], train_size=300, random_state=seed)
        classifier = EmbeddingClassifier(learn=learning.Auto(max_iter=3), random_state=seed)
        model = PredictionSets(classifier, 0.9, method=method, random_state=seed).fit(X_fit, y_fit)
        sets = model.predict_set(X_new[:500])
        column = np.searchsorted(model.classes_, y_new[:500])
        hits.append(sets[np.arange(len(sets)), column].mean())
    # A coverage depends on the calibration rows as much as on the rows that it is counted on.
    error = np.sqrt(0.09 / model.n_calibration_ + 0.09 / len(sets)) / np.sqrt(seeds)
    return np.mean(hits), error


@pytest.mark.slow
@pytest.mark.parametrize("method", ["leave-one-out", "split"])
def test_real_data_are_covered(data_folder, method):
    """The mean within two errors; single numbers of three draws may well be further off."""
    coverages, errors = np.array([on_real_data(name, method) for name in REAL]).T
    assert abs(coverages.mean() - 0.9) <= 2 * np.sqrt((errors**2).sum()) / len(REAL)
    assert (np.abs(coverages - 0.9) <= 4 * errors).all()


def test_a_label_never_seen_belongs_to_no_class():
    X, y = blobs(200)
    model = EmbeddingClassifier(Gaussian(0.8), **GIVEN).fit(X[y < 2], y[y < 2])
    known = PredictionSets(model, 0.9, method="prefit", class_conditional=True).fit(X[y < 2], y[y < 2])
    with_others = PredictionSets(model, 0.9, method="prefit", class_conditional=True).fit(X, y)
    np.testing.assert_array_equal(known.predict_set(X), with_others.predict_set(X))


def test_classifiers_without_probabilities_have_sets_too():
    X, y = blobs(600)
    new, truth = blobs(2000, seed=1)
    for classifier in (KreinSVC(), SVC()):
        sets = PredictionSets(classifier, random_state=0).fit(X, y)
        assert sets.method_ == "split"
        assert not hasattr(sets, "predict_proba")
        inside = sets.predict_set(new)
        assert 0.87 <= inside[np.arange(len(new)), truth].mean() <= 0.94
        assert inside.sum(1).mean() < 2.0
    two = y < 2
    assert PredictionSets(KreinSVC(), random_state=0).fit(X[two], y[two]).predict_set(new).shape == (2000, 2)
    pairs = SVC(decision_function_shape="ovo")
    many = make_blobs(200, centers=5, random_state=0)
    with pytest.raises(ValueError, match="a column for each class"):
        PredictionSets(pairs, random_state=0).fit(*many)


def test_labels_are_checked_whoever_has_fitted_the_classifier():
    X, y = load_iris(return_X_y=True)
    sets = PredictionSets(LogisticRegression(max_iter=500).fit(X, y), method="prefit")
    with pytest.raises(ValueError, match="requires y"):
        sets.fit(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        sets.fit(X, y[:-5])


def test_a_matrix_of_kernel_values_is_not_split():
    X, y = load_iris(return_X_y=True)
    K = np.asarray(Gaussian(1.0)(X))
    with pytest.raises(ValueError, match="cannot divide a matrix of kernel values"):
        PredictionSets(SVC(kernel="precomputed")).fit(K, y)
    some = np.arange(0, 150, 2)
    machine = SVC(kernel="precomputed").fit(K[np.ix_(some, some)], y[some])
    assert PredictionSets(machine, method="prefit").fit(K[1::2, some], y[1::2]).predict_set(K[:, some]).any()


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_rows_without_weight_calibrate_nothing(gone):
    X, y = blobs(80)
    classifier = EmbeddingClassifier(Gaussian(0.8), **GIVEN)
    zero = PredictionSets(classifier, random_state=0).fit(X, y, sample_weight=(y != gone).astype(float))
    without = PredictionSets(classifier, random_state=0).fit(X[y != gone], y[y != gone])
    np.testing.assert_array_equal(zero.predict_set(X), without.predict_set(X))
    assert zero.n_calibration_ == (y != gone).sum()
    by_class = clone(classifier).set_params(class_weight={k: float(k != gone) for k in range(3)})
    assert PredictionSets(by_class, random_state=0).fit(X, y).predict_set(X).shape == (80, 2)


def test_groups_that_are_classes_leave_nothing_to_fit():
    X, y = blobs(60)
    with pytest.raises(ValueError, match="needs at least two classes in the other rows"):
        PredictionSets(LogisticRegression(), method="cross").fit(X[y < 2], y[y < 2], groups=y[y < 2])


def test_left_out_outputs_of_single_groups_are_those_of_rows():
    X, y = blobs(60)
    classifier = EmbeddingClassifier(learn=learning.Auto(max_iter=3), random_state=0)
    alone, grouped = (
        PredictionSets(classifier, method="leave-one-out").fit(X, y, groups=groups) for groups in (None, np.arange(60))
    )
    torch.testing.assert_close(
        alone.calibration_.left_out.outputs, grouped.calibration_.left_out.outputs, rtol=1e-7, atol=1e-9
    )
    new = RNG.uniform(-1, 2, size=(30, 2))
    np.testing.assert_array_equal(alone.predict_set(new), grouped.predict_set(new))
    doubled = PredictionSets(classifier, method="leave-one-out")
    doubled.fit(np.tile(X, (2, 1)), np.tile(y, 2), groups=np.tile(np.arange(60), 2))
    assert doubled.n_calibration_ == 120
