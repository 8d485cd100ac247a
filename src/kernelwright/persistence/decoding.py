"""From a document to objects, by a loop over its table.

Files may come from anyone. No code in them is run and no name in them is imported. Classes are looked up in a list;
objects are made without their constructors and then get their state. Anything else is a ``ModelFileError``.
"""

from __future__ import annotations

import base64
import copy
import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import sklearn
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from torch import Tensor, nn

import kernelwright
from kernelwright.errors import ModelFileError
from kernelwright.parameters import Parametrised
from kernelwright.persistence.archive import NOT_OURS, Archive
from kernelwright.persistence.classes import listed_class, saved_class, thing_of
from kernelwright.persistence.encoding import ARRAY_TYPE, DEEPEST, LEFT_OUT, TENSOR_TYPES
from kernelwright.persistence.objects import MODULE_STATE, restore
from kernelwright.storage.saved import SavedClass

__all__ = ["Decoder"]

LARGEST_TREE, LARGEST_KEY = 10**7, 1000  # objects within an object, counted with repetitions
LARGEST_INT = 10_000  # hexadecimal digits
SLOW = {"foreign module", "generator", "module", "random state", "torch generator"}  # to make, and
MOST_SLOW = 20_000  # this many of them at most
SPECIAL_FLOATS = {"nan": np.nan, "inf": math.inf, "-inf": -math.inf}
SEQUENCES: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
MAPPINGS: dict[str, type] = {"dict": dict, "ordered": OrderedDict, "bunch": Bunch}
BIT_GENERATORS = {kind.__name__: kind for kind in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM)} | {
    kind.__name__: kind for kind in (np.random.Philox, np.random.SFC64)
}

Entry = dict[str, Any]


