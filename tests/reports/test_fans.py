import numpy as np
import pandas as pd
import pytest

from kernelwright import EmbeddingRegressor
from kernelwright.reports import FanDisplay
from kernelwright.reports.fans import typical_row


@pytest.fixture(scope="module")
def fitted():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"place": random.uniform(-1, 1, 200), "$size": random.normal(size=200)})
    X["rooms"] = random.integers(1, 5, 200)
    y = X["place"] + 0.3 * X["rooms"] + (0.05 + 0.4 * (X["place"] > 0)) * random.normal(size=200)
    return EmbeddingRegressor(random_state=0).fit(X, y), X


def test_quantiles_are_those_of_rows_that_differ_in_one_feature(fitted):
    model, X = fitted
    display = FanDisplay.from_estimator(model, X, "place", levels=(0.9, 0.1), resolution=7)
    rows = pd.DataFrame([typical_row(X)] * 7).reset_index(drop=True).assign(place=display.values)
    np.testing.assert_allclose(display.quantiles, model.quantile(rows, [0.1, 0.9]))
    np.testing.assert_allclose(display.values[[0, -1]], np.quantile(X["place"], [0.01, 0.99]))
    assert display.line_ is None  # the median is not among the levels
    same = FanDisplay.from_estimator(model, X, 0, levels=(0.1, 0.9), resolution=7)
    np.testing.assert_array_equal(same.quantiles, display.quantiles)


def test_the_fan_opens_where_the_noise_is(fitted):
    model, X = fitted
    display = FanDisplay.from_estimator(model, X, "place")
    width = display.quantiles[:, -1] - display.quantiles[:, 0]
    assert width[display.values > 0.3].min() > 2 * width[display.values < -0.3].max()
    assert (np.diff(display.quantiles, axis=1) >= 0).all()
    assert len(display.bands_) == 2


def test_a_feature_of_few_values_has_bars(fitted):
    model, X = fitted
    display = FanDisplay.from_estimator(model, X, "rooms", target_name="$y$")
    assert display.bars
    assert display.values.tolist() == [1, 2, 3, 4]
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["1", "2", "3", "4"]
    heights = [bar.get_height() for bar in display.bands_[0]]
    np.testing.assert_allclose(heights, display.quantiles[:, -1] - display.quantiles[:, 0])
    assert display.ax_.get_ylabel() == r"\$y\$"


def test_other_features_may_be_given(fitted):
    model, X = fitted
    row = X.iloc[3]
    display = FanDisplay.from_estimator(model, X, "place", at=row, resolution=3)
    rows = pd.DataFrame([row] * 3).reset_index(drop=True).assign(place=display.values)
    np.testing.assert_allclose(display.quantiles[:, 2], model.quantile(rows, 0.5))


def test_values_without_support_are_marked(fitted):
    model, X = fitted
    near = FanDisplay.from_estimator(model, X, "place")
    away = FanDisplay.from_estimator(model, X, "place", at=[0.0, 1e6, 2])
    assert (near.support > 0.5).mean() > 0.9
    assert (away.support < 0.5).all()
    assert len(away.ax_.lines) == 2
    assert np.isfinite(away.ax_.lines[1].get_ydata()).all()


def test_words_and_types_of_a_frame_are_kept():
    class Prices:
        def quantile(self, X, q):
            assert X["town"].dtype == frame["town"].dtype
            assert X["kind"].dtype == frame["kind"].dtype
            assert X["rooms"].dtype == frame["rooms"].dtype
            self.asked = X
            return np.tile(q, (len(X), 1))

    frame = pd.DataFrame({"town": pd.Categorical(["Ulm", "Bonn", "Ulm", None]), "kind": ["a", "b", "b", "b"]})
    frame["rooms"] = [1, 2, 2, 2]
    display = FanDisplay.from_estimator(Prices(), frame, "town")
    assert display.values.tolist() == ["Ulm", "Bonn"]  # the most frequent first
    assert display.support is None
    estimator = Prices()
    FanDisplay.from_estimator(estimator, frame, "kind")
    assert estimator.asked["town"].tolist() == ["Ulm", "Ulm"]


def test_a_typical_row_is_an_actual_row(rng):
    X = np.column_stack([rng.normal(size=200), rng.permutation(np.eye(3)[np.arange(200) % 3], axis=0)])
    row = typical_row(X)
    assert row[1:].sum() == 1  # the medians would be 0, 0, 0
    assert abs(row[0] - np.median(X[:, 0])) < 0.1


def test_predictions_are_sorted_by_value():
    display = FanDisplay.from_predictions([2.0, 1.0], [[5, 6, 7], [1, 2, 3]], (0.1, 0.5, 0.9), name="x", support=[0, 1])
    np.testing.assert_array_equal(display.line_.get_xydata(), [[1, 2], [2, 6]])
    assert display.support.tolist() == [1, 0]


def test_bad_arguments_are_refused(fitted):
    model, X = fitted
    with pytest.raises(ValueError, match="no column 'price'"):
        FanDisplay.from_estimator(model, X, "price")
    with pytest.raises(ValueError, match="from 0 to 2"):
        FanDisplay.from_estimator(model, X, 3)
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        FanDisplay.from_predictions([1, 2], [[1, 2]], (0.1, 0.5, 0.9))
    with pytest.raises(ValueError, match="increasing levels"):
        FanDisplay.from_predictions([1], [[1, 2]], (0.9, 0.1))
