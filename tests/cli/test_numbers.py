"""Numbers on the command line: fit, predict and evaluate."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

import kernelwright
from kernelwright.cli import run
from kernelwright.cli.number_scoring import number_score_tables, number_words
from kernelwright.evaluation import NumberEvaluation, around_residuals


def homes(n, seed):
    """Return a table of prices that depend on a size with gaps and a town; the noise grows with the price."""
    rng = np.random.default_rng(seed)
    size, town = rng.uniform(40, 200, n), rng.choice(["Bonn", "Ulm", "Rom"], n)
    price = size**1.2 * np.where(town == "Ulm", 900, 500) * np.exp(0.1 * rng.normal(size=n))
    frame = pd.DataFrame({"id": [f"h{k:03d}" for k in range(n)], "size": size.round(1), "town": town})
    return frame.assign(noise=rng.normal(size=n), price=price.round(-2).astype(int))


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    """Write tables of prices and a model learned from them, and return their paths and what fit printed."""
    folder = tmp_path_factory.mktemp("prices")
    train, test = homes(160, 0), homes(80, 1)
    train.assign(price=[None if k == 5 else price for k, price in enumerate(train["price"])]).to_csv(
        folder / "train.csv", index=False
    )
    test.to_csv(folder / "test.csv", index=False)
    model, out = folder / "model.kw", folder / "fit.json"
    found = SimpleNamespace(
        folder=folder, train=str(folder / "train.csv"), test=str(folder / "test.csv"), model=str(model), frame=test
    )
    with pytest.MonkeyPatch.context() as patched, out.open("w") as file:
        patched.setattr("sys.stdout", file)
        assert run(["fit", found.train, "--target", "price", "--folds", "2", "--json", "-o", found.model]) == 0
    found.record = json.loads(out.read_text())
    return found


def test_the_record_of_a_fit_agrees_with_the_model(prices):
    record, model = prices.record, kernelwright.load(prices.model)
    assert (record["task"], record["rows"]) == ("numbers", 159)
    assert record["numbers"]["mean"] == model.numbers.mean
    assert record["evaluation"]["r2"]["value"] == model.evaluation.scores.r2.value
    assert list(record["evaluation"]["rivals"]) == [
        "training mean",
        "ridge regression",
        "random forest",
        "gradient boosting",
    ]
    assert model.evaluation.rows[:6].tolist() == [2, 3, 4, 5, 6, 8]  # line 7 has no price
    assert any("1 row without a value of 'price' left out." in note for note in record["notes"])
    assert any("so numbers are predicted. --task classes" in note for note in record["notes"])


def test_fit_shows_what_it_took_and_how_good_it_is(prices, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    arguments = ["--target", "price", "--folds", "2", "--drop", "noise", "-o", str(tmp_path / "m.kw")]
    assert run(["fit", prices.test, *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for words in (
        "80 rows, 4 columns besides the target 'price' with numbers from",
        "--task classes",
        "R^2",
        "RMSE",
        "MAE",
        "CRPS",
        "coverage of 90 % intervals",
        "their width",
        "training mean",
        "ridge regression",
        "random forest",
        "gradient boosting",
        "Measured by cross-validation with 2 folds",
        "CRPS, row by row: clearly better than training mean",
        "Squared error, row by row: clearly better than training mean",
    ):
        assert words in out
    assert max(map(len, out.splitlines())) < 200


def test_predict_writes_means_intervals_and_quantiles_that_are_right(prices, tmp_path):
    out = tmp_path / "out.csv"
    arguments = ["--interval", "0.8", "--quantiles", "0.25, 0.5,0.75"]
    assert run(["predict", prices.model, prices.test, "-o", str(out), *arguments]) == 0
    found, actual = pd.read_csv(out), prices.frame["price"]
    names = ["quantile_0.25", "quantile_0.5", "quantile_0.75"]
    assert list(found) == ["id", "prediction", "interval_low", "interval_high", *names]
    assert r2_score(actual, found["prediction"]) > 0.85
    assert 0.65 < actual.between(found["interval_low"], found["interval_high"]).mean() < 0.95
    ordered = found[["interval_low", *names, "interval_high"]].to_numpy()
    assert np.all(np.diff(ordered, axis=1) >= 0)
    model = kernelwright.load(prices.model)
    assert found["prediction"].to_numpy() == pytest.approx(model.predict(prices.frame), rel=1e-5)
    assert found["interval_low"].to_numpy() == pytest.approx(model.quantile(prices.frame, 0.1), rel=1e-4)


def test_the_interval_is_one_of_ninety_percent_unless_said(prices, tmp_path):
    out = tmp_path / "out.csv"
    assert run(["predict", prices.model, prices.test, "-o", str(out), "--no-proba", "--keep-columns"]) == 0
    found = pd.read_csv(out)
    assert list(found) == [*prices.frame, "prediction", "interval_low", "interval_high"]
    expected = kernelwright.load(prices.model).interval(prices.frame, 0.9)
    assert found[["interval_low", "interval_high"]].to_numpy() == pytest.approx(expected, rel=1e-4)


def test_predict_says_where_it_can_only_guess(prices, tmp_path, capsys):
    prices.frame[:4].assign(size=9e9, town="Paris").to_csv(tmp_path / "far.csv", index=False)
    assert run(["predict", prices.model, str(tmp_path / "far.csv"), "-o", str(tmp_path / "out.csv")]) == 0
    assert "Values outside the range of the training rows: size (4)" in capsys.readouterr().err


def test_evaluate_agrees_with_scikit_learn(prices, capsys):
    assert run(["evaluate", prices.model, prices.test, "--json"]) == 0
    found, frame = json.loads(capsys.readouterr().out), prices.frame
    model = kernelwright.load(prices.model)
    assert found["r2"]["value"] == pytest.approx(r2_score(frame["price"], model.predict(frame)))
    low, high = model.interval(frame, 0.9).T
    assert found["coverage"]["value"] == np.mean((low <= frame["price"]) & (frame["price"] <= high))
    assert found["rivals"]["training mean"]["gain"]["low"] > 0
    assert not found["target_drift"]["found"]
    assert not found["drift"]["found"]


def test_evaluate_in_words(prices, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # workers of pytest-xdist have 80, where cells are wrapped
    assert run(["evaluate", prices.model, prices.test]) == 0
    out = capsys.readouterr().out
    for words in (
        "in training",
        "scores of its cross-validation",
        "Hardest rows",
        "actual",
        "No drift of the target",
        "No drift: ",
    ):
        assert words in out
    prices.frame.assign(price=3 * prices.frame["price"]).to_csv(tmp_path / "dear.csv", index=False)
    assert run(["evaluate", prices.model, str(tmp_path / "dear.csv")]) == 0
    out = capsys.readouterr().out
    assert "Drift of the target (p-value: " in out
    assert "outside the range of the training targets" in out
    assert "The intervals are too narrow: they should hold 90 % of the numbers, and held" in out


def test_an_evaluation_of_numbers_has_a_page(prices, tmp_path):
    assert run(["evaluate", prices.model, prices.test, "--report", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text()
    for words in ("Average error of price", "Calibration", "No drift of the target", "what-if-panel", "training mean"):
        assert words in text
    assert "cannot be made" not in text


def test_rows_without_a_number_are_left_out_of_an_evaluation(prices, tmp_path, capsys):
    prices.frame.assign(price=[None, *prices.frame["price"][1:]]).to_csv(tmp_path / "gap.csv", index=False)
    assert run(["evaluate", prices.model, str(tmp_path / "gap.csv"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["rows"] == 79
    assert "Note: 1 row without a value of 'price' left out." in err


def test_one_row_can_be_evaluated(prices, tmp_path, capsys):
    prices.frame[:1].to_csv(tmp_path / "one.csv", index=False)
    assert run(["evaluate", prices.model, str(tmp_path / "one.csv")]) == 0
    assert "undefined" in capsys.readouterr().out  # the share of explained variance


def test_options_of_the_other_task_are_refused(prices, files, capsys):
    for words in (["--sets", "0.9"], ["--proba"]):
        assert run(["predict", prices.model, prices.test, *words]) == 2
        assert f"{words[0]} does not suit this model, which predicts numbers" in capsys.readouterr().err
    for words in (["--interval", "0.9"], ["--quantiles", "0.5"]):
        assert run(["predict", files.model, files.test, *words]) == 2
        assert f"{words[0]} does not suit this model, which predicts classes" in capsys.readouterr().err


def test_numbers_can_be_learned_as_classes_and_the_other_way_round(tmp_path, capsys):
    frame = pd.DataFrame({"x": np.arange(60.0) ** 2, "grade": [1, 2, 3, 4, 5, 6] * 10})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for arguments, task in (([], "classes"), (["--task", "numbers"], "numbers"), (["--task", "classes"], "classes")):
        line = ["fit", str(tmp_path / "t.csv"), "-t", "grade", "--no-cv", "--json", "-o", str(tmp_path / "m.kw")]
        assert run([*line, *arguments]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record["task"] == task
        assert any("--task numbers" in note for note in record["notes"]) == (not arguments)


def test_very_few_rows_are_learned_or_refused_in_words(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("x,y\n1,0.5\n2,1.5\n4,2.5\n")
    line = ["fit", str(tmp_path / "t.csv"), "-t", "y", "-o", str(tmp_path / "m.kw")]
    assert run(line) == 2
    assert "Cross-validation needs at least 4 rows. Got 3. Use --no-cv" in capsys.readouterr().err
    assert run([*line, "--no-cv"]) == 0
    assert run(["predict", str(tmp_path / "m.kw"), str(tmp_path / "t.csv")]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 4


@pytest.mark.parametrize(
    ("reach", "words"), [(0.0, "because many numbers are equal"), (1e-9, "too wide"), (-0.25, "too narrow")]
)
def test_intervals_with_numbers_at_their_ends_are_not_called_too_wide(reach, words):
    y = np.repeat([0.0, 1.0], 300)
    found = around_residuals(y, np.zeros(1), y)
    found = replace(found, low=-reach * np.ones(600), high=(1 + reach) * np.ones(600))
    (said,) = number_words(NumberEvaluation.of(found, y, protocol="by hand"))
    assert words in said


def test_a_share_of_nothing_has_no_sign():
    y = np.arange(10.0)
    found = NumberEvaluation.of(around_residuals(np.full(10, 4.5001), y - 4.5, y), y, protocol="by hand")
    assert -1e-4 < found.scores.r2.value < 0
    (row,) = number_score_tables({"mean": found.scores})["Scores"]
    assert row["R^2"].startswith("0.000 (")
