"""Frames, forms for each method, scores and pages of the benchmark on tables as people have them."""

import math
import sys

import numpy as np
import pandas as pd
import pytest

from benchmarks import number_ranks, suite, table_pages, table_peers, tables, worker
from benchmarks.forecasts import PointForecast, ResidualForecast, forecast_scores
from benchmarks.frames import frames, texts

FRAME = pd.DataFrame(
    {
        "n": [1.5, np.nan, 3.0, 0.1 + 0.2],
        "word": ["a, b", None, 'say "c"', "a, b"],
        "when": ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"],
        "count": [1, 2, 3, 4],
    }
)


def row(data, method, fold=0, note="", **measures):
    empty = dict.fromkeys(tables.COLUMNS, "")
    cells = {name.replace("_", " "): str(value) for name, value in measures.items()}
    return empty | {"data": data, "method": method, "fold": str(fold), "note": note} | cells


class TestFrames:
    def test_they_come_through_as_they_are(self):
        train, test = frames(*texts(FRAME[:3], FRAME[3:]), 3)
        pd.testing.assert_frame_equal(train, FRAME[:3])
        pd.testing.assert_frame_equal(test, FRAME[3:].reset_index(drop=True))

    def test_both_parts_have_the_types_of_the_whole(self):
        mixed = pd.DataFrame({"v": ["1", "2", "x"]})
        train, test = frames(*texts(mixed[:2], mixed[2:]), 2)
        assert train["v"].tolist() == ["1", "2"]
        assert test["v"].tolist() == ["x"]


class TestForms:
    def test_catboost_gets_words_for_gaps(self):
        model = table_peers.CatBoost()
        found = model.preparing(FRAME)(FRAME)
        assert model.words == ["word", "when"]
        assert found["word"].tolist() == ["a, b", "missing", 'say "c"', "a, b"]
        assert math.isnan(found["n"][1])

    def test_categories_are_those_of_the_training_frame(self):
        found = table_peers.as_categories(FRAME)(
            pd.DataFrame({"n": [1.0] * 3, "word": ["new", "a, b", None], "when": "x"})
        )
        assert found["word"].cat.codes.tolist() == [-1, 0, -1]

    def test_rare_categories_share_a_word(self):
        train = pd.DataFrame({"w": ["a"] * 3 + ["b"] * 2 + ["c", None]})
        found = table_peers.as_categories(train, 2)(pd.DataFrame({"w": ["a", "c", "new", None]}))["w"]
        assert list(found.cat.categories) == ["a", "b", "other"]
        assert found.cat.codes.tolist() == [0, 2, 2, -1]

    def test_networks_get_medians_and_marks(self):
        found = table_peers.TabM().preparing(FRAME[:3])(
            pd.DataFrame({"n": [np.nan], "word": "z", "when": "z", "count": 9})
        )
        assert found["n"].tolist() == [2.25]
        assert found["n is missing"].tolist() == [1.0]
        assert found["count"].tolist() == [9.0]


class TestResiduals:
    def test_crps_is_that_of_the_sample(self):
        random = np.random.default_rng(0)
        mean, residuals, y = random.normal(size=5), random.normal(size=31), random.normal(size=5)
        draws = mean[:, None] + residuals
        expected = np.abs(draws - y[:, None]).mean(1) - 0.5 * np.abs(residuals[:, None] - residuals).mean()
        np.testing.assert_allclose(ResidualForecast(mean, residuals).crps(y), expected)

    def test_residuals_are_those_of_rows_left_out(self):
        """A model that remembers its rows has no errors on them, but on the others."""
        random = np.random.default_rng(0)
        X, y = pd.DataFrame({"x": np.arange(100.0)}), random.normal(size=100)
        model = table_peers.LightGBM()
        model.regressor = lambda: table_peers.HistGradientBoostingRegressor(min_samples_leaf=1, max_iter=300)
        model.fit(X, y)
        assert np.abs(y - model.model.predict(X)).mean() < 0.1
        found = model.with_distribution(PointForecast(np.zeros(3)))
        assert np.abs(found.residuals).mean() > 0.5

    def test_the_interval_covers_what_it_says(self):
        random = np.random.default_rng(0)
        forecast = ResidualForecast(np.zeros(4000), random.normal(size=4000))
        assert forecast_scores(forecast, random.normal(size=4000))["coverage"] == pytest.approx(0.9, abs=0.02)


