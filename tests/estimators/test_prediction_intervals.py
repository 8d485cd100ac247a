"""Prediction intervals: against brute force, against MAPIE, and by counting."""

import warnings

import numpy as np
import pandas as pd
import pytest
from mapie.regression import SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelwright as kw
from kernelwright import EmbeddingRegressor, PredictionIntervals, learning
from kernelwright.distributions import LocationScale
from kernelwright.errors import CalibrationWarning
from kernelwright.estimators import prediction_intervals
from kernelwright.features import RandomFourier
from kernelwright.kernels import Gaussian
from kernelwright.solvers import Landmarks

GIVEN = {"learn": None, "ridge": 0.002, "random_state": 0}


def quick(**how):
    return EmbeddingRegressor(**({"kernel": Gaussian(0.7), "distribution": "location-scale"} | GIVEN | how))


def uneven(n, seed=0):
    """Draw a wave whose noise grows from left to right, by a factor of nine."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + (0.25 + 0.1 * X[:, 0]) * rng.normal(size=n)


def right(X):
    return np.where(np.asarray(X)[:, 0] > 0, "right", "left")


@parametrize_with_checks(
    [
        PredictionIntervals(EmbeddingRegressor(learn=learning.Auto(max_iter=2)), 0.5, n_folds=2, random_state=0),
        PredictionIntervals(LinearRegression(), 0.5, method="split", random_state=0),
    ],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "rows calibrate, whatever they weigh, and copies are two rows",
        "check_sample_weight_equivalence_on_sparse_data": "the same",
    },
)
@pytest.mark.filterwarnings("ignore::kernelwright.errors.CalibrationWarning")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# Against other ways to compute the same ---------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_plain_regressors_get_the_intervals_of_mapie(coverage):
    X, y = uneven(200)
    new, _ = uneven(50, 1)
    fitted = KNeighborsRegressor().fit(X[:100], y[:100])
    ours = PredictionIntervals(fitted, coverage, method="prefit").fit(X[100:], y[100:])
    theirs = SplitConformalRegressor(fitted, confidence_level=coverage, prefit=True).conformalize(X[100:], y[100:])
    np.testing.assert_allclose(ours.interval(new), theirs.predict_interval(new)[1][:, :, 0], atol=1e-12)


@pytest.mark.parametrize("by", [None, right, "scale"])
def test_split_intervals_equal_conformalised_quantiles_by_hand(by):
    """A target is inside unless its score exceeds ceil(.8 (n + 1)) of the n scores of its group."""
    X, y = uneven(160)
    new, truth = uneven(40, 1)
    model = PredictionIntervals(quick(), 0.8, by=by, method="split", random_state=3).fit(X, y)
    rows = prediction_intervals.NumberedRows.of(X, y)
    fitted, held = rows.divided(0.3, 3)
    plain = quick().fit(fitted.X, fitted.y)
    band, own = plain.interval(new, 0.8), plain.interval(held.X, 0.8)
    if by == "scale":
        edges = np.quantile(np.diff(plain.interval(fitted.X, 0.8))[:, 0], [1 / 3, 2 / 3])
        groups, own_groups = (np.searchsorted(edges, np.diff(each)[:, 0]) for each in (band, own))
    else:
        groups, own_groups = (np.zeros(len(each)) if by is None else right(each) for each in (new, held.X))
    scores = np.maximum(own[:, 0] - held.y, held.y - own[:, 1])
    for row, (low, high) in enumerate(model.interval(new)):
        same = np.sort(scores[own_groups == groups[row]])
        margin = same[int(np.ceil(0.8 * (len(same) + 1))) - 1]
        assert [low, high] == pytest.approx([band[row, 0] - margin, band[row, 1] + margin])
        inside = max(band[row, 0] - truth[row], truth[row] - band[row, 1]) <= margin
        assert inside == (low <= truth[row] <= high)


@pytest.mark.parametrize("groups", [None, np.arange(60) // 3], ids=["rows", "groups"])
@pytest.mark.parametrize("regressor", [quick(), LinearRegression()], ids=["quantiles", "residuals"])
def test_cross_intervals_equal_cv_plus_by_hand(regressor, groups):
    """The rule of CV+ as it is printed: order statistics of low_i(x) - s_i and high_i(x) + s_i."""
    X, y = uneven(60)
    new = np.linspace(-2, 2, 30)[:, None]
    options = {"method": "cross", "n_folds": 4, "random_state": 3}
    model = PredictionIntervals(regressor, 0.8, **options).fit(X, y, groups=groups)
    unit = np.arange(60) if groups is None else groups
    part = (np.random.RandomState(3).permutation(unit.max() + 1) % 4)[unit]
    lows, highs = [], []
    for fold in range(4):
        others, known = part != fold, {}
        if groups is not None and not isinstance(regressor, LinearRegression):
            known = {"groups": groups[others]}
        fitted = clone(regressor).fit(X[others], y[others], **known)
        own, band = (
            fitted.interval(Z, 0.8) if hasattr(fitted, "interval") else np.tile(fitted.predict(Z), (2, 1)).T
            for Z in (X, new)
        )
        for row in np.flatnonzero(~others):
            score = max(own[row, 0] - y[row], y[row] - own[row, 1])
            lows.append(band[:, 0] - score)
            highs.append(band[:, 1] + score)
    low, high = np.sort(lows, 0)[12 - 1], np.sort(highs, 0)[49 - 1]  # of 60: floor(.2 * 61) and ceil(.8 * 61)
    np.testing.assert_allclose(model.interval(new), np.column_stack([low, high]), atol=1e-9)


@pytest.mark.parametrize(
    "regressor", [quick(), quick(kernel=None, features=RandomFourier(60, lengthscale=0.7))], ids=["exact", "features"]
)
def test_left_out_bands_are_of_the_given_rows(regressor):
    """Also with equal rows, which are merged, and with rows that were held out of the fit."""
    X, y = uneven(90)
    X, y = np.vstack([X, X[:10]]), np.append(y, y[:10])
    regressor = clone(regressor).set_params(learn=learning.Auto(max_iter=1, holdout_share=0.2)).fit(X, y)
    band, targets, rows = regressor.left_out_band(0.8)
    assert len(rows) == 80
    np.testing.assert_allclose(targets, y[rows], atol=1e-9)
    np.testing.assert_allclose(band, regressor.interval(X[rows], 0.8), atol=0.6)  # near the row's own interval
    assert 0.7 < ((band[:, 0] <= targets) & (targets <= band[:, 1])).mean() < 0.9


# Coverage, counted ------------------------------------------------------------------------------------------------


def draws(make, n=120, n_draws=60, draw=uneven):
    """Return coverage over all rows, on the left and on the right, and mean width, one row for each draw."""
    found = []
    for seed in range(n_draws):
        new, truth = draw(300, 1000 + seed)
        limits = make(seed).fit(*draw(n, seed)).interval(new)
        inside, side = (limits[:, 0] <= truth) & (truth <= limits[:, 1]), right(new) == "right"
        found.append([inside.mean(), inside[~side].mean(), inside[side].mean(), np.diff(limits).mean()])
    return np.array(found)


def assert_covers(coverage, nominal, above=1.0):
    error = coverage.std() / np.sqrt(len(coverage))
    assert nominal - 2 * error <= coverage.mean() <= above + 2 * error


class Quartiles(RegressorMixin, BaseEstimator):
    """Quantiles of the rows in each of eight bins: crude, uncalibrated and quick."""

    edges = np.linspace(-2, 2, 9)[1:-1]

    def fit(self, X, y):
        self.bins_ = [y[np.searchsorted(self.edges, X[:, 0]) == number] for number in range(8)]
        return self

    def predict(self, X):
        return self.quantile(X, 0.5)

    def quantile(self, X, q):
        of_bin = np.array([np.quantile(own, q) for own in self.bins_])
        return of_bin[np.searchsorted(self.edges, np.asarray(X)[:, 0])]


@pytest.mark.parametrize("regressor", [Quartiles(), KNeighborsRegressor(9)], ids=["quantiles", "residuals"])
def test_split_covers_as_promised(regressor):
    found = draws(lambda seed: PredictionIntervals(regressor, 0.8, method="split", random_state=seed))
    assert_covers(found[:, 0], 0.8, above=0.8 + 1 / 37)  # 36 calibration rows


def test_residuals_miss_the_noisy_side_which_groups_and_quantiles_cover():
    how = {"coverage": 0.8, "method": "split"}
    plain, grouped, quantiles = (
        draws(lambda seed: PredictionIntervals(regressor, by=by, random_state=seed, **how), n_draws=40)  # noqa: B023
        for regressor, by in ((KNeighborsRegressor(9), None), (KNeighborsRegressor(9), right), (Quartiles(), None))
    )
    assert plain[:, 2].mean() < 0.73  # too often outside on the right
    for side in (1, 2):
        assert_covers(grouped[:, side], 0.8)
    assert quantiles[:, 2].mean() > plain[:, 2].mean() + 0.03


def test_every_third_of_the_predicted_scale_is_covered():
    found = []
    for seed in range(60):
        new, truth = uneven(300, 1000 + seed)
        model = PredictionIntervals(Quartiles(), 0.8, by="scale", method="split", random_state=seed)
        found.append(model.fit(*uneven(150, seed)).summary(new, truth).coverage)
    for coverage in np.array(found).T:
        assert_covers(coverage, 0.8)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "least"), [("cross", 0.8), ("leave-one-out", 0.77)])
def test_methods_that_use_all_rows_cover_too_and_vary_less(method, least):
    every, split = (
        draws(lambda seed: PredictionIntervals(quick(), 0.8, method=how, random_state=seed, n_folds=5), n_draws=25)  # noqa: B023
        for how in (method, "split")
    )
    assert_covers(every[:, 0], least, above=0.85)
    assert every[:, 3].std() < 0.8 * split[:, 3].std()  # the width, from draw to draw


def test_targets_of_few_values_are_covered_more_often_than_asked():
    def counts(n, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, (n, 1))
        return X, rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)

    made = lambda seed: PredictionIntervals(quick(distribution="auto"), 0.8, method="split", random_state=seed)  # noqa: E731
    found = draws(made, draw=counts, n_draws=12)
    assert_covers(found[:, 0], 0.8)
    limits = made(0).fit(*counts(200)).interval(counts(50, 1)[0])
    np.testing.assert_array_equal(limits, np.round(limits))  # limits are values of the target


def test_rows_that_belong_together_calibrate_no_model_that_has_seen_one_of_them():
    """Ten nearly equal rows of each of forty people: without groups the intervals are far too small for new people."""
    rng = np.random.default_rng(0)
    people, levels = rng.normal(size=(40, 3)), rng.normal(size=40)
    rows = np.repeat(np.arange(40), 10)
    X, y = people[rows] + 1e-3 * rng.normal(size=(400, 3)), levels[rows] + 0.01 * rng.normal(size=400)
    new, truth = rng.normal(size=(500, 3)), rng.normal(size=500)
    for method in ("split", "cross"):
        model = PredictionIntervals(KNeighborsRegressor(5), method=method, random_state=0)
        apart, together = (model.fit(X, y, groups=groups).summary(new, truth).coverage[0] for groups in (None, rows))
        assert apart < 0.3
        assert together > 0.8


# Settings and input -----------------------------------------------------------------------------------------------


def test_the_method_is_chosen_by_size_and_regressor(monkeypatch):
    X, y = uneven(80)
    assert PredictionIntervals(LinearRegression()).fit(X, y).method_ == "split"
    assert PredictionIntervals(quick(), n_folds=2).fit(X, y).method_ == "cross"
    monkeypatch.setattr(prediction_intervals, "FOLDS_UP_TO", 50)
    model = PredictionIntervals(quick()).fit(X, y)
    assert (model.method_, model.n_calibration_) == ("leave-one-out", 80)
    matrix = np.asarray(Gaussian(0.7)(X))
    model = PredictionIntervals(EmbeddingRegressor("precomputed", **GIVEN)).fit(matrix, y)
    assert model.method_ == "leave-one-out"
    with pytest.raises(ValueError, match="cannot divide a matrix of kernel values"):
        model.set_params(method="split").fit(matrix, y)
    with pytest.raises(ValueError, match="needs an EmbeddingRegressor"):
        PredictionIntervals(LinearRegression(), method="leave-one-out").fit(X, y)


def test_left_out_rows_of_landmarks_are_a_sample_of_unknown_columns():
    X, y = uneven(300)
    landmarks = quick(solver=Landmarks(30))
    model = PredictionIntervals(landmarks, 0.8, method="leave-one-out").fit(X, y)
    assert model.n_calibration_ == 15
    assert 0.6 < model.summary(*uneven(500, 1)).coverage[0] <= 1.0
    with pytest.raises(ValueError, match="needs all rows to be left out"):
        PredictionIntervals(landmarks, 0.8, by=0, method="leave-one-out").fit(X, y)


def test_columns_are_named_or_numbered():
    X, y = uneven(200)
    frame = pd.DataFrame({"x": X[:, 0], "side": (X[:, 0] > 0).astype(float)})
    options = {"coverage": 0.8, "method": "split", "random_state": 0}
    named, numbered, array, made = (
        PredictionIntervals(LinearRegression(), by=by, **options).fit(table, y).interval(table)
        for by, table in (
            ("side", frame),
            (1, frame),
            (-1, frame.to_numpy()),
            (lambda table: table["side"] > 0, frame),
        )
    )
    for other in (numbered, array, made):
        np.testing.assert_allclose(named, other)
    assert np.ptp(np.diff(named)) > 0.1  # two widths
    for by, table, message in (
        ("age", frame, "'age' is no column of X. Its columns are"),
        ("side", frame.to_numpy(), "needs a data frame"),
        (5, frame.to_numpy(), "by=5 is no column of X, which has 2"),
        (lambda table: table, frame.to_numpy(), "one label for each of the"),
    ):
        with pytest.raises(ValueError, match=message):
            PredictionIntervals(LinearRegression(), by=by, **options).fit(table, y)


def test_groups_without_enough_rows_have_infinite_intervals():
    X, y = uneven(100)
    names = np.where(np.arange(100) < 97, "many", "few")
    frame = pd.DataFrame({"x": X[:, 0], "group": names})
    model = PredictionIntervals(EmbeddingRegressor(Gaussian(0.7), **GIVEN), by=lambda X: np.asarray(X)[:, 0] > 1.9)
    with pytest.warns(CalibrationWarning, match=r"'1.0' \(\d\). Their intervals are infinite. .* at least 9 rows"):
        model.set_params(method="leave-one-out").fit(frame[["x"]].to_numpy(), y)
    limits = model.interval([[0.0], [1.95]])
    assert np.isfinite(limits).all(1).tolist() == [True, False]
    unknown = PredictionIntervals(LinearRegression(), 0.5, by=0, method="prefit")
    unknown.set_params(regressor=LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])).fit([[0.0]] * 9, np.arange(9.0))
    assert np.isinf(unknown.interval([[1.0]])).all()


def test_scale_needs_quantiles_and_a_number_of_that_name_is_none():
    X, y = uneven(60)
    for regressor in (LinearRegression(), QuantileRegressor(quantile=0.5)):
        with pytest.raises(ValueError, match="by='scale' needs a regressor with a method quantile"):
            PredictionIntervals(regressor, by="scale").fit(X, y)
        assert not hasattr(PredictionIntervals(regressor), "quantile")
    assert PredictionIntervals(QuantileRegressor(quantile=0.5), random_state=0).fit(X, y).interval(X).shape == (60, 2)


def test_several_targets_are_refused_and_gaps_left_out():
    X, y = uneven(60)
    with pytest.raises(ValueError, match="are for one target"):
        PredictionIntervals(LinearRegression()).fit(X, np.column_stack([y, y]))
    gaps = y.copy()
    gaps[:6] = np.nan
    with pytest.warns(UserWarning, match="6 of 60 rows have no target"):
        model = PredictionIntervals(LinearRegression(), random_state=0).fit(X, gaps)
    here = PredictionIntervals(LinearRegression(), random_state=0).fit(X[6:], y[6:])
    np.testing.assert_allclose(model.interval(X), here.interval(X))


def test_weights_are_those_of_the_regressor_and_rows_of_weight_zero_do_not_calibrate():
    X, y = uneven(100)
    weights = np.r_[np.zeros(40), np.linspace(1, 3, 60)]
    model = PredictionIntervals(quick(), 0.8, method="leave-one-out").fit(X, y, sample_weight=weights)
    assert model.n_calibration_ == 60
    np.testing.assert_allclose(model.predict(X), quick().fit(X[40:], y[40:], weights[40:]).predict(X))


def test_the_summary_counts_what_the_intervals_hold():
    X, y = uneven(200)
    new, truth = uneven(100, 1)
    model = PredictionIntervals(quick(), 0.8, by=right, method="split", random_state=0).fit(X, y)
    found, limits = model.summary(new, truth), model.interval(new)
    inside = (limits[:, 0] <= truth) & (truth <= limits[:, 1])
    side = right(new)
    assert found.names == ("all rows", "left", "right")
    assert found.coverage == pytest.approx(
        [inside.mean(), inside[side == "left"].mean(), inside[side == "right"].mean()]
    )
    assert found.n_rows.tolist() == [100, (side == "left").sum(), (side == "right").sum()]
    assert found.width[0] == pytest.approx(np.diff(limits).mean())
    assert "left" in str(found)


@pytest.mark.parametrize("method", ["cross", "leave-one-out", "split"])
@pytest.mark.parametrize("by", [None, 1, "scale"])
def test_a_file_gives_the_same_intervals(tmp_path, method, by):
    X, y = uneven(60)
    X = np.column_stack([X, X[:, 0] > 0])
    model = PredictionIntervals(quick(), 0.6, by=by, method=method, n_folds=3, random_state=0).fit(X, y)
    kw.save(model, tmp_path / "model.kw")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(kw.load(tmp_path / "model.kw").interval(X), model.interval(X))


# In wrappers of scikit-learn, and within the range of the target --------------------------------------------------


class Times(TransformerMixin, BaseEstimator):
    """A map of the inputs that a Gaussian kernel of another length scale undoes exactly."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return 10.0 * np.asarray(X)


