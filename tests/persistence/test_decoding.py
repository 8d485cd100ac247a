"""Forged files are refused, and no code in a file is run."""

import builtins
import importlib
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import kernelwright as kw
from tests.persistence.forging import (
    FORGERIES,
    forge,
    object_entry,
    refused,
)
from tests.persistence.models import (
    MODELS,
    TABLE,
    OwnNet,
    round_trip,
)


def test_many_things_that_take_long_to_make_are_refused(model_file):
    entry = {"kind": "module", "class": "torch.nn.ReLU", "training": True, "transient": []}
    empty = {name: {} for name in ("state", "parameters", "buffers", "modules")}
    forge(model_file, [entry | empty] * 20_001)
    refused(model_file, "more than 20000 networks, kernels and random states")


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_with_a_right_digest_is_refused(name, tmp_path):
    table, sentence, arrays = FORGERIES[name]
    forge(tmp_path / "model.kw", table, *arrays)
    refused(tmp_path / "model.kw", re.escape(sentence).replace(r"\.\*", ".*"))


def test_forged_numbers_of_a_module_of_ones_own_are_refused(tmp_path):
    entry = {"kind": "foreign module", "class": "OwnNet", "training": True, "learned": [], "numbers": {"a": 1}}
    forge(tmp_path / "model.kw", [entry])
    refused(tmp_path / "model.kw", "have the wrong type", module=OwnNet())


@pytest.mark.parametrize("root", [{"ref": 5}, [1], {}])
def test_a_root_that_leads_nowhere_is_refused(root, tmp_path):
    forge(tmp_path / "model.kw", [], root=root)
    refused(tmp_path / "model.kw", "")


def test_paths_and_caches_in_a_forged_file_are_ignored(tmp_path):
    forge(tmp_path / "model.kw", [object_entry("sklearn.pipeline.Pipeline", steps=None, memory="/tmp/cache")])
    assert kw.load(tmp_path / "model.kw").memory is None


def test_loading_neither_unpickles_nor_evaluates_nor_imports(tmp_path, monkeypatch):
    model = MODELS["pipeline of a table"].make()
    expected = model.predict_proba(TABLE)
    round_trip(model, tmp_path)  # the list of classes is made once

    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("loading ran code")

    before = set(sys.modules)
    forbidden = [(builtins, "eval"), (builtins, "exec"), (builtins, "compile"), (importlib, "import_module")]
    forbidden += [(pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (torch, "load")]
    with monkeypatch.context() as patch:
        for module, name in forbidden:
            patch.setattr(module, name, never)
        loaded = kw.load(tmp_path / "model.kw")
    assert set(sys.modules) == before
    np.testing.assert_array_equal(loaded.predict_proba(TABLE), expected)


SMUGGLE = """
import io, os, pickle, sys, zipfile
import joblib, numpy as np, torch
import kernelwright as kw
from kernelwright.persistence.archive import write_archive

class Malicious:
    def __reduce__(self):
        return os.mkdir, ("ran",)

def attempt(what):
    try:
        what()
    except (kw.ModelFileError, TypeError) as error:
        print(type(error).__name__)

attempt(lambda: kw.save(Malicious(), "a.kw"))
attempt(lambda: kw.save(np.array([Malicious()], dtype=object), "a.kw"))
pickled = pickle.dumps(Malicious())
open("b.kw", "wb").write(pickled)
torch.save(Malicious(), "c.kw")
joblib.dump(Malicious(), "d.kw")
np.savez(open("e.kw", "wb"), a=np.array([Malicious()], dtype=object))
entry = {"kind": "array", "dtype": "|O", "shape": [len(pickled) // 8], "order": [0], "bytes": 0}
with open("f.kw", "wb") as file:
    write_archive(file, {"root": {"ref": 0}, "table": [entry]}, [memoryview(pickled)])
with zipfile.ZipFile("g.kw", "w") as archive:
    archive.writestr("manifest.json", pickled)
for name in "bcdefg":
    attempt(lambda: kw.load(f"{name}.kw"))
print(os.path.exists("ran"))
"""


@pytest.mark.slow
def test_an_object_that_runs_code_when_it_is_unpickled_cannot_be_smuggled_in(tmp_path):
    done = subprocess.run([sys.executable, "-c", SMUGGLE], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["TypeError"] * 2 + ["ModelFileError"] * 6 + ["False"]