class TestTasks:
    def test_two_splits_of_the_usual_methods(self):
        tasks = [task for chain in tables.chains(False) for task in chain]
        assert {task.fold for task in tasks} == {0, 1}
        assert {task.method for task in tasks} == {n for n, m in table_peers.METHODS.items() if m.usual}
        assert {task.data.name for task in tasks} == set(tables.TABLES)

    def test_all_splits_of_all_methods(self):
        tasks = [task for chain in tables.chains(False, splits=5, every_method=True) for task in chain]
        assert {task.method for task in tasks} == set(table_peers.METHODS)
        quantiles = {task.data.name for task in tasks if task.method == "CatBoost, quantiles"}
        assert quantiles == set(tables.NUMBERS)

    @pytest.mark.parametrize(("name", "classes"), [("penguins", 3), ("attrition", 2), ("wage", 0)])
    def test_splits(self, name, classes, data_folder):
        first, second = (tables.table(name).split(fold) for fold in (0, 1))
        X, y, X_test, y_test = first
        train, test = frames(X, X_test, len(y))
        assert (len(train), len(test)) == (len(y), len(y_test))
        assert len(test) == pytest.approx(0.25 * len(train), abs=1)
        assert tables.TABLES[name].target not in train
        assert not np.array_equal(y, second[1])
        if classes:
            assert np.unique(y).tolist() == np.unique(y_test).tolist() == list(range(classes))
            np.testing.assert_allclose(np.bincount(y) / len(y), np.bincount(y_test) / len(y_test), atol=0.02)

    def test_the_leak_of_wage_is_left_out(self, data_folder):
        assert "logwage" not in tables.rows_of("wage")[0]


def small(kind):
    def split(fold):
        random = np.random.default_rng(fold)
        frame = pd.DataFrame({"x": random.normal(size=120), "w": random.choice(["red", "blue"], 120)})
        signal = frame["x"].to_numpy() + 2.0 * (frame["w"] == "red").to_numpy()
        y = (signal > 1.0).astype(int) if kind == "classes" else signal
        X, X_test = texts(frame[:90], frame[90:])
        return X, y[:90], X_test, y[90:]

    return suite.Data("small", split, 1, 60.0)


class TestWorker:
    """Use a real process, with the methods that are installed here."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("method", "kind", "measure", "low", "high"),
        [
            ("kernelwright", "numbers", "CRPS", 0, 0.2),
            ("histogram boosting", "numbers", "CRPS", 0, 0.35),
            ("histogram boosting", "classes", "accuracy %", 75, 100),
        ],
    )
    def test_a_fit_is_measured(self, tmp_path, method, kind, measure, low, high):
        with suite.InProcesses(tmp_path, sys.executable, tables.CONTEST) as measured:
            found = measured(suite.Task(small(kind), 0, method))
        assert found["note"] == ""
        assert low <= found[measure] <= high
        assert found["features"] == 2
        assert set(found) <= set(tables.COLUMNS)

    def test_scores_of_probabilities(self):
        P, y = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]), np.array([0, 0, 1])
        found = worker.ASKED["tables"].told(None, P, y)
        assert found["log loss"] == pytest.approx(-np.log([0.8, 0.4, 0.7]).mean())
        assert found["accuracy %"] == pytest.approx(200 / 3)
        assert found["AUC"] == 1.0


class TestPages:
    def test_pages_are_made_from_any_state(self, monkeypatch):
        monkeypatch.setattr(table_pages, "rows", lambda *_: [])
        assert all(isinstance(make(), str) for make in table_pages.PAGE.values())

    def test_words(self, monkeypatch):
        rows = [row(name, m, f, CRPS=c, RMSE=c) for name in tables.NUMBERS for f in (0, 1) for m, c in WORDS.items()]
        rows = [each | {"CPU seconds to fit": "4" if each["method"] == "CatBoost" else "1"} for each in rows]
        monkeypatch.setattr(table_pages, "rows", lambda *_: rows)
        found = table_pages.words()
        assert "RMSE next to the best peer's**: +5.0 % on average; hitters +5.0 % (LightGBM)" in found
        assert "CatBoost's**: 0.25 times" in found
        assert "**RMSE**: LightGBM 1.00, kernelwright 2.00, CatBoost 3.00." in found

    def test_more_auc_is_better(self, monkeypatch):
        rows = [row("attrition", m, AUC=value) for m, value in (("kernelwright", 0.9), ("CatBoost", 0.8))]
        monkeypatch.setattr(table_pages, "rows", lambda *_: rows)
        assert "| attrition | **0.900** | 0.800 |" in table_pages.PAGE["tables_auc"]()

    def test_classes_and_numbers_are_ranked_by_their_own_measures(self):
        rows = [row(name, m, log_loss=v) for name in tables.CLASSES for m, v in (("a", 1.0), ("b", 2.0))]
        found = number_ranks.mean_rank_rows(rows, tables.CLASSES, {"log loss": False, "AUC": True}, "log loss")
        assert [(each["method"], each["log loss"], each["AUC"]) for each in found] == [("a", 1.0, ""), ("b", 2.0, "")]


WORDS = {"kernelwright": 1.05, "CatBoost": 1.5, "LightGBM": 1.0}
