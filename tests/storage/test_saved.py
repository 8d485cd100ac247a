"""Declarations of classes for model files, and declarations that are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from sklearn.base import BaseEstimator
from torch import nn

from kernelwright.persistence.classes import saved_classes
from kernelwright.storage.saved import Registry


class Plain:
    usual = 3

    def method(self) -> None: ...


class Estimator(BaseEstimator):
    def __init__(self, needed: Any, size: int = 3) -> None:
        self.needed, self.size = needed, size


@dataclass
class Record:
    a: int
    b: int = 2


class Pair(NamedTuple):
    left: int
    right: int = 2


class Module(nn.Module):
    pass


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_fields_are_known_from_the_class_where_it_says_them(registry):
    for name, cls in {"estimator": Estimator, "record": Record, "pair": Pair}.items():
        assert registry.saved(name)(cls) is cls
    registry.saved("plain", fields="a usual")(Plain)
    registry.saved("module", fields="part", parameters="weight", buffers="points")(Module)

    def required(name: str) -> list[str]:
        return registry.by_name(name).missing({})

    assert {"needed", "size", "n_features_in_", "feature_names_in_"} <= registry.of(Estimator).fields
    assert required("estimator") == ["needed"]
    assert (registry.of(Record).fields, required("record")) == ({"a", "b"}, ["a"])
    assert (registry.of(Pair).fields, required("pair")) == ({"left", "right"}, ["left"])
    assert (registry.of(Plain).fields, required("plain")) == ({"a", "usual"}, ["a"])
    assert required("module") == ["part", "points", "training", "weight"]
    assert registry.of(Plain).undeclared({"a": 1, "c": 2, "b": 3}) == ["b", "c"]
    assert [declared.name for declared in registry] == ["estimator", "record", "pair", "plain", "module"]
    assert registry.by_name("nothing") is registry.of(int) is None


def test_a_stable_name_is_given_once(registry):
    registry.saved("plain")(Plain)
    with pytest.raises(ValueError, match="The stable name 'plain' of Record is taken by Plain"):
        registry.saved("plain")(Record)
    assert registry.by_name("plain").cls is Plain
    assert registry.of(Record) is None


def test_a_module_can_be_executed_anew(registry):
    registry.saved("plain")(Plain)
    again = type("Plain", (), {"__module__": Plain.__module__, "__qualname__": Plain.__qualname__})
    registry.saved("plain")(again)
    assert registry.by_name("plain").cls is again


@pytest.mark.parametrize("name", ["", "Plain", "a.b", "a_b", "-a", "a--b", "a-", "ä"])
def test_stable_names_are_lower_case_with_hyphens(name, registry):
    with pytest.raises(ValueError, match="must be lower case with hyphens"):
        registry.saved(name)(Plain)


@pytest.mark.parametrize(
    ("cls", "declared", "sentence"),
    [
        (Plain, {"version": 2}, "has version 2: pass an upgrade"),
        (Plain, {"version": 0}, "version of Plain must be an integer of at least 1"),
        (Plain, {"fields": "method"}, "'method', which is one of its methods"),
        (Plain, {"fields": "__class__"}, "'__class__', which"),
        (Plain, {"fields": "a b a"}, "Plain declares 'a' twice"),
        (Module, {"fields": "a", "buffers": "a"}, "Module declares 'a' twice"),
        (Plain, {"parameters": "a"}, "is not a torch module"),
        (Record, {"fields": "a"}, "are known from its definition: do not declare any"),
        (Pair, {"fields": "left"}, "are known from its definition: do not declare any"),
        (Estimator, {"fields": "a", "transient": {"a": 1}}, "'a' of Estimator is either saved or transient"),
    ],
)
def test_faults_of_a_declaration(cls, declared, sentence, registry):
    with pytest.raises(ValueError, match=sentence):
        registry.saved("name", **declared)(cls)
    assert list(registry) == []


def test_all_classes_of_the_package_have_names_of_their_own():
    declared = saved_classes()
    assert len(declared) > 70
    assert len({each.name for each in declared}) == len({each.cls for each in declared}) == len(declared)
    assert [each.name for each in declared] == sorted(each.name for each in declared)