class Decoder:
    """Makes the objects of a table; ``templates`` are the user's own modules, which get the saved parameters."""

    def __init__(self, archive: Archive, templates: Sequence[nn.Module]) -> None:
        self._archive, self._templates = archive, templates
        self._objects: list[Any] = []
        self._depths: list[int] = []
        self._sizes: list[int] = []
        self._used: list[int] = []  # entries that the current one refers to
        self._n_slow = 0
        self.uses_scikit_learn = False
        self._makers: dict[str, Callable[[Entry], Any]] = {
            "array": self._array,
            "bytes": lambda entry: base64.b64decode(_field(entry, "text", str), validate=True),
            "dtype": lambda entry: np.dtype(object) if entry.get("dtype") == "O" else _dtype(entry),
            "foreign module": self._foreign_module,
            "generator": self._numpy_generator,
            "masked": self._masked_array,
            "module": self._module,
            "object": self._object,
            "objects": self._object_array,
            "parameter": self._tensor,
            "random state": self._numpy_generator,
            "scalar": _scalar,
            "slice": lambda entry: slice(*self._values(entry)),
            "tensor": self._tensor,
            "thing": _thing,
            "torch generator": self._torch_generator,
        }

    def decode(self, document: Entry) -> Any:
        """Make the object at the root of a document."""
        for entry in _field(document, "table", list):
            self._used = []
            made = self._make(entry)
            self._depths.append(1 + max((self._depths[place] for place in self._used), default=0))
            self._sizes.append(1 + sum(self._sizes[place] for place in self._used))
            if self._depths[-1] > DEEPEST or self._sizes[-1] > LARGEST_TREE:
                raise _fault("its objects are nested too deeply")
            self._objects.append(made)
        if "root" not in document:
            raise _fault("its document has no root")
        return self._value(document["root"])

    def _make(self, entry: Any) -> Any:
        kind = _field(entry, "kind", str)
        if kind in SEQUENCES:
            return self._sequence(SEQUENCES[kind], self._values(entry))
        if kind in MAPPINGS:
            return self._mapping(MAPPINGS[kind], _field(entry, "items", list))
        if kind not in self._makers:
            raise _fault(f"it holds an object of unknown kind {kind!a}")
        if kind in SLOW:
            self._count_slow()
        return self._makers[kind](entry)

    def _count_slow(self) -> None:
        self._n_slow += 1
        if self._n_slow > MOST_SLOW:
            raise _fault(f"it holds more than {MOST_SLOW} networks, kernels and random states")

    # values inside entries -----------------------------------------------------------------------------

    def _value(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is not dict or len(value) != 1:
            raise _fault("a value is neither an atom nor a reference")
        ((kind, content),) = value.items()
        if kind == "ref" and type(content) is int and 0 <= content < len(self._objects):
            self._used.append(content)
            return self._objects[content]
        if kind == "float" and content in SPECIAL_FLOATS:
            return SPECIAL_FLOATS[content]
        if kind == "int" and type(content) is str and len(content) <= LARGEST_INT:
            return int(content, 16)
        raise _fault("a reference leads to no earlier object")

    def _values(self, entry: Entry, name: str = "items") -> list[Any]:
        return [self._value(value) for value in _field(entry, name, list)]

    def _named(self, entry: Entry, name: str) -> dict[str, Any]:
        return {key: self._value(value) for key, value in _field(entry, name, dict).items()}

    def _sequence(self, kind: type, items: list[Any]) -> Any:
        if kind in (set, frozenset):
            self._check_key_sizes()
        return kind(items)

    def _mapping(self, kind: type, pairs: list[Any]) -> Any:
        keys = [self._value(pair[0]) for pair in pairs]
        self._check_key_sizes()
        made = kind()
        made.update(zip(keys, [self._value(pair[1]) for pair in pairs], strict=True))
        return made

    def _check_key_sizes(self) -> None:
        """Check that keys are small, because hashing nested tuples with shared parts may take forever."""
        if any(self._sizes[place] > LARGEST_KEY for place in self._used):
            raise _fault("a key of a dictionary is too large")

    # arrays --------------------------------------------------------------------------------------------

    def _array(self, entry: Entry) -> np.ndarray:
        dtype = _dtype(entry)
        shape, order = self._layout(entry, dtype.itemsize)
        array = np.empty([shape[axis] for axis in order], dtype)
        self._fill(entry, array)
        _check_bits(array)
        return array if order == sorted(order) else array.transpose(np.argsort(order))

    def _tensor(self, entry: Entry) -> Tensor:
        dtype = TENSOR_TYPES.get(_field(entry, "dtype", str))
        if dtype is None:
            raise _fault("a tensor has an unknown dtype")
        shape, order = self._layout(entry, dtype.itemsize)
        tensor = torch.empty([shape[axis] for axis in order], dtype=dtype)
        self._fill(entry, tensor.reshape(-1).view(torch.uint8).numpy())
        if dtype == torch.bool:
            _check_bits(tensor.numpy())
        tensor, learned = tensor.permute(np.argsort(order).tolist()), _field(entry, "learned", bool)
        if entry["kind"] == "parameter":
            return nn.Parameter(tensor, requires_grad=learned)
        return tensor.requires_grad_(learned)

    def _layout(self, entry: Entry, itemsize: int) -> tuple[list[int], list[int]]:
        """Return the shape and the order of the axes, after checking them against the number of bytes."""
        shape, order = _field(entry, "shape", list), _field(entry, "order", list)
        if not all(type(length) is int and length >= 0 for length in shape) or len(shape) > 32:
            raise _fault("an array has an impossible shape")
        if not all(type(axis) is int for axis in order) or sorted(order) != list(range(len(shape))):
            raise _fault("the axes of an array are in an impossible order")
        if math.prod(shape) * itemsize != self._archive.size(entry.get("bytes")):
            raise _fault("the shape of an array does not fit its size")
        return shape, order

    def _fill(self, entry: Entry, array: np.ndarray) -> None:
        self._archive.read_into(entry["bytes"], array.reshape(-1).view(np.uint8).data)

    def _object_array(self, entry: Entry) -> np.ndarray:
        items, shape = self._values(entry), _field(entry, "shape", list)
        if not all(type(length) is int and length >= 0 for length in shape) or math.prod(shape) != len(items):
            raise _fault("the shape of an array does not fit its size")
        array = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):  # not array[:] = items, which would unpack nested sequences
            array[place] = item
        return array.reshape(shape)

    def _masked_array(self, entry: Entry) -> np.ma.MaskedArray:
        data, mask = self._values(entry)
        if not isinstance(data, np.ndarray):
            raise _fault("a masked array has no array")
        return np.ma.MaskedArray(data, mask)

    # random states -------------------------------------------------------------------------------------

    def _numpy_generator(self, entry: Entry) -> Any:
        state = self._value(entry.get("state"))
        maker = BIT_GENERATORS.get(_field(state, "bit_generator", str))
        if maker is None:
            raise _fault("a random state is of a kind that numpy does not know")
        # Numpy does not check these positions, and would read beyond its table.
        if maker is np.random.MT19937 and not 0 <= _field(_field(state, "state", dict), "pos", int) <= 624:
            raise _fault("a random state points beyond itself")
        if maker is np.random.Philox and not 0 <= _field(state, "buffer_pos", int) <= 4:
            raise _fault("a random state points beyond itself")
        if entry["kind"] == "random state":
            legacy = np.random.RandomState(maker(0))
            legacy.set_state(state)
            return legacy
        generator = np.random.Generator(maker(0))
        generator.bit_generator.state = state
        return generator

    def _torch_generator(self, entry: Entry) -> torch.Generator:
        generator = torch.Generator()
        generator.set_state(self._value(entry.get("state")))
        return generator

    # objects -------------------------------------------------------------------------------------------

    def _class(self, entry: Entry, base: type = object) -> type:
        """Return the class of scikit-learn or torch that an entry names."""
        name = _field(entry, "class", str)
        cls = listed_class(name)
        if cls is None or not issubclass(cls, base):
            told = self._archive.manifest
            raise ModelFileError(
                f"it holds an object of class {name!a}, which kernelwright {kernelwright.__version__} with "
                f"scikit-learn {sklearn.__version__} cannot restore; load it with the versions that saved it, "
                f"{told.get('kernelwright')!a} and {told.get('scikit-learn')!a}"
            )
        self.uses_scikit_learn |= cls.__module__.startswith("sklearn.")
        return cls

    def _object(self, entry: Entry) -> Any:
        declared = saved_class(_field(entry, "class", str))
        if declared is not None:
            return self._saved(entry, declared)
        cls = self._class(entry)
        if issubclass(cls, (nn.Module, tuple, dict)):
            raise _fault(f"a {cls.__name__} has the wrong kind of entry")
        state = _checked_names(cls, self._named(entry, "state"))
        made = object.__new__(cls)
        if isinstance(made, BaseEstimator):
            state = _usual_settings(cls) | _without_settings_of_a_program(state)  # type: ignore[arg-type]
            made.__setstate__(state | {"_sklearn_version": sklearn.__version__})  # compared once, in the manifest
        else:
            vars(made).update(state)
        return made

    def _saved(self, entry: Entry, declared: SavedClass) -> Any:
        if issubclass(declared.cls, nn.Module):
            self._count_slow()
        state = self._named(entry, "state")
        if issubclass(declared.cls, BaseEstimator):
            state = _without_settings_of_a_program(state)
        return restore(declared, state, _field(entry, "version", int))

    def _module(self, entry: Entry) -> nn.Module:
        cls = self._class(entry, nn.Module)
        made: nn.Module = object.__new__(cls)
        nn.Module.__init__(made)
        made.training = _field(entry, "training", bool)
        state = _checked_names(cls, self._named(entry, "state"))
        if MODULE_STATE & state.keys():
            raise _fault(f"a {cls.__name__} has internal state of torch")
        vars(made).update(state)
        for name, kind, place in (
            ("parameters", nn.Parameter, made._parameters),
            ("buffers", Tensor, made._buffers),
            ("modules", nn.Module, made._modules),
        ):
            parts = self._named(entry, name)
            if not all(part is None or isinstance(part, kind) for part in parts.values()):
                raise _fault(f"the {name} of a {cls.__name__} have the wrong type")
            place.update(_checked_names(cls, parts))  # type: ignore[attr-defined]
        made._non_persistent_buffers_set.update(self._values(entry, "transient"))
        return made

    def _foreign_module(self, entry: Entry) -> nn.Module:
        name, numbers = _field(entry, "class", str), self._named(entry, "numbers")
        if not all(isinstance(number, Tensor) for number in numbers.values()):
            raise _fault("the parameters of a module have the wrong type")
        if not self._templates:
            raise ModelFileError(
                f"it holds the parameters of your own module {name!a}, but not its code; pass a module that is built "
                f"in the same way: load(path, module={name}(...))"
            )
        for template in self._templates:
            if _fits(template, numbers):
                return _with_numbers(template, numbers, set(self._values(entry, "learned")), entry.get("training"))
        shapes = ", ".join(f"{key} {tuple(number.shape)}" for key, number in list(numbers.items())[:4])
        raise ModelFileError(
            f"the parameters of its module {name!a} fit no module that was passed; pass one that is built like the "
            f"saved one, whose parameters are {shapes or 'none'}{', ...' if len(numbers) > 4 else ''}"
        )


