"""Forged model files: exchanged parts, invented contents with a correct digest, random bytes changed."""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelwright as kw
from kernelwright.persistence.archive import write_archive


def refused(path: Path, sentence: str, **how: Any) -> None:
    with pytest.raises(kw.ModelFileError, match=sentence) as found:
        kw.load(path, **how)
    words = str(found.value)
    assert words.startswith(f"Cannot load {path}: ")
    assert words.endswith(".")
    assert "\n" not in words


def parts_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(path: Path, parts: Any, compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)


def forge(path: Path, table: list[Any], *arrays: bytes, root: Any = None) -> None:
    """Write a file with a correct digest and any content."""
    document = {"root": {"ref": len(table) - 1} if root is None else root, "table": table}
    with open(path, "wb") as file:
        write_archive(file, document, [memoryview(array) for array in arrays])


def array_entry(**change: Any) -> dict[str, Any]:
    return {"kind": "array", "dtype": "<f8", "shape": [2], "order": [0], "bytes": 0} | change


def tensor_entry(**change: Any) -> dict[str, Any]:
    return {"kind": "tensor", "dtype": "float64", "shape": [2], "order": [0], "bytes": 0, "learned": False} | change


def object_entry(name: str, **state: Any) -> dict[str, Any]:
    return {"kind": "object", "class": name, "state": state}


def saved_entry(name: str, version: Any = 1, **state: Any) -> dict[str, Any]:
    return object_entry(name, **state) | {"version": version}


def module_entry(name: str, **change: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"state": {}, "parameters": {}, "buffers": {}, "modules": {}, "transient": []}
    return {"kind": "module", "class": name, "training": True, **empty} | change


def doubled(levels: int) -> list[Any]:
    """Return nested tuples that each hold the one before twice: few entries, but 2^levels parts."""
    return [{"kind": "tuple", "items": [1, 1]}] + [
        {"kind": "tuple", "items": [{"ref": number}] * 2} for number in range(levels)
    ]


EMBEDDING, GAUSSIAN = "embedding-classifier", "gaussian-kernel"
GAUSSIAN_STATE: dict[str, Any] = {"training": True, "ard": False, "median": False, "log_lengthscale": 1}
LOG_LENGTHSCALE = {
    "kind": "parameter", "dtype": "float64", "shape": [2], "order": [0], "bytes": 0, "learned": True
}  # fmt: skip
TWO = np.ones(2).tobytes()
MT = {"kind": "dict", "items": [["key", {"ref": 0}], ["pos", 10**6]]}
MT_STATE = {
    "kind": "dict",
    "items": [["bit_generator", "MT19937"], ["state", {"ref": 1}], ["has_gauss", 0], ["gauss", 0.0]],
}

