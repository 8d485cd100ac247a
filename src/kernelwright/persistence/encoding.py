"""From objects to a document: a table whose entries refer only to earlier entries, and the bytes of arrays.

Everything that is not a plain JSON value has its own entry. So an object that occurs twice is written once, and is one
object again after loading. No entry refers to a later one, so reading is a simple loop without cycles.
"""

from __future__ import annotations

import base64
import math
import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from torch import Tensor, nn

from kernelwright.persistence.classes import is_library_class, listed_name, saved_class_of, thing_name
from kernelwright.persistence.objects import MODULE_STATE, state_of
from kernelwright.storage.saved import SavedClass

__all__ = ["ARRAY_TYPE", "DEEPEST", "LEFT_OUT", "TENSOR_TYPES", "Encoder"]

DEEPEST = 100  # levels of nested objects
LEFT_OUT = ("callback", "checkpoint", "memory")  # settings of the running program, not of the model
SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
SEQUENCES |= {range: "list", torch.Size: "tuple"}  # saved as the type that they are used as
MAPPINGS: dict[type, str] = {dict: "dict", OrderedDict: "ordered", Bunch: "bunch"}
HOOKS = tuple(name for name in MODULE_STATE if name.endswith("_hooks"))

# Array types for which every bit pattern is harmless or checked: no Python objects, no pointers, no records.
ARRAY_TYPE = re.compile(
    r"\|b1|\|[iu]1|[<>](?:[iu][248]|f[248]|c8|c16|U[1-9]\d{0,6})|\|S[1-9]\d{0,6}"
    r"|[<>][mM]8(?:\[\d{0,6}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
)
TENSOR_TYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
}
PLAIN_ARRAYS = (np.ndarray, np.memmap)

Entry = dict[str, Any]


