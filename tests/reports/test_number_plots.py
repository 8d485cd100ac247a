import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelwright import EmbeddingRegressor
from kernelwright.reports import CoverageDisplay, PITDisplay, PredictedActualDisplay
from kernelwright.reports.number_plots import pit_limits
from kernelwright.reports.page import Picture


@pytest.fixture(scope="module")
def fitted():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (220, 2))
    y = np.sin(3 * X[:, 0]) + 0.2 * random.normal(size=220)
    return EmbeddingRegressor(learn=None, random_state=0).fit(X[:120], y[:120]), X[120:], y[120:]


@pytest.fixture(scope="module")
def counts():
    random = np.random.default_rng(0)
    X = random.uniform(0, 2, (150, 1))
    y = random.poisson(np.exp(X[:, 0]) * 0.5)
    return EmbeddingRegressor(learn=None, random_state=0).fit(X[:100], y[:100]), X[100:], y[100:]


def test_a_pit_histogram_of_points_is_that_of_numpy(rng):
    pit = rng.uniform(size=500)
    display = PITDisplay.from_predictions(pit, n_bins=8)
    np.testing.assert_allclose(display.shares, np.histogram(pit, 8, (0, 1))[0] / 500)
    assert [bar.get_height() for bar in display.bars_] == pytest.approx(8 * display.shares)
    assert PITDisplay.from_predictions([0.0, 1.0], n_bins=2).shares.tolist() == [0.5, 0.5]


def test_steps_are_spread_over_the_bins_as_random_numbers_would_be(rng):
    upper = rng.uniform(size=30)
    lower = upper * rng.uniform(size=30)
    draws = lower + rng.uniform(size=(100_000, 30)) * (upper - lower)
    expected = np.histogram(draws, 10, (0, 1))[0] / draws.size
    np.testing.assert_allclose(PITDisplay.from_predictions(upper, lower).shares, expected, atol=2e-3)


def test_weights_count_like_repeated_rows(rng):
    pit, weights = rng.uniform(size=50), rng.integers(1, 4, 50)
    weighted, repeated = (
        PITDisplay.from_predictions(pit, weights=weights),
        PITDisplay.from_predictions(np.repeat(pit, weights)),
    )
    np.testing.assert_allclose(weighted.shares, repeated.shares)
    assert weighted.n < repeated.n  # repeated rows tell nothing new


@pytest.mark.parametrize(("scale", "shape"), [(1.0, "flat"), (0.6, "high at both ends"), (2.0, "high in the middle")])
def test_the_histogram_tells_calibrated_from_narrow_and_wide(rng, scale, shape):
    y = rng.normal(size=4000)
    display = PITDisplay.from_predictions(norm.cdf(y / scale))
    low, high = display.band
    heights = 10 * display.shares
    if shape == "flat":
        assert ((low < heights) & (heights < high)).sum() >= 8
    elif shape == "high at both ends":
        assert min(heights[0], heights[-1]) > high
        assert heights[4] < low
    else:
        assert max(heights[0], heights[-1]) < low
        assert heights[4] > high


def test_the_band_holds_nineteen_of_twenty_calibrated_bars():
    random = np.random.default_rng(0)
    shown = [PITDisplay(np.histogram(random.uniform(size=200), 10, (0, 1))[0] / 200, 200) for _ in range(400)]
    inside = [(low <= 10 * each.shares) & (10 * each.shares <= high) for each in shown for low, high in [each.band]]
    assert 0.93 < np.mean(inside) < 0.97


@pytest.mark.parametrize("which", ["fitted", "counts"])
def test_pit_limits_are_those_of_each_row_alone(which, request):
    model, X, y = request.getfixturevalue(which)
    lower, upper = pit_limits(model, X, y)
    alone = [model.cdf(row[None], [np.nextafter(t, -np.inf), t])[0] for row, t in zip(X, y.astype(float), strict=True)]
    np.testing.assert_allclose(np.column_stack([lower, upper]), alone, atol=1e-9)
    steps = upper - lower
    assert (steps < 1e-9).all() if which == "fitted" else (steps > 1e-3).any()
    display = PITDisplay.from_estimator(model, X, y, n_bins=5)
    np.testing.assert_allclose(display.shares, PITDisplay.from_predictions(upper, lower, n_bins=5).shares)


def test_pit_of_one_of_several_targets():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (130, 1))
    Y = np.column_stack([X[:, 0] + 0.1 * random.normal(size=130), random.normal(size=130)])
    model = EmbeddingRegressor(learn=None, random_state=0).fit(X, Y)
    _, upper = pit_limits(model, X, Y, target=1)
    assert upper[7] == pytest.approx(model.cdf(X[7:8], [Y[7, 1]])[0, 1, 0])
    drawn = PredictedActualDisplay.from_estimator(model, X, Y, target=1)
    np.testing.assert_array_equal(drawn.y, Y[:, 1])
    np.testing.assert_allclose(drawn.interval, model.interval(X)[:, 1])