FORGERIES: dict[str, tuple[list[Any], str, tuple[bytes, ...]]] = {
    "unknown class": ([object_entry("os.system")], "class 'os.system', which", ()),
    "unknown class of this package": ([object_entry("kernelwright.cli.main")], "cannot restore", ()),
    "a class by its module": ([object_entry("kernelwright.kernels.vector.Gaussian")], "cannot restore", ()),
    "unknown stable name": ([saved_entry("no-such-kernel")], "class 'no-such-kernel', which", ()),
    "newer class": ([saved_entry("clip-map", 99)], "in version 99, but this kernelwright knows versions up to 1; ", ()),
    "version nought": ([saved_entry(EMBEDDING, 0)], "version 0, which does not exist", ()),
    "true as a version": ([saved_entry(EMBEDDING, True)], "has no 'version'", ()),
    "no version": ([object_entry(EMBEDDING)], "has no 'version'", ()),
    "private class of scikit-learn": ([object_entry("sklearn.tree._tree.Tree")], "cannot restore", ()),
    "an error": ([object_entry("kernelwright.errors.ModelFileError")], "cannot restore", ()),
    "a function": ([{"kind": "thing", "name": "builtins.eval"}], "names 'builtins.eval', which no model needs", ()),
    "an import": ([{"kind": "thing", "name": "os.system"}], "no model needs", ()),
    "unknown kind": ([{"kind": "pickle"}], "unknown kind 'pickle'", ()),
    "no kind": ([{}], "has no 'kind'", ()),
    "no entry": ([3], "has no 'kind'", ()),
    "itself": ([{"kind": "list", "items": [{"ref": 0}]}], "no earlier object", ()),
    "a later one": ([{"kind": "list", "items": [{"ref": 1}]}, {"kind": "list", "items": []}], "no earlier", ()),
    "before the first": ([{"kind": "list", "items": [{"ref": -1}]}], "no earlier object", ()),
    "no number": ([{"kind": "list", "items": []}, {"kind": "list", "items": [{"ref": False}]}], "no earlier", ()),
    "a list in place of a value": ([{"kind": "list", "items": [[1]]}], "neither an atom nor a reference", ()),
    "two references": ([{"kind": "list", "items": [{"ref": 0, "int": "1"}]}], "neither an atom", ()),
    "strange float": ([{"kind": "list", "items": [{"float": "1e3"}]}], "", ()),
    "unhashable float": ([{"kind": "list", "items": [{"float": []}]}], "", ()),
    "strange integer": ([{"kind": "list", "items": [{"int": "zz"}]}], "damaged", ()),
    "endless integer": ([{"kind": "list", "items": [{"int": "f" * 20_000}]}], "", ()),
    "unhashable key": ([{"kind": "list", "items": []}, {"kind": "dict", "items": [[{"ref": 0}, 1]]}], "damaged", ()),
    "half a pair": ([{"kind": "dict", "items": [[1]]}], "damaged", ()),
    "unhashable item": ([{"kind": "list", "items": []}, {"kind": "set", "items": [{"ref": 0}]}], "damaged", ()),
    "a key of 2^60 parts": ([*doubled(60), {"kind": "dict", "items": [[{"ref": 60}, 1]]}], "nested too deeply", ()),
    "a key of 2^15 parts": ([*doubled(15), {"kind": "dict", "items": [[{"ref": 15}, 1]]}], "key .* is too large", ()),
    "too deep": (
        [{"kind": "tuple", "items": []}] + [{"kind": "tuple", "items": [{"ref": n}]} for n in range(10_000)],
        "nested too deeply",
        (),
    ),
    "no base64": ([{"kind": "bytes", "text": "%%%"}], "damaged", ()),
    "slice of four": ([{"kind": "slice", "items": [1, 2, 3, 4]}], "damaged", ()),
    "object dtype": ([array_entry(dtype="|O", shape=[2])], "unknown dtype '|O'", (TWO,)),
    "a pickle as numbers": ([array_entry(dtype="O")], "unknown dtype", (pickle.dumps(print),)),
    "record dtype": ([array_entry(dtype="[('a', '<f8')]")], "unknown dtype", (TWO,)),
    "pointer dtype": ([array_entry(dtype="|V8")], "unknown dtype", (TWO,)),
    "empty strings": ([array_entry(dtype="<U0", shape=[10**12])], "unknown dtype", (b"",)),
    "a shape that lies": ([array_entry(shape=[3])], "shape of an array does not fit its size", (TWO,)),
    "a shape beyond memory": ([array_entry(shape=[2**40, 2**40], order=[0, 1])], "does not fit its size", (TWO,)),
    "a shape beyond numbers": ([array_entry(shape=[10**400])], "does not fit its size", (TWO,)),
    "an empty shape beyond numbers": ([array_entry(shape=[0, 10**30], order=[0, 1])], "damaged", (b"",)),
    "an empty tensor beyond numbers": ([tensor_entry(shape=[0, 10**30], order=[0, 1])], "damaged", (b"",)),
    "negative shape": ([array_entry(shape=[-2])], "impossible shape", (TWO,)),
    "two negative lengths": ([array_entry(shape=[-1, -2], order=[0, 1])], "impossible shape", (TWO,)),
    "true as a length": ([array_entry(shape=[True, 2], order=[0, 1])], "impossible shape", (TWO,)),
    "a thousand axes": ([array_entry(shape=[1] * 999 + [2], order=[*range(1000)])], "impossible shape", (TWO,)),
    "an axis twice": ([array_entry(shape=[1, 2], order=[1, 1])], "impossible order", (TWO,)),
    "axes missing": ([array_entry(shape=[1, 2], order=[])], "impossible order", (TWO,)),
    "unordered axes": ([array_entry(order=["0"])], "impossible order", (TWO,)),
    "no such array": ([array_entry(bytes=1)], "out of turn", (TWO,)),
    "an array twice": ([array_entry(), array_entry()], "out of turn", (TWO,)),
    "an array by another name": ([array_entry(bytes="../0")], "out of turn", (TWO,)),
    "an array that is not used": ([{"kind": "list", "items": []}], "does not refer to", (TWO,)),
    "neither true nor false": ([array_entry(dtype="|b1")], "neither true nor false", (b"\x01\x07",)),
    "tensor neither true nor false": ([tensor_entry(dtype="bool")], "neither true nor false", (b"\x01\x07",)),
    "no such characters": ([array_entry(dtype="<U1", shape=[2])], "characters that do not exist", (b"\xff" * 8,)),
    "no such character": ([{"kind": "scalar", "dtype": "<U1", "bytes": "ffffffff"}], "do not exist", ()),
    "scalar of another size": ([{"kind": "scalar", "dtype": "<f8", "bytes": "00"}], "wrong size", ()),
    "objects that are too few": ([{"kind": "objects", "shape": [2**40], "items": []}], "does not fit its size", ()),
    "objects of no shape": ([{"kind": "objects", "shape": ["a"], "items": []}], "does not fit its size", ()),
    "a mask of nothing": ([{"kind": "masked", "items": []}], "damaged", ()),
    "a mask of a number": ([{"kind": "masked", "items": [1, True]}], "has no array", ()),
    "tensor of no type": ([tensor_entry(dtype="quint8")], "a tensor has an unknown dtype", (TWO,)),
    "learned integers": ([tensor_entry(dtype="int64", learned=True)], "damaged", (TWO,)),
    "random state beyond itself": (
        [array_entry(dtype="<u4", shape=[624]), MT, MT_STATE, {"kind": "random state", "state": {"ref": 2}}],
        "points beyond itself",
        (bytes(4 * 624),),
    ),
    "generator of nothing": ([{"kind": "generator", "state": 3}], "has no 'bit_generator'", ()),
    "torch generator of nothing": ([{"kind": "torch generator", "state": "x"}], "damaged", ()),
    "torch generator of noise": (
        [tensor_entry(dtype="uint8", shape=[16]), {"kind": "torch generator", "state": {"ref": 0}}],
        "damaged",
        (TWO,),
    ),
    "method replaced": ([saved_entry(EMBEDDING, predict=1)], "a field 'predict', which this kernelwright does", ()),
    "class replaced": ([saved_entry(EMBEDDING, __class__=1)], "a field '__class__', which", ()),
    "method of another replaced": (
        [object_entry("sklearn.svm.SVC", predict=1)],
        "'predict' that replaces a method",
        (),
    ),
    "class of another replaced": ([object_entry("sklearn.svm.SVC", __class__=1)], "that replaces a method", ()),
    "state is no mapping": ([saved_entry(EMBEDDING) | {"state": [1]}], "has no 'state'", ()),
    "a module as a plain object": ([object_entry("torch.nn.ReLU")], "the wrong kind of entry", ()),
    "a kernel without numbers": ([saved_entry(GAUSSIAN, ard=True)], "without the field 'log_lengthscale'", ()),
    "an estimator as a module": ([module_entry(EMBEDDING)], "cannot restore", ()),
    "a record with too little": ([saved_entry("training-step")], "'training-step' without the field 'complexity'", ()),
    "a record with too much": ([saved_entry("clip-map", more=1)], "a field 'more', which", ()),
    "a named tuple too short": ([saved_entry("point-pairs", left=1)], "without the field 'right'", ()),
    "hooks": ([saved_entry(GAUSSIAN, _forward_hooks=1, **GAUSSIAN_STATE)], "a field '_forward_hooks', which", ()),
    "hooks of a layer": ([module_entry("torch.nn.ReLU", state={"_forward_hooks": 1})], "internal state of torch", ()),
    "a parameter that is none": ([saved_entry(GAUSSIAN, **GAUSSIAN_STATE)], "the wrong type of 'log_lengthscale'", ()),
    "a buffer that is none": (
        [saved_entry("weighted-cosines", training=True, frequencies="x", phases=None, weights=None)],
        "the wrong type of 'frequencies'",
        (),
    ),
    "parameters that are none": ([module_entry("torch.nn.Linear", parameters={"a": 1})], "have the wrong type", ()),
    "modules that are none": ([module_entry("torch.nn.Sequential", modules={"0": "x"})], "have the wrong type", ()),
    "a module that replaces a method": (
        [module_entry("torch.nn.ReLU"), module_entry("torch.nn.Sequential", modules={"forward": {"ref": 0}})],
        "that replaces a method",
        (),
    ),
    "training perhaps": ([module_entry("torch.nn.ReLU", training=1)], "has no 'training'", ()),
    "a kernel in training perhaps": (
        [LOG_LENGTHSCALE, saved_entry(GAUSSIAN, **GAUSSIAN_STATE | {"training": 1, "log_lengthscale": {"ref": 0}})],
        "the wrong type of 'training'",
        (TWO,),
    ),
    "isotonic regression without sense": (
        [object_entry("sklearn.isotonic.IsotonicRegression", X_thresholds_="a", y_thresholds_=3)],
        "damaged",
        (),
    ),
}  # fmt: skip


def mutated(content: bytes, other: bytes, random: np.random.Generator) -> bytes:
    """Return a file with bits flipped, bytes overwritten, or parts cut, doubled or taken from another file."""
    changed = bytearray(content)
    start = int(random.integers(len(content)))
    length = int(random.integers(1, 1 + min(len(content) - start, 64)))
    match int(random.integers(8)):
        case 0 | 1:
            changed[start] ^= 1 << int(random.integers(8))
        case 2:
            changed[start : start + length] = random.bytes(length)
        case 3:
            del changed[start:]
        case 4:
            del changed[start : start + length]
        case 5:
            changed[start:start] = changed[start : start + length]
        case 6:
            changed[start : start + length] = other[start : start + length]
        case _:
            changed[start:] = other[int(random.integers(len(other))) :]
    return bytes(changed)
