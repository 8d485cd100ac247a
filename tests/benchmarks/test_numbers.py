"""Tasks, bookkeeping, ranks and published numbers of the benchmark for numbers."""

import math
import sys

import numpy as np
import pandas as pd
import pytest

from benchmarks import number_pages, number_peers, number_ranks, numbers, suite, worker
from tools import tables


def row(data, method, fold=0, note="", **measures):
    cells = {name: str(value) for name, value in measures.items()}
    empty = dict.fromkeys(numbers.COLUMNS, "")
    return empty | {"data": data, "method": method, "fold": str(fold), "note": note, "seen": "no"} | cells


class TestTasks:
    def test_two_splits_of_the_usual_methods(self):
        tasks = [task for chain in numbers.chains(False) for task in chain]
        assert {task.fold for task in tasks} == {0, 1}
        assert {task.method for task in tasks} == {n for n, m in number_peers.METHODS.items() if m.usual}
        assert {task.data.name for task in tasks} == {*numbers.UCI, *numbers.TABLES}

    def test_all_splits_of_all_methods(self):
        tasks = [task for chain in numbers.chains(False, splits=20, every_method=True) for task in chain]
        assert {task.method for task in tasks} == set(number_peers.METHODS)
        folds = {name: {t.fold for t in tasks if t.data.name == name} for name in ("yacht", "protein", "ames")}
        assert {name: len(each) for name, each in folds.items()} == {"yacht": 20, "protein": 5, "ames": 5}

    def test_all_methods_have_more_time(self):
        def limits(**more):
            return {t.data.name: t.data.seconds for chain in numbers.chains(False, **more) for t in chain}

        usual, patient = limits(), limits(every_method=True)
        assert usual["yacht"] < usual["protein"]
        assert all(patient[name] > usual[name] for name in usual)

    def test_named_methods_and_sets(self):
        (chain,) = numbers.chains(False, ["TabM"], ["yacht"], splits=1)
        assert [task.key for task in chain] == [("yacht", "0", "TabM")]

    @pytest.mark.parametrize("name", ["yacht", "wine_quality"])
    def test_published_splits_test_a_tenth(self, name, data_folder):
        X, y, X_test, y_test = numbers.uci(name).split(3)
        assert len(y) + len(y_test) == numbers.UCI[name][1]
        assert len(y_test) == round(0.1 * numbers.UCI[name][1])
        assert X.shape[1] == X_test.shape[1]

    @pytest.mark.parametrize("name", ["hitters", "wage"])
    def test_tables_are_encoded_alike(self, name, data_folder):
        X, y, X_test, y_test = numbers.table(name).split(0)
        assert X.shape[1] == X_test.shape[1]
        assert all(np.isfinite(each).all() for each in (X, y, X_test, y_test))
        # No column is the target or a monotone function of it.
        ranks = pd.DataFrame(X).assign(target=y).corr("spearman")["target"].drop("target")
        assert ranks.abs().max() < 0.99

    def test_without_data_nothing_is_tried(self, monkeypatch, tmp_path):
        monkeypatch.setenv("KERNELWRIGHT_DATA", str(tmp_path))
        assert not numbers.has_data()


class TestEncoding:
    def test_gaps_and_rare_categories(self):
        train = pd.DataFrame({"n": [1.0, np.nan, 3.0], "c": ["a", "b", None]})
        encoder = numbers.plain_encoder().fit(train)
        found = encoder.transform(pd.DataFrame({"n": [np.nan, 5.0], "c": ["a", "new"]}))
        np.testing.assert_array_equal(found[:, :2], [[2.0, 1.0], [5.0, 0.0]])  # the median, and a mark
        np.testing.assert_array_equal(found[:, 2:], [[1, 0, 0], [0, 0, 0]])


def data(seconds=60.0):
    def split(fold):
        random = np.random.default_rng(fold)
        X = random.normal(size=(60, 3))
        y = X @ [1.0, 2.0, 3.0] + 0.1 * random.normal(size=60)
        return X[:50], y[:50], X[50:], y[50:]

    return suite.Data("line", split, 2, seconds)


class TestWorker:
    """Use a real process, with methods that need only scikit-learn."""

    @pytest.mark.parametrize(("method", "known"), [("ridge", False), ("Gaussian process", True)])
    def test_a_fit_is_measured(self, tmp_path, method, known):
        with suite.InProcesses(tmp_path, sys.executable, numbers.NUMBERS) as measure:
            found = measure(suite.Task(data(), 0, method))
        assert found["note"] == ""
        assert found["RMSE"] < 0.2
        assert math.isnan(found["CRPS"]) == (not known)
        assert set(found) <= set(numbers.COLUMNS)

    def test_too_many_rows_are_not_tried(self):
        split = {"y_train": np.zeros(2001)}
        found = worker.answer(worker.ASKED["numbers"], "Gaussian process", split, 1.0, 1.0)
        assert found["note"] == f"{suite.NOT_FINISHED}: takes at most 2000 rows"

    def test_what_is_not_known_is_an_empty_cell(self, tmp_path):
        path = tmp_path / "numbers.csv"
        suite.append(path, {"data": "s", "CRPS": math.nan, "RMSE": 1.23456789}, numbers.COLUMNS)
        (found,) = tables.read(path)
        assert (found["CRPS"], found["RMSE"]) == ("", "1.23457")


