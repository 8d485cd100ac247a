"""Objects of saved classes: their state in a file, and how they are restored without running their code."""

from __future__ import annotations

import dataclasses
from typing import Any

from sklearn.base import BaseEstimator
from torch import Tensor, nn

from kernelwright.errors import ModelFileError
from kernelwright.persistence.archive import DAMAGED
from kernelwright.storage.saved import SavedClass

__all__ = ["MODULE_STATE", "restore", "state_of"]

MODULE_STATE = frozenset(vars(nn.Module()))  # torch's internal attributes of every module


def state_of(thing: Any, declared: SavedClass, path: str) -> dict[str, Any]:
    """Return the fields of an object with their values.

    Raises
    ------
    TypeError
        If it has an undeclared attribute, or lacks a required one.
    """
    state = {name: value for name, value in _attributes(thing).items() if name not in declared.transient}
    faults = declared.undeclared(state)
    if isinstance(thing, nn.Module):
        faults += sorted((thing._parameters.keys() - declared.parameters) | (thing._buffers.keys() - declared.buffers))
    if faults:
        raise TypeError(
            f"{path}.{faults[0]} cannot be saved: it is not among the attributes that {type(thing).__name__} declares "
            "with @saved. Delete it, or declare it there if it belongs to the class."
        )
    if missing := declared.missing(state):
        raise TypeError(f"{path} cannot be saved: it has no attribute {missing[0]!r}, which is required.")
    return state


def _attributes(thing: Any) -> dict[str, Any]:
    if isinstance(thing, tuple):
        return thing._asdict()  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
    if isinstance(thing, nn.Module):
        plain = {name: value for name, value in vars(thing).items() if name not in MODULE_STATE}
        return {"training": thing.training, **plain, **thing._parameters, **thing._buffers, **thing._modules}
    return dict(vars(thing))


def restore(declared: SavedClass, state: dict[str, Any], version: int) -> Any:
    """Make an object from its saved state, which may be of an older version.

    Neither its constructor nor its setters are run.
    """
    state = _completed(declared, _upgraded(declared, state, version))
    cls: Any = declared.cls
    if issubclass(cls, tuple):
        return tuple.__new__(cls, [state[name] for name in cls._fields])
    made = object.__new__(cls)
    if issubclass(cls, nn.Module):
        nn.Module.__init__(made)
        _fill_module(made, declared, state)
    else:
        vars(made).update(state)
    return made


def _upgraded(declared: SavedClass, state: dict[str, Any], version: int) -> dict[str, Any]:
    """Return the state, upgraded to the current version."""
    if version > declared.version:
        raise ModelFileError(
            f"it holds {declared.name!r} in version {version}, but this kernelwright knows versions up to "
            f"{declared.version}; upgrade kernelwright"
        )
    if version < 1:
        raise ModelFileError(f"it holds {declared.name!r} in version {version}, which does not exist; {DAMAGED}")
    if version == declared.version or declared.upgrade is None:
        return state
    return declared.upgrade(state, version)


def _completed(declared: SavedClass, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state with defaults for missing fields; raise an error for unknown fields."""
    if unknown := declared.undeclared(state):
        raise ModelFileError(
            f"it holds {declared.name!r} with a field {unknown[0]!a}, which this kernelwright does not know; upgrade "
            f"kernelwright if the file was made by a newer one, else {DAMAGED}"
        )
    if missing := declared.missing(state):
        raise ModelFileError(f"it holds {declared.name!r} without the field {missing[0]!r}; {DAMAGED}")
    defaults = {name: make() for name, make in declared.defaults.items() if name not in state}
    # What ``fit`` sets is not on an unfitted estimator.
    unfitted = issubclass(declared.cls, BaseEstimator) and not any(name in state for name in declared.optional)
    return {**state, **defaults, **({} if unfitted else declared.transient)}


def _fill_module(made: nn.Module, declared: SavedClass, state: dict[str, Any]) -> None:
    for name, value in state.items():
        place, kinds = _place(made, declared, name, value)
        if not isinstance(value, kinds):
            raise ModelFileError(f"it holds {declared.name!r} with the wrong type of {name!r}; {DAMAGED}")
        place[name] = value


def _place(made: nn.Module, declared: SavedClass, name: str, value: Any) -> tuple[dict[str, Any], Any]:
    """Return where torch stores an attribute, and its allowed types."""
    if name in declared.parameters:
        return made._parameters, nn.Parameter  # type: ignore[return-value]
    if name in declared.buffers:
        return made._buffers, (Tensor, type(None))
    if isinstance(value, nn.Module):
        return made._modules, nn.Module  # type: ignore[return-value]
    return vars(made), bool if name == "training" else object
