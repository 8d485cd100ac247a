"""Registry of the classes that a model file may hold, and of the fields it stores for each.

A class registers itself::

    @saved("gaussian-kernel", fields="ard median", parameters="log_lengthscale")
    class Gaussian(Kernel): ...

A file identifies a class by this stable name only, so classes and modules can be moved and renamed. A stable name never
changes and is never reused. When the fields change, raise the version and provide an ``upgrade``.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from sklearn.base import BaseEstimator
from torch import nn

__all__ = ["REGISTRY", "Registry", "SavedClass", "saved"]

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# Attributes that scikit-learn itself adds to an estimator: during fit, by set_fit_request, by set_output.
SCIKIT_LEARN = ("n_features_in_", "feature_names_in_", "_metadata_request", "_sklearn_output_config")

Upgrade = Callable[[dict[str, Any], int], dict[str, Any]]
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class SavedClass:
    """The declaration of a saved class: what a model file stores for its objects.

    Parameters
    ----------
    cls : type
    name : str
        The stable name.
    version : int
        Version of the fields, starting at 1.
    fields : frozenset of str
        Names of all attributes that a file may hold.
    defaults : mapping of str to function
        Functions that create the value of a field missing from a file.
    optional : frozenset of str
        Fields that an object may lack, such as those that ``fit`` sets. All others without a default are required.
    parameters, buffers : frozenset of str
        The fields that are torch parameters and buffers.
    transient : mapping of str to object
        Attributes that are not stored, with their values after loading.
    upgrade : function or None
        Converts the state of an older version to this version.
    """

    cls: type
    name: str
    version: int
    fields: frozenset[str]
    defaults: Mapping[str, Callable[[], Any]]
    optional: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    buffers: frozenset[str] = frozenset()
    transient: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    upgrade: Upgrade | None = None

    def missing(self, state: Mapping[str, Any]) -> list[str]:
        """Return the names of required fields missing from a state."""
        return sorted(self.fields - state.keys() - self.defaults.keys() - self.optional)

    def undeclared(self, state: Mapping[str, Any]) -> list[str]:
        """Return the names in a state that are not declared fields."""
        return sorted(state.keys() - self.fields)


class Registry:
    """Saved classes, looked up by stable name or by class.

    Examples
    --------
    >>> from kernelwright.storage.saved import Registry
    >>> registry = Registry()
    >>> @registry.saved("pair", fields="left right")
    ... class Pair:
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> registry.by_name("pair").cls.__name__, sorted(registry.of(Pair).fields)
    ('Pair', ['left', 'right'])
    """

    def __init__(self) -> None:
        self._by_name: dict[str, SavedClass] = {}
        self._by_class: dict[type, SavedClass] = {}

    def __iter__(self) -> Iterator[SavedClass]:
        return iter(self._by_name.values())

    def by_name(self, name: str) -> SavedClass | None:
        """Return the class with a stable name, or None."""
        return self._by_name.get(name)

    def of(self, cls: type) -> SavedClass | None:
        """Return the declaration of exactly this class; a subclass needs its own."""
        return self._by_class.get(cls)

    def saved(
        self,
        name: str,
        *,
        version: int = 1,
        fields: str = "",
        parameters: str = "",
        buffers: str = "",
        transient: Mapping[str, Any] | None = None,
        upgrade: Upgrade | None = None,
    ) -> Callable[[type[T]], type[T]]:
        """Declare that model files may hold objects of the decorated class.

        Parameters
        ----------
        name : str
            The name of the class in files, in lower case with hyphens. It is unique and survives a renamed class.
        version : int, default=1
            Raise it when a field is renamed, removed or changes its meaning. A new field with a default needs none.
        fields : str, default=""
            Attributes to save, separated by spaces. Fields of dataclasses and named tuples, and constructor parameters
            of estimators, are known already. For an estimator list what ``fit`` sets; for a torch module list its
            submodules and plain attributes.
        parameters, buffers : str, default=""
            Parameters and buffers of a torch module. A ``Positive()`` number has its raw name, ``log_NAME``.
        transient : mapping, default=None
            Attributes that are not saved, with their values after loading.
        upgrade : function, default=None
            ``upgrade(state, version)`` converts the fields of an older file to the current version. Required from
            version 2 on.

        Returns
        -------
        function
            A decorator that returns the class unchanged. Place it above ``@dataclass``.
        """

        def declare(cls: type[T]) -> type[T]:
            declared = _declaration(cls, fields.split(), parameters.split(), buffers.split())
            self._add(SavedClass(cls, name, version, **declared, transient=transient or {}, upgrade=upgrade))
            return cls

        return declare

    def _add(self, declared: SavedClass) -> None:
        cls, name = declared.cls, declared.name
        if not NAME.fullmatch(name):
            raise ValueError(f"The stable name of {cls.__name__} must be lower case with hyphens. Got {name!r}.")
        if declared.version < 1:
            raise ValueError(f"The version of {cls.__name__} must be an integer of at least 1. Got {declared.version}.")
        if declared.version > 1 and declared.upgrade is None:
            raise ValueError(f"{cls.__name__} has version {declared.version}: pass an upgrade for older versions.")
        for field in declared.fields:
            if field.startswith("__") or callable(getattr(cls, field, None)):
                raise ValueError(f"{cls.__name__} cannot declare the field {field!r}, which is one of its methods.")
        if both := sorted(declared.fields & declared.transient.keys()):
            raise ValueError(f"{both[0]!r} of {cls.__name__} is either saved or transient, not both.")
        known = self._by_name.get(name)
        if known is not None and not _is_the_same(known.cls, cls):
            raise ValueError(f"The stable name {name!r} of {cls.__qualname__} is taken by {known.cls.__qualname__}.")
        self._by_name[name] = self._by_class[cls] = declared


def _is_the_same(old: type, new: type) -> bool:
    """Return whether a module was merely executed again, as by ``importlib.reload``."""
    return (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)


def _declaration(cls: Any, fields: list[str], parameters: list[str], buffers: list[str]) -> dict[str, Any]:
    """Find the fields of a class and their known defaults."""
    named = [*fields, *parameters, *buffers]
    if twice := [name for name in named if named.count(name) > 1]:
        raise ValueError(f"{cls.__name__} declares {twice[0]!r} twice.")
    if (parameters or buffers) and not issubclass(cls, nn.Module):
        raise ValueError(f"{cls.__name__} is not a torch module: it cannot declare parameters or buffers.")
    if dataclasses.is_dataclass(cls) or hasattr(cls, "_fields"):
        if fields:
            raise ValueError(f"The fields of {cls.__name__} are known from its definition: do not declare any.")
        own, defaults = _record_fields(cls)
        return {"fields": frozenset(own), "defaults": defaults}
    if issubclass(cls, BaseEstimator):
        settings = [inspect.signature(cls).parameters[name] for name in cls._get_param_names()]
        fitted = frozenset([*fields, *SCIKIT_LEARN])
        defaults = {p.name: _giver(p.default) for p in settings if p.default is not inspect.Parameter.empty}
        return {"fields": fitted | {p.name for p in settings}, "defaults": defaults, "optional": fitted}
    if issubclass(cls, nn.Module):
        fields = ["training", *named]
    return {
        "fields": frozenset(fields),
        "defaults": {},
        "optional": frozenset(name for name in fields if hasattr(cls, name)),  # the class itself has a default
        "parameters": frozenset(parameters),
        "buffers": frozenset(buffers),
    }


def _record_fields(cls: Any) -> tuple[list[str], dict[str, Callable[[], Any]]]:
    if not dataclasses.is_dataclass(cls):
        return list(cls._fields), {name: _giver(value) for name, value in cls._field_defaults.items()}
    own = dataclasses.fields(cls)
    defaults = {field.name: _giver(field.default) for field in own if field.default is not dataclasses.MISSING}
    made = {f.name: f.default_factory for f in own if f.default_factory is not dataclasses.MISSING}
    return [field.name for field in own], defaults | made


def _giver(value: Any) -> Callable[[], Any]:
    return lambda: value


REGISTRY = Registry()
saved = REGISTRY.saved
