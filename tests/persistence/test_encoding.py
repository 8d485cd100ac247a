"""All parts of a model are restored exactly; an error names what cannot be saved."""

import sys
from collections import OrderedDict
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.preprocessing import (
    FunctionTransformer,
)
from torch import nn

import kernelwright as kw
from kernelwright.hyperkernels import PointPairs
from kernelwright.learning import Step
from tests.persistence.models import round_trip

ARRAY = np.arange(6.0).reshape(2, 3)
THINGS: dict[str, Any] = {
    "atoms": [None, True, False, 0, -5, 2**200, -(2**63), 0.1, -0.0, 5e-324, float("inf"), -float("inf"), "", "ä \0 𝄞"],
    "containers": [(1, (2, [3, {}])), {1, 2}, frozenset("ab"), {(1, "a"): None, 2.5: [], None: 1}, slice(1, None, 2)],
    "mappings": OrderedDict(b=1, a=2),
    "bytes": b"\0\xff",
    "numpy scalars": [np.float32(0.1), np.int64(-3), np.bool_(True), np.str_("ä"), np.datetime64("2020")],
    "types": [np.float64, float, np.number, np.log1p, torch.float32, np.dtype("<f4"), np.dtype(bool)],
    "arrays": [ARRAY, ARRAY.T, ARRAY[::-1], np.zeros((0, 3)), np.array(2.5), np.ones((2, 3, 4)).transpose(1, 0, 2)],
    "small types": [np.array([True, False]), np.array(["a", "äöü"]), np.array([b"x"]), np.arange(3, dtype=">i2")],
    "more types": [np.float16([1, 2]), np.array([1 + 2j]), np.array(["2020", "NaT"], "M8[Y]"), np.uint8([[255]])],
    "objects": [np.array(["a", None, 2.5, (1, 2)], dtype=object).reshape(2, 2), np.empty((0, 2), dtype=object)],
    "masked": np.ma.MaskedArray([1, 2, 3], [False, True, False]),
    "record": Step(*range(len(Step.__dataclass_fields__))),
    "named tuple": PointPairs(torch.zeros(1, 2), torch.ones(1, 2)),
}  # fmt: skip


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, np.ndarray) and a.dtype == object:
        assert a.shape == b.shape
        assert_same(list(a.ravel()), list(b.ravel()))
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.flags.f_contiguous == b.flags.f_contiguous or not (a.flags.c_contiguous or a.flags.f_contiguous)
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
        assert (a.dtype, a.requires_grad) == (b.dtype, b.requires_grad)
    elif isinstance(a, dict):
        assert_same(list(a.items()), list(b.items()))
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    else:
        assert a == b or a != a
        assert repr(a) == repr(b)  # negative zero


@pytest.mark.parametrize("name", THINGS)
def test_everything_that_a_model_is_made_of_comes_back_as_it_was(name, tmp_path):
    assert_same(round_trip(THINGS[name], tmp_path), THINGS[name])


def test_a_few_kinds_of_lists_become_plain_ones(tmp_path):
    assert_same(round_trip([range(2), torch.Size([3]), pd.Index(["a", "b"])], tmp_path), [[0, 1], (3,), ["a", "b"]])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64"])
def test_tensors_keep_their_type_layout_and_whether_they_are_learned(dtype, tmp_path):
    tensor = torch.arange(24).reshape(2, 3, 4).to(getattr(torch, dtype)).permute(2, 0, 1)
    loaded = round_trip([tensor, tensor[:0], tensor[0, 0, 0]], tmp_path)
    assert_same(loaded, [tensor, tensor[:0], tensor[0, 0, 0]])
    assert loaded[0].stride() == tensor.stride()
    learned, fixed = round_trip([nn.Parameter(torch.ones(2)), torch.ones(2)], tmp_path)
    assert (type(learned), learned.requires_grad) == (nn.Parameter, True)
    assert not fixed.requires_grad


def test_what_was_one_object_is_one_object_again_and_is_stored_once(tmp_path):
    array, tensor, items = np.ones(10_000), nn.Parameter(torch.ones(10_000)), [1]
    loaded = round_trip([array, array, tensor, (tensor, items), items], tmp_path)
    assert loaded[0] is loaded[1]
    assert loaded[2] is loaded[3][0]
    assert loaded[3][1] is loaded[4]
    assert (tmp_path / "model.kw").stat().st_size < 170_000


@pytest.mark.parametrize(
    "make", [lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)], ids=["RandomState", "Generator"]
)
def test_a_random_state_goes_on_where_it_was(make, tmp_path):
    random = make()
    random.normal(size=3)
    model = kw.EmbeddingClassifier(random_state=random)
    loaded = round_trip([model, random], tmp_path)
    assert loaded[0].random_state is loaded[1]
    np.testing.assert_array_equal(loaded[1].normal(size=700), random.normal(size=700))


def test_generators_of_other_kinds_go_on_too(tmp_path):
    for kind in (np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM):
        random = np.random.Generator(kind(1))
        random.integers(10, size=3, dtype=np.int32)
        np.testing.assert_array_equal(round_trip(random, tmp_path).normal(size=9), random.normal(size=9))
    random = torch.Generator().manual_seed(5)
    torch.rand(3, generator=random)
    loaded = round_trip(random, tmp_path)
    assert torch.equal(torch.rand(700, generator=loaded), torch.rand(700, generator=random))


class Strange:
    pass


cycle: list[Any] = []
cycle.append(cycle)
deep: list[Any] = []
for _ in range(150):
    deep = [deep]


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (FunctionTransformer(lambda x: x), r"FunctionTransformer\.func cannot be saved: it is a function .*<lambda>"),
        ({"a": [Strange()]}, r"dict\['a'\]\[0\] cannot be saved: it is a .*Strange"),
        (Strange, "cannot be saved: it is a type Strange"),
        (np.zeros(2, dtype=[("a", "f8")]), "dtype"),
        (np.longdouble([1.0]), "dtype"),
        (torch.ones(2).to_sparse(), "tensor"),
        (torch.ones(2, dtype=torch.complex64), "tensor"),
        (cycle, "contains itself"),
        (deep, "more than 100 objects are nested in each other"),
        ("\ud800", "surrogate"),
        ({"\ud800": 1}, "surrogate"),
        (sys, "cannot be saved: it is a module"),
    ],
)
def test_what_cannot_be_saved_is_named_and_no_file_is_written(thing, sentence, tmp_path):
    with pytest.raises((TypeError, ValueError), match=sentence):
        kw.save(thing, tmp_path / "model.kw")
    assert list(tmp_path.iterdir()) == []


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"too many single objects: their description takes .* objects, where at most"):
        kw.save([[] for _ in range(2**19)], tmp_path / "m.kw")
    with pytest.raises(ValueError, match=r"too many single objects: their description takes .* values, where at most"):
        kw.save([0] * 2**23, tmp_path / "m.kw")
    assert not list(tmp_path.iterdir())
