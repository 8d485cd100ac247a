"""The command line on tables that are read in parts."""

import json

import numpy as np
import pandas as pd
import pytest

import kernelwright
from kernelwright.cli import run
from kernelwright.inputs import blocks, parquet_rows
from kernelwright.tables import big, parts

pytest.importorskip("pyarrow")

N = 1500


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    monkeypatch.setattr(blocks, "GATHERED_ROWS", 500)
    monkeypatch.setattr(big, "SAMPLED", 400)
    monkeypatch.setattr(parts, "SMALL", 100)
    monkeypatch.setattr(parts, "PART_ROWS", 300)
    monkeypatch.setattr(parquet_rows, "PART_ROWS", 300)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-2, 2, (2, N)).round(3)
    town = rng.choice(["Ulm", "Bonn"], N).astype(object)
    town[::9] = None
    kind = np.where((a * b > 0) ^ (town == "Ulm"), "warm", "cold").astype(object)
    kind[[3, 1400]] = None
    kind[[700, 1200, 1450]] = "rare"
    number = (a + np.abs(b)).round(3)
    return pd.DataFrame({"id": np.arange(N) + 10**6, "a": a, "b": b, "town": town, "kind": kind, "number": number})


def files(frame, folder, form):
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
        part = frame.iloc[rows]
        part.to_parquet(folder / f"{number}.parquet") if form == "parquet" else part.to_csv(
            folder / f"{number}.csv", index=False
        )
    return str(folder / f"*.{form}")


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_classes_of_a_pattern_of_files(frame, tmp_path, form, capsys):
    pattern, model, output = files(frame, tmp_path / "rows", form), str(tmp_path / "m.kw"), str(tmp_path / "p.csv")
    assert (
        run(["fit", pattern, "-t", "kind", "--drop", "number", "-o", model, "--checkpoint", str(tmp_path / "c")]) == 0
    )
    out, err = capsys.readouterr()
    assert "1,498 rows, 5 columns besides the target 'kind' with 3 classes, read in parts" in out
    assert "Trained on 1,498 rows" in out
    assert "1,498 of 1,498 rows routed to the buckets of trees, in 0:" in err
    assert "4,494 of 4,494 rows of all trees solved, in 0:" in err
    fitted = kernelwright.load(model)
    assert fitted.classes == ("cold", "rare", "warm")
    assert sum(fitted.class_counts) == 1498
    assert fitted.class_counts[1] == 3
    assert fitted.identifiers == ("id",)
    assert run(["predict", model, pattern, "-o", output]) == 0
    out, err = capsys.readouterr()
    found = pd.read_csv(output)
    assert found["id"].tolist() == frame["id"].tolist()
    assert np.mean(found["prediction"] == frame["kind"]) > 0.9
    whole = str(tmp_path / "whole.csv")
    frame.to_csv(whole, index=False)
    assert run(["predict", model, whole, "-o", str(tmp_path / "q.csv")]) == 0
    at_once = pd.read_csv(tmp_path / "q.csv")
    pd.testing.assert_frame_equal(found, at_once)
    assert run(["evaluate", model, whole, "--json"]) == 0


def test_numbers_of_a_folder(frame, tmp_path, capsys):
    pattern, model = files(frame, tmp_path / "rows", "parquet"), str(tmp_path / "m.kw")
    assert run(["fit", str(tmp_path / "rows"), "-t", "number", "--drop", "kind", "-o", model, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["rows"] == N
    assert record["numbers"]["mean"] == pytest.approx(frame["number"].mean())
    assert record["numbers"]["std"] == pytest.approx(frame["number"].std(ddof=0))
    assert record["numbers"]["high"] == frame["number"].max()
    assert run(["predict", model, pattern, "-o", str(tmp_path / "p.parquet"), "--interval", "0.8"]) == 0
    found = pd.read_parquet(tmp_path / "p.parquet")
    assert np.abs(found["prediction"] - frame["number"]).mean() < 0.1
    assert ((found["interval_low"] <= frame["number"]) & (frame["number"] <= found["interval_high"])).mean() > 0.7


def test_few_rows_of_several_files_are_a_usual_table(frame, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(parts, "SMALL", 10**8)
    pattern = files(frame.iloc[::10].dropna(subset="kind"), tmp_path / "rows", "csv")
    assert run(["fit", pattern, "-t", "kind", "--folds", "2", "-o", str(tmp_path / "m.kw")]) == 0
    assert "cross-validation with 2 folds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-t", "knd"], "no target column 'knd' (did you mean 'kind'?)"),
        (["-t", "kind", "--groups", "town"], "--groups needs all rows in memory"),
        (["-t", "kind", "--time", "id"], "--time needs all rows in memory"),
        (["-t", "kind", "--drop", "B"], "no column 'B'"),
    ],
)
def test_what_cannot_be_done_is_said(frame, tmp_path, capsys, arguments, words):
    pattern = files(frame, tmp_path / "rows", "csv")
    assert run(["fit", pattern, *arguments, "-o", str(tmp_path / "m.kw")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "m.kw").exists()


def test_a_fault_in_a_late_file_names_it(frame, tmp_path, capsys):
    odd = frame.astype({"b": object})
    odd.loc[1300, "b"] = "many"
    pattern = files(odd, tmp_path / "rows", "csv")
    assert run(["fit", pattern, "-t", "kind", "-o", str(tmp_path / "m.kw")]) == 2
    err = capsys.readouterr().err
    assert "2.csv" in err
    assert "'many' in line 302" in err
