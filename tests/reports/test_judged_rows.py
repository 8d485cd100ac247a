import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from kernelwright import EmbeddingRegressor, solvers
from kernelwright.reports.judged_rows import JudgedRows, left_out_rows


def draw(n, seed):
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) + (0.1 + 0.2 * (X[:, 1] > 0)) * random.normal(size=n)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(rng, weighted):
    y, mean, crps = rng.normal(size=60), rng.normal(size=60), rng.uniform(size=60)
    w = rng.uniform(0.5, 2.0, 60) if weighted else np.ones(60)
    interval = np.column_stack([mean - 1, mean + rng.uniform(size=60)])
    found = JudgedRows(y, w, mean, interval, np.zeros((60, 2)), crps, None, "row", "").scores()
    inside = (interval[:, 0] <= y) & (y <= interval[:, 1])
    expected = {
        "R²": r2_score(y, mean, sample_weight=w),
        "RMSE": root_mean_squared_error(y, mean, sample_weight=w),
        "MAE": mean_absolute_error(y, mean, sample_weight=w),
        "CRPS": np.average(crps, weights=w),
        "coverage": np.average(inside, weights=w),
        "width": np.average(np.ptp(interval, axis=1), weights=w),
    }
    assert {name: score.value for name, score in found.items()} == pytest.approx(expected)
    assert all(score.low <= score.value <= score.high for score in found.values())


def test_intervals_of_scores_hold_the_truth():
    """The bootstrap interval of the mean absolute error holds that of an infinite sample."""
    hits = []
    for seed in range(200):
        error = np.random.default_rng(seed).normal(size=80)
        zeros, ends = np.zeros(80), np.zeros((80, 2))
        score = JudgedRows(error, np.ones(80), zeros, ends, ends, zeros, None, "row", "").scores()["MAE"]
        hits.append(score.low <= np.sqrt(2 / np.pi) <= score.high)
    assert 0.89 < np.mean(hits) <= 0.99


def test_left_out_rows_are_as_hard_as_new_rows():
    """The page must not flatter: its scores are close to those on rows that the model never saw."""
    left_out, new = [], []
    for seed in range(4):
        model = EmbeddingRegressor(random_state=0).fit(*draw(150, seed))
        X, y = draw(1000, 100 + seed)
        found = left_out_rows(model).scores()
        low, high = model.interval(X).T
        left_out.append([found[name].value for name in ("R²", "coverage", "CRPS")])
        new.append([model.score(X, y), np.mean((low <= y) & (y <= high)), model.crps(X, y).mean()])
    difference = np.mean(left_out, 0) - np.mean(new, 0)
    assert np.abs(difference) == pytest.approx([0, 0, 0], abs=0.03)


def test_rows_have_the_numbers_that_they_had_in_fit():
    X, y = draw(60, 0)
    X, y = np.vstack([X, X[:5]]), np.append(y, y[:5])
    weights = np.ones(65)
    weights[10] = 0.0
    found = left_out_rows(EmbeddingRegressor(learn=None).fit(X, y, sample_weight=weights))
    np.testing.assert_allclose(found.y, y[found.rows - 1])
    assert sorted(found.rows) == [n for n in range(1, 61) if n != 11]
    assert found.crps[found.rows == 3] == pytest.approx(found.crps[found.rows == 3])


def test_a_sample_of_rows_has_no_numbers():
    found = left_out_rows(
        EmbeddingRegressor(learn=None, solver=solvers.Landmarks(20), random_state=0).fit(*draw(200, 0))
    )
    assert found.rows is None
    assert len(found.y) == 10


def test_tails_are_those_of_both_sides():
    pit = np.array([[0.1, 0.1], [0.95, 0.95], [0.3, 0.8], [0.5, 0.5]])
    zeros = np.zeros(4)
    found = JudgedRows(zeros, zeros + 1, zeros, np.zeros((4, 2)), pit, zeros, None, "row", "")
    assert found.tail == pytest.approx([0.2, 0.1, 1.0, 1.0])