# Checks of single entries -----------------------------------------------------------------------------------------


def _fault(what: str) -> ModelFileError:
    return ModelFileError(f"{what}; {NOT_OURS}")


def _field(entry: Any, name: str, kind: type) -> Any:
    """Return a field of an entry, or raise an error if it does not have exactly the expected type."""
    if type(entry) is not dict or type(entry.get(name)) is not kind:
        raise _fault(f"an entry has no {name!r} of type {kind.__name__}")
    return entry[name]


def _dtype(entry: Entry) -> np.dtype:
    name = _field(entry, "dtype", str)
    if not ARRAY_TYPE.fullmatch(name):
        raise _fault(f"an array has the unknown dtype {name!a}")
    return np.dtype(name)


def _scalar(entry: Entry) -> Any:
    dtype, content = _dtype(entry), bytes.fromhex(_field(entry, "bytes", str))
    if len(content) != dtype.itemsize:
        raise _fault("a number has the wrong size")
    array = np.frombuffer(content, dtype)
    _check_bits(array)
    return array[0]


def _check_bits(array: np.ndarray) -> None:
    """Check that booleans are 0 or 1 and that characters exist; other values can harm code that trusts them."""
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise _fault("a boolean is neither true nor false")
    if array.dtype.kind == "U" and array.size:
        codes = np.ascontiguousarray(array).reshape(-1).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max() > 0x10FFFF:
            raise _fault("a text holds characters that do not exist")


