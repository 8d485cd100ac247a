"""Both views of a table against their formulas."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm, rankdata
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from kernelwright.inputs.scaling import TableViews, fit_scaler

X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 100.0, 0.01] + [0.0, 5.0, -3.0]


def squashed(x: np.ndarray) -> np.ndarray:
    z = (x - x.mean()) / x.std()
    return z / np.sqrt(1 + (z / 3) ** 2)


def ranked(x: np.ndarray) -> np.ndarray:
    q = np.clip(norm.ppf((rankdata(x) - 0.5) / len(x)), -3, 3)
    return (q - q.mean()) / q.std()


def views(table: np.ndarray) -> np.ndarray:
    return np.column_stack([squashed(x) for x in table.T] + [ranked(x) for x in table.T])


def test_views_equal_their_formulas():
    np.testing.assert_allclose(TableViews().fit_transform(X), views(X), rtol=1e-9, atol=1e-11)


def test_equal_values_share_the_middle_of_their_ranks():
    table = np.array([[0.0], [1.0], [1.0], [1.0], [2.0], [5.0]])
    np.testing.assert_allclose(TableViews().fit_transform(table), views(table), rtol=1e-9)


def test_values_between_training_values_are_interpolated():
    table = np.array([[0.0], [1.0], [3.0], [4.0]])
    scaler = TableViews().fit(table)
    low, middle, high = scaler.transform([[1.0], [1.5], [3.0]])[:, 1]
    assert middle == pytest.approx(0.75 * low + 0.25 * high)


def test_ranks_do_not_depend_on_the_spacing():
    q = TableViews().fit_transform(X[:, :1])[:, 1]
    q_of_exponentials = TableViews().fit_transform(np.exp(X[:, :1]))[:, 1]
    np.testing.assert_allclose(q, q_of_exponentials, rtol=1e-12)


def test_views_do_not_depend_on_units():
    np.testing.assert_allclose(
        TableViews().fit_transform(1000 * X - 7), TableViews().fit_transform(X), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300, 8e307])
def test_scales_at_the_ends_of_the_numbers(size):
    unit = X[:, :1] / np.abs(X[:, :1]).max()
    np.testing.assert_allclose(TableViews().fit_transform(size * unit), views(unit), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("far", [1e3, 1e100, 1e308, -1e308])
def test_new_values_far_outside_are_tamed(far):
    scaler = TableViews().fit(X[:, :1])
    z, q = scaler.transform([[far]])[0]
    known = scaler.transform(X[:, :1])
    assert abs(z) <= 3.0 + 1e-12
    assert abs(z) > 2.9
    assert np.sign(z) == np.sign(far)
    assert q == pytest.approx(known[:, 1].max() if far > 0 else known[:, 1].min())


def test_new_values_far_outside_of_a_tiny_range_are_tamed():
    scaler = TableViews().fit([[0.0], [1e-300], [2e-300]])
    with np.errstate(all="raise", under="ignore"):
        row = scaler.transform([[1e300]])[0]
    assert row[0] == pytest.approx(3.0)
    assert np.isfinite(row).all()


@given(
    table=arrays(np.float64, st.tuples(st.integers(2, 8), st.just(2)), elements=st.integers(-5, 5).map(float)),
    seed=st.integers(0, 99),
)
def test_whole_weights_are_repetitions(table, seed):
    table = np.vstack([table, [[-6.0, -6.0], [6.0, 6.0]]])  # no column is constant
    whole = np.random.default_rng(seed).integers(1, 4, len(table))
    weighted = TableViews().fit(table, sample_weight=whole)
    repeated = TableViews().fit(np.repeat(table, whole, axis=0))
    np.testing.assert_allclose(weighted.transform(table), repeated.transform(table), rtol=1e-9, atol=1e-11)


def test_constant_columns_are_dropped():
    table = np.column_stack([np.full(40, 7.0), X[:, 0], np.zeros(40)])
    np.testing.assert_allclose(TableViews().fit_transform(table), views(X[:, :1]), rtol=1e-9, atol=1e-11)


def test_a_table_of_constants_warns_and_gives_zeros():
    with pytest.warns(UserWarning, match="All features are constant"):
        scaler = TableViews().fit(np.full((5, 3), 2.0))
    transformed = scaler.transform(np.full((2, 3), 2.0))
    np.testing.assert_array_equal(transformed, np.zeros_like(transformed))


def test_a_row_is_transformed_like_the_same_row_among_others():
    scaler = TableViews().fit(X)
    np.testing.assert_allclose(scaler.transform(X)[7:8], scaler.transform(X[7:8]), rtol=1e-14)


def test_the_given_table_is_left_as_it_was():
    table = X.copy()
    TableViews().fit_transform(table)
    np.testing.assert_array_equal(table, X)


def test_transform_before_fit_is_refused():
    with pytest.raises(NotFittedError):
        TableViews().transform(X)


@pytest.mark.parametrize(("word", "cls"), [("standard", StandardScaler), ("unit", MinMaxScaler), ("views", TableViews)])
def test_words_for_scalers(word, cls):
    assert isinstance(fit_scaler(word, X), cls)


def test_no_scaler():
    assert fit_scaler(None, X) is None


def test_an_unknown_scaler_is_refused():
    with pytest.raises((ValueError, KeyError), match="robust"):
        fit_scaler("robust", X)


def test_views_can_be_turned_back_into_rows():
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=50), np.full(50, 7.0), random.exponential(size=50) * 1e6])
    views = TableViews().fit(X)
    np.testing.assert_allclose(views.inverse_transform(views.transform(X)), X, rtol=1e-6)


def test_beyond_counts_standard_deviations_outside_the_range():
    X = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0]])
    views = TableViews().fit(X)
    deviation = X[:, 0].std()
    expected = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 2.0]]) / deviation
    np.testing.assert_allclose(views.beyond([[1.0, 5.0], [5.0, 6.5], [0.0, 3.0]]), expected)


@pytest.mark.parametrize(("scale", "size"), [("standard", 1e200), ("unit", 1.7e308)], ids=lambda value: str(value))
def test_a_column_whose_spread_cannot_be_told_is_refused_by_its_number(scale, size):
    table = X / np.abs(X).max(0)
    table[:, 0] *= size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"column 0 .*too large or too small"):
            fit_scaler(scale, table)
