import io
import json
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

import kernelwright
from kernelwright import reports
from kernelwright.cli import run


def test_fit_shows_columns_and_how_good_the_model_is(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # workers of pytest-xdist have 80, where cells are wrapped
    status = run(["fit", files.train, "--target", "species", "--folds", "2", "-o", str(tmp_path / "m.kw"), "--columns"])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    for words in (
        "90 rows, 7 columns besides the target 'species' with 3 classes",
        "left out: a different whole number in every row",
        "left out: one value only",
        "1 missing: a state of their own",
        "--keep COLUMN",
        "majority class",
        "logistic regression",
        "random forest",
        "cross-validation with 2 folds",
        "clearly better than majority class",
        "What it looks at: log loss added when a column is shuffled",
        "No clear help at these rows",
        "saved in",
    ):
        assert words in out
    assert max(map(len, out.splitlines())) < 200


def test_columns_are_summed_up_unless_they_are_asked_for(files, tmp_path, capsys):
    assert run(["fit", files.train, "-t", "species", "--no-cv", "-o", str(tmp_path / "m.kw")]) == 0
    out = capsys.readouterr().out
    assert "Columns: 4 numbers, 1 category; left out: 1 identifier, 1 constant; 2 cells without a value." in out
    assert "filled with the median" not in out


@pytest.mark.parametrize("width", [80, 60])
def test_tables_fit_the_terminal_whatever_the_names(files, tmp_path, capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    long = {"petal_length": "the_length_of_the_petals_of_the_flower_in_centimetres", "town": "town_or_village_nearest"}
    names = {
        "setosa": "the first of the three species of the genus",
        "virginica": "the_third_of_the_three_species_of_it",
    }
    frame = files.frame.rename(columns=long).replace({"species": names})
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", str(tmp_path / "t.csv"), "-t", "species", "--folds", "2", "-o", str(tmp_path / "m.kw"), "--columns"]
    assert run(fit) == 0
    assert run(["evaluate", str(tmp_path / "m.kw"), str(tmp_path / "t.csv")]) == 0
    out = capsys.readouterr().out
    tables = [line for line in out.splitlines() if not line.endswith((".", "classes")) and str(tmp_path) not in line]
    assert max(map(len, tables)) <= width
    assert "the_length_of_…centimetres" in out
    assert "calibration" in out
    numbers = set(re.findall(r"\d\.\d{3} \(\d\.\d{3}–\d\.\d{3}\)", out))
    assert len(numbers) >= 8  # no number is broken


def test_a_class_that_is_never_right_is_said_in_the_terminal(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "y": np.where(np.arange(200) % 12 == 0, "rare", "usual")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", str(tmp_path / "t.csv"), "-t", "y", "--folds", "3", "-o", str(tmp_path / "m.kw")]
    assert run(fit) == 0
    assert "rare is never right: it was never predicted, although 17 of 200 rows are of this class." in (
        capsys.readouterr().out
    )


def test_an_evaluation_has_a_page_of_its_own(files, tmp_path, capsys):
    page = tmp_path / "r.html"
    assert run(["evaluate", files.model, files.test, "--report", str(page)]) == 0
    assert f"Report: {page}" in capsys.readouterr().out
    text = page.read_text()
    found = kernelwright.load(files.model)
    accuracy = accuracy_score(files.frame["species"][90:], found.predict(files.frame[90:]))
    assert f"{100 * accuracy:.1f}\xa0%" in text
    for words in ("Each class", "Confidence", "Drift", "Beside cross-validation", "what-if-panel", "on 60 rows of"):
        assert words in text
    assert "cannot be made" not in text
    assert len(text) < 600_000
    assert run(["evaluate", files.model, files.test, "--report", files.test]) == 2


def test_fit_as_json_is_one_object_and_agrees_with_the_saved_model(files, tmp_path, capsys):
    model = tmp_path / "m.kw"
    assert run(["fit", files.train, "-t", "species", "--folds", "2", "--json", "-o", str(model), "--id", "id"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    saved = kernelwright.load(model)
    assert found["evaluation"]["accuracy"]["value"] == saved.evaluation.scores.accuracy.value
    assert sum(found["classes"].values()) == found["rows"] == 90
    assert saved.evaluation.rows.min() == 2  # the line of the first row
    assert saved.versions["kernelwright"] == kernelwright.__version__


def test_the_same_seed_gives_the_same_file(files, tmp_path):
    for name in ("a.kw", "b.kw"):
        assert run(["fit", files.train, "-t", "species", "--no-cv", "--seed", "3", "-o", str(tmp_path / name)]) == 0
    a, b = (kernelwright.load(tmp_path / name).predict_proba(files.frame) for name in ("a.kw", "b.kw"))
    assert np.array_equal(a, b)


def test_columns_can_be_kept_dropped_and_named_identifiers(files, tmp_path, capsys):
    arguments = ["--keep", "id", "--drop", "town", "--id", "petal_width", "--no-cv", "--json"]
    assert run(["fit", files.train, "-t", "species", "-o", str(tmp_path / "m.kw"), *arguments]) == 0
    kinds = {column["name"]: column["kind"] for column in json.loads(capsys.readouterr().out)["columns"]}
    assert (kinds["id"], kinds["town"], kinds["petal_width"]) == ("number", "dropped", "identifier")


def test_predict_writes_classes_and_probabilities_next_to_identifiers(files, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert run(["predict", files.model, files.test, "-o", str(out), "--sets", "0.9"]) == 0
    found = pd.read_csv(out, dtype={"id": str})
    assert list(found) == [
        "id",
        "prediction",
        "probability_setosa",
        "probability_versicolor",
        "probability_virginica",
        "prediction_set",
    ]
    assert found["id"].tolist() == files.frame["id"][90:].tolist()  # "007" is still "007"
    assert found.filter(like="probability").sum(axis=1).to_numpy() == pytest.approx(np.ones(60), abs=1e-5)
    assert accuracy_score(files.frame["species"][90:], found["prediction"]) > 0.8
    assert all(a in b.split("|") for a, b in zip(found["prediction"], found["prediction_set"], strict=True))


def test_predict_keeps_columns_and_leaves_out_probabilities(files, tmp_path):
    out = tmp_path / "out.tsv.gz"
    assert run(["predict", files.model, files.test, "-o", str(out), "--no-proba", "--keep-columns"]) == 0
    found = pd.read_csv(out, sep="\t", dtype=str)
    assert list(found) == [*files.frame.columns, "prediction"]
    given = pd.read_csv(files.test, dtype=str)
    pd.testing.assert_frame_equal(found[given.columns], given)


def test_predict_from_standard_input_to_standard_output(files, monkeypatch, capsys):
    content = io.BytesIO(Path(files.test).read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=content))
    assert run(["predict", files.model, "-"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("id,prediction,probability_setosa")
    assert (len(out.splitlines()), err) == (61, "")


def test_predict_warns_of_what_is_new(files, tmp_path, capsys):
    new = files.frame[90:].assign(colour="red")
    new.loc[95, "town"], new.loc[96, "petal_width"] = "Paris", np.nan
    new.to_csv(tmp_path / "new.csv", index=False)
    assert run(["predict", files.model, str(tmp_path / "new.csv"), "-o", str(tmp_path / "out.csv")]) == 0
    err = capsys.readouterr().err
    assert "unknown columns are ignored: colour" in err
    assert "1 row with a value never seen in training ('Paris')" in err
    assert "1 values are missing and were filled in: petal_width (1, none in training)" in err


def test_evaluate_agrees_with_scikit_learn(files, capsys):
    assert run(["evaluate", files.model, files.test, "--target", "species", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    model = kernelwright.load(files.model)
    rows = files.frame[90:]
    assert found["accuracy"]["value"] == accuracy_score(rows["species"], model.predict(rows))
    assert np.sum(found["confusion_matrix"]) == 60
    assert found["rivals"]["majority class"]["gain"]["low"] > 0
    assert found["drift"]["found"] is False


def test_evaluate_in_words(files, capsys):
    assert run(["evaluate", files.model, files.test]) == 0
    out = capsys.readouterr().out
    for words in ("accuracy", "log loss", "calibration error", "majority class", "True class", "No drift"):
        assert words in out


def test_evaluate_tells_drift_with_lines(files, tmp_path, capsys):
    numbers = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    far = files.frame[90:].copy()
    far[numbers] += 25
    far.loc[92, "town"] = "Paris"
    far.to_csv(tmp_path / "far.csv", index=False)
    assert run(["evaluate", files.model, str(tmp_path / "far.csv")]) == 0
    out = capsys.readouterr().out
    assert "Drift: 60 of 60 rows (100.0 %)" in out
    assert "so the model can only guess there" in out
    assert "petal_length: 60 rows above every training value" in out
    assert "value never seen in training ('Paris'); line 4" in out


def test_a_model_without_cross_validation_has_no_sets(files, tmp_path, capsys):
    assert run(["fit", files.train, "-t", "species", "--no-cv", "-o", str(tmp_path / "m.kw")]) == 0
    assert run(["predict", str(tmp_path / "m.kw"), files.test, "--sets", "0.9"]) == 2
    assert "Fit it without --no-cv" in capsys.readouterr().err


def test_other_formats_give_the_same_model(files, tmp_path):
    pytest.importorskip("pyarrow")
    frame = files.frame[:90]
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    found = []
    for name in ("t.csv", "t.parquet"):
        assert run(["fit", str(tmp_path / name), "-t", "species", "--no-cv", "-o", str(tmp_path / "m.kw")]) == 0
        found.append(kernelwright.load(tmp_path / "m.kw").predict_proba(files.frame))
    assert found[0] == pytest.approx(found[1])


def test_reports_are_asked_of_the_reports_room(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reports, "model_report", lambda model: f"<p>{type(model).__name__}</p>", raising=False)
    assert run(["report", files.model, "-o", str(tmp_path / "r.html")]) == 0
    assert (tmp_path / "r.html").read_text() == "<p>TabularModel</p>"
    assert run(["report", files.kernel, "-o", str(tmp_path / "r.html")]) == 0
    assert (tmp_path / "r.html").read_text() == "<p>KernelModel</p>"
    arguments = ["--no-cv", "-o", str(tmp_path / "m.kw"), "--report", str(tmp_path / "f.html")]
    assert run(["fit", files.train, "-t", "species", *arguments]) == 0
    assert (tmp_path / "f.html").read_text() == "<p>TabularModel</p>"
    assert "Report:" in capsys.readouterr().out


def test_answers_can_be_made_safe_for_spreadsheets(files, tmp_path):
    rows = files.frame[90:].assign(id=[f"=cmd{k}" for k in range(60)])
    rows.to_csv(tmp_path / "new.csv", index=False)
    predict = ["predict", files.model, str(tmp_path / "new.csv"), "-o", str(tmp_path / "out.csv")]
    assert run(predict) == 0
    assert pd.read_csv(tmp_path / "out.csv")["id"][0] == "=cmd0"
    assert run([*predict, "--safe-for-spreadsheets"]) == 0
    assert pd.read_csv(tmp_path / "out.csv")["id"][0] == "'=cmd0"


@pytest.mark.slow
def test_a_table_of_very_many_columns_ends_soon(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(6, 10_000)).round(4)).add_prefix("x").assign(y=list("ababab"))
    frame.to_csv(tmp_path / "wide.csv", index=False)
    started = time.process_time()
    assert run(["fit", str(tmp_path / "wide.csv"), "-t", "y", "-o", str(tmp_path / "m.kw")]) == 0
    assert time.process_time() - started < 40


@pytest.fixture
def incomes(tmp_path):
    """Write a tab-separated file with commas as thousands separators."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    income = 20_000 + 15_000 * y + rng.integers(0, 18_000, size=120)
    frame = pd.DataFrame(
        {
            "income": [f"{k:,}" for k in income],
            "share": [f"{k:.1f}%" for k in rng.uniform(0, 30, size=120)],
            "weight": [f"{k} kg" for k in rng.integers(50, 100, size=120)],
            "answer": np.where(y, "yes", "no"),
        }
    )
    frame[:80].to_csv(tmp_path / "train.tsv", index=False, sep="\t")
    frame[80:].to_csv(tmp_path / "test.csv", index=False)  # with quotation marks around the incomes
    return frame


def test_thousands_are_read_as_such_when_learning_and_when_predicting(incomes, tmp_path, capsys):
    fit = ["fit", str(tmp_path / "train.tsv"), "-t", "answer", "--no-cv", "-o", str(tmp_path / "m.kw")]
    assert run(fit) == 0
    out = capsys.readouterr().out
    first, *_ = incomes["income"]
    assert f"'{first}' read as {first.replace(',', '')}" in out
    assert f"Note: income: '{first}' can be read in two ways" in out
    assert "--decimal comma" in out
    model = kernelwright.load(tmp_path / "m.kw")
    assert [column.kind for column in model.columns] == ["number"] * 3
    assert [column.notation.unit for column in model.columns] == ["", "%", "kg"]
    typed = incomes[80:].assign(
        income=incomes["income"].str.replace(",", "").astype(float),
        share=incomes["share"].str.rstrip("%").astype(float),
        weight=incomes["weight"].str.removesuffix(" kg").astype(float),
    )
    assert run(["predict", str(tmp_path / "m.kw"), str(tmp_path / "test.csv"), "-o", str(tmp_path / "out.csv")]) == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert found["probability_yes"].to_numpy() == pytest.approx(model.predict_proba(typed)[:, 1], abs=1e-6)
    assert accuracy_score(incomes["answer"][80:], found["prediction"]) > 0.8
    capsys.readouterr()
    assert run([*fit, "--decimal", "comma"]) == 0
    out = capsys.readouterr().out
    assert f"'{first}' read as {float(first.replace(',', '.')):g}" in out
    assert "two ways" not in out
    assert run([*fit, "--decimal", ";"]) == 2
    assert "decimal must be 'comma' or 'point'" in capsys.readouterr().err


def test_what_was_read_otherwise_is_listed_in_wide_tables_too(incomes, tmp_path, capsys):
    wide = incomes.assign(**{f"x{k}": np.random.default_rng(k).normal(size=120) for k in range(45)})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    assert run(["fit", str(tmp_path / "wide.csv"), "-t", "answer", "--no-cv", "-o", str(tmp_path / "m.kw")]) == 0
    out = capsys.readouterr().out
    assert f"\nincome: '{incomes['income'][0]}' read as " in out
    assert "\nweight: '" in out
    assert "x3:" not in out


def test_row_numbers_and_leaks_are_told(incomes, tmp_path, capsys):
    frame = incomes.assign(code=np.where(incomes["answer"] == "yes", 7.5, 1.5))
    frame.sample(frac=0.7, random_state=0).to_csv(tmp_path / "t.csv")
    fit = ["fit", str(tmp_path / "t.csv"), "-t", "answer", "--no-cv", "-o", str(tmp_path / "m.kw")]
    assert run(fit) == 0
    out = capsys.readouterr().out
    assert "Left out: column 1 (whole numbers in a first column without a name" in out
    assert "Possible leak: code alone predicts 'answer' in 100.0 % of the rows" in out
    assert run([*fit, "--keep", "column 1", "--drop", "code"]) == 0
    out = capsys.readouterr().out
    assert "Left out" not in out
    assert "Possible leak" not in out