@pytest.mark.parametrize("method", ["cross", "split", "prefit"])
def test_wrappers_get_the_intervals_of_the_regressor_in_them(method):
    """Conformalised quantiles, whatever is around the regressor."""
    (X, y), (new, _) = uneven(120), uneven(40, 1)
    outer = quick(kernel=Gaussian(7.0))
    halves = {"func": lambda y: 5.0 - 0.5 * y, "inverse_func": lambda u: 2.0 * (5.0 - u)}  # decreasing
    found = []
    for regressor in (
        quick(),
        make_pipeline(Times(), outer),
        make_pipeline(quick()),
        TransformedTargetRegressor(quick(), **halves),
        TransformedTargetRegressor(make_pipeline(Times(), outer), **halves),
        GridSearchCV(quick(), {"ridge": [0.002]}, cv=2),
    ):
        start = clone(regressor).fit(X[:60], y[:60]) if method == "prefit" else regressor
        model = PredictionIntervals(start, 0.8, by="scale", method=method, n_folds=3, random_state=0).fit(X, y)
        found.append((model.interval(new), model.quantile(new, [0.2, 0.5])))
    for limits, quantiles in found[1:]:
        np.testing.assert_allclose(limits, found[0][0], atol=2e-2)
        np.testing.assert_allclose(quantiles, found[0][1], atol=2e-2)
    assert np.ptp(np.diff(found[1][0])) > 0.2  # and not residuals, with one width for all rows


