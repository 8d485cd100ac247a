"""Compressed models answer new rows as the whole ones do, within the tolerance."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_classification

import kernelwright as kw
from kernelwright import EmbeddingClassifier, EmbeddingRegressor
from kernelwright.inputs.scaling import TableViews
from kernelwright.solvers import Landmarks


@pytest.fixture(scope="module", params=["digits", "tissue"])
def task(request):
    X, y = {"digits": load_digits, "tissue": load_breast_cancer}[request.param](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    half = min(len(X) // 2, 400)
    return X[:half], y[:half], X[half:], y[half:]


@pytest.fixture(scope="module")
def models(task):
    X, y, *_ = task
    model = EmbeddingClassifier(random_state=0).fit(X, y)
    return model, model.compress()


def test_new_rows_get_about_the_same_answers(task, models):
    _, _, new, labels = task
    whole, small = models
    losses = [model.losses_of_rows(new, labels) for model in models]
    difference = losses[1] - losses[0]
    assert difference.mean() < 0.003 + 2 * difference.std() / len(difference) ** 0.5 + 0.002
    assert small.score(new, labels) > whole.score(new, labels) - 0.01
    assert np.abs(small.predict_proba(new) - whole.predict_proba(new)).mean() < 0.01


def test_the_record_says_what_was_done_and_the_model_itself_stays(task, models):
    X, y, new, _ = task
    whole, small = models
    record = small.compression_
    assert record.n_before == len(whole.points_) == len(X)
    assert record.n_points == len(small.points_) == small.n_landmarks_ < 0.6 * len(X)
    assert record.loss <= record.loss_before + record.tolerance == record.loss_before + 0.003
    assert record.measure == "log loss"
    assert not hasattr(whole, "compression_")
    np.testing.assert_array_equal(
        whole.predict_proba(new), EmbeddingClassifier(random_state=0).fit(X, y).predict_proba(new)
    )
    assert len(whole.compress(0.03).points_) <= record.n_points <= len(whole.compress(0.0).points_)


def test_a_file_is_small_and_answers_in_the_same_way(task, models, tmp_path):
    whole, small = models
    path = tmp_path / "small.kw"
    kw.save(small, path)
    again = kw.load(path)
    np.testing.assert_allclose(again.predict_proba(task[2]), small.predict_proba(task[2]), rtol=1e-12)
    assert again.compression_ == small.compression_
    assert path.stat().st_size < 200_000
    kw.save(whole, path)
    assert path.stat().st_size > 200_000


def test_one_row_equals_the_same_row_in_a_batch(task, models):
    new = task[2][:20]
    together = models[1].predict_proba(new)
    np.testing.assert_allclose([models[1].predict_proba(row[None])[0] for row in new], together, atol=1e-10)


def test_support_keeps_its_unit(task, models):
    new, small = task[2], models[1]
    assert np.mean(small.support(new) < 1) < 0.06
    assert small.support(new[:5] + 1e3).max() < 1e-3
    np.testing.assert_allclose(small.predict_proba(new[:1] + 1e6)[0], small.class_prior_, atol=1e-6)


def test_what_needs_training_rows_is_refused(task, models):
    _, _, new, labels = task
    for method in ("rademacher", "leave-one-out"):
        with pytest.raises(ValueError, match="A compressed model keeps no training rows"):
            models[1].risk_bound(method)
    assert models[1].risk_bound("holdout", new, labels, loss="error").total < 0.2
    with pytest.raises(ValueError, match="needs an exact embedding"):
        models[1].compress()
    with pytest.raises(ValueError, match="Leave-one-out models exist"):
        models[1].without_each_row()


def test_landmarks_and_negative_tolerances_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="needs an exact embedding"):
        EmbeddingClassifier(learn=None, solver=Landmarks(20)).fit(X, y).compress()
    with pytest.raises(ValueError, match="'tolerance' parameter of compress must not be negative"):
        EmbeddingClassifier(learn=None).fit(X, y).compress(-1.0)


def test_frames_with_categories_and_weights():
    X, labels = make_classification(400, 6, n_informative=4, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = np.where(X[:, 0] > 0, "red", "blue")
    frame.loc[::7, "b"] = np.nan
    model = EmbeddingClassifier(random_state=0).fit(frame[:300], labels[:300], sample_weight=1.0 + (labels[:300] == 1))
    small, new = model.compress(), frame[300:]
    assert small.compression_.n_points < 200
    losses = [each.losses_of_rows(new, labels[300:]).mean() for each in (model, small)]
    assert losses[1] < losses[0] + 0.03


@pytest.mark.parametrize("targets", [1, 2])
def test_numbers_keep_their_distributions(targets, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    if targets == 2:
        y = np.column_stack([y, 0.1 * y + X[:, 2]])
    model = EmbeddingRegressor(random_state=0).fit(X[:300], y[:300])
    small, new, truth = model.compress(), X[300:], y[300:]
    assert small.compression_.n_points < 200
    assert small.compression_.measure == "CRPS"
    crps = [np.mean(each.crps(new, truth), axis=0) for each in (model, small)]
    assert (crps[1] < 1.03 * crps[0]).all()
    low, high = np.moveaxis(small.interval(new), -1, 0)
    assert 0.82 < np.mean((low <= truth) & (truth <= high)) < 0.97
    kw.save(small, tmp_path / "small.kw")
    np.testing.assert_allclose(kw.load(tmp_path / "small.kw").predict(new), small.predict(new), rtol=1e-12)
    assert small.sample(new[:2], 3, random_state=0).shape == ((2, 3) if targets == 1 else (2, 2, 3))
    with pytest.raises(ValueError, match="A compressed model keeps no training rows"):
        small.risk_bound("leave-one-out")


def test_thinned_views_differ_by_less_than_allowed():
    X = np.random.default_rng(0).standard_t(3, size=(900, 3))
    views = TableViews().fit(X)
    allowed = np.array([0.2, 0.04, 0.0])
    thin = views.thinned(allowed)
    q, thinned = (each.transform(X)[:, 3:] for each in (views, thin))
    assert (np.abs(q - thinned).max(0) <= allowed + 1e-6).all()
    counts = [len(values) for values, _ in thin.knots_]
    assert counts[0] < counts[1] < counts[2] == 900
    assert len(views.knots_[0][0]) == 900


def test_a_target_without_noise_keeps_its_answers_and_the_loss_is_said():
    """Fewer knots of the ranks must not cost what the tolerance does not allow."""
    random = np.random.default_rng(3)
    points = random.normal(size=(700, 6))
    target = np.sin(2 * points[:, 0]) + points[:, 1] * points[:, 2]
    model = EmbeddingRegressor(random_state=0).fit(points[:400], target[:400])
    small = model.compress()
    before, after = (each.crps(points[400:], target[400:]).mean() for each in (model, small))
    said = small.compression_
    assert after < before * (said.loss / said.loss_before + 0.05)
    assert said.loss <= 1.01 * said.loss_before * (1 + 1e-9)
