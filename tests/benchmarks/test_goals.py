"""The benchmark of many rows: what a job measures, its floor, and its table."""

import numpy as np
import pytest

from benchmarks import goals, pages
from benchmarks.forecasts import ResidualForecast
from kernelwright import EmbeddingClassifier
from kernelwright.learning import Auto
from kernelwright.solvers import Tree


def small(n):
    X, y, X_new, y_new = goals.made_up(n)
    return X, (y > 0).astype(int), X_new[:100], (y_new[:100] > 0).astype(int)


def test_a_job_measures_scores_seconds_and_memory(monkeypatch):
    made = lambda: EmbeddingClassifier(solver=Tree(100), learn=Auto(max_iter=1), random_state=0)  # noqa: E731
    monkeypatch.setitem(goals.METHODS, "kernelwright", made)
    monkeypatch.setattr(goals.number_peers, "load_compiled_loops", lambda: None)
    found = goals.measured(goals.Goal(small, 400), "kernelwright")
    assert found["accuracy %"] > 60
    assert 0 < found["log loss"] < 1
    assert 0 < found["floor, s"] < found["CPU seconds to fit"]
    assert found["GiB"] >= 0


def test_boosting_keeps_the_settings_with_the_least_error_and_its_residuals():
    class Constant:
        def __init__(self, value):
            self.value = value

        def predict(self, X):
            return np.full(len(X), self.value)

    boosted = goals.Boosted(lambda settings, *_: Constant(settings["value"]), [{"value": 5.0}, {"value": 1.1}])
    forecast = boosted.fit(np.zeros((200, 1)), np.ones(200)).forecast(np.zeros((3, 1)))
    assert isinstance(forecast, ResidualForecast)
    np.testing.assert_allclose(forecast.mean, 1.1)
    np.testing.assert_allclose(forecast.residuals, -0.1)


def test_a_table_shows_goals_in_brackets_and_names_what_is_not_measured(monkeypatch, tmp_path):
    (tmp_path / "goals.csv").write_text(
        "data,rows,method,accuracy %,RMSE,CPU seconds to fit,goal: accuracy %,goal: seconds\n"
        "ijcnn1,49990,kernelwright,98.512,,12.34,99.0,20.0\n"
        "protein,41157,CatBoost,,3.8591,5.25,,\n"
    )
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    table = pages.goals()
    assert "| ijcnn1 | 49,990 | kernelwright | 98.5 (99) | - | 12.3 (20) |" in table
    assert "| protein | 41,157 | CatBoost | 3.86 | - | 5.25 |" in table
    assert "Not measured yet: covtype, 10,000 rows" in table
    assert "protein" not in table.split("Not measured yet:")[1]


@pytest.mark.parametrize("name", goals.GOALS)
def test_every_method_of_a_goal_exists(name):
    assert set(goals.GOALS[name].methods) <= set(goals.METHODS)
