"""Saved classes that were moved, renamed or are of an older version, and undeclared fields."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from torch import nn

import kernelwright as kw
from kernelwright.persistence import classes
from kernelwright.storage.saved import Registry
from tests.persistence.forging import refused
from tests.persistence.models import round_trip

CENTRED = """
import numpy as np
from sklearn.base import BaseEstimator

class {name}(BaseEstimator):
    def __init__(self, shift=1.0):
        self.shift = shift

    def fit(self, X, y=None):
        self.mean_ = np.mean(X, 0)
        return self

    def transform(self, X):
        return X - self.mean_ + self.shift
"""


@pytest.fixture
def registry(monkeypatch) -> Registry:
    return fresh(monkeypatch)


def fresh(monkeypatch) -> Registry:
    """Replace the registry by an empty one, as in another process, perhaps of a later version."""
    empty = Registry()
    monkeypatch.setattr(classes, "REGISTRY", empty)
    return empty


@pytest.fixture
def made_modules() -> Iterator[list[str]]:
    names: list[str] = []
    yield names
    for name in names:
        del sys.modules[name]


def centred(module_name: str, class_name: str, made_modules: list[str]) -> Any:
    """Make a class in its own module."""
    module = ModuleType(module_name)
    sys.modules[module_name] = module
    made_modules.append(module_name)
    exec(CENTRED.format(name=class_name), vars(module))
    return getattr(module, class_name)


def test_a_class_that_was_moved_and_renamed_is_found_by_its_stable_name(tmp_path, monkeypatch, made_modules):
    Before = fresh(monkeypatch).saved("centred", fields="mean_")(centred("old_room", "Centred", made_modules))
    X = np.arange(6.0).reshape(3, 2)
    model = Before(shift=2.0).fit(X)
    kw.save(model, tmp_path / "model.kw")

    After = fresh(monkeypatch).saved("centred", fields="mean_")(centred("new_room", "MeanRemover", made_modules))
    loaded = kw.load(tmp_path / "model.kw")
    assert type(loaded) is After
    assert (After.__module__, After.__name__) == ("new_room", "MeanRemover")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_an_older_version_is_upgraded(tmp_path, monkeypatch):
    @fresh(monkeypatch).saved("reading")
    @dataclass(frozen=True)
    class Celsius:
        celsius: float
        place: str

    old = [Celsius(10.0, "hut"), Celsius(20.0, "hall")]
    kw.save(old, tmp_path / "model.kw")

    def upgrade(state: dict[str, Any], version: int) -> dict[str, Any]:
        assert version == 1
        return {"kelvin": state["celsius"] + 273.15, "place": state["place"]}

    @fresh(monkeypatch).saved("reading", version=2, upgrade=upgrade)
    @dataclass(frozen=True)
    class Kelvin:
        kelvin: float
        place: str
        checked: bool = False

    assert kw.load(tmp_path / "model.kw") == [Kelvin(283.15, "hut"), Kelvin(293.15, "hall")]
    assert round_trip(Kelvin(1.0, "cave", True), tmp_path) == Kelvin(1.0, "cave", True)


def test_an_upgrade_can_rename_the_numbers_of_a_module(tmp_path, monkeypatch):
    class Old(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.name = nn.Parameter(torch.tensor(3.0)), "old"
            self.register_buffer("offset", torch.tensor(1.0))

    fresh(monkeypatch).saved("module", fields="name", parameters="weight", buffers="offset")(Old)
    kw.save(Old().eval(), tmp_path / "model.kw")

    class New(nn.Module):
        factor: nn.Parameter
        shift: torch.Tensor
        layer: nn.Module

    def upgrade(state: dict[str, Any], version: int) -> dict[str, Any]:
        renamed = {"factor": state["weight"], "shift": state["offset"], "layer": nn.Identity()}
        return renamed | {"training": state["training"]}

    declare = fresh(monkeypatch).saved
    declare("module", version=2, fields="layer", parameters="factor", buffers="shift", upgrade=upgrade)(New)
    loaded = kw.load(tmp_path / "model.kw")
    assert {name: float(number) for name, number in loaded.state_dict().items()} == {"factor": 3.0, "shift": 1.0}
    assert [name for name, _ in loaded.named_parameters()] == ["factor"]
    assert isinstance(loaded.layer, nn.Identity)
    assert not loaded.training


def test_an_upgrade_that_leaves_something_over_is_refused(tmp_path, monkeypatch):
    fresh(monkeypatch).saved("thing", fields="old")(Thing)
    kw.save(Thing(old=1), tmp_path / "model.kw")
    fresh(monkeypatch).saved("thing", version=2, fields="new", upgrade=lambda state, version: state)(Thing)
    refused(tmp_path / "model.kw", "'thing' with a field 'old', which this kernelwright does not know; upgrade")
    fresh(monkeypatch).saved("thing", version=2, fields="new", upgrade=lambda state, version: {})(Thing)
    refused(tmp_path / "model.kw", "it holds 'thing' without the field 'new'")


def test_a_newer_version_and_an_unknown_name_are_refused(tmp_path, monkeypatch):
    fresh(monkeypatch).saved("thing", version=3, fields="a", upgrade=lambda state, version: state)(Thing)
    kw.save(Thing(a=1), tmp_path / "model.kw")
    fresh(monkeypatch).saved("thing", version=2, fields="a", upgrade=lambda state, version: state)(Thing)
    refused(tmp_path / "model.kw", "'thing' in version 3, but .* knows versions up to 2; upgrade kernelwright")
    fresh(monkeypatch).saved("other", fields="a")(Thing)
    refused(tmp_path / "model.kw", "class 'thing', which kernelwright .* cannot restore")


class Thing:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


class Fitted(BaseEstimator):
    def __init__(self, size: int = 3) -> None:
        self.size = size


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.plain, self.linear = 1, nn.Linear(1, 1)
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("numbers", torch.ones(2))


class Two(NamedTuple):
    left: int
    right: int = 2


@dataclass(frozen=True)
class Listed:
    items: list[int] = field(default_factory=list)
    n: int = 4


class TestSaving:
    def test_an_attribute_that_is_not_declared_is_named(self, registry, tmp_path):
        registry.saved("thing", fields="a")(Thing)
        with pytest.raises(TypeError, match=r"^list\[0\]\.b cannot be saved: .* Thing declares with @saved\."):
            kw.save([Thing(a=1, b=2)], tmp_path / "model.kw")
        with pytest.raises(TypeError, match=r"^Thing cannot be saved: it has no attribute 'a'"):
            kw.save(Thing(), tmp_path / "model.kw")
        assert list(tmp_path.iterdir()) == []

    def test_an_estimator_declares_what_fit_sets(self, registry, tmp_path):
        registry.saved("fitted", fields="mean_")(Fitted)
        model = Fitted()
        model.mean_, model.n_features_in_ = 2.0, 1
        assert vars(round_trip(model, tmp_path)) == {"size": 3, "mean_": 2.0, "n_features_in_": 1}
        assert vars(round_trip(Fitted(5), tmp_path)) == {"size": 5}
        model.deviation_ = 1.0
        with pytest.raises(TypeError, match=r"Fitted\.deviation_ cannot be saved"):
            kw.save(model, tmp_path / "model.kw")

    @pytest.mark.parametrize(
        ("declared", "named"),
        [
            ({"fields": "plain linear", "buffers": "numbers"}, "weight"),
            ({"fields": "plain linear", "parameters": "weight"}, "numbers"),
            ({"fields": "plain", "parameters": "weight", "buffers": "numbers"}, "linear"),
            ({"fields": "linear", "parameters": "weight", "buffers": "numbers"}, "plain"),
            ({"fields": "plain linear weight", "buffers": "numbers"}, "weight"),
            ({"fields": "plain linear numbers", "parameters": "weight"}, "numbers"),
        ],
    )
    def test_a_module_declares_all_its_parts(self, declared, named, registry, tmp_path):
        registry.saved("layer", **declared)(Layer)
        with pytest.raises(TypeError, match=rf"Layer\.{named} cannot be saved"):
            kw.save(Layer(), tmp_path / "model.kw")

    def test_a_module_comes_back_whole(self, registry, tmp_path):
        registry.saved("layer", fields="plain linear", parameters="weight", buffers="numbers")(Layer)
        layer = Layer().eval()
        loaded = round_trip(layer, tmp_path)
        assert [name for name, _ in loaded.named_parameters()] == [name for name, _ in layer.named_parameters()]
        assert loaded.state_dict().keys() == layer.state_dict().keys()
        assert (loaded.plain, loaded.training, loaded.linear.training) == (1, False, False)

    def test_transient_attributes_have_their_value_after_loading(self, registry, tmp_path):
        registry.saved("thing", fields="a", transient={"device": "cpu"})(Thing)
        loaded = round_trip(Thing(a=1, device="cuda"), tmp_path)
        assert vars(loaded) == {"a": 1, "device": "cpu"}
        assert b"cuda" not in (tmp_path / "model.kw").read_bytes()

    def test_a_subclass_needs_a_name_of_its_own(self, registry, tmp_path):
        class Special(Thing):
            pass

        registry.saved("thing", fields="a")(Thing)
        with pytest.raises(TypeError, match=r"cannot be saved: it is a .*Special"):
            kw.save(Special(a=1), tmp_path / "model.kw")

    def test_a_class_of_the_package_that_declares_nothing_is_refused(self, tmp_path):
        workspace = kw.numerics.linalg.Workspace()
        with pytest.raises(TypeError, match=r"cannot be saved: it is a .*Workspace, and only classes that declare it"):
            kw.save(workspace, tmp_path / "model.kw")


class TestDefaults:
    def saved_as_things(self, name: str, tmp_path: Any, monkeypatch: Any, **state: Any) -> None:
        """Save a file in which the class of this name has other fields."""
        fresh(monkeypatch).saved(name, fields=" ".join(state))(Thing)
        kw.save(Thing(**state), tmp_path / "model.kw")

    def test_fields_that_are_newer_than_the_file_have_their_defaults(self, tmp_path, monkeypatch):
        self.saved_as_things("two", tmp_path, monkeypatch, left=1)
        fresh(monkeypatch).saved("two")(Two)
        assert kw.load(tmp_path / "model.kw") == Two(1, 2)
        self.saved_as_things("listed", tmp_path, monkeypatch)
        fresh(monkeypatch).saved("listed")(Listed)
        first, second = kw.load(tmp_path / "model.kw"), kw.load(tmp_path / "model.kw")
        assert first == second == Listed([], 4)
        assert first.items is not second.items
        self.saved_as_things("fitted", tmp_path, monkeypatch)
        fresh(monkeypatch).saved("fitted")(Fitted)
        assert kw.load(tmp_path / "model.kw").size == 3

    def test_a_default_of_the_class_serves_a_plain_object(self, tmp_path, monkeypatch):
        self.saved_as_things("plain", tmp_path, monkeypatch, a=1)

        class Plain:
            a: int
            b: int = 7

        fresh(monkeypatch).saved("plain", fields="a b")(Plain)
        loaded = kw.load(tmp_path / "model.kw")
        assert (loaded.a, loaded.b) == (1, 7)

    def test_without_a_default_the_file_is_refused(self, tmp_path, monkeypatch):
        self.saved_as_things("two", tmp_path, monkeypatch, right=1)
        fresh(monkeypatch).saved("two")(Two)
        refused(tmp_path / "model.kw", "it holds 'two' without the field 'left'")
