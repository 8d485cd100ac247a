import json

import numpy as np
import pandas as pd
import pytest

from kernelwright.cli import run


def test_learn_kernel_says_how_good_it_is_on_new_objects(files, tmp_path, capsys):
    assert run(["learn-kernel", files.objects, files.similarities, "-o", str(tmp_path / "k.kw"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    error = found["evaluation"]["error"]["value"]
    assert error < 0.5 * found["evaluation"]["rivals"]["nearest known object"]["value"]
    assert error < 0.2 * found["evaluation"]["rivals"]["constant"]["value"]
    assert (found["objects"], found["columns"]) == (40, ["height", "weight"])


def test_learn_kernel_in_words(files, tmp_path, capsys):
    assert run(["learn-kernel", files.objects, files.similarities, "-o", str(tmp_path / "k.kw")]) == 0
    out = capsys.readouterr().out
    for words in ("matched to the objects by 'name'", "10 of 40 objects held out", "nearest known object", "saved in"):
        assert words in out


def test_objects_are_matched_by_name_or_by_order(files, tmp_path, capsys):
    shuffled = pd.read_csv(files.objects).sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "shuffled.csv", index=False)
    bare = pd.read_csv(files.similarities, index_col=0)
    bare.to_csv(tmp_path / "bare.csv", index=False, header=False)
    pd.read_csv(files.objects).drop(columns="name").to_csv(tmp_path / "nameless.csv", index=False)
    for objects, similarities in (("shuffled.csv", files.similarities), ("nameless.csv", str(tmp_path / "bare.csv"))):
        arguments = [str(tmp_path / objects), similarities, "-o", str(tmp_path / "k.kw"), "--held-out", "0"]
        assert run(["learn-kernel", *arguments]) == 0
        assert run(["apply-kernel", str(tmp_path / "k.kw"), files.objects, "-o", str(tmp_path / "K.csv")]) == 0
        K = pd.read_csv(tmp_path / "K.csv", index_col=0).to_numpy()
        assert np.corrcoef(K.ravel(), -files.distances.ravel())[0, 1] > 0.99
    assert "the error on new objects is unknown" in capsys.readouterr().out


def test_apply_kernel_writes_a_matrix_with_labels(files, tmp_path, capsys):
    some = pd.read_csv(files.objects)[:3]
    some.to_csv(tmp_path / "some.csv", index=False)
    some.drop(columns="name").to_csv(tmp_path / "nameless.csv", index=False)
    assert (
        run(["apply-kernel", files.kernel, files.objects, str(tmp_path / "some.csv"), "-o", str(tmp_path / "K.csv")])
        == 0
    )
    K = pd.read_csv(tmp_path / "K.csv", index_col="name")
    assert K.shape == (40, 3)
    assert list(K.columns) == ["object 0", "object 1", "object 2"]
    assert K.to_numpy() == pytest.approx(-files.distances[:, :3], abs=0.3)
    capsys.readouterr()
    assert run(["apply-kernel", files.kernel, str(tmp_path / "nameless.csv")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "name,1,2,3"


def test_objects_without_similarities_are_left_out_and_named(files, tmp_path, capsys):
    holes = pd.read_csv(files.similarities, index_col=0)
    holes.iloc[7, :], holes.iloc[:, 7] = np.nan, np.nan
    holes.to_csv(tmp_path / "holes.csv")
    assert run(["learn-kernel", files.objects, str(tmp_path / "holes.csv"), "-o", str(tmp_path / "k.kw")]) == 0
    assert "1 of 40 objects have no known similarity and were left out" in capsys.readouterr().out
