"""Any file that is not a model file, or is damaged, gives an error of one sentence."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    StandardScaler,
)

import kernelwright as kw
from kernelwright.kernels import Gaussian
from kernelwright.persistence.archive import write_archive
from tests.persistence.forging import mutated, parts_of, refused, write_parts
from tests.persistence.models import MODELS, X


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it is empty; expected a file written by kernelwright.save"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "it is not a model file; expected"),
        (b"PK\x03\x04" + bytes(100), "cut off or damaged .*; copy it again"),
        (pickle.dumps(Gaussian(2.0)), "it is not a model file"),
    ],
)
def test_a_file_of_something_else_is_refused_in_a_sentence(content, sentence, tmp_path):
    (tmp_path / "model.kw").write_bytes(content)
    refused(tmp_path / "model.kw", sentence)


def test_a_folder_is_refused_and_a_missing_file_is_missing(tmp_path):
    refused(tmp_path, "it is a folder")
    if hasattr(os, "mkfifo"):  # not on Windows
        os.mkfifo(tmp_path / "pipe")
        refused(tmp_path / "pipe", "not a regular file")
    with pytest.raises(FileNotFoundError):
        kw.load(tmp_path / "model.kw")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 3}, r"made by a newer kernelwright \(format 3\); this version reads formats up to 2; upgrade"),
        ({"version": 1}, "format 1, from before the first release of kernelwright.*; fit the model again"),
        ({"version": "1"}, "manifest is not that of a model"),
        ({"version": True}, "manifest is not that of a model"),
        ({"format": "other"}, "manifest is not that of a model"),
        ({"byteorder": "big"}, "byte order is 'big'"),
        ({"kernelwright": "9"}, "the digest differs"),
        ({"digest": None}, "the digest differs"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(change, sentence, model_file):
    parts = parts_of(model_file)
    parts["manifest.json"] = json.dumps(json.loads(parts["manifest.json"]) | change).encode()
    write_parts(model_file, parts)
    refused(model_file, sentence)


def test_a_newer_format_is_recognised_whatever_else_is_in_it(tmp_path):
    manifest = json.dumps({"format": "kernelwright model", "version": 7})
    write_parts(tmp_path / "model.kw", {"manifest.json": manifest, "tensors.bin": b""})
    refused(tmp_path / "model.kw", "format 7")


def test_another_scikit_learn_is_warned_about_once_and_loaded(model_file):
    model = make_pipeline(StandardScaler(), StandardScaler()).fit(X)
    kw.save(model, model_file)
    parts = parts_of(model_file)
    document = json.loads(parts["document.json"])
    arrays = [memoryview(parts[f"arrays/{number}"]) for number in range(len(parts) - 2)]
    with pytest.MonkeyPatch.context() as patch, open(model_file, "wb") as file:
        patch.setattr("sklearn.__version__", "1.0")
        write_archive(file, document, arrays)
    with pytest.warns(UserWarning, match="saved with scikit-learn 1.0") as found:
        loaded = kw.load(model_file)
    assert len(found) == 1
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_tricks_with_the_archive_are_refused(model_file):
    parts = parts_of(model_file)
    for name in ("../../escaped", "/tmp/escaped", "arrays/../x", "arrays/007", "C:\\escaped", "document.json/"):
        write_parts(model_file, parts | {name: b"x"})
        refused(model_file, "a part named")
    write_parts(model_file, [*parts.items(), ("document.json", b"{}")])
    refused(model_file, "two of its parts have the same name")
    write_parts(model_file, {name: part for name, part in parts.items() if name != "manifest.json"})
    refused(model_file, "zip archive of something else")
    write_parts(model_file, {name: part for name, part in parts.items() if name != "document.json"})
    refused(model_file, "")
    write_parts(model_file, parts | {"arrays/0": bytes(10**7)}, zipfile.ZIP_DEFLATED)
    refused(model_file, "compressed or encrypted")
    assert not list(model_file.parent.glob("*escaped*"))


def test_parts_that_overlap_or_claim_too_much_are_refused(model_file):
    content = bytearray(model_file.read_bytes())
    entry = content.index(b"PK\x01\x02")  # the first entry of the directory: both sizes
    content[entry + 20 : entry + 28] = (2**31).to_bytes(4, "little") * 2
    model_file.write_bytes(content)
    refused(model_file, "claim to be larger than the file")


def test_json_that_is_too_deep_too_long_or_none_is_refused(model_file):
    parts = parts_of(model_file)
    for document in (b"[" * 10**6, b'{"table": ' + b"[" * 10**5, b"\xff\xfe", b"[]", b"NaN", b'{"root": NaN}', b""):
        write_parts(model_file, parts | {"document.json": document})
        refused(model_file, "")
    write_parts(model_file, parts | {"document.json": b" " * (2**26 + 1)})
    refused(model_file, "at most 67108864 are allowed")


FILLINGS = {
    "lists": b"[]",
    "objects": b"{}",
    "numbers": b"1",
    "entries": b'{"kind":"list","items":[]}',
    "models": b'{"kind":"object","class":"sklearn.linear_model.Ridge","state":{}}',
}


@pytest.mark.parametrize("filling", FILLINGS.values(), ids=FILLINGS.keys())
def test_a_document_that_would_take_long_to_read_is_refused_unread(model_file, monkeypatch, filling):
    times = (2**26 - 100) // (len(filling) + 1)
    document = b'{"root":0,"table":[' + b",".join([filling] * times) + b"]}"
    write_parts(model_file, parts_of(model_file) | {"document.json": document})
    parse = json.loads

    def small_only(content, **choices):
        assert len(content) < 10_000
        return parse(content, **choices)

    monkeypatch.setattr(json, "loads", small_only)
    refused(model_file, "where at most .* are allowed")


MUTATIONS = int(os.environ.get("KERNELWRIGHT_MUTATIONS", "1500"))


@pytest.mark.skipif(MUTATIONS == 0, reason="KERNELWRIGHT_MUTATIONS is 0")
def test_a_damaged_file_is_refused_or_loads_as_the_same_model(tmp_path):
    names = ["Krein SVC", "network", "label encoder", "pipeline of a table", "random Fourier", "alignment"]
    files, expected = [], []
    for name in names:
        model = MODELS[name].make()
        kw.save(model, tmp_path / "model.kw")
        files.append((tmp_path / "model.kw").read_bytes())
        expected.append(MODELS[name].read(model))
    random = np.random.default_rng(0)
    counts = {"refused": 0, "not changed": 0, "loaded the same": 0}
    for number in range(MUTATIONS):
        which = number % len(names)
        content = mutated(files[which], files[int(random.integers(len(files)))], random)
        (tmp_path / "model.kw").write_bytes(content)
        try:
            model = kw.load(tmp_path / "model.kw")
        except kw.ModelFileError:
            counts["refused"] += 1
            continue
        same_as = expected[which]
        np.testing.assert_array_equal(MODELS[names[which]].read(model), same_as)
        counts["not changed" if content == files[which] else "loaded the same"] += 1
    print(counts)
    assert counts["refused"] > 0.8 * MUTATIONS
