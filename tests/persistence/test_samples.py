"""Files of every saved class, kept under ``tests/data``: each must load in every later version and answer the same."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator

import kernelwright as kw
from kernelwright.persistence.classes import saved_class, saved_classes
from tests.persistence.samples import DATA, Sample, answer, path_of, question_of, write_missing

FILES = sorted(DATA.glob("*.kw"))


def classes_in(path: Path) -> set[tuple[str, int | None]]:
    """Return the classes in a file with their versions; classes of scikit-learn and torch have none."""
    with zipfile.ZipFile(path) as archive:
        table = json.loads(archive.read("document.json"))["table"]
    return {(entry["class"], entry.get("version")) for entry in table if "class" in entry}


def test_every_saved_class_is_in_a_file():
    """If not, run ``python -m tests.persistence.samples`` and commit the new files."""
    known = {pair for path in FILES for pair in classes_in(path)}
    missing = [declared.name for declared in saved_classes() if (declared.name, declared.version) not in known]
    assert not missing


def test_no_file_names_a_module_of_this_package():
    named = {name for path in FILES for name, _ in classes_in(path)}
    assert named
    assert not [name for name in named if "kernelwright" in name]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_kept_file_loads_and_answers_the_same(path):
    with zipfile.ZipFile(path) as archive:
        written_by = json.loads(archive.read("manifest.json"))["scikit-learn"]
    if written_by != sklearn.__version__ and any(name.startswith("sklearn.") for name, _ in classes_in(path)):
        pytest.skip(f"it holds parts of scikit-learn {written_by}, which this one need not be able to read")
    found = kw.load(path)
    declared = saved_class(path.name.partition(".")[0])
    assert declared is not None
    assert type(found) is declared.cls
    question = question_of(path)
    if question is not None:
        call, inputs, expected = question
        found_answer = answer(Sample(found, call, inputs))
        if found_answer.dtype.kind in "biuf":
            np.testing.assert_allclose(found_answer, expected, rtol=1e-8, atol=1e-8)
        else:
            assert found_answer.tolist() == expected


def test_estimators_and_kernels_are_asked_something():
    silent = {"precomputed-kernel", "pair-smoother"}  # not alone
    asked = {path.name.partition(".")[0] for path in FILES if question_of(path) is not None}
    answering = {
        each.name
        for each in saved_classes()
        if issubclass(each.cls, kw.kernels.Kernel) or (issubclass(each.cls, BaseEstimator) and hasattr(each.cls, "fit"))
    }
    assert answering - silent - asked == set()


def test_samples_are_written_for_all_classes_and_never_overwritten(tmp_path):
    kept = path_of("gaussian-kernel", 1, tmp_path)
    kept.write_bytes(b"as it was")
    written = write_missing(tmp_path)
    assert {path.name.partition(".")[0] for path in (*written, kept)} == {declared.name for declared in saved_classes()}
    assert kept.read_bytes() == b"as it was"
    assert write_missing(tmp_path) == []
