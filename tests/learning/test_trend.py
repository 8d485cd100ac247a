"""Whether a linear trend pays."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeCV
from sklearn.metrics import log_loss

import kernelwright as kw
from kernelwright.embedding import TrainingSet, embed
from kernelwright.inputs.scaling import TableViews
from kernelwright.kernels import Tabular, WithTrend
from kernelwright.learning import Auto
from kernelwright.learning.trend import find_trend
from kernelwright.objectives.losses import BRIER, CalibratedLogLoss, LogSquaredLoss, half_log


def lines(n: int, seed: int, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(n, 3))
    return X, X @ [1.0, -2.0, 0.5] + noise * rng.normal(size=n)


def noise_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(size=n)


def training_set(X: np.ndarray, y: np.ndarray) -> TrainingSet:
    views = torch.from_numpy(TableViews().fit_transform(X))
    column = torch.from_numpy((y - y.mean()) / y.std())[:, None]
    return TrainingSet.of(views, column, strata=torch.zeros(len(y), dtype=torch.int64))


def found(X: np.ndarray, y: np.ndarray, loss=BRIER):
    data, kernel = training_set(X, y), Tabular()
    kernel.prepare_(data.points)
    return data, find_trend(kernel, 0.5 / len(data), data, loss, data)


def test_half_log_has_one_scale_for_all_losses_of_squares():
    data = training_set(*lines(50, 0))
    outputs = 0.7 * data.targets
    values = [half_log(loss, loss(outputs, data)[0]) for loss in (BRIER, LogSquaredLoss())]
    assert values[0] == pytest.approx(values[1])
    assert half_log(CalibratedLogLoss(), 0.5) == pytest.approx(0.5 * np.log(0.5))
    assert half_log(BRIER, float("nan")) == np.inf


@pytest.mark.parametrize("loss", [BRIER, LogSquaredLoss()])
def test_a_line_gets_a_trend_that_lowers_the_left_out_loss(loss):
    data, trend = found(*lines(120, 0), loss)
    kernel, ridge = trend
    with torch.no_grad():
        with_it, without = (
            float((embed(each.matrix(data.points), data, at).leave_one_out() - data.targets).square().mean())
            for each, at in ((kernel, ridge), (kernel.local, 0.5 / len(data)))
        )
    assert with_it < 0.3 * without


def test_noise_hardly_ever_gets_a_trend():
    assert sum(found(*noise_rows(60, seed))[1] is not None for seed in range(20)) <= 2


@pytest.mark.parametrize("n", [80, 250])
def test_a_heavy_tailed_line_is_predicted_almost_as_well_as_by_ridge_regression(n):
    ratios = []
    for seed in range(3):
        (X, y), (X_new, y_new) = lines(n, seed), lines(1000, 100 + seed)
        rival = RidgeCV(np.logspace(-3, 3, 13)).fit(X, y)
        model = kw.EmbeddingRegressor(random_state=0).fit(X, y)
        assert isinstance(model.kernel_, WithTrend)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kw.ExtrapolationWarning)
            ours = np.sqrt(np.mean((model.predict(X_new) - y_new) ** 2))
        ratios.append(ours / np.sqrt(np.mean((rival.predict(X_new) - y_new) ** 2)))
    assert np.median(ratios) < 1.3


def linear_classes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 50))
    return X, (X @ np.random.default_rng(99).normal(size=50) > 0).astype(int)


@pytest.mark.parametrize("solver", ["exact", kw.solvers.Landmarks(300)])
def test_linear_classes_get_a_trend_which_can_be_refused(solver):
    X, y = linear_classes(400, 0)
    kernels = [
        kw.EmbeddingClassifier(learn=Auto(trend=trend), solver=solver, random_state=0).fit(X, y).kernel_
        for trend in (True, False)
    ]
    assert [isinstance(kernel, WithTrend) for kernel in kernels] == [True, False]


@pytest.mark.slow
def test_a_trend_does_not_hurt_linear_classes_on_average():
    # Single draws go either way: over ten, accuracy rose by .3 points with a standard error of .17.
    losses = []
    for seed in range(5):
        (X, y), (X_new, y_new) = linear_classes(400, seed), linear_classes(2000, 100 + seed)
        models = (kw.EmbeddingClassifier(learn=Auto(trend=t), random_state=0).fit(X, y) for t in (True, False))
        losses.append([log_loss(y_new, model.predict_proba(X_new)) for model in models])
    with_it, without = np.mean(losses, 0)
    assert with_it < 1.02 * without


def test_support_does_not_see_the_trend_and_far_rows_warn():
    X, y = linear_classes(400, 0)
    model = kw.EmbeddingClassifier(random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = model.support(linear_classes(500, 1)[0])
    assert np.mean(near < 1) < 0.1
    with pytest.warns(kw.ExtrapolationWarning, match="2 of 3 rows"):
        far = model.support(np.vstack([X[:1], 50.0 + X[:1], X[:1] - 50.0]))
    assert far[1:].max() < 1e-3
    with pytest.warns(kw.ExtrapolationWarning):
        np.testing.assert_allclose(model.predict_proba(X[:1] + 50.0)[0], model.class_prior_, atol=1e-3)


def test_a_regressor_follows_the_trend_with_at_least_the_marginal_spread():
    X, y = lines(150, 0)
    model = kw.EmbeddingRegressor(random_state=0).fit(X, y)
    row = np.array([[0.0, 0.0, 80.0]])
    with pytest.warns(kw.ExtrapolationWarning):
        mean, spread = model.predict(row, return_std=True)
    assert mean[0] == pytest.approx(40.0, rel=0.2)
    assert spread[0] >= 0.9 * y.std()


def test_prediction_sets_and_files_work_with_a_trend(tmp_path):
    X, y = linear_classes(400, 0)
    model = kw.EmbeddingClassifier(random_state=0).fit(X, y)
    kw.save(model, tmp_path / "m.kw")
    np.testing.assert_array_equal(kw.load(tmp_path / "m.kw").predict_proba(X), model.predict_proba(X))
    assert "no known bound" in model.risk_bound().conditions
    assert len(model.relevance().rows) == 50
    again = kw.EmbeddingClassifier(random_state=0, warm_start=True).fit(X, y)
    assert isinstance(again.fit(X, y).kernel_, WithTrend)
    sets = kw.PredictionSets(kw.EmbeddingClassifier(random_state=0), method="leave-one-out").fit(X, y)
    assert np.mean(sets.predict_set(X)[np.arange(400), y]) > 0.8
