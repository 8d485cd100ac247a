"""Coordinates of tables: distances between rows, cross-fitted means, and the way back to codes."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from kernelwright.inputs.coordinates import TableCoordinates
from kernelwright.inputs.layout import CodedColumn, TableLayout
from kernelwright.inputs.levels import FARTHEST, LevelMeans, Levels, cross_fitted_means
from kernelwright.inputs.scaling import TableViews

random = np.random.default_rng(0)
N = 60
WORDS = tuple("abcde")
LAYOUT = TableLayout(
    (
        CodedColumn("size"),
        CodedColumn("town", "category", WORDS),
        CodedColumn("member", "category", ("no", "yes")),
        CodedColumn("grade", "category", ("low", "middle", "high"), ordered=True),
        CodedColumn("day", "date"),
    )
)
CODES = np.column_stack(
    [
        random.normal(size=N),
        np.append(random.integers(0, 4, N - 1), 4),  # the last word is rare
        random.integers(0, 2, N),
        random.integers(0, 3, N),
        18_000 + random.integers(0, 900, N),
    ]
).astype(float)
CODES[:5, 0] = CODES[5:8, 1] = CODES[8:12, 4] = np.nan


def of_source(table, values, source):
    """Return the coordinates of one column in the first view."""
    chosen = np.flatnonzero(table.columns_ == list(LAYOUT.sources).index(source))
    return values[:, chosen]


def test_categories_are_equal_or_not():
    table = TableCoordinates(LAYOUT)
    town = of_source(table, table.fit_transform(CODES), "town")
    distances = cdist(town, town, "cityblock")
    words = np.where(np.isnan(CODES[:, 1]), -2, CODES[:, 1])
    equal = words[:, None] == words[None]
    assert distances[equal].max() == 0
    assert np.ptp(distances[~equal]) == pytest.approx(0)
    assert np.sqrt(town.var(0).sum()) == pytest.approx(1.0)  # as much as a number


def test_words_that_were_never_seen_are_like_rare_ones():
    table = TableCoordinates(LAYOUT).fit(CODES)
    new = CODES[[-1]].repeat(2, 0)
    new[0, 1] = -1
    np.testing.assert_array_equal(*table.transform(new)[:, None])


def test_without_rare_words_new_ones_are_as_far_from_all():
    levels = Levels.of(np.array([0.0, 0, 1, 1, 2, 2]), np.ones(6))
    assert levels.n_columns == 3
    assert not levels(np.array([7.0, -1.0])).any()


def test_numbers_have_the_views_of_their_values_without_gaps():
    table = TableCoordinates(LAYOUT)
    values = table.fit_transform(CODES)
    known = ~np.isnan(CODES[:, 0])
    plain = TableViews().fit_transform(CODES[known, :1])
    half = values.shape[1] // 2
    np.testing.assert_allclose(values[known][:, [0, half]], plain, atol=1e-12)
    assert not values[~known][:, [0, half]].any()  # gaps lie at the centre


def test_a_gap_is_a_state_with_a_length_scale_of_its_own():
    table = TableCoordinates(LAYOUT)
    size = of_source(table, table.fit_transform(CODES), "size")
    assert size.shape[1] == 2
    gap = size[:, 1]
    assert np.ptp(gap[:5]) == 0
    assert np.ptp(gap[5:]) == 0
    assert gap[0] - gap[5] == pytest.approx(min(FARTHEST, 1 / np.sqrt(5 / 60 * 55 / 60)))
    groups = np.array(table.groups_)[table.columns_ == 0]
    assert groups[0] != groups[1]


def test_ordered_words_are_numbers():
    table = TableCoordinates(LAYOUT)
    grade = of_source(table, table.fit_transform(CODES), "grade")[:, 0]
    low, middle, high = (grade[CODES[:, 3] == place].mean() for place in range(3))
    assert low < middle < high


def test_dates_have_cycles():
    table = TableCoordinates(LAYOUT).fit(CODES)
    rows = np.tile(CODES[[20]], (3, 1))
    rows[:, 4] = 18_100, 18_107, 18_103  # a week later; another day of the week
    day = of_source(table, table.transform(rows), "day")
    groups = np.array(table.groups_)[table.columns_ == 4]
    week = groups == groups[-2]  # number, gap, year and week: gaps come last
    assert len(np.unique(groups)) == 4
    assert np.abs(day[0] - day[1])[week].max() < 1e-9
    assert np.abs(day[0] - day[2])[week].max() > 0.5


def test_a_year_of_dates_has_no_hours():
    days = TableLayout((CodedColumn("day", "date"),))
    table = TableCoordinates(days).fit(np.arange(100.0)[:, None])
    assert len(table.groups_) == 3  # the date, and two coordinates of the day of the week
    with_hours = TableCoordinates(days).fit(np.arange(100.0)[:, None] / 8)
    assert len(with_hours.groups_) == 5


def test_codes_come_back():
    for views in (True, False):
        table = TableCoordinates(LAYOUT, views=views)
        back = table.inverse_transform(table.fit_transform(CODES))
        expected = CODES.copy()
        expected[-1, 1] = -1  # a rare word
        np.testing.assert_allclose(back, expected, atol=1e-6)


def rows_added(codes, y, weights):
    """Estimate the variance within categories over that between them, by plain sums (analysis of variance)."""
    names, mean, total = np.unique(codes), np.average(y, weights=weights), weights.sum()
    sizes = [weights[codes == name].sum() for name in names]
    means = [np.average(y[codes == name], weights=weights[codes == name]) for name in names]
    squares = sum(
        weights[codes == name] @ (y[codes == name] - own) ** 2 for name, own in zip(names, means, strict=True)
    )
    within = squares / total * len(y) / (len(y) - len(names))
    between = sum(size * (own - mean) ** 2 for size, own in zip(sizes, means, strict=True)) - (len(names) - 1) * within
    return within / (between / (total - sum(size**2 for size in sizes) / total))


def test_means_are_shrunken_as_far_as_they_are_noise():
    """Against the best linear prediction, which knows both variances."""
    random, place = np.random.default_rng(3), np.random.default_rng(4).integers(0, 400, 1600)
    for noise in (0.3, 1.0, 2.0):
        effects = random.normal(size=400)
        y = effects[place] + noise * random.normal(size=1600)
        found = LevelMeans.of(place.astype(float), y[:, None], np.ones(1600))(np.arange(400.0))[:, 0] + y.mean()
        sizes = np.bincount(place, minlength=400)
        best = np.bincount(place, y, 400) / (sizes + noise**2)
        errors = [np.mean((each - effects) ** 2) for each in (found, best)]
        assert errors[0] < 1.1 * errors[1]


def test_mean_targets_are_those_of_other_rows():
    codes = random.integers(0, 12, 200).astype(float)
    codes[:7] = np.nan
    y, weights = random.normal(size=(200, 1)), random.uniform(0.5, 2, 200)
    y += 0.6 * np.nan_to_num(codes, nan=-3.0)[:, None] % 5 - 1.0
    means, left_out = cross_fitted_means(codes, y, weights)
    added = rows_added(np.nan_to_num(codes, nan=-3.0), y[:, 0], weights)
    assert 0.3 < added < 100.0
    for code in (3.0, np.nan):
        own = np.isnan(codes) if np.isnan(code) else codes == code
        away = weights[own] @ (y[own, 0] - np.average(y[:, 0], weights=weights))
        assert means(np.array([code]))[0, 0] == pytest.approx(away / (weights[own].sum() + added))
    changed = y.copy()
    changed[17] += 100.0
    _, moved = cross_fitted_means(codes, changed, weights)
    own = int(np.flatnonzero((codes == codes[17]) & (np.abs(moved - left_out)[:, 0] < 1e-12)).size)
    assert own >= 1
    assert moved[17, 0] == pytest.approx(left_out[17, 0])  # a row knows nothing of its own target


def test_rows_of_a_group_know_nothing_of_each_other():
    codes, groups = np.repeat(np.arange(20.0) % 4, 5), np.repeat(np.arange(20), 5)
    y = random.normal(size=(100, 1))
    changed = y.copy()
    changed[groups == 3] += 50.0
    (_, before), (_, after) = (cross_fitted_means(codes, each, np.ones(100), groups) for each in (y, changed))
    np.testing.assert_allclose(after[groups == 3], before[groups == 3])
    assert np.abs(after - before).max() > 1


def test_many_targets_are_compared_in_three_directions():
    codes = random.integers(0, 30, 500).astype(float)
    y = np.eye(7)[(codes % 7).astype(int)]
    means, left_out = cross_fitted_means(codes, y, np.ones(500))
    assert means.n_columns == left_out.shape[1] == 3
    same = means(np.array([0.0, 7.0, 1.0]))
    assert np.abs(same[0] - same[1]).max() < 0.5 * np.abs(same[0] - same[2]).max()


def test_means_of_unknown_words_are_those_of_all_rows():
    means = LevelMeans.of(np.zeros(10), np.arange(10.0)[:, None], np.ones(10))
    np.testing.assert_allclose(means(np.array([0.0, 5.0, np.nan])), 0.0)


@pytest.mark.parametrize(("n_words", "expected"), [(200, [200, 200, 200]), (201, [52, 51, 51])])
def test_coordinates_of_means_need_targets_and_more_words_than_coordinates(n_words, expected):
    layout = TableLayout((CodedColumn("town", "category", tuple(map(str, range(n_words)))),))
    codes = np.tile(np.arange(float(n_words)), 6)[:, None]
    y = codes % 3
    widths = [
        TableCoordinates(layout, means=means).fit(codes, targets).transform(codes).shape[1] // 2
        for means, targets in ((True, y), (False, y), (True, None))
    ]
    assert widths == expected


def test_many_columns_of_many_words_share_the_coordinates():
    words = tuple(map(str, range(150)))
    for n_columns, expected in ((6, 6 * 150), (7, 7 * 51)):
        layout = TableLayout(tuple(CodedColumn(f"c{each}", "category", words) for each in range(n_columns)))
        codes = np.tile(np.arange(150.0), 2)[:, None].repeat(n_columns, 1)
        assert TableCoordinates(layout).fit_transform(codes).shape[1] // 2 == expected


def test_far_numbers_are_beyond():
    table = TableCoordinates(LAYOUT).fit(CODES)
    row = CODES[[20]].copy()
    assert not table.beyond(row).any()
    row[0, 0] = 100.0
    found = table.beyond(row)
    assert found.shape == (1, len(table.groups_))
    assert found[0, 0] == pytest.approx((100 - np.nanmax(CODES[:, 0])) / np.nanstd(CODES[:, 0]))


def test_a_table_of_categories_only():
    layout = TableLayout((CodedColumn("town", "category", WORDS),))
    table = TableCoordinates(layout)
    values = table.fit_transform(CODES[:, [1]])
    assert values.shape[1] == 2 * len(table.groups_)
    assert not table.beyond(CODES[:, [1]]).any()