def test_wrapped_regressors_take_weights_and_groups():
    X, y = uneven(90)
    groups, weights = np.repeat(np.arange(30), 3), np.arange(90) % 3.0
    inside = [
        PredictionIntervals(regressor, 0.8, n_folds=3, random_state=0).fit(X, y, weights, groups)
        for regressor in (quick(), make_pipeline(quick()), TransformedTargetRegressor(make_pipeline(quick())))
    ]
    assert [model.method_ for model in inside] == ["cross"] * 3
    for model in inside[1:]:
        np.testing.assert_allclose(model.interval(X), inside[0].interval(X), atol=1e-6)


@pytest.mark.parametrize("method", ["cross", "leave-one-out", "split"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_intervals_stay_in_the_range_of_the_target_and_cover_as_before(method, wrapped):
    if wrapped and method == "leave-one-out":
        pytest.skip("needs the regressor itself")
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 1))
    y = rng.beta(0.5 + 0.2 * X[:, 0], 0.5)
    stated = quick(distribution=LocationScale(low=0.0, high=1.0, transform="identity"))
    regressor = make_pipeline(stated) if wrapped else stated
    model = PredictionIntervals(regressor, 0.9, method=method, n_folds=3, random_state=0).fit(X[:150], y[:150])
    limits, before = model.interval(X[150:]), model.calibration_.intervals(X[150:], model.regressor_)
    assert before.max() > 1.0 or before.min() < 0.0
    assert limits.min() >= 0.0
    assert limits.max() <= 1.0
    within = [(each[:, 0] <= y[150:]) & (y[150:] <= each[:, 1]) for each in (limits, before)]
    np.testing.assert_array_equal(*within)
    assert within[0].mean() > 0.78


def test_the_range_of_the_target_is_stated():
    X, y = uneven(60)
    assert quick().fit(X, y).target_range_ == pytest.approx([-np.inf, np.inf])
    both = EmbeddingRegressor(distribution=LocationScale(low=-9.0), **GIVEN).fit(X, np.column_stack([y, y]))
    np.testing.assert_array_equal(both.target_range_, [[-9.0, np.inf]] * 2)
    assert not hasattr(quick(), "target_range_")