ROWS = [
    *(row("yacht", "a", f, RMSE=1, CRPS=1, NLL=1) for f in (0, 1)),
    *(row("yacht", "b", f, RMSE=2, CRPS=0.5, NLL=0.5) for f in (0, 1)),
    row("yacht", "point", RMSE=0.5),
    row("wine_quality", "a", RMSE=1, CRPS=2, NLL=9),
    row("wine_quality", "b", RMSE=2, CRPS=1, NLL=8),
    row("wine_quality", "point", RMSE=3),
    row("yacht", "elsewhere", RMSE=0.1, CRPS=0.1),
]


class TestRanks:
    def test_a_point_is_not_ranked_by_its_distribution(self):
        found = number_ranks.scores(ROWS, "CRPS", numbers.UCI)
        assert found.methods == ["a", "b"]
        np.testing.assert_array_equal(found.mean_ranks, [2, 1])

    def test_whole_numbers_have_no_density(self):
        assert number_ranks.scores(ROWS, "NLL", numbers.UCI).data == ["yacht"]

    def test_a_method_that_was_not_given_all_sets_is_not_ranked(self):
        found = number_ranks.scores(ROWS, "RMSE", numbers.UCI)
        assert sorted(found.methods) == ["a", "b", "point"]
        assert dict(zip(found.methods, found.mean_ranks, strict=True)) == {"a": 1.5, "b": 2.5, "point": 2.0}

    def test_only_splits_that_all_were_given_count(self):
        rows = [row("yacht", "a", 0, RMSE=1), row("yacht", "a", 1, RMSE=9), row("yacht", "b", 0, RMSE=2)]
        assert number_ranks.scores(rows, "RMSE", numbers.UCI).values.tolist() == [[1.0, 2.0]]

    def test_one_method_alone_has_no_rank(self):
        rows = [row("yacht", "a", RMSE=1, CRPS=1), row("yacht", "point", RMSE=2)]
        found = number_ranks.mean_rank_rows(rows, numbers.UCI)
        assert [(each["method"], each["RMSE"], each["CRPS"]) for each in found] == [("a", 1.0, ""), ("point", 2.0, "")]
        assert number_ranks.mean_rank_rows(rows[:1], numbers.UCI) == []

    def test_mean_and_standard_error(self):
        found = number_ranks.mean(
            [row("s", "a", f, coverage=v) for f, v in enumerate((0.8, 0.9, 1.0))], "s", "a", "coverage"
        )
        assert (found.value, found.splits) == (pytest.approx(0.9), 3)
        assert found.error == pytest.approx(0.1 / math.sqrt(3))


class TestPublished:
    def test_every_method_has_the_nine_sets(self):
        known = number_pages.published()
        for method in {each["method"] for each in known}:
            own = [each for each in known if each["method"] == method]
            assert sorted(each["data"] for each in own) == sorted(numbers.UCI)
            assert all(float(each["RMSE"]) >= 0 for each in own)

    @pytest.mark.parametrize(
        ("ours", "theirs", "verdict"),
        [(0.0001, "0.00", "level"), (0.084, "0.09", "better"), (0.494, "0.50", "better"), (2.43, "2.40", "worse")],
    )
    def test_verdicts_at_the_published_digits(self, ours, theirs, verdict):
        assert number_pages._verdict(ours, theirs) == verdict
        assert number_pages._verdict(math.nan, theirs) == ""

    @pytest.mark.parametrize(
        ("ours", "cells"),
        [(1.0e-6, ("**0.0000**", "0.01", "**0.00**")), (0.02, ("0.0200", "0.01", "**0.00**"))],
    )
    def test_the_best_at_the_published_digits_is_bold(self, monkeypatch, ours, cells):
        monkeypatch.setattr(number_pages, "rows", lambda: [row("naval", "kernelwright", RMSE=ours)])
        (line,) = [each for each in number_pages.beside_published("RMSE").splitlines() if "naval" in each]
        shown = [cell.strip() for cell in line.split("|")]
        assert (shown[3], shown[4], shown[7]) == cells  # ours, PBP, deep ensembles

    def test_pages_are_made_from_any_state(self, monkeypatch):
        monkeypatch.setattr(number_pages, "rows", list)
        assert all(isinstance(make(), str) for make in number_pages.PAGE.values())
        some = [
            row("yacht", m, f, RMSE=1, CRPS=1, NLL=1, coverage=0.9, width=1)
            for m in ("kernelwright", "NGBoost")
            for f in (0, 1)
        ]
        monkeypatch.setattr(number_pages, "rows", lambda: some)
        pages = {name: make() for name, make in number_pages.PAGE.items()}
        assert "| yacht | 2 | 1.00 |" in pages["numbers_published_rmse"]
        assert "PBP: RMSE better on 1 of 1; NLL better on 1 of 1" in pages["numbers_published_words"]
        assert "0.900 ± 0.000; 1" in pages["numbers_coverage"]
        assert "RMSE**: 0 of 1 sets" in pages["numbers_words"]

    def test_what_is_behind_or_not_covered_is_told(self, monkeypatch):
        some = [row("yacht", "kernelwright", f, RMSE=1.1, CRPS=1, coverage=0.95 + 0.01 * f, width=1) for f in (0, 1)]
        some += [row("yacht", "NGBoost", f, RMSE=1, CRPS=2, coverage=0.5, width=1) for f in (0, 1)]
        monkeypatch.setattr(number_pages, "rows", lambda: some)
        words = number_pages.words()
        assert "RMSE**: 1 of 1 sets: yacht by 10.0 % (NGBoost)" in words
        assert "CRPS**: 0 of 1 sets" in words
        assert "on 0 of 1 sets; not on yacht 0.955 ± 0.005" in words