def _thing(entry: Entry) -> Any:
    name = _field(entry, "name", str)
    thing = thing_of(name)
    if thing is None:
        raise _fault(f"it names {name!a}, which no model needs")
    return thing


def _checked_names(cls: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state, or raise an error if it would hide a method of its class."""
    for name in state:
        if name.startswith("__") or callable(getattr(cls, name, None)):
            raise _fault(f"a {cls.__name__} has an attribute {name!a} that replaces a method")
    return state


@cache
def _usual_settings(cls: Any) -> dict[str, Any]:
    """Return the defaults of the constructor, for settings that are newer than the file."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def _without_settings_of_a_program(state: dict[str, Any]) -> dict[str, Any]:
    return state | {name: None for name in LEFT_OUT if name in state}


def _fits(template: nn.Module, numbers: dict[str, Tensor]) -> bool:
    """Return whether a module has parameters of these names and shapes; kernel parameters may have any shape."""
    own = template.state_dict()
    same_shapes = own.keys() == numbers.keys() and all(own[key].shape == numbers[key].shape for key in own)
    return same_shapes or (isinstance(template, Parametrised) and own.keys() == numbers.keys())


def _with_numbers(template: nn.Module, numbers: dict[str, Tensor], learned: set[str], training: Any) -> nn.Module:
    """Return a copy of a module with other parameters, in their own precision."""
    made = copy.deepcopy(template).cpu()
    for name, parameter in made.named_parameters(remove_duplicate=False):
        parameter.data = numbers[name]
        parameter.requires_grad_(name in learned)
    for name, _ in list(made.named_buffers(remove_duplicate=False)):
        path, _, leaf = name.rpartition(".")
        if name in numbers:
            made.get_submodule(path)._buffers[leaf] = numbers[name]
    return made.train(bool(training))
