"""Cross-validation of numbers: every row once, honest distributions for rivals, and answers that are good."""

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict

from kernelwright import EmbeddingRegressor
from kernelwright.evaluation import NumberEvaluation, around_residuals, cross_validate_numbers, number_folds

LINEAR = {"linear": LinearRegression, "mean": DummyRegressor}


def waves(rng, n):
    """Return a wave whose noise grows with x: no straight line, and no constant width, describes it."""
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.1 * (2.2 + X[:, 0]) * rng.normal(size=n)


@pytest.fixture(scope="module")
def found():
    X, y = waves(np.random.default_rng(0), 240)
    make = lambda: EmbeddingRegressor(random_state=0)  # noqa: E731
    return X, y, cross_validate_numbers(make, X, y, splits=number_folds(240, 3, seed=1), rivals=LINEAR)


def test_rivals_are_predicted_as_by_scikit_learn(found):
    X, y, result = found
    folds = KFold(3, shuffle=True, random_state=1)
    means = cross_val_predict(LinearRegression(), X, y, cv=folds)
    scores = result.rivals["linear"].scores
    assert scores.rmse.value == pytest.approx(np.sqrt(np.mean((y - means) ** 2)))
    crps = np.zeros(len(y))
    for _, test in folds.split(X):
        others = np.setdiff1d(np.arange(len(y)), test)
        draws = means[test][:, None] + (y - means)[others]
        crps[test] = np.abs(draws - y[test][:, None]).mean(1)
        crps[test] -= 0.5 * np.abs((y - means)[others][:, None] - (y - means)[others]).mean()
    assert scores.crps.value == pytest.approx(crps.mean())


def test_the_model_is_clearly_better_than_a_line_and_knows_its_errors(found):
    _, y, result = found
    assert result.scores.r2.low > 0.7
    assert result.scores.coverage.low < 0.9 < result.scores.coverage.high
    for rival in result.rivals.values():
        assert rival.gain.low > 0
        assert rival.error_gain.low > 0
        assert rival.gain.value == pytest.approx(rival.scores.crps.value - result.scores.crps.value)
    assert kstest(result.predictions.pit, "uniform").pvalue > 0.01
    assert np.all(result.predictions.low < result.predictions.high)
    assert np.array_equal(result.actual, y)


def test_hard_rows_are_those_with_the_largest_score(found):
    _, y, result = found
    worst = result.hardest(3)
    assert [row.crps for row in worst] == sorted(result.predictions.crps, reverse=True)[:3]
    assert [row.actual for row in worst] == [y[row.row - 1] for row in worst]


def test_steps_of_a_discrete_distribution_are_spread(rng):
    X = rng.normal(size=(400, 1))
    y = rng.poisson(np.exp(0.3 * X[:, 0])).astype(float)
    make = lambda: EmbeddingRegressor(learn=None, random_state=0)  # noqa: E731
    result = cross_validate_numbers(make, X, y, splits=number_folds(400, 2))
    assert kstest(result.predictions.pit, "uniform").pvalue > 0.001
    assert len(np.unique(y)) < 12


def test_a_rival_that_fails_is_left_out(rng):
    class Refuses(LinearRegression):
        def fit(self, X, y):
            raise ValueError("no")

    X, y = waves(rng, 40)
    make = lambda: EmbeddingRegressor(learn=None)  # noqa: E731
    result = cross_validate_numbers(make, X, y, splits=number_folds(40, 2), rivals=LINEAR | {"refuses": Refuses})
    assert list(result.rivals) == ["linear", "mean"]


def test_folds_test_every_row_once_and_need_a_few_rows():
    for n, folds in ((4, 2), (7, 3), (50, 5)):
        splits = number_folds(n, 5)
        assert len(splits) == folds
        assert np.array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(n))
    with pytest.raises(ValueError, match=r"at least 4 rows\. Got 3"):
        number_folds(3, 5)


def test_a_summary_is_plain(found):
    summary = found[2].summary()
    assert summary["rows"] == 240
    assert summary["rivals"]["mean"]["scores"]["r2"]["value"] < 0.05
    said = around_residuals(np.zeros(2), np.array([-1.0, 1.0]), np.array([0.5, 9.0]))
    assert (
        NumberEvaluation.of(said, np.array([0.5, 9.0]), protocol="by hand", rows=np.array([7, 8])).hardest(1)[0].row
        == 8
    )


def test_the_models_of_the_folds_say_which_columns_they_look_at(rng):
    X = np.c_[rng.permutation(150) + 1e4, rng.normal(size=150)]
    y = np.abs(X[:, 1])
    make = lambda: EmbeddingRegressor(learn=None, random_state=0)  # noqa: E731
    found = cross_validate_numbers(make, X, y, splits=number_folds(150, 3)).importance
    assert [row.name for row in found.rows] == ["x1", "x0"]
    assert found.measure == "CRPS"
    assert found.rows[0].low > 10 * abs(found.rows[1].loss)