@pytest.mark.parametrize("wrong", [([0.5, 1.2],), ([0.5], [0.6]), ([[0.5]],), ([],), ([np.nan],)])
def test_values_that_are_no_probabilities_are_refused(wrong):
    with pytest.raises(ValueError, match="from 0 to 1"):
        PITDisplay.from_predictions(*wrong)


def test_coverage_by_width_is_that_of_each_tenth(rng):
    y, width = rng.normal(size=995), rng.uniform(0.5, 4.0, 995)
    display = CoverageDisplay.from_predictions(y, np.column_stack([-width / 2, width / 2]), coverage=0.8)
    order = np.argsort(width)
    for k, rows in enumerate(np.array_split(order, 10)):
        hits = int((np.abs(y[rows]) <= width[rows] / 2).sum())
        wilson = binomtest(hits, len(rows)).proportion_ci(method="wilson")
        assert display.covered[k] == pytest.approx(hits / len(rows))
        assert display.width[k] == pytest.approx(width[rows].mean())
        assert display.band[:, k] == pytest.approx([wilson.low, wilson.high])
    np.testing.assert_array_equal(display.line_.get_ydata(), display.covered)
    assert display.ax_.lines[0].get_ydata()[0] == 0.8


def test_an_estimator_is_asked_for_its_intervals(fitted):
    model, X, y = fitted
    drawn = CoverageDisplay.from_estimator(model, X, y, coverage=0.5, n_bins=4)
    by_hand = CoverageDisplay.from_predictions(y, model.interval(X, 0.5), n_bins=4)
    np.testing.assert_array_equal(drawn.covered, by_hand.covered)

    class Calibrated:  # for one coverage, as PredictionIntervals
        coverage = 0.6

        def interval(self, X):
            return model.interval(X, 0.6)

    assert CoverageDisplay.from_estimator(Calibrated(), X, y).coverage == 0.6


def test_dots_outside_of_their_intervals_have_another_colour(fitted):
    model, X, y = fitted
    display = PredictedActualDisplay.from_estimator(model, X, y, coverage=0.5)
    low, high = model.interval(X, 0.5).T
    beyond = (y < low) | (y > high)
    np.testing.assert_array_equal(display.outside, beyond)
    inside, outside = (np.asarray(points.get_offsets()) for points in display.points_)
    assert len(outside) == beyond.sum()
    assert len(inside) == (~beyond).sum()
    assert {tuple(np.round(row, 12)) for row in outside} == {
        tuple(np.round(row, 12)) for row in np.column_stack([model.predict(X), y])[beyond]
    }
    residual = display.plot(kind="residual")
    drawn = np.vstack([np.asarray(points.get_offsets()) for points in residual.points_])
    assert np.sort(drawn[:, 1]) == pytest.approx(np.sort(y - model.predict(X)))


def test_a_regressor_without_intervals_is_drawn_without_them(fitted):
    _, X, y = fitted
    display = PredictedActualDisplay.from_estimator(LinearRegression().fit(X, y), X, y)
    assert display.lines_ is None
    assert not display.outside.any()
    assert display.ax_.get_legend() is None


def test_the_last_step_of_a_pipeline_is_asked(fitted):
    _, X, y = fitted
    pipeline = make_pipeline(StandardScaler(), EmbeddingRegressor(learn=None, random_state=0)).fit(X, y)
    display = PredictedActualDisplay.from_estimator(pipeline, X, y)
    np.testing.assert_allclose(display.interval, pipeline[-1].interval(pipeline[0].transform(X)))


def test_of_very_many_rows_some_are_drawn(rng):
    y = rng.normal(size=10_000)
    display = PredictedActualDisplay.from_predictions(y, y)
    assert sum(len(points.get_offsets()) for points in display.points_) == 1500
    assert display.points_[0].get_offsets()[:, 0].max() == y.max()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="'actual' or 'residual'"):
        PredictedActualDisplay.from_predictions([1.0], [1.0], kind="both")
    with pytest.raises(ValueError, match="same shape"):
        PredictedActualDisplay.from_predictions([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="lower end first"):
        CoverageDisplay.from_predictions([1.0], [[2.0, 1.0]])


@pytest.mark.parametrize("kind", ["actual", "residual"])
def test_a_plot_of_many_rows_is_small(rng, kind):
    mean = rng.uniform(size=9000)
    y = mean + rng.normal(size=9000)
    drawn = PredictedActualDisplay.from_predictions(y, mean, np.column_stack([mean - 1.5, mean + 1.5]), kind=kind)
    size = len(Picture.of(drawn.figure_, "", "").png)
    assert size < 35_000, size  # a page has four of these and at most 600 kB