class Encoder:
    """Builds the table, one object after another, and collects the bytes of arrays."""

    def __init__(self) -> None:
        self.table: list[Entry] = []
        self.arrays: list[memoryview] = []
        self._places: dict[int, int] = {}
        self._alive: list[Any] = []  # keeps temporary objects alive, so that no id is used twice
        self._open: set[int] = set()
        self.left_out: list[str] = []

    def value(self, thing: Any, path: str) -> Any:
        """Return the form of an object inside an entry: a plain JSON value or a reference; ``path`` is its name."""
        kind = type(thing)
        if thing is None or kind is bool:
            return thing
        if kind in (str, torch.device):
            return _checked_text(str(thing), path)
        if kind is int:
            return thing if abs(thing) < 2**63 else {"int": hex(thing)}
        if kind is float:
            return thing if math.isfinite(thing) else {"float": str(thing)}
        return {"ref": self._place(thing, path)}

    def _place(self, thing: Any, path: str) -> int:
        """Return the number of an object's entry, which is made when the object first occurs."""
        if id(thing) in self._places:
            return self._places[id(thing)]
        if id(thing) in self._open:
            raise ValueError(f"{path} cannot be saved: it contains itself.")
        if len(self._open) >= DEEPEST:
            raise ValueError(f"{path} cannot be saved: more than {DEEPEST} objects are nested in each other.")
        self._open.add(id(thing))
        entry = self._entry(thing, path)
        self._open.discard(id(thing))
        self._alive.append(thing)
        self.table.append(entry)
        self._places[id(thing)] = len(self.table) - 1
        return self._places[id(thing)]

    def _entry(self, thing: Any, path: str) -> Entry:
        kind = type(thing)
        if kind in SEQUENCES:
            items = sorted(thing, key=repr) if kind in (set, frozenset) else thing
            return {"kind": SEQUENCES[kind], "items": self._values(items, path)}
        if kind in MAPPINGS:
            pairs = [[self.value(k, f"a key of {path}"), self.value(v, f"{path}[{k!r}]")] for k, v in thing.items()]
            return {"kind": MAPPINGS[kind], "items": pairs}
        if kind is bytes:
            return {"kind": "bytes", "text": base64.b64encode(thing).decode()}
        if kind is slice:
            return {"kind": "slice", "items": self._values((thing.start, thing.stop, thing.step), path)}
        if (name := thing_name(thing)) is not None:
            return {"kind": "thing", "name": name}
        if isinstance(thing, (np.ndarray, np.generic, np.dtype)):
            return self._numpy(thing, path)
        if isinstance(thing, Tensor):
            return self._tensor(thing, path)
        if isinstance(thing, (np.random.RandomState, np.random.Generator, torch.Generator)):
            return self._generator(thing, path)
        if (declared := saved_class_of(kind)) is not None:
            return self._saved(thing, declared, path)
        if is_library_class(kind):
            raise _refusal(path, thing, "", "classes that declare it with @saved can")
        if isinstance(thing, nn.Module):
            return self._module(thing, path)
        return self._object(thing, path)

    def _values(self, things: Iterable[Any], path: str) -> list[Any]:
        return [self.value(thing, f"{path}[{number}]") for number, thing in enumerate(things)]

    # arrays --------------------------------------------------------------------------------------------

    def _numpy(self, thing: Any, path: str) -> Entry:
        if type(thing) is np.ma.MaskedArray:
            return {"kind": "masked", "items": self._values((thing.data, thing.mask), path)}
        dtype = thing if isinstance(thing, np.dtype) else thing.dtype
        plain = not isinstance(thing, np.ndarray) or type(thing) in PLAIN_ARRAYS
        if plain and isinstance(thing, np.ndarray) and dtype.kind == "O":
            return {"kind": "objects", "shape": list(thing.shape), "items": self._values(thing.ravel(), path)}
        if isinstance(thing, np.dtype) and dtype.kind == "O":
            return {"kind": "dtype", "dtype": "O"}  # a transformer stores it if it saw strings
        if not plain or not ARRAY_TYPE.fullmatch(dtype.str):
            raise _refusal(path, thing, f"of dtype {dtype}", "plain arrays of numbers, booleans or strings can")
        if isinstance(thing, np.dtype):
            return {"kind": "dtype", "dtype": dtype.str}
        if isinstance(thing, np.generic):
            return {"kind": "scalar", "dtype": dtype.str, "bytes": thing.tobytes().hex()}
        order = _axes_in_memory(thing.strides)
        content = np.ascontiguousarray(thing.transpose(order))
        where = {"shape": list(thing.shape), "order": order, "bytes": self._add(content)}
        return {"kind": "array", "dtype": dtype.str, **where}

    def _tensor(self, thing: Tensor, path: str) -> Entry:
        dtype = str(thing.dtype).removeprefix("torch.")
        plain = type(thing) in (Tensor, nn.Parameter) and thing.layout == torch.strided
        if dtype not in TENSOR_TYPES or not plain:
            raise _refusal(path, thing, f"of {thing.dtype}", "plain dense tensors of real numbers can")
        order = _axes_in_memory(thing.stride())
        content = thing.detach().cpu().permute(order).contiguous()
        return {
            "kind": "parameter" if isinstance(thing, nn.Parameter) else "tensor",
            "dtype": dtype,
            "shape": list(thing.shape),
            "order": order,
            "bytes": self._add(content.reshape(-1).view(torch.uint8).numpy()),
            "learned": thing.requires_grad and thing.is_leaf,
        }

    def _add(self, content: np.ndarray) -> int:
        """Keep the bytes of an array, without a copy, and return their number."""
        self.arrays.append(content.reshape(-1).view(np.uint8).data)
        return len(self.arrays) - 1

    # objects -------------------------------------------------------------------------------------------

    def _generator(self, thing: Any, path: str) -> Entry:
        """Describe a generator by its state, so that its next draws are the same after loading."""
        if isinstance(thing, torch.Generator):
            return {"kind": "torch generator", "state": self.value(thing.get_state(), path)}
        numpy_state = isinstance(thing, np.random.RandomState)
        state = thing.get_state(legacy=False) if numpy_state else thing.bit_generator.state
        return {"kind": "random state" if numpy_state else "generator", "state": self.value(state, path)}

    def _saved(self, thing: Any, declared: SavedClass, path: str) -> Entry:
        """Describe an object of this package by its stable name and its fields."""
        state = state_of(thing, declared, path)
        if isinstance(thing, BaseEstimator):
            self._leave_out(state, path)
        named = self._named(state, path)
        return {"kind": "object", "class": declared.name, "version": declared.version, "state": named}

    def _object(self, thing: Any, path: str) -> Entry:
        """Describe an object of scikit-learn by the name of its class and its state."""
        name = listed_name(type(thing))
        if name is None:
            if type(thing).__module__.partition(".")[0] == "pandas" and hasattr(thing, "get_indexer"):
                return {"kind": "list", "items": self._values(thing.tolist(), path)}  # an index of column names
            raise _refusal(path, thing, "", "models of kernelwright and common ones of scikit-learn can")
        state = dict(thing.__getstate__() if isinstance(thing, BaseEstimator) else vars(thing))
        state.pop("_sklearn_version", None)  # it is in the manifest
        if isinstance(thing, BaseEstimator):
            self._leave_out(state, path)
        return {"kind": "object", "class": name, "state": self._named(state, path)}

    def _leave_out(self, state: dict[str, Any], path: str) -> None:
        for name in LEFT_OUT:
            if state.get(name) is not None:
                self.left_out.append(f"{path}.{name}")
                state[name] = None

    def _named(self, things: dict[str, Any], path: str) -> dict[str, Any]:
        return {_checked_text(name, path): self.value(thing, f"{path}.{name}") for name, thing in things.items()}

    def _module(self, thing: nn.Module, path: str) -> Entry:
        """Describe a module by its parts if all their classes are known, otherwise by its parameters only."""
        name = listed_name(type(thing))
        if name is None or not all(map(_is_known_layer, thing.modules())):
            return self._foreign_module(thing, path)
        state = {key: value for key, value in vars(thing).items() if key not in MODULE_STATE}
        return {
            "kind": "module",
            "class": name,
            "training": thing.training,
            "state": self._named(state, path),
            "parameters": self._named(thing._parameters, path),
            "buffers": self._named(thing._buffers, path),
            "modules": self._named(thing._modules, path),
            "transient": sorted(thing._non_persistent_buffers_set),
        }

    def _foreign_module(self, thing: nn.Module, path: str) -> Entry:
        numbers = thing.state_dict()
        for name, number in numbers.items():
            if not isinstance(number, Tensor):
                raise _refusal(f"{path}.{name}", number, "", "the tensors of your own modules can")
        return {
            "kind": "foreign module",
            "class": type(thing).__qualname__,
            "training": thing.training,
            "numbers": self._named(dict(numbers), path),
            "learned": [name for name, p in thing.named_parameters(remove_duplicate=False) if p.requires_grad],
        }


def _axes_in_memory(strides: tuple[int, ...]) -> list[int]:
    """Sort the axes from slowest to fastest, so that the memory layout and the exact products stay the same."""
    return sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))


def _is_known_layer(module: nn.Module) -> bool:
    """Return whether a layer is described completely by its class and state (hooks are functions, and are not)."""
    known = saved_class_of(type(module)) is not None or listed_name(type(module)) is not None
    return known and not any(getattr(module, hooks) for hooks in HOOKS)


def _checked_text(text: str, path: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{path} cannot be saved: {text!a} is not valid Unicode text (half a surrogate pair)."
        ) from None
    return text


def _refusal(path: str, thing: Any, more: str, what_can: str) -> TypeError:
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}".removeprefix("builtins.")
    of = " ".join(filter(None, [kind, getattr(thing, "__qualname__", ""), more]))
    return TypeError(f"{path} cannot be saved: it is a {of}, and only {what_can} be saved.")
